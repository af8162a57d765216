//! Encodes vectors of numbers as one block, at memory speed: `#[serde(with = "caribou::bulk")]`. [`Plain`] structs of
//! numbers count as numbers.
//!
//! Without this module, serde visits every element: bincode encodes 512 KiB of `f64` in 37 us and decodes them in
//! 95 us. One block takes 5 us. The format is the bytes in memory: all processes of a job have one byte order.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! #[derive(Serialize, Deserialize)]
//! struct Block {
//!     #[serde(with = "caribou::bulk")]
//!     cells: Vec<f64>,
//! }
//! ```
//!
//! # Beside the bytes
//!
//! Between processes, long runs of numbers bypass the encoding. They travel *beside* it, each as a separate message,
//! and arrive in the vector of the decoded value. An `Arc<Vec<T>>` is sent in place; any other vector is copied once.
//! Serde passes no context to a `with` module. So `gather`, around encoding, collects the runs in thread-local
//! variables, and `scatter`, around decoding, supplies them from there.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};

/// Plain data: a number, an array of numbers, or a struct of them without padding that derives
/// [`bytemuck::Pod`](https://docs.rs/bytemuck/latest/bytemuck/derive.Pod.html). To derive it, a program's manifest needs
/// `bytemuck = { version = "1", features = ["derive"] }`.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[repr(C)]
/// struct Particle { position: [f64; 3], velocity: [f64; 3], id: u64 }
///
/// #[derive(Serialize, Deserialize)]
/// struct Cell {
///     #[serde(with = "caribou::bulk")]
///     particles: Vec<Particle>,
/// }
/// ```
pub trait Plain: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Plain for T {}

mod sealed {
    pub trait Holder<T> {}
}

/// A holder of numbers in bulk: `Vec<T>`, `Box<[T]>`, `Arc<[T]>`, `Arc<Vec<T>>`, slices.
///
/// ```
/// use std::sync::Arc;
/// use caribou::bulk::Numbers;
/// assert_eq!(Arc::new(vec![1u8, 2]).numbers(), [1, 2]);
/// ```
pub trait Numbers<T: Plain>: sealed::Holder<T> {
    /// The numbers, in order.
    fn numbers(&self) -> &[T];

    /// A shared handle on the same numbers, if sharing them needs no copy.
    #[doc(hidden)]
    fn share(&self) -> Option<Arc<dyn Shared>> {
        None
    }
}

mod holders {
    use super::{Arc, Numbers, Plain, Shared, sealed};

    impl<T> sealed::Holder<T> for Vec<T> {}
    impl<T> sealed::Holder<T> for [T] {}
    impl<T> sealed::Holder<T> for Box<[T]> {}
    impl<T> sealed::Holder<T> for Arc<[T]> {}
    impl<T> sealed::Holder<T> for Arc<Vec<T>> {}

    impl<T: Plain> Numbers<T> for Vec<T> {
        fn numbers(&self) -> &[T] {
            self
        }
    }

    impl<T: Plain> Numbers<T> for [T] {
        fn numbers(&self) -> &[T] {
            self
        }
    }

    impl<T: Plain> Numbers<T> for Box<[T]> {
        fn numbers(&self) -> &[T] {
            self
        }
    }

    impl<T: Plain> Numbers<T> for Arc<[T]> {
        fn numbers(&self) -> &[T] {
            self
        }

        fn share(&self) -> Option<Arc<dyn Shared>> {
            Some(Arc::new(self.clone()))
        }
    }

    impl<T: Plain> Numbers<T> for Arc<Vec<T>> {
        fn numbers(&self) -> &[T] {
            self
        }

        fn share(&self) -> Option<Arc<dyn Shared>> {
            Some(self.clone())
        }
    }

    impl<T: Plain> Shared for Vec<T> {
        fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(self)
        }
    }

    impl<T: Plain> Shared for Arc<[T]> {
        fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(self)
        }
    }
}

/// Numbers with shared ownership.
#[doc(hidden)]
pub trait Shared: Send + Sync {
    /// The bytes of the numbers.
    fn bytes(&self) -> &[u8];
}

/// Outgoing numbers, which travel beside the bytes of their value.
#[derive(Clone)]
pub(crate) struct Attachment {
    pub(crate) numbers: Arc<dyn Shared>,
    /// The alignment of the numbers, bytes.
    pub(crate) alignment: u8,
}

/// Incoming numbers, which came beside the bytes of their value, in a vector that can become part of the value.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

impl Block {
    /// The block that arrives when this attachment is sent.
    pub(crate) fn copied(attachment: &Attachment) -> Block {
        let bytes = attachment.numbers.bytes();
        match attachment.alignment {
            1 => Block::One(bytes.to_vec()),
            2 => Block::Two(bytemuck::pod_collect_to_vec(bytes)),
            4 => Block::Four(bytemuck::pod_collect_to_vec(bytes)),
            _ => Block::Eight(bytemuck::pod_collect_to_vec(bytes)),
        }
    }

    /// The length of the block, bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Block::One(block) => size_of_val(&block[..]),
            Block::Two(block) => size_of_val(&block[..]),
            Block::Four(block) => size_of_val(&block[..]),
            Block::Eight(block) => size_of_val(&block[..]),
        }
    }

    /// The numbers as the type they had, in the same memory if it holds a whole number of them.
    pub(crate) fn into_numbers<T: Plain>(self) -> Option<Vec<T>> {
        fn cast<F: Pod, T: Plain>(block: Vec<F>) -> Option<Vec<T>> {
            if align_of::<F>() != align_of::<T>() {
                return None;
            }
            // A vector cannot take over memory that is no multiple of its type's size: the numbers are copied.
            bytemuck::allocation::try_cast_vec(block)
                .or_else(|(_, block)| collect(bytemuck::cast_slice(&block)))
                .ok()
        }
        match self {
            Block::One(block) => cast(block),
            Block::Two(block) => cast(block),
            Block::Four(block) => cast(block),
            Block::Eight(block) => cast(block),
        }
    }
}

/// Minimum length of an attachment, bytes. For a shorter run, a separate message costs more than the copies.
pub(crate) const ATTACHMENT_BYTES_MIN: usize = 16 * 1024;

/// Maximum alignment of a [`Block`], bytes; runs of types with a larger alignment stay in the encoding.
const ALIGNMENT_MAX: usize = 8;

/// Maximum number of runs that travel beside one packet; further runs stay in the encoding.
pub(crate) const RUNS_MAX: usize = 250;

/// What `serialize` and `deserialize` of this thread do with long runs.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// All numbers stay in the bytes.
    Inline,
    /// Runs are collected. The mode becomes `Gathered` with the first run.
    Gather,
    Gathered,
    /// The runs have arrived and wait to be taken.
    Scatter,
}

// Separate variables: most packets have no long run, and access only the byte of the mode.
thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Inline) };
    static GATHERED: RefCell<Vec<Attachment>> = const { RefCell::new(Vec::new()) };
    static SCATTERED: RefCell<VecDeque<Option<Block>>> = const { RefCell::new(VecDeque::new()) };
}

/// Resets the thread's mode, also when user code panics.
struct RestoreMode;

impl Drop for RestoreMode {
    #[inline]
    fn drop(&mut self) {
        MODE.set(Mode::Inline);
    }
}

/// Encodes a value, and collects the long runs of numbers that travel beside the bytes, in order. The result must be
/// decoded in [`scatter`].
pub(crate) fn gather<R>(encode: impl FnOnce() -> R) -> (R, Option<Vec<Attachment>>) {
    let gathering = Gathering::begin();
    let encoded = encode();
    (encoded, gathering.end())
}

/// [`gather`] as a beginning and an end, for messages: a closure would add a call.
pub(crate) struct Gathering {
    _back: RestoreMode,
}

impl Gathering {
    #[inline]
    pub(crate) fn begin() -> Gathering {
        MODE.set(Mode::Gather);
        Gathering { _back: RestoreMode }
    }

    #[inline]
    pub(crate) fn end(self) -> Option<Vec<Attachment>> {
        (MODE.get() == Mode::Gathered).then(|| GATHERED.take())
    }
}

/// Decodes bytes encoded in [`gather`]; `blocks` are its attachments, in order.
#[inline(always)]
pub(crate) fn scatter<R>(blocks: VecDeque<Block>, decode: impl FnOnce() -> R) -> R {
    let _back = RestoreMode;
    MODE.set(Mode::Scatter);
    let none = blocks.is_empty();
    if !none {
        SCATTERED.set(blocks.into_iter().map(Some).collect());
    }
    let decoded = decode();
    if !none {
        SCATTERED.set(VecDeque::new());
    }
    decoded
}

/// Serialises a value with all its numbers in its bytes, also in [`gather`], because the value is decoded outside the
/// [`scatter`] of its packet.
pub(crate) fn serialize_inline<T: Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Before(Mode);

    impl Drop for Before {
        fn drop(&mut self) {
            MODE.set(self.0);
        }
    }

    let _before = Before(MODE.replace(Mode::Inline));
    value.serialize(serializer)
}

/// Adds numbers to the attachments. Returns the number of the run, counted from 1, or 0 if they belong in the bytes.
fn attach<T: Plain>(numbers: &(impl Numbers<T> + ?Sized)) -> u8 {
    let all = numbers.numbers();
    if size_of_val(all) < ATTACHMENT_BYTES_MIN || align_of::<T>() > ALIGNMENT_MAX {
        return 0;
    }
    GATHERED.with_borrow_mut(|attachments| {
        if MODE.replace(Mode::Gathered) == Mode::Gather {
            // Left over from an encoding that panicked.
            attachments.clear();
        }
        if attachments.len() == RUNS_MAX {
            return 0;
        }
        let numbers = numbers.share().unwrap_or_else(|| Arc::new(all.to_vec()));
        attachments.push(Attachment { numbers, alignment: align_of::<T>() as u8 });
        attachments.len() as u8
    })
}

/// Copies numbers out of bytes; an error if a number is incomplete.
fn collect<T: Plain>(bytes: &[u8]) -> Result<Vec<T>, Torn> {
    const { assert!(size_of::<T>() > 0, "a type without bytes has nothing to write in bulk") };
    if bytes.len().is_multiple_of(size_of::<T>()) {
        Ok(bytemuck::pod_collect_to_vec(bytes))
    } else {
        Err(Torn)
    }
}

/// The bytes end within a number.
struct Torn;

/// Serialises numbers as one byte string. O(n), one copy; none if they are shared and travel beside the bytes.
pub fn serialize<T: Plain, S: Serializer>(
    numbers: &(impl Numbers<T> + ?Sized),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let all = numbers.numbers();
    if matches!(MODE.get(), Mode::Inline | Mode::Scatter) {
        return Inline(all).serialize(serializer);
    }
    let beside = attach(numbers);
    let mut pair = serializer.serialize_tuple(2)?;
    pair.serialize_element(&beside)?;
    pair.serialize_element(&Inline(if beside > 0 { &[] } else { all }))?;
    pair.end()
}

/// Numbers encoded in the bytes.
struct Inline<'n, T>(&'n [T]);

impl<T: Plain> Serialize for Inline<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytemuck::cast_slice(self.0))
    }
}

/// Deserialises the output of [`serialize`], into a `Vec` or a type made of one. O(n), one copy; none if the numbers came
/// beside the bytes.
pub fn deserialize<'de, T: Plain, V: From<Vec<T>>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<V, D::Error> {
    let numbers = if MODE.get() == Mode::Scatter {
        let (beside, inline) = <(u8, Owned<T>)>::deserialize(deserializer)?;
        if beside > 0 { block(beside)? } else { inline.0 }
    } else {
        Owned::deserialize(deserializer)?.0
    };
    Ok(V::from(numbers))
}

/// The run with this number, counted from 1, among the runs that came beside the bytes being decoded.
fn block<T: Plain, E: Error>(number: u8) -> Result<Vec<T>, E> {
    let block = SCATTERED.with_borrow_mut(|blocks| blocks.get_mut(usize::from(number) - 1)?.take());
    let block = block.ok_or_else(|| E::custom("numbers are missing beside the bytes"))?;
    block.into_numbers().ok_or_else(|| {
        E::custom(format!("the memory beside the bytes does not hold whole `{}`", std::any::type_name::<T>()))
    })
}

/// Numbers decoded from the bytes.
struct Owned<T>(Vec<T>);

impl<'de, T: Plain> Deserialize<'de> for Owned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes(PhantomData)).map(Owned)
    }
}

struct Bytes<T>(PhantomData<T>);

impl<'de, T: Plain> Visitor<'de> for Bytes<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of numbers of {} bytes each", size_of::<T>())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
        collect(bytes).map_err(|Torn| E::invalid_length(bytes.len(), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{ATTACHMENT_BYTES_MIN, Plain, gather, scatter};
    use crate::wire;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use std::collections::VecDeque;
    use std::sync::Arc;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Block<T: Plain> {
        before: u8,
        #[serde(with = "super")]
        numbers: Vec<T>,
        after: u8,
    }

    proptest! {
        #[test]
        fn numbers_survive_bit_for_bit(bits: Vec<u64>) {
            let numbers: Vec<f64> = bits.iter().map(|&bits| f64::from_bits(bits)).collect();
            let block = Block { before: 1, numbers, after: 2 };
            let back: Block<f64> = wire::decode(&wire::encode(&block).expect("numbers encode")).expect("and decode");
            let back_bits: Vec<u64> = back.numbers.iter().map(|number| number.to_bits()).collect();
            prop_assert_eq!((back.before, back_bits, back.after), (1, bits, 2));
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Two {
        #[serde(with = "super")]
        shared: Arc<Vec<f64>>,
        between: u8,
        #[serde(with = "super")]
        short: Vec<u16>,
        #[serde(with = "super")]
        copied: Vec<u32>,
    }

    #[test]
    fn long_runs_travel_beside_the_bytes_and_shared_ones_are_not_copied() {
        let two = Two {
            shared: Arc::new(vec![1.5; ATTACHMENT_BYTES_MIN / 8]),
            between: 7,
            short: vec![1, 2],
            copied: (0..ATTACHMENT_BYTES_MIN as u32 / 4).collect(),
        };
        let (bytes, attachments) = gather(|| wire::encode(&two).expect("it encodes"));
        assert!(bytes.len() < 32, "{}", bytes.len());
        let attachments = attachments.expect("some are long");
        let [shared, copied] = &attachments[..] else { panic!("two runs are long") };
        assert_eq!(shared.numbers.bytes().as_ptr(), two.shared.as_ptr().cast());
        assert_ne!(copied.numbers.bytes().as_ptr(), two.copied.as_ptr().cast());
        let blocks: VecDeque<_> = attachments.iter().map(super::Block::copied).collect();
        let Some(super::Block::Eight(numbers)) = blocks.front() else { panic!("floats are eight bytes") };
        let address = numbers.as_ptr();
        let back: Two = scatter(blocks, || wire::decode(&bytes)).expect("it decodes");
        assert_eq!(back.shared.as_ptr(), address.cast());
        assert_eq!(back, two);
    }

    #[test]
    fn numbers_missing_beside_the_bytes_are_an_error() {
        let long = Block::<u8> { before: 0, numbers: vec![0; ATTACHMENT_BYTES_MIN], after: 0 };
        let (bytes, _) = gather(|| wire::encode(&long).expect("it encodes"));
        let back = scatter(VecDeque::new(), || wire::decode::<Block<u8>>(&bytes));
        assert!(back.expect_err("nothing came beside them").to_string().contains("missing"));
        let of_four: VecDeque<_> = [super::Block::Four(vec![0; 8])].into();
        let back = scatter(of_four, || wire::decode::<Block<u8>>(&bytes));
        assert!(back.expect_err("those are of another alignment").to_string().contains("whole `u8`"));
    }

    #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Particle {
        position: [f64; 3],
        charge: f32,
        id: u32,
    }

    #[test]
    fn structs_of_numbers_travel_in_the_bytes_and_beside_them() {
        for count in [0, 3, 1000, 1001] {
            let particle = |id: u32| Particle { position: [0.5, f64::from(id), -0.0], charge: id as f32, id };
            let cell = Block { before: 1, numbers: (0..count).map(particle).collect(), after: 2 };
            let plain = wire::encode(&cell).expect("it encodes");
            assert!(plain.len() < 32 * count as usize + 16, "one block, not field by field");
            assert_eq!(wire::decode::<Block<Particle>>(&plain).expect("it decodes"), cell);
            let (bytes, attachments) = gather(|| wire::encode(&cell).expect("it encodes"));
            assert_eq!(attachments.as_ref().map(Vec::len), (count >= 1000).then_some(1));
            let blocks = attachments.iter().flatten().map(super::Block::copied).collect();
            let back: Block<Particle> = scatter(blocks, || wire::decode(&bytes)).expect("it decodes");
            assert_eq!(back, cell);
        }
    }

    #[test]
    fn memory_that_holds_no_whole_number_of_structs_is_an_error() {
        let cell = Block {
            before: 1,
            numbers: vec![Particle { position: [0.0; 3], charge: 0.0, id: 0 }; 1000],
            after: 2,
        };
        let (bytes, _) = gather(|| wire::encode(&cell).expect("it encodes"));
        let torn: VecDeque<_> = [super::Block::Eight(vec![0; 4001])].into();
        assert!(scatter(torn, || wire::decode::<Block<Particle>>(&bytes)).is_err());
        // More memory than whole structs fill.
        let mut roomy = Vec::with_capacity(4001);
        roomy.resize(4000, 0);
        let back = scatter([super::Block::Eight(roomy)].into(), || wire::decode::<Block<Particle>>(&bytes));
        assert_eq!(back.expect("it is copied"), cell);
    }

    #[test]
    fn a_torn_number_is_an_error() {
        let torn =
            wire::encode(&Block { before: 0, numbers: vec![1u8, 2, 3], after: 0 }).expect("bytes encode");
        assert!(wire::decode::<Block<u16>>(&torn).is_err());
    }
}
