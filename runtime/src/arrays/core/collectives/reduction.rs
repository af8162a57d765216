//! Reductions: every chunk of an array contributes values, and one combined result comes back as an ordinary message.
//! Partial results are aggregated in the [tree](super::tree) of ranks, of which rank 0 is the root.
//!
//! # Steps of a rank other than rank 0
//!
//! | input | output, to the parent |
//! |---|---|
//! | the last of the array's chunks on this rank contributes | the partial result of this rank and its children so far |
//! | a later contribution or partial result | only this one, at once |
//! | the rank is idle, or has worked for long | everything that it has not sent on |
//!
//! # Rules
//! 1. A [`Tally`] counts the contributions in a partial result. Tallies add up in any order, so *when* a rank sends on
//!    a partial result changes only the speed.
//! 2. No contribution is tied to a rank, so chunks may migrate with contributions in flight.
//! 3. Reducers over vectors are a closed set, so ranks combine them without the type of the chunk. Values of a
//!    user-defined type stay a list until a rank with a chunk of that type combines them, see [`own`](super::own).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::own::Own;
use super::population::{MemberReport, Tally};
use crate::ids::{ArrayId, ChunkId, Rank};
use crate::wire;

/// The operation that combines contributions, element by element.
///
/// ```
/// use caribou::{Chunk, Config, Ctx, Reducer, Target};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Block;
///
/// impl Chunk for Block {
///     type Index = u32;
///     type Message = ();
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         let checksum = u64::MAX - u64::from(ctx.index());
///         ctx.contribute(0, Reducer::WrappingSum, vec![checksum], Target::Exit);
///     }
///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
/// }
///
/// let report = caribou::run(Config::default(), |setup| { setup.array(3, |_| Block); })?;
/// assert_eq!(report.value::<Vec<u64>>()?, [u64::MAX - 5]);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reducer {
    /// The sum. Integer sums saturate. Floating-point sums may differ in the last bits with placement.
    Sum,
    /// The sum modulo 2^64, of [`Values::U64`] or [`Values::I64`]. For checksums: the result is the same on every
    /// placement, and depends on every bit of every contribution.
    WrappingSum,
    /// The minimum; NaN if a floating-point number is NaN.
    Min,
    /// The maximum; NaN if a floating-point number is NaN.
    Max,
    /// Bitwise and, of [`Values::U64`].
    And,
    /// Bitwise or, of [`Values::U64`].
    Or,
    /// Every contribution, ordered by packed index. The result is the same on every placement.
    Gather,
    /// Combines values of a user-defined type by [`Combine`](crate::Combine), see [`Values::own`].
    Own,
}

impl Reducer {
    /// The type of the values that the reducer combines, as text.
    fn takes(self) -> &'static str {
        match self {
            Reducer::Sum | Reducer::Min | Reducer::Max => "numbers",
            Reducer::WrappingSum => "u64 or i64",
            Reducer::And | Reducer::Or => "u64",
            Reducer::Gather => "bytes (of any type by `Values::part`, or a Vec<u8>)",
            Reducer::Own => "values of your own type (by Values::own)",
        }
    }
}

/// The values of a contribution, or of a result.
///
/// ```
/// use caribou::Values;
/// assert_eq!(Values::from(vec![1.0, 2.0]), Values::F64(vec![1.0, 2.0]));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Values {
    /// Floating-point numbers.
    F64(Vec<f64>),
    /// Unsigned integers, or bit sets for and/or.
    U64(Vec<u64>),
    /// Signed integers.
    I64(Vec<i64>),
    /// Bytes by packed index ([`Index::pack`](crate::Index::pack)): the result of [`Reducer::Gather`].
    Gathered(Vec<(u64, Vec<u8>)>),
    /// Values of a user-defined type, for [`Reducer::Own`].
    Own(Own),
}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Values {
        Values::F64(values)
    }
}

impl From<Vec<u64>> for Values {
    fn from(values: Vec<u64>) -> Values {
        Values::U64(values)
    }
}

impl From<Vec<i64>> for Values {
    fn from(values: Vec<i64>) -> Values {
        Values::I64(values)
    }
}

impl From<Vec<u8>> for Values {
    /// The contribution of one chunk to a gather; the runtime fills in the index of the chunk.
    fn from(bytes: Vec<u8>) -> Values {
        Values::Gathered(vec![(0, bytes)])
    }
}

impl Values {
    /// A contribution to a scan. The contributions are gathered, and rank 0 combines them when all have come.
    pub(crate) fn scanned(&self, key: u64) -> Values {
        let bytes = wire::encode(self).unwrap_or_else(|why| unreachable!("numbers and bytes encode: {why}"));
        Values::Gathered(vec![(key, bytes)])
    }

    /// The neutral element of a reducer, of the same type and length as these values.
    fn neutral(&self, reducer: Reducer) -> Values {
        fn all<T: Copy>(like: &[T], sum: T, min: T, max: T, reducer: Reducer) -> Vec<T> {
            let neutral = match reducer {
                Reducer::Min | Reducer::And => min,
                Reducer::Max => max,
                Reducer::Sum | Reducer::WrappingSum | Reducer::Or | Reducer::Gather | Reducer::Own => sum,
            };
            vec![neutral; like.len()]
        }
        match self {
            Values::F64(like) => all(like, 0.0, f64::INFINITY, f64::NEG_INFINITY, reducer).into(),
            Values::U64(like) => all(like, 0, u64::MAX, 0, reducer).into(),
            Values::I64(like) => all(like, 0, i64::MAX, i64::MIN, reducer).into(),
            Values::Gathered(_) | Values::Own(_) => Values::Gathered(Vec::new()),
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Values::F64(v) => format!("{} f64", v.len()),
            Values::U64(v) => format!("{} u64", v.len()),
            Values::I64(v) => format!("{} i64", v.len()),
            Values::Gathered(_) => "bytes (from a Vec<u8>)".into(),
            Values::Own(own) => format!("values of `{}`", own.type_name()),
        }
    }
}

/// The result of an exclusive scan for each chunk, by packed index: the contributions of the chunks before it,
/// combined.
pub(crate) fn scan(reducer: Reducer, gathered: &Values) -> Result<Vec<(u64, Values)>, String> {
    let Values::Gathered(parts) = gathered else { unreachable!("contributions to a scan are gathered") };
    let mut so_far: Option<Values> = None;
    let mut result = |(key, bytes): &(u64, Vec<u8>)| {
        let own: Values = wire::decode(bytes).map_err(|why| why.to_string())?;
        let before = so_far.get_or_insert_with(|| own.neutral(reducer));
        let exclusive = before.clone();
        combine(reducer, before, own)?;
        Ok((*key, exclusive))
    };
    parts.iter().map(&mut result).collect()
}

/// The receiver of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ResultTarget {
    All,
    Chunk(u64),
    /// Chunks of another array.
    AllOf(ArrayId),
    ChunkOf(ChunkId),
    Scan,
    Exit,
}

/// The specification, which must be the same in all contributions to one reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReductionSpec {
    pub(crate) tag: u32,
    pub(crate) reducer: Reducer,
    pub(crate) target: ResultTarget,
}

impl fmt::Display for ReductionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} under tag {} with its result to ", self.reducer, self.tag)?;
        f.write_str(match self.target {
            ResultTarget::All => "all chunks",
            ResultTarget::Chunk(_) => "one chunk",
            ResultTarget::AllOf(_) => "all chunks of another array",
            ResultTarget::ChunkOf(_) => "one chunk of another array",
            ResultTarget::Scan => "each chunk (a scan)",
            ResultTarget::Exit => "the caller of run",
        })
    }
}

/// The values combined so far, and the specification of the reduction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Combined {
    pub(crate) spec: ReductionSpec,
    pub(crate) values: Values,
}

impl Combined {
    pub(crate) fn merge(&mut self, theirs: Combined) -> Result<(), String> {
        let Combined { spec, values } = theirs;
        if self.spec != spec {
            let mine = self.spec;
            return Err(format!("contributions must agree, but some are for {mine}, others for {spec}"));
        }
        let reducer = if spec.target == ResultTarget::Scan { Reducer::Gather } else { spec.reducer };
        combine(reducer, &mut self.values, values)
    }

    /// True if user code is to combine the values before the rank sends them on.
    pub(crate) fn can_combine(&self) -> bool {
        matches!(&self.values, Values::Own(own) if own.can_combine())
    }

    /// Combines user-defined values. Runs user code.
    pub(crate) fn combine(&mut self) -> Result<(), String> {
        let Values::Own(own) = &mut self.values else { return Ok(()) };
        let tag = self.spec.tag;
        own.combine().map_err(|why| {
            format!("the values of `{}` under tag {tag} do not combine: {why}", own.type_name())
        })
    }

    /// The result, when all have contributed.
    pub(crate) fn finished(self) -> (ReductionSpec, Arc<Values>) {
        let Combined { spec, mut values } = self;
        if let Values::Gathered(parts) = &mut values {
            parts.sort_by_key(|&(key, _)| key);
        }
        (spec, Arc::new(values))
    }
}

/// A partial result of a reduction. The report of a chunk that leaves or abstains adds no values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partial {
    tally: Tally,
    combined: Option<Combined>,
}

impl Partial {
    pub(crate) fn contribution(report: MemberReport, spec: ReductionSpec, values: Values) -> Partial {
        Partial { tally: Tally::of(report), combined: Some(Combined { spec, values }) }
    }

    /// The report of a chunk that contributes nothing.
    pub(crate) fn empty(report: MemberReport) -> Partial {
        Partial { tally: Tally::of(report), combined: None }
    }

    fn merge(&mut self, other: Partial) -> Result<(), String> {
        self.tally.merge(&other.tally);
        match (&mut self.combined, other.combined) {
            (Some(ours), Some(theirs)) => ours.merge(theirs)?,
            (None, Some(theirs)) => self.combined = Some(theirs),
            (_, None) => {}
        }
        Ok(())
    }

    /// True if user code is to combine the values before the rank sends them on.
    fn can_combine(&self) -> bool {
        self.combined.as_ref().is_some_and(Combined::can_combine)
    }

    /// Combines user-defined values. Runs user code.
    pub(crate) fn combine(&mut self) -> Result<(), String> {
        self.combined.as_mut().map_or(Ok(()), Combined::combine)
    }
}

/// NaN if either number is NaN, because a result that ignored the NaN would look valid.
fn nan_or(x: f64, y: f64, choose: fn(f64, f64) -> f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { choose(x, y) }
}

fn combine(reducer: Reducer, ours: &mut Values, theirs: Values) -> Result<(), String> {
    fn each<T: Copy>(ours: &mut [T], theirs: &[T], f: impl Fn(T, T) -> T) {
        ours.iter_mut().zip(theirs).for_each(|(a, b)| *a = f(*a, *b));
    }
    let mismatch =
        |theirs: &Values| format!("{reducer:?} takes {}, not {}", reducer.takes(), theirs.describe());
    match (reducer, &mut *ours, theirs) {
        (Reducer::Gather, Values::Gathered(a), Values::Gathered(b)) => a.extend(b),
        (Reducer::Own, Values::Own(a), Values::Own(b)) if a.type_name() == b.type_name() => a.append(b),
        (_, Values::F64(a), Values::F64(b)) if a.len() == b.len() => match reducer {
            Reducer::Sum => each(a, &b, |x, y| x + y),
            Reducer::Min => each(a, &b, |x, y| nan_or(x, y, f64::min)),
            Reducer::Max => each(a, &b, |x, y| nan_or(x, y, f64::max)),
            _ => return Err(mismatch(&Values::F64(b))),
        },
        (_, Values::U64(a), Values::U64(b)) if a.len() == b.len() => match reducer {
            Reducer::Sum => each(a, &b, u64::saturating_add),
            Reducer::WrappingSum => each(a, &b, u64::wrapping_add),
            Reducer::Min => each(a, &b, u64::min),
            Reducer::Max => each(a, &b, u64::max),
            Reducer::And => each(a, &b, |x, y| x & y),
            Reducer::Or => each(a, &b, |x, y| x | y),
            _ => return Err(mismatch(&Values::U64(b))),
        },
        (_, Values::I64(a), Values::I64(b)) if a.len() == b.len() => match reducer {
            Reducer::Sum => each(a, &b, i64::saturating_add),
            Reducer::WrappingSum => each(a, &b, i64::wrapping_add),
            Reducer::Min => each(a, &b, i64::min),
            Reducer::Max => each(a, &b, i64::max),
            _ => return Err(mismatch(&Values::I64(b))),
        },
        (Reducer::Own, Values::Own(a), Values::Own(b)) => {
            let (ours, theirs) = (a.type_name(), b.type_name());
            return Err(format!(
                "contributions must be of one type, but some are of `{ours}`, others of `{theirs}`"
            ));
        }
        (Reducer::Gather | Reducer::Own, _, theirs)
        | (_, _, theirs @ (Values::Gathered(_) | Values::Own(_))) => return Err(mismatch(&theirs)),
        (_, ours, theirs) => {
            let (ours, theirs) = (ours.describe(), theirs.describe());
            return Err(format!(
                "contributions must be of one type and length, but some are {ours}, others {theirs}"
            ));
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
pub(crate) struct FinishedReduction {
    pub(crate) array: ArrayId,
    pub(crate) sequence: u64,
    pub(crate) spec: ReductionSpec,
    pub(crate) values: Arc<Values>,
}

#[derive(Debug, Default)]
struct Pending {
    /// The partial result that has not been sent on.
    partial: Option<Partial>,
    /// Number of contributions of this rank's chunks, sent on or not.
    own: u64,
}

/// The state of one rank for all reductions.
#[derive(Debug)]
pub(crate) struct Reductions {
    pending: BTreeMap<(ArrayId, u64), Pending>,
    /// Per array, the first reduction to which not all chunks of this rank have contributed.
    open: Vec<u64>,
    /// Rank 0 only: per array, the next reduction to finish and the population that it needs.
    roots: Vec<(u64, u64)>,
    /// A partial result that user code is to combine. It comes back like a partial result of another rank.
    uncombined: Option<(ArrayId, u64, Partial)>,
}

/// The state of rank 0 while all partial results are there and none is in flight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RootReductions {
    roots: Vec<(u64, u64)>,
    partials: Vec<(ArrayId, u64, Partial)>,
}

impl RootReductions {
    /// True if these are the reductions of `arrays` arrays.
    pub(crate) fn are_of(&self, arrays: usize) -> bool {
        let is_known = |array: ArrayId| array.index() < arrays;
        self.roots.len() == arrays && self.partials.iter().all(|&(array, ..)| is_known(array))
    }

    /// An array begins anew with `chunks` chunks: nothing has been contributed.
    pub(crate) fn begin_anew(&mut self, array: ArrayId, chunks: u64) {
        if let Some(root) = self.roots.get_mut(array.index()) {
            *root = (0, chunks);
        }
        self.partials.retain(|&(its, ..)| its != array);
    }
}

impl Reductions {
    /// Rank 0: the state that a restarted run needs, taken while no other rank has a partial result.
    pub(crate) fn root_image(&self) -> RootReductions {
        let partial = |(&(array, sequence), pending): (&(ArrayId, u64), &Pending)| {
            Some((array, sequence, pending.partial.clone()?))
        };
        RootReductions {
            roots: self.roots.clone(),
            partials: self.pending.iter().filter_map(partial).collect(),
        }
    }

    /// Rank 0 of a run that restarts: goes on from `image`. Its contributions do not count as contributions of this
    /// rank's chunks, so the first partial results go up only when ranks are idle.
    pub(crate) fn restore(&mut self, image: RootReductions) {
        self.roots = image.roots;
        let pending = |partial| Pending { partial: Some(partial), ..Pending::default() };
        let partials = image.partials.into_iter();
        self.pending =
            partials.map(|(array, sequence, partial)| ((array, sequence), pending(partial))).collect();
    }

    pub(crate) fn new(rank: Rank, populations: &[u64]) -> Reductions {
        let roots = if rank.0 == 0 { populations.iter().map(|&p| (0, p)).collect() } else { Vec::new() };
        Reductions { pending: BTreeMap::new(), open: vec![0; populations.len()], roots, uncombined: None }
    }

    /// Adds a contribution of a chunk of this rank. True if all `local` chunks of the array here have now contributed.
    pub(crate) fn contribute(
        &mut self,
        array: ArrayId,
        sequence: u64,
        partial: Partial,
        local: u64,
    ) -> Result<bool, String> {
        let pending = self.add(array, sequence, partial)?;
        pending.own += 1;
        Ok(pending.own >= local)
    }

    /// Adds a child's partial result. True if it is to be sent on at once: all `local` chunks here have contributed.
    pub(crate) fn receive(
        &mut self,
        array: ArrayId,
        sequence: u64,
        partial: Partial,
        local: u64,
    ) -> Result<bool, String> {
        let gone = sequence < self.open[array.index()];
        let pending = self.add(array, sequence, partial)?;
        Ok(gone || pending.own >= local)
    }

    /// Adds the last report of a leaving chunk. True if any chunk here has contributed, and all `local` chunks that
    /// stay have.
    pub(crate) fn leave(
        &mut self,
        array: ArrayId,
        sequence: u64,
        partial: Partial,
        local: u64,
    ) -> Result<bool, String> {
        let pending = self.add(array, sequence, partial)?;
        Ok(pending.own > 0 && pending.own >= local)
    }

    fn add(&mut self, array: ArrayId, sequence: u64, partial: Partial) -> Result<&mut Pending, String> {
        let pending = self.pending.entry((array, sequence)).or_default();
        match &mut pending.partial {
            None => pending.partial = Some(partial),
            Some(ours) => ours.merge(partial).map_err(|why| format!("reduction {sequence}: {why}"))?,
        }
        if pending.partial.as_ref().is_some_and(Partial::can_combine) {
            self.uncombined = pending.partial.take().map(|partial| (array, sequence, partial));
        }
        Ok(pending)
    }

    /// Takes the last changed partial result, if user code is to combine it. [`receive`](Self::receive) adds it again.
    pub(crate) fn take_uncombined(&mut self) -> Option<(ArrayId, u64, Partial)> {
        self.uncombined.take()
    }

    /// Takes the partial results for the parent, now that all chunks of this rank have contributed to `sequence`.
    ///
    /// All earlier reductions are included. A chunk contributes in order: if it has not contributed to an earlier
    /// reduction here, it has done so on the rank from which it came.
    pub(crate) fn complete(&mut self, array: ArrayId, sequence: u64) -> Vec<(u64, Partial)> {
        let open = &mut self.open[array.index()];
        *open = (*open).max(sequence + 1);
        let through = self.pending.range((array, 0)..=(array, sequence)).map(|(&of, _)| of);
        let through = through.collect::<Vec<_>>().into_iter();
        through.filter_map(|of| Some((of.1, self.pending.remove(&of)?.partial?))).collect()
    }

    /// Takes everything that has not been sent on, in order.
    pub(crate) fn take_all(&mut self) -> Vec<(ArrayId, u64, Partial)> {
        let take = |(&(array, sequence), pending): (&(ArrayId, u64), &mut Pending)| {
            Some((array, sequence, pending.partial.take()?))
        };
        let taken = self.pending.iter_mut().filter_map(take).collect();
        // An entry to which no chunk of this rank has contributed would never be completed here.
        self.pending.retain(|_, pending| pending.own > 0);
        taken
    }

    /// Rank 0: the next finished reduction of `array`, in the order of their numbers.
    pub(crate) fn finish(&mut self, array: ArrayId) -> Option<FinishedReduction> {
        loop {
            let (sequence, population) = self.roots[array.index()];
            let next = self.pending.get(&(array, sequence))?.partial.as_ref()?.tally.complete(population)?;
            let pending = self.pending.remove(&(array, sequence));
            self.roots[array.index()] = (sequence + 1, next);
            // If all chunks have left or abstained, the reduction has no result.
            let combined = pending.and_then(|pending| pending.partial).and_then(|partial| partial.combined);
            let Some((spec, values)) = combined.map(Combined::finished) else { continue };
            return Some(FinishedReduction { array, sequence, spec, values });
        }
    }

    /// Rank 0: one more chunk takes part, from the first unfinished reduction on. Returns the number of that reduction.
    pub(crate) fn admit(&mut self, array: ArrayId) -> u64 {
        let (next, population) = &mut self.roots[array.index()];
        *population += 1;
        *next
    }

    /// Rank 0: the first unfinished reduction of each array, if a chunk that has not left has reported to it.
    pub(crate) fn unfinished(&self) -> Vec<(ArrayId, u64)> {
        let first = |(array, &(sequence, _)): (ArrayId, &(u64, u64))| {
            let partial = self.pending.get(&(array, sequence))?.partial.as_ref()?;
            partial.tally.has_members().then_some((array, sequence))
        };
        (0..).map(ArrayId).zip(&self.roots).filter_map(first).collect()
    }

    /// Rank 0: one line per reduction that is not finished, for a stall report.
    pub(crate) fn explain(&self, name: impl Fn(ArrayId) -> String) -> Vec<String> {
        let mut populations: Vec<u64> = self.roots.iter().map(|&(_, population)| population).collect();
        let line = |(&(array, sequence), pending): (&(ArrayId, u64), &Pending)| {
            let population = populations.get_mut(array.index())?;
            let tally = &pending.partial.as_ref()?.tally;
            let heard = tally.heard();
            // Announced newcomers will contribute too, also to later reductions.
            let all = heard + tally.missing(*population);
            *population = tally.population_after(*population);
            // Nothing waits for a reduction to which only leaving chunks have reported.
            tally.has_members().then(|| {
                format!("reduction {sequence} of {} has {heard} of {all} contributions", name(array))
            })
        };
        self.pending.iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::core::collectives::population::Membership;

    const ARRAY: ArrayId = ArrayId(0);
    const SUM: ReductionSpec = ReductionSpec { tag: 3, reducer: Reducer::Sum, target: ResultTarget::All };

    fn one(member: &mut Membership, value: u64) -> (u64, Partial) {
        let report = member.report();
        (report.sequence, Partial::contribution(report, SUM, vec![value, 1].into()))
    }

    #[test]
    fn a_result_comes_when_the_last_chunk_contributed_and_in_order() {
        let mut root = Reductions::new(Rank(0), &[2]);
        let (mut a, mut b) = (Membership::default(), Membership::default());
        for _ in 0..2 {
            let (sequence, partial) = one(&mut a, 5);
            root.contribute(ARRAY, sequence, partial, 2).expect("they agree");
            assert_eq!(root.finish(ARRAY), None);
        }
        for _ in 0..2 {
            let (sequence, partial) = one(&mut b, 7);
            root.contribute(ARRAY, sequence, partial, 2).expect("they agree");
            let finished = root.finish(ARRAY).expect("both contributed");
            assert_eq!(*finished.values, Values::U64(vec![12, 2]));
        }
    }

    #[test]
    fn neither_the_largest_nor_the_smallest_hides_nan() {
        for (ours, theirs) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
            for reducer in [Reducer::Min, Reducer::Max, Reducer::Sum] {
                let mut values = Values::from(vec![ours, 2.0]);
                combine(reducer, &mut values, vec![theirs, 2.0].into()).expect("they agree");
                let Values::F64(numbers) = &values else { panic!("{values:?}") };
                assert!(numbers[0].is_nan() && numbers[1] >= 2.0, "{reducer:?}: {numbers:?}");
            }
        }
    }

    #[test]
    fn a_wrapping_sum_goes_around_where_a_sum_saturates() {
        let combined = |reducer, ours: Values, theirs: Values| {
            let mut values = ours;
            combine(reducer, &mut values, theirs).map(|()| values)
        };
        let (most, two) = (|| Values::from(vec![u64::MAX, 1]), || Values::from(vec![2u64, 2]));
        assert_eq!(combined(Reducer::Sum, most(), two()), Ok(vec![u64::MAX, 3].into()));
        assert_eq!(combined(Reducer::WrappingSum, most(), two()), Ok(vec![1u64, 3].into()));
        let (least, minus) = (Values::from(vec![i64::MIN]), Values::from(vec![-1i64]));
        assert_eq!(combined(Reducer::WrappingSum, least, minus), Ok(vec![i64::MAX].into()));
        let why =
            combined(Reducer::WrappingSum, vec![1.0].into(), vec![2.0].into()).expect_err("no integers");
        assert_eq!(why, "WrappingSum takes u64 or i64, not 1 f64");
    }

    #[test]
    fn a_rank_that_passed_on_a_part_still_knows_when_all_have_contributed() {
        let mut rank = Reductions::new(Rank(1), &[2]);
        let (mut a, mut b) = (Membership::default(), Membership::default());
        let (sequence, partial) = one(&mut a, 5);
        assert_eq!(rank.contribute(ARRAY, sequence, partial, 2), Ok(false));
        assert_eq!(rank.take_all().len(), 1);
        assert_eq!(rank.take_all().len(), 0);
        let (sequence, partial) = one(&mut b, 5);
        assert_eq!(rank.contribute(ARRAY, sequence, partial, 2), Ok(true));
        assert_eq!(rank.complete(ARRAY, sequence).len(), 1);
    }

    #[test]
    fn a_part_that_comes_after_the_rank_passed_on_its_own_is_passed_on_at_once() {
        let mut rank = Reductions::new(Rank(1), &[2]);
        let [mut a, mut b, mut child] = [Membership::default(); 3];
        let (sequence, partial) = one(&mut child, 5);
        assert_eq!(rank.receive(ARRAY, sequence, partial, 2), Ok(false), "own chunks are to come");
        for (member, all) in [(&mut a, false), (&mut b, true)] {
            let (sequence, partial) = one(member, 5);
            assert_eq!(rank.contribute(ARRAY, sequence, partial, 2), Ok(all));
        }
        assert_eq!(rank.complete(ARRAY, sequence).len(), 1);
        let (_, partial) = one(&mut Membership::default(), 7);
        assert_eq!(rank.receive(ARRAY, sequence, partial, 2), Ok(true));
        assert_eq!(rank.complete(ARRAY, sequence).len(), 1);
        let (_, partial) = one(&mut Membership::default(), 7);
        assert_eq!(
            rank.receive(ARRAY, sequence + 1, partial, 0),
            Ok(true),
            "a rank without chunks waits for none"
        );
    }

    #[test]
    fn a_gather_is_ordered_by_index() {
        let mut root = Reductions::new(Rank(0), &[3]);
        let spec = ReductionSpec { reducer: Reducer::Gather, ..SUM };
        for key in [2u64, 0, 1] {
            let values = Values::Gathered(vec![(key, vec![key as u8])]);
            let report = Membership::default().report();
            root.contribute(ARRAY, 0, Partial::contribution(report, spec, values), 3).expect("they agree");
        }
        let Some(FinishedReduction { values, .. }) = root.finish(ARRAY) else { panic!("three contributed") };
        assert_eq!(*values, Values::Gathered(vec![(0, vec![0]), (1, vec![1]), (2, vec![2])]));
    }

    #[test]
    fn user_defined_values_leave_to_be_combined_and_come_back_as_a_part() {
        let mut root = Reductions::new(Rank(0), &[3]);
        let spec = ReductionSpec { reducer: Reducer::Own, ..SUM };
        let contribute = |root: &mut Reductions, number| {
            let values = Values::Own(Own::new("Number", vec![number], |values| {
                Ok(vec![values.iter().map(|value| value[0]).sum()])
            }));
            let report = Membership::default().report();
            root.contribute(ARRAY, 0, Partial::contribution(report, spec, values), 3).expect("they agree");
            root.take_uncombined()
        };
        assert_eq!(contribute(&mut root, 1), None, "one alone is as combined as can be");
        let (_, _, mut two) = contribute(&mut root, 2).expect("two meet");
        assert_eq!(contribute(&mut root, 3), None, "it finds nothing there");
        assert_eq!(root.finish(ARRAY), None, "two are out to be combined");
        two.combine().expect("they combine");
        root.receive(ARRAY, 0, two, 3).expect("they agree");
        let (_, _, mut all) = root.take_uncombined().expect("they meet the third");
        all.combine().expect("they combine");
        root.receive(ARRAY, 0, all, 3).expect("they agree");
        let Values::Own(own) = &*root.finish(ARRAY).expect("all have come").values else { panic!("not own") };
        assert_eq!(own.values(), [[6]]);
    }

    #[test]
    fn a_scan_gives_each_chunk_the_contributions_of_the_chunks_before_it() {
        let gathered = |contributions: &[(u64, Values)]| {
            let parts = contributions.iter().flat_map(|(key, values)| match values.scanned(*key) {
                Values::Gathered(parts) => parts,
                other => panic!("{other:?}"),
            });
            Values::Gathered(parts.collect())
        };
        let numbers =
            gathered(&[(2, vec![5i64, -1].into()), (3, vec![7i64, -9].into()), (9, vec![1i64, 4].into())]);
        let scanned = |reducer| scan(reducer, &numbers).expect("they agree");
        let expected = |a: [i64; 2], b: [i64; 2], c: [i64; 2]| {
            [(2, a), (3, b), (9, c)].map(|(key, numbers)| (key, Values::I64(numbers.to_vec())))
        };
        assert_eq!(scanned(Reducer::Sum), expected([0, 0], [5, -1], [12, -10]));
        assert_eq!(scanned(Reducer::WrappingSum), scanned(Reducer::Sum));
        assert_eq!(scanned(Reducer::Min), expected([i64::MAX; 2], [5, -1], [5, -9]));
        assert_eq!(scanned(Reducer::Max), expected([i64::MIN; 2], [5, -1], [7, -1]));
        let odd = gathered(&[(0, vec![1u64].into()), (1, vec![1.0].into())]);
        assert!(scan(Reducer::Sum, &odd).expect_err("they differ").contains("of one type"));
    }

    #[test]
    fn contributions_that_disagree_are_refused() {
        let mut root = Reductions::new(Rank(0), &[2]);
        let (sequence, partial) = one(&mut Membership::default(), 1);
        root.contribute(ARRAY, sequence, partial.clone(), 2).expect("the first cannot disagree");
        let mut refused = |spec: ReductionSpec, values: Values| {
            let partial = Partial { combined: Some(Combined { spec, values }), ..partial.clone() };
            root.contribute(ARRAY, sequence, partial, 2).expect_err("it disagrees")
        };
        let why = refused(ReductionSpec { tag: 4, ..SUM }, vec![1u64, 1].into());
        assert!(
            why.ends_with(
                "Sum under tag 3 with its result to all chunks, others for Sum under tag 4 with its result to all \
                 chunks"
            ),
            "{why}"
        );
        let why = refused(SUM, vec![1u64].into());
        assert!(why.ends_with("some are 2 u64, others 1 u64"), "{why}");
        let why = refused(SUM, vec![1u8].into());
        assert!(why.ends_with("Sum takes numbers, not bytes (from a Vec<u8>)"), "{why}");
    }
}
