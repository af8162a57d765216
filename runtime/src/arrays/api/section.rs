//! Sections: sets of chunks of an array, for multicasts and reductions.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunk::Chunk;
use super::ctx::{Ctx, Target};
use super::index::Index;
use crate::arrays::core::collectives::reduction::{Reducer, Values};
use crate::arrays::core::collectives::section::SectionContribution;
use crate::arrays::core::lifecycle::handler::Effect;

/// A set of chunks of an array, to [multicast](Ctx::multicast) to and to [reduce](Ctx::contribute_in) over. A section
/// can be stored, sent and migrated, and its chunks may migrate. Sections with the same chunks, in any order, are the
/// same.
///
/// A section takes 8 bytes for each of its chunks wherever it is stored. A multicast leaves nothing behind. A reduction
/// leaves counts: some tens of bytes until the run ends, in each chunk of the section and on each rank that had one.
/// For many short-lived sections use [`once`](Section::once): nothing of them is left after their result.
///
/// ```
/// use caribou::{Chunk, Ctx, Section, testing::probe};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Block { row: Section<Block> }
/// impl Chunk for Block {
///     type Index = [u16; 2];
///     type Message = u64;
///     fn receive(&mut self, pivot: u64, ctx: &mut Ctx<'_, Self>) { ctx.multicast(&self.row, &pivot); }
/// }
/// let row = Section::new((0..4).map(|column| [7, column]));
/// let sent = probe(&mut Block { row }, [0, 0]).receive(5);
/// assert_eq!(sent.multicasts, [(vec![[7, 0], [7, 1], [7, 2], [7, 3]], 5)]);
/// ```
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Section<C: Chunk> {
    /// The packed indices, ascending.
    pub(super) keys: Arc<[u64]>,
    /// Identifies the section: two sections have the same number with a chance of one in 2^64.
    id: u64,
    /// A chunk that was listed twice.
    duplicate: Option<u64>,
    /// The number of the only reduction over the section.
    once: Option<u64>,
    chunk: PhantomData<fn() -> C>,
}

impl<C: Chunk> Section<C> {
    /// The section of these chunks.
    pub fn new(indices: impl IntoIterator<Item = C::Index>) -> Section<C> {
        let mut keys: Vec<u64> = indices.into_iter().map(Index::pack).collect();
        keys.sort_unstable();
        let id = number_of(&keys);
        let twice = keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        Section { keys: keys.into(), id, duplicate: twice, once: None, chunk: PhantomData }
    }

    /// The same chunks for a single reduction with a number of your choice. Chunks [contribute](Ctx::contribute_in)
    /// once, and nothing is stored after the result. Sections of different numbers are different, and differ from
    /// `self`.
    ///
    /// All contributing chunks must use the same number, such as a step that they all count, or a number in the message
    /// to which they respond. A number may be used again when its result has come. A second contribution before that is
    /// an error, found where it meets the first one of its chunk. A contribution after the result begins another
    /// reduction, which waits for the other chunks: the run stalls, and the error names them. Results come in any
    /// order.
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Reducer, Section, Target, Values};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Chunk 0 asks 1000 pairs of the others, one after the other, for the sum of their indices.
    /// #[derive(Serialize, Deserialize)]
    /// struct Node { total: u64 }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// enum Word { Ask(Section<Node>), Sum { question: u32, sum: u64 } }
    ///
    /// fn ask(question: u32, ctx: &mut Ctx<'_, Node>) {
    ///     let pair = [1 + question % 7, 1 + (question + 1) % 7];
    ///     let section = Section::new(pair).once(question.into());
    ///     // The message has to name the question too, and does so by its section.
    ///     ctx.multicast(&section, &Word::Ask(section.clone()));
    /// }
    ///
    /// impl Chunk for Node {
    ///     type Index = u32;
    ///     type Message = Word;
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         if ctx.index() == 0 { ask(0, ctx); }
    ///     }
    ///     fn reduced(question: u32, values: Values) -> Word {
    ///         let Values::U64(sum) = values else { unreachable!("u64 are contributed") };
    ///         Word::Sum { question, sum: sum[0] }
    ///     }
    ///     fn receive(&mut self, word: Word, ctx: &mut Ctx<'_, Self>) {
    ///         match word {
    ///             Word::Ask(section) => {
    ///                 let value = vec![u64::from(ctx.index())];
    ///                 let question = section.number().unwrap_or(0) as u32;
    ///                 ctx.contribute_in(&section, question, Reducer::Sum, value, Target::Chunk(0));
    ///             }
    ///             Word::Sum { question, sum } => {
    ///                 self.total += sum;
    ///                 if question == 999 { ctx.exit_with(&self.total); } else { ask(question + 1, ctx); }
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(8, |_| Node { total: 0 });
    /// })?;
    /// assert_eq!(report.value::<u64>()?, 8000);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    pub fn once(&self, number: u64) -> Section<C> {
        let of_chunks = number_of(&self.keys);
        Section { id: mix_bits(of_chunks ^ mix_bits(number)), once: Some(number), ..self.clone() }
    }

    /// The number of the only reduction, if [`once`](Self::once) made the section.
    pub fn number(&self) -> Option<u64> {
        self.once
    }
}

/// A hash of ascending keys.
fn number_of(keys: &[u64]) -> u64 {
    keys.iter().fold(keys.len() as u64, |number, &key| mix_bits(number ^ key))
}

impl<C: Chunk> Clone for Section<C> {
    fn clone(&self) -> Section<C> {
        Section { keys: self.keys.clone(), ..*self }
    }
}

/// A step of splitmix64: one to one, and it maps near numbers far apart.
fn mix_bits(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl<C: Chunk> Ctx<'_, C> {
    /// Contributes to the next reduction over a section of this chunk. The reduction has a result when every chunk of
    /// the section has contributed. [`Target::All`] and [`Target::Scan`] are for the chunks of the section.
    ///
    /// Each chunk counts its contributions to each section. Its k-th contribution is for the same reduction as the k-th
    /// of every other chunk, and all must agree as in [`contribute`](Self::contribute). Several reductions may be in
    /// progress, and a chunk may be in several sections. Results of one section come in order. A chunk that is inserted
    /// later begins with the first reduction. A reduction waits for a chunk that was removed: the run stalls, and the
    /// error names the chunk. If a successor under its index contributes again, the run ends with an error.
    ///
    /// Cost: each rank with chunks of the section sends one packet to the rank on which the first chunk was placed, and
    /// more if some chunks contribute much later. A result for all chunks takes one packet to each such rank. Each
    /// packet carries the indices. For most of an array [`contribute`](Self::contribute) is cheaper, because its
    /// packets go along a tree. Each section leaves memory (see [`Section`]). So make few sections, and reduce over
    /// them often, or use [`Section::once`].
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Reducer, Section, Target, Values};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// A block of a matrix, which is of the sum of its row and of that of its column.
    /// #[derive(Serialize, Deserialize)]
    /// struct Block { sums: Vec<(u32, f64)> }
    ///
    /// const ROW: u32 = 0;
    /// const COLUMN: u32 = 1;
    ///
    /// impl Chunk for Block {
    ///     type Index = [u16; 2];
    ///     type Message = (u32, f64);
    ///
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let [i, j] = ctx.index();
    ///         let value = vec![f64::from(10 * i + j)];
    ///         let (row, column) = (Section::new((0..3).map(|j| [i, j])), Section::new((0..3).map(|i| [i, j])));
    ///         ctx.contribute_in(&row, ROW, Reducer::Sum, value.clone(), Target::All);
    ///         ctx.contribute_in(&column, COLUMN, Reducer::Max, value, Target::All);
    ///     }
    ///
    ///     fn reduced(tag: u32, values: Values) -> (u32, f64) {
    ///         let Values::F64(values) = values else { unreachable!("f64 are contributed") };
    ///         (tag, values[0])
    ///     }
    ///
    ///     fn receive(&mut self, result: (u32, f64), ctx: &mut Ctx<'_, Self>) {
    ///         self.sums.push(result);
    ///         self.sums.sort_by_key(|&(tag, _)| tag);
    ///         if ctx.index() == [1, 2] && self.sums.len() == 2 { ctx.exit_with(&self.sums); }
    ///     }
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array([3, 3], |_: [u16; 2]| Block { sums: Vec::new() });
    /// })?;
    /// let expected = [(ROW, 10.0 + 11.0 + 12.0), (COLUMN, 22.0)];
    /// assert_eq!(report.value::<Vec<(u32, f64)>>()?, expected);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Panics
    /// If this chunk is not in the section, or the section lists a chunk twice. Also where
    /// [`contribute`](Self::contribute) panics.
    #[track_caller]
    pub fn contribute_in(
        &mut self,
        section: &Section<C>,
        tag: u32,
        reducer: Reducer,
        values: impl Into<Values>,
        target: Target<C::Index>,
    ) {
        let (spec, values) = self.contribution(tag, reducer, values.into(), target);
        let keys = section.keys.clone();
        let Ok(place) = keys.binary_search(&self.handler.chunk().key) else {
            let of = keys.iter().take(3).map(|&key| format!("{:?}", C::Index::unpack(key)));
            let more = match keys.len() {
                0 => "the section is empty",
                1..=3 => "",
                _ => ", ...",
            };
            let of = of.collect::<Vec<_>>().join(", ");
            panic!(
                "{:?} contributes to a reduction over a section that does not contain it: {of}{more}",
                self.index()
            )
        };
        if let Some(twice) = section.duplicate {
            panic!("the section of a reduction contains {:?} twice", C::Index::unpack(twice));
        }
        let (once, id) = (section.once.is_some(), section.id);
        let sequence = if once { 0 } else { self.record.sections.get_or_insert_default().number(id) };
        let contribution = SectionContribution { keys, section: id, once, place, sequence, spec, values };
        self.handler.outbox.push(Effect::ContributeIn(Box::new(contribution)));
    }
}
