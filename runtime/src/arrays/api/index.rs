//! Indices of chunks ([`Index`]), and the sets of indices with which an array starts ([`Extent`]).

use std::fmt::Debug;

/// The index of a chunk in its array: any type that packs into 64 bits.
///
/// Packing keeps the order, so [`Placement::Block`] places chunks with neighbouring indices side by side.
///
/// ```
/// use caribou::Index;
/// /// A cell of a quad-tree.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Quad { level: u8, morton: u32 }
/// impl Index for Quad {
///     fn pack(self) -> u64 { u64::from(self.level) << 32 | u64::from(self.morton) }
///     fn unpack(key: u64) -> Quad { Quad { level: (key >> 32) as u8, morton: key as u32 } }
/// }
/// let quad = Quad { level: 2, morton: 7 };
/// assert_eq!(Quad::unpack(quad.pack()), quad);
/// ```
///
/// [`Placement::Block`]: crate::Placement::Block
pub trait Index: Copy + Debug + Send + Sync + 'static {
    /// The index as a key. Different indices give different keys.
    fn pack(self) -> u64;
    /// The index of a key that [`pack`](Self::pack) made.
    fn unpack(key: u64) -> Self;
}

impl Index for u32 {
    fn pack(self) -> u64 {
        u64::from(self)
    }
    fn unpack(key: u64) -> u32 {
        key as u32
    }
}

impl Index for u64 {
    fn pack(self) -> u64 {
        self
    }
    fn unpack(key: u64) -> u64 {
        key
    }
}

/// Row-major: the first component is the most significant.
impl Index for [u16; 2] {
    fn pack(self) -> u64 {
        u64::from(self[0]) << 32 | u64::from(self[1])
    }
    fn unpack(key: u64) -> [u16; 2] {
        [(key >> 32) as u16, key as u16]
    }
}

/// Row-major: the first component is the most significant.
impl Index for [u32; 2] {
    fn pack(self) -> u64 {
        u64::from(self[0]) << 32 | u64::from(self[1])
    }
    fn unpack(key: u64) -> [u32; 2] {
        [(key >> 32) as u32, key as u32]
    }
}

/// Row-major: the first component is the most significant.
impl Index for [u16; 3] {
    fn pack(self) -> u64 {
        self.iter().fold(0, |key, &component| key << 16 | u64::from(component))
    }
    fn unpack(key: u64) -> [u16; 3] {
        [(key >> 32) as u16, (key >> 16) as u16, key as u16]
    }
}

/// The indices with which an array starts: `n`, `[rows, columns]`, `[planes, rows, columns]`, or a list.
///
/// ```
/// use caribou::Extent;
/// assert_eq!(Extent::<[u16; 2]>::keys([2, 3]).count(), 6);
/// assert!(Extent::<u32>::keys(vec![7u32, 3]).eq([3, 7]));
/// ```
pub trait Extent<I: Index> {
    /// The packed indices, ascending. If an index is there twice, the run does not begin. Every rank stores 16 bytes
    /// for each range of consecutive indices.
    fn keys(self) -> impl Iterator<Item = u64>;
}

impl Extent<u32> for u32 {
    fn keys(self) -> impl Iterator<Item = u64> {
        0..u64::from(self)
    }
}

impl Extent<u64> for u64 {
    fn keys(self) -> impl Iterator<Item = u64> {
        0..self
    }
}

impl Extent<[u16; 2]> for [u16; 2] {
    fn keys(self) -> impl Iterator<Item = u64> {
        let [rows, columns] = self;
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [row, column].pack()))
    }
}

impl Extent<[u32; 2]> for [u32; 2] {
    fn keys(self) -> impl Iterator<Item = u64> {
        let [rows, columns] = self;
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [row, column].pack()))
    }
}

impl Extent<[u16; 3]> for [u16; 3] {
    fn keys(self) -> impl Iterator<Item = u64> {
        let [planes, rows, columns] = self;
        let rest =
            move |plane| (0..rows).flat_map(move |row| (0..columns).map(move |c| [plane, row, c].pack()));
        (0..planes).flat_map(rest)
    }
}

impl<I: Index> Extent<I> for Vec<I> {
    fn keys(self) -> impl Iterator<Item = u64> {
        let mut keys: Vec<u64> = self.into_iter().map(I::pack).collect();
        keys.sort_unstable();
        keys.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn indices_survive_packing_and_keep_their_order(a: [u16; 3], b: [u16; 3]) {
            prop_assert_eq!(<[u16; 3]>::unpack(a.pack()), a);
            prop_assert_eq!(a.cmp(&b), a.pack().cmp(&b.pack()));
            let (a, b) = ([a[0], a[1]], [b[0], b[1]]);
            prop_assert_eq!(<[u16; 2]>::unpack(a.pack()), a);
            prop_assert_eq!(a.cmp(&b), a.pack().cmp(&b.pack()));
        }
    }
}
