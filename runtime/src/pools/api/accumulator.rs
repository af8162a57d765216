//! The trait of accumulators, and its implementations for sums, collections, tuples and slices.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A value in which the iterations of a pool collect their results.
///
/// Each worker has an accumulator. At the end they are merged, first within a rank, in the order of its workers, and
/// then across ranks. Which worker executes an iteration depends on the run. A reproducible result therefore needs a
/// merge that is associative and commutative. (Integer sums are; floating-point sums differ in their last bits.) Merged
/// sums of integers saturate, as in [`Reducer::Sum`](crate::Reducer::Sum). Within a worker the program itself adds.
///
/// | type | merge | cost of a merge |
/// |---|---|---|
/// | `u64`, `i64`, `f64` | the sum, which saturates for integers | O(1) |
/// | tuples of up to eight, arrays `[A; N]` of up to 32 | each part separately | the sum over the parts |
/// | `Vec<A>`, `Box<[A]>` | element by element; see there for different lengths | the sum over the elements |
/// | [`Min`](crate::pools::Min), [`Max`](crate::pools::Max) | the smallest, the largest value | O(1) |
/// | [`Smallest`](crate::pools::Smallest), [`Largest`](crate::pools::Largest) | the k smallest, the k largest values | O(k) |
/// | [`Histogram`](crate::pools::Histogram) | counts, bin by bin | O(bins) |
/// | [`Collected`] | all values, one after the other | O(values of the other) |
/// | `()` | nothing | none |
///
/// Accumulators nest: `(u64, Max<f64>, Vec<Histogram>)` is an accumulator. Your own type can implement the trait:
///
/// ```
/// use caribou::pools::Accumulator;
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Hits { inside: u64, all: u64 }
/// impl Accumulator for Hits {
///     fn merge(&mut self, other: Hits) {
///         self.inside += other.inside;
///         self.all += other.all;
///     }
/// }
/// let mut hits = Hits { inside: 1, all: 2 };
/// hits.merge(Hits { inside: 3, all: 3 });
/// assert_eq!((hits.inside, hits.all), (4, 5));
/// ```
///
/// Values of other ranks are encoded, so a field that serde skips is lost. A single rank encodes nothing.
#[diagnostic::on_unimplemented(
    message = "two values of `{Self}` cannot be merged",
    note = "to collect results use `Collected<T>`, to add them `u64`, `i64` or `f64`, to add them element by element `Vec` or \
            `Box<[T]>` of these, to keep the best `Min`, `Max`, `Smallest` or `Largest`, to count them by size \
            `Histogram`; your own type implements `Accumulator`"
)]
pub trait Accumulator: Serialize + DeserializeOwned + Send + 'static {
    /// Adds the value of another accumulator.
    fn merge(&mut self, other: Self);
}

/// Merges to the sum, which saturates.
impl Accumulator for u64 {
    fn merge(&mut self, other: u64) {
        *self = self.saturating_add(other);
    }
}

/// Merges to the sum.
impl Accumulator for f64 {
    fn merge(&mut self, other: f64) {
        *self += other;
    }
}

/// Merges to the sum, which saturates.
impl Accumulator for i64 {
    fn merge(&mut self, other: i64) {
        *self = self.saturating_add(other);
    }
}

/// No result, for iterations that have their effect elsewhere.
impl Accumulator for () {
    fn merge(&mut self, (): ()) {}
}

macro_rules! tuples {
    ($(($($part:ident $place:tt),+))+) => {$(
        /// Merges each part separately.
        impl<$($part: Accumulator),+> Accumulator for ($($part,)+) {
            fn merge(&mut self, other: Self) {
                $(self.$place.merge(other.$place);)+
            }
        }
    )+};
}

tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

/// Merges element by element.
impl<A: Accumulator, const N: usize> Accumulator for [A; N]
where
    [A; N]: Serialize + DeserializeOwned,
{
    fn merge(&mut self, other: [A; N]) {
        merge_elements(self, other);
    }
}

/// Merges element by element; all slices must have the same length. `Vec` allows different lengths.
///
/// ```
/// use caribou::{Config, pool};
/// let last_digits = pool(&Config::default(), 1000, || vec![0_u64; 10].into_boxed_slice(), |counts, range| {
///     range.for_each(|number| counts[number as usize % 10] += 1);
/// })?;
/// assert_eq!(*last_digits.result, [100; 10]);
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// # Panics
/// If the slices have different lengths.
impl<A: Accumulator> Accumulator for Box<[A]> {
    fn merge(&mut self, other: Box<[A]>) {
        let (ours, theirs) = (self.len(), other.len());
        assert_eq!(
            ours, theirs,
            "slices are added element by element, so all workers need slices of the same length"
        );
        merge_elements(self, other);
    }
}

/// Merges element by element. The result is as long as the longest vector. An element that only one vector has stays as
/// it is, so workers may begin with an empty vector that grows as needed. To concatenate values, use [`Collected`].
///
/// ```
/// use caribou::{Config, pool};
/// // How many numbers below 1000 have one bit set, two bits, and so on.
/// let bits = pool(&Config::default(), 1000, Vec::new, |counts: &mut Vec<u64>, range| {
///     for number in range {
///         let bits = number.count_ones() as usize;
///         counts.resize(counts.len().max(bits + 1), 0);
///         counts[bits] += 1;
///     }
/// })?;
/// assert_eq!(bits.result, [1, 10, 45, 120, 210, 252, 208, 113, 36, 5]);
/// # Ok::<(), caribou::Error>(())
/// ```
impl<A: Accumulator> Accumulator for Vec<A> {
    fn merge(&mut self, mut other: Vec<A>) {
        let tail = other.split_off(self.len().min(other.len()));
        merge_elements(self, other);
        self.extend(tail);
    }
}

fn merge_elements<A: Accumulator>(mine: &mut [A], others: impl IntoIterator<Item = A>) {
    mine.iter_mut().zip(others).for_each(|(mine, other)| mine.merge(other));
}

/// All values that the iterations have found, in no particular order.
///
/// ```
/// use caribou::pools::Collected;
/// use caribou::{Config, pool};
/// let found = pool(&Config::default(), 1000, Collected::default, |found: &mut Collected<u64>, range| {
///     found.0.extend(range.filter(|number| number % 250 == 7));
/// })?;
/// let mut found = found.result.0;
/// found.sort();
/// assert_eq!(found, [7, 257, 507, 757]);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected<T>(
    /// The values.
    pub Vec<T>,
);

impl<T> Default for Collected<T> {
    fn default() -> Collected<T> {
        Collected(Vec::new())
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Accumulator for Collected<T> {
    fn merge(&mut self, other: Collected<T>) {
        self.0.extend(other.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Histogram, Max};

    #[test]
    fn a_longer_vector_keeps_its_tail() {
        for (mine, other) in [(vec![1_u64, 2, 3], vec![10]), (vec![10], vec![1, 2, 3])] {
            let mut sum = mine;
            sum.merge(other);
            assert_eq!(sum, [11, 2, 3]);
        }
    }

    #[test]
    fn sums_of_integers_stop_at_the_end_of_their_range() {
        let mut all = (u64::MAX - 1, i64::MAX - 1, i64::MIN + 1);
        all.merge((1, 1, -1));
        assert_eq!(all, (u64::MAX, i64::MAX, i64::MIN));
        all.merge((u64::MAX, 1, i64::MIN));
        assert_eq!(all, (u64::MAX, i64::MAX, i64::MIN));
    }

    #[test]
    fn parts_of_tuples_and_arrays_merge_by_themselves() {
        let histogram = |value: f64| {
            let mut histogram = Histogram::new(0.0..2.0, 2);
            histogram.add(value);
            histogram
        };
        let max = |value: f64| {
            let mut max = Max::default();
            max.add(value);
            max
        };
        let mut all = (1_u64, max(1.5), vec![histogram(0.5)], [1_i64, 2]);
        all.merge((2, max(0.5), vec![histogram(1.5), histogram(1.0)], [3, 4]));
        assert_eq!((all.0, all.1.value(), all.3), (3, Some(&1.5), [4, 6]));
        assert_eq!(all.2.iter().map(Histogram::counts).collect::<Vec<_>>(), [[1, 1], [0, 1]]);
    }
}
