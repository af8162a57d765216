//! Accumulators of the smallest and largest values that the iterations of a pool find: one value, or k values.
//!
//! [`Min`] and [`Smallest`] are [`Max`] and [`Largest`] of reversed values. All four require only `PartialOrd`, so that
//! floats need no wrapper. A value that is not comparable with itself (a NaN, or a tuple with a NaN) is ignored, as by
//! `f64::max`. All other values must have a total order, as numbers, strings and their tuples do. The result (by `==`)
//! then does not depend on how values are spread over workers and ranks.

use std::cmp::{Ordering, Reverse};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::accumulator::Accumulator;

/// The largest value. Adding a value and merging take O(1).
///
/// To find the iteration with the value, add a tuple of the value and the index. Of two tuples with the same first
/// part, the tuple with the larger second part is larger. With `Reverse(index)` the first of several iterations wins.
///
/// ```
/// use std::cmp::Reverse;
///
/// use caribou::pools::Max;
/// use caribou::{Config, pool};
/// // The number below 10 000 with the longest Collatz sequence, and its steps.
/// let steps = |number: u64| {
///     let next = |n: &u64| (*n > 1).then(|| if n % 2 == 0 { n / 2 } else { 3 * n + 1 });
///     std::iter::successors(Some(number), next).count() as u64 - 1
/// };
/// let longest = pool(&Config::default(), 10_000, Max::default, |longest, range| {
///     range.skip_while(|number| *number == 0).for_each(|number| longest.add((steps(number), Reverse(number))));
/// })?;
/// assert_eq!(longest.result.value(), Some(&(261, Reverse(6171))));
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// A NaN, or a tuple with a NaN, is ignored, and 0.0 equals -0.0, as for `f64::max`.
///
/// ```
/// let mut max = caribou::pools::Max::default();
/// max.add(f64::NAN);
/// assert_eq!(max.value(), None);
/// max.add(-1.0);
/// assert_eq!(max.value(), Some(&-1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Max<T>(Option<T>);

impl<T: PartialOrd> Max<T> {
    /// Adds a value.
    pub fn add(&mut self, value: T) {
        if is_ordered(&value) && self.0.as_ref().is_none_or(|max| value > *max) {
            self.0 = Some(value);
        }
    }

    /// The largest value; `None` if no value was added.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Max<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialOrd + Serialize + DeserializeOwned + Send + 'static> Accumulator for Max<T> {
    fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|value| self.add(value));
    }
}

/// The smallest value. Adding a value and merging take O(1). The rules of [`Max`] on indices and NaN apply. Of two
/// tuples with the same first part, the tuple with the smaller second part is smaller.
///
/// ```
/// use caribou::pools::Min;
/// use caribou::{Config, pool};
/// // Where the polynomial is lowest.
/// let lowest = pool(&Config::default(), 101, Min::default, |lowest, range| {
///     for index in range {
///         let x = index as f64 / 100.0;
///         lowest.add((x * x - x, index));
///     }
/// })?;
/// assert_eq!(lowest.result.value(), Some(&(-0.25, 50)));
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Min<T>(Max<Reverse<T>>);

impl<T: PartialOrd> Min<T> {
    /// Adds a value.
    pub fn add(&mut self, value: T) {
        self.0.add(Reverse(value));
    }

    /// The smallest value; `None` if no value was added.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        self.0.value().map(|Reverse(value)| value)
    }
}

impl<T> Default for Min<T> {
    fn default() -> Self {
        Self(Max::default())
    }
}

impl<T: PartialOrd + Serialize + DeserializeOwned + Send + 'static> Accumulator for Min<T> {
    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }
}

/// The k largest values, or all if there are fewer. Equal values are all kept.
///
/// A value below the k largest costs one comparison, any other value O(k). Of n values in random order, about k ln(n /
/// k) are among the k largest when they are added. Merging takes O(k). The rules of [`Max`] on indices and NaN apply.
///
/// ```
/// use caribou::pools::Largest;
/// use caribou::{Config, pool};
/// let remainders = pool(&Config::default(), 1000, || Largest::new(3), |largest, range| {
///     range.for_each(|number| largest.add((number * number % 1009, number)));
/// })?;
/// assert_eq!(remainders.result.into_vec(), [(1008, 540), (1008, 469), (1007, 954)]);
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// All workers need the same k.
///
/// # Panics
/// If two with different k are merged, because the one with the smaller k has dropped values that the result needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest<T> {
    k: usize,
    /// In descending order.
    values: Vec<T>,
}

impl<T: PartialOrd> Largest<T> {
    /// An empty accumulator that keeps the `k` largest values.
    #[must_use]
    pub fn new(k: usize) -> Self {
        Self { k, values: Vec::new() }
    }

    /// Adds a value.
    pub fn add(&mut self, value: T) {
        let is_full = self.values.len() >= self.k;
        if !is_ordered(&value) || is_full && self.values.last().is_none_or(|last| value <= *last) {
            return;
        }
        let place = self.values.partition_point(|other| *other >= value);
        self.values.insert(place, value);
        self.values.truncate(self.k);
    }

    /// The kept values, largest first.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> {
        self.values.iter()
    }

    /// The kept values, largest first.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.values
    }
}

impl<T: PartialOrd + Serialize + DeserializeOwned + Send + 'static> Accumulator for Largest<T> {
    fn merge(&mut self, other: Self) {
        assert_eq!(
            self.k, other.k,
            "the k best values of all workers are kept, so all workers need the same k"
        );
        self.values.extend(other.values);
        // A stable sort is fast here, because both parts are sorted.
        self.values.sort_by(|a, b| b.partial_cmp(a).unwrap_or(Ordering::Equal));
        self.values.truncate(self.k);
    }
}

/// The k smallest values, or all if there are fewer. Costs and rules on equal values, NaN and k are as in [`Largest`].
///
/// ```
/// use caribou::pools::Smallest;
/// use caribou::{Config, pool};
/// let remainders = pool(&Config::default(), 1000, || Smallest::new(3), |smallest, range| {
///     range.for_each(|number| smallest.add((number * number % 1009, number)));
/// })?;
/// assert_eq!(remainders.result.into_vec(), [(0, 0), (1, 1), (2, 439)]);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smallest<T>(Largest<Reverse<T>>);

impl<T: PartialOrd> Smallest<T> {
    /// An empty accumulator that keeps the `k` smallest values.
    #[must_use]
    pub fn new(k: usize) -> Self {
        Self(Largest::new(k))
    }

    /// Adds a value.
    pub fn add(&mut self, value: T) {
        self.0.add(Reverse(value));
    }

    /// The kept values, smallest first.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.values().map(|Reverse(value)| value)
    }

    /// The kept values, smallest first.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.0.into_vec().into_iter().map(|Reverse(value)| value).collect()
    }
}

impl<T: PartialOrd + Serialize + DeserializeOwned + Send + 'static> Accumulator for Smallest<T> {
    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }
}

/// False for a NaN, and for a tuple with a NaN.
fn is_ordered<T: PartialOrd>(value: &T) -> bool {
    value.partial_cmp(value).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Merges parts in the order given.
    fn merged<A: Accumulator>(parts: Vec<A>) -> A {
        let merge = |mut all: A, part| {
            all.merge(part);
            all
        };
        parts.into_iter().reduce(merge).expect("there are parts")
    }

    /// Few different values, so that many are equal, and NaN.
    fn values() -> impl Strategy<Value = Vec<(f64, usize)>> {
        let value = prop_oneof![9 => (0..6).prop_map(f64::from), 1 => Just(f64::NAN)];
        prop::collection::vec((value, 0..4_usize), 0..40)
    }

    proptest! {
        #[test]
        fn the_result_is_that_of_sorting_whatever_part_a_value_went_to(values in values(), k in 0..8_usize) {
            let mut parts: Vec<_> = (0..4).map(|_| (Max::default(), Min::default(), Largest::new(k), Smallest::new(k))).collect();
            for (index, (value, part)) in values.iter().enumerate() {
                let (max, min, largest, smallest) = &mut parts[*part];
                let value = (*value, index % 3);
                max.add(value);
                min.add(value);
                largest.add(value);
                smallest.add(value);
            }
            let mut sorted: Vec<_> =
                values.iter().enumerate().map(|(index, (value, _))| (*value, index % 3)).collect();
            sorted.retain(|(value, _)| !value.is_nan());
            sorted.sort_by(|a, b| a.partial_cmp(b).expect("there is no NaN left"));
            let (max, min, largest, smallest) = merged(parts);
            prop_assert_eq!((min.value(), max.value()), (sorted.first(), sorted.last()));
            prop_assert!(smallest.values().eq(sorted.iter().take(k)));
            prop_assert!(largest.values().eq(sorted.iter().rev().take(k)));
            prop_assert_eq!(smallest.into_vec(), sorted.iter().copied().take(k).collect::<Vec<_>>());
            prop_assert_eq!(largest.into_vec(), sorted.into_iter().rev().take(k).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "the k best values of all workers are kept, so all workers need the same k")]
    fn parts_that_keep_different_numbers_of_values_are_refused() {
        merged(vec![Smallest::<u64>::new(2), Smallest::new(3)]);
    }
}
