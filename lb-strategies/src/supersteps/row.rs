//! Divides a row of units into shares of consecutive units, so that all workers finish at the same time.

use std::ops::Range;

use super::policy::{Division, Weights};

/// The units of a program in a row, with their weights.
///
/// ```
/// use lb_strategies::supersteps::{Row, Weights};
/// let row = Row::new(&Weights::Equal(900));
/// assert_eq!(row.in_proportion(&[2.0, 1.0], 1), [600, 300], "twice as fast, twice as much");
/// let row = Row::new(&Weights::Each(vec![1.0, 1.0, 1.0, 1.0, 4.0]));
/// assert_eq!(row.in_proportion(&[1.0, 1.0], 1), [4, 1]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    units: u64,
    /// The sum of weights up to the end of each unit; empty if each unit has weight 1.
    ends: Vec<f64>,
}

impl Row {
    /// The row of units with these weights. A weight that is no positive number counts as 0. O(units) if unequal.
    pub fn new(weights: &Weights) -> Self {
        let ends = match weights {
            Weights::Equal(_) => Vec::new(),
            Weights::Each(weights) => {
                let real = |weight: &f64| if *weight > 0.0 && weight.is_finite() { *weight } else { 0.0 };
                let add = |end: &mut f64, weight: &f64| {
                    *end += real(weight);
                    Some(*end)
                };
                weights.iter().scan(0.0, add).collect()
            }
        };
        Self { units: weights.units(), ends }
    }

    /// Number of units.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Weight of the units of a range.
    ///
    /// # Panics
    /// If there are fewer units.
    pub fn weight(&self, units: Range<u64>) -> f64 {
        self.end(units.end) - self.end(units.start)
    }

    /// The weight of each job of a division.
    pub fn weights<'s>(&'s self, division: &'s Division) -> impl Iterator<Item = f64> + 's {
        division.ranges().map(|range| self.weight(range))
    }

    /// Shares in proportion to `speeds`; each begins where the one before it ends. They add up to all units. Each has
    /// at least `least` units, or an equal part if there are too few units. Each cut is within half a unit of its ideal
    /// place by weight, unless a share would have fewer than `least` units.
    ///
    /// A speed that is no positive number counts as 0. If none is positive, all are equal. O(workers x log units).
    pub fn in_proportion(&self, speeds: &[f64], least: u64) -> Vec<u64> {
        let workers = speeds.len() as u64;
        let least = least.min(self.units / workers.max(1));
        let fastest = speeds.iter().copied().filter(|speed| speed.is_finite()).fold(0.0, f64::max);
        // Relative to the fastest, so that the sum cannot overflow.
        let relative = |speed: f64| match fastest > 0.0 {
            true if speed > 0.0 => (speed / fastest).min(1.0),
            true => 0.0,
            false => 1.0,
        };
        let all: f64 = speeds.iter().copied().map(relative).sum();
        let (mut so_far, mut cut) = (0.0, 0);
        let mut shares = Vec::with_capacity(speeds.len());
        for (before, &speed) in (1..).zip(speeds) {
            so_far += relative(speed);
            let others = workers - before;
            let ideal = if others == 0 { self.units } else { self.cut(so_far / all) };
            let next = ideal.clamp(cut + least, self.units - others * least);
            shares.push(next - cut);
            cut = next;
        }
        shares
    }

    /// The unit before which the cut is nearest to this part of all weight.
    fn cut(&self, part: f64) -> u64 {
        let target = part * self.end(self.units);
        if self.ends.is_empty() {
            return (target.round() as u64).min(self.units);
        }
        let after = self.ends.partition_point(|&end| end < target) as u64;
        let (below, above) = (target - self.end(after), self.end((after + 1).min(self.units)) - target);
        (after + u64::from(above < below)).min(self.units)
    }

    /// The weight of the units before this one.
    fn end(&self, unit: u64) -> f64 {
        match unit.checked_sub(1) {
            None => 0.0,
            Some(_) if self.ends.is_empty() => unit as f64,
            Some(last) => self.ends[last as usize],
        }
    }
}

/// Units that change workers between two divisions of the same workers. With copies, units that are new to a worker.
///
/// # Panics
/// If the new division has more workers than the old.
///
/// ```
/// use lb_strategies::supersteps::{Division, row::moved};
/// let alone = |units: &[u64]| Division { units: units.to_vec(), copies: 1 };
/// assert_eq!(moved(&alone(&[5, 5]), &alone(&[7, 3])), 2);
/// assert_eq!(moved(&alone(&[5, 5]), &Division { copies: 2, ..alone(&[5, 5]) }), 10);
/// ```
pub fn moved(old: &Division, new: &Division) -> u64 {
    let had: Vec<Range<u64>> = (0..old.units.len()).map(|worker| held(old, worker)).collect();
    let new_to = |worker: usize| {
        let (has, had) = (held(new, worker), &had[worker]);
        let common = has.end.min(had.end).saturating_sub(has.start.max(had.start));
        has.end - has.start - common
    };
    (0..new.units.len()).map(new_to).sum()
}

/// The units that a worker holds: those of all jobs of its group.
///
/// # Panics
/// If there is no such worker.
pub fn held(division: &Division, worker: usize) -> Range<u64> {
    let group = division.group(worker);
    let begin: u64 = division.units[..group.start].iter().sum();
    begin..begin + division.units[group].iter().sum::<u64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn speed() -> impl Strategy<Value = f64> {
        prop_oneof![
            1e-3..1e3f64,
            Just(0.0),
            Just(-1.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            1e-300..1e300f64
        ]
    }

    proptest! {
        #[test]
        fn shares_add_up_and_nobody_is_left_without(
            units in 0..5000u64, speeds in prop::collection::vec(speed(), 1..40), least in 0..4u64,
        ) {
            let shares = Row::new(&Weights::Equal(units)).in_proportion(&speeds, least);
            prop_assert_eq!((shares.len(), shares.iter().sum::<u64>()), (speeds.len(), units));
            prop_assert!(shares.iter().all(|&share| share >= least.min(units / speeds.len() as u64)));
        }

        #[test]
        fn shares_of_equal_units_are_within_one_of_the_proportion(
            units in 1000..100_000u64, speeds in prop::collection::vec(0.1..10.0f64, 1..40),
        ) {
            let all: f64 = speeds.iter().sum();
            let shares = Row::new(&Weights::Equal(units)).in_proportion(&speeds, 0);
            for (&share, speed) in shares.iter().zip(&speeds) {
                prop_assert!((share as f64 - units as f64 * speed / all).abs() <= 1.001);
            }
        }

        #[test]
        fn weighed_shares_are_within_the_heaviest_unit(
            weights in prop::collection::vec(0.1..10.0f64, 200..400), speeds in prop::collection::vec(0.5..2.0f64, 1..9),
        ) {
            let row = Row::new(&Weights::Each(weights.clone()));
            let (total, all): (f64, f64) = (weights.iter().sum(), speeds.iter().sum());
            let division = Division { units: row.in_proportion(&speeds, 1), copies: 1 };
            prop_assert_eq!(division.units.iter().sum::<u64>(), weights.len() as u64);
            for (weight, speed) in row.weights(&division).zip(&speeds) {
                prop_assert!((weight - total * speed / all).abs() <= 10.0 + 1e-6);
            }
        }

        #[test]
        fn hostile_weights_lose_no_unit(
            weights in prop::collection::vec(speed(), 1..50), speeds in prop::collection::vec(speed(), 1..9),
        ) {
            let shares = Row::new(&Weights::Each(weights.clone())).in_proportion(&speeds, 1);
            prop_assert_eq!(shares.iter().sum::<u64>(), weights.len() as u64);
        }
    }

    #[test]
    fn what_moves_is_what_was_elsewhere() {
        let division = |units: &[u64], copies| Division { units: units.to_vec(), copies };
        let (equal, skewed) = (division(&[4, 4, 4], 1), division(&[6, 4, 2], 1));
        assert_eq!((moved(&equal, &skewed), moved(&skewed, &equal), moved(&equal, &equal)), (4, 4, 0));
        // The third worker is a group by itself.
        assert_eq!(moved(&equal, &division(&[4, 4, 4], 2)), 8);
        assert_eq!((held(&division(&[4, 4, 4], 2), 1), held(&division(&[4, 4, 4], 2), 2)), (0..8, 8..12));
    }
}
