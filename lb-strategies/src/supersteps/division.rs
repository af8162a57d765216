//! Units in proportion to speeds: neighbours stay together, nobody gets less than a minimum, the sum is exact.

use super::policy::Weights;
use crate::apportion::{apportion, equal};

/// Divides the units among workers in proportion to `speeds`, weight of units per second.
///
/// Units of equal weight go by [largest remainders](apportion); where weights differ, the line of units is cut where the
/// sum of weights comes nearest to each worker's part. Every worker gets `least` units, or what there is for each where
/// there are fewer. A speed that is negative or no number counts as 0; if none is positive all count as equal. O(n log n)
/// for n workers, and O(units) where weights differ.
///
/// ```
/// use lb_strategies::supersteps::{Weights, divide};
/// assert_eq!(divide(&Weights::Equal(100), &[3.0, 1.0], 1), [75, 25]);
/// assert_eq!(divide(&Weights::Each(vec![4.0, 1.0, 1.0, 1.0, 1.0]), &[1.0, 1.0], 1), [1, 4]);
/// assert_eq!(divide(&Weights::Equal(10), &[1.0, 0.0], 2), [8, 2]);
/// ```
pub fn divide(weights: &Weights, speeds: &[f64], least: u64) -> Vec<u64> {
    if speeds.is_empty() {
        return Vec::new();
    }
    let (units, workers) = (weights.units(), speeds.len());
    let least = least.min(units / workers as u64);
    let mut parts = match weights {
        Weights::Equal(units) => apportion(*units, speeds).unwrap_or_else(|| equal(*units, workers)),
        Weights::Each(weights) => cut(weights, speeds),
    };
    if parts.iter().any(|&part| part < least) {
        raise(&mut parts, least);
    }
    parts
}

/// Cuts the line of units where the sum of weights comes nearest to each worker's part.
fn cut(weights: &[f64], speeds: &[f64]) -> Vec<u64> {
    let fastest = speeds.iter().copied().filter(|speed| speed.is_finite()).fold(0.0, f64::max);
    let relative = |&speed: &f64| if fastest > 0.0 { (speed / fastest).clamp(0.0, 1.0) } else { 1.0 };
    // `max` takes the number where one of both is none.
    let relative: Vec<f64> = speeds.iter().map(relative).map(|speed| speed.max(0.0)).collect();
    let sum_before: Vec<f64> = std::iter::once(0.0)
        .chain(weights.iter().scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        }))
        .collect();
    let (all, speed) = (sum_before[weights.len()], relative.iter().sum::<f64>());
    let (mut begin, mut through) = (0, 0.0);
    let mut parts = Vec::with_capacity(speeds.len());
    for (worker, relative) in relative.iter().enumerate() {
        through += relative;
        let target = all * (through / speed);
        let above = sum_before.partition_point(|&sum| sum < target).min(weights.len());
        let below = above.saturating_sub(1);
        let nearest = if sum_before[above] - target <= target - sum_before[below] { above } else { below };
        let end = if worker + 1 == speeds.len() { weights.len() } else { nearest.max(begin) };
        parts.push((end - begin) as u64);
        begin = end;
    }
    parts
}

/// Raises each part to `least`, of which there is enough for all, at the cost of the largest.
fn raise(parts: &mut [u64], least: u64) {
    for index in 0..parts.len() {
        while parts[index] < least {
            let spare = |at: &usize| (parts[*at].saturating_sub(least), std::cmp::Reverse(*at));
            let Some(largest) = (0..parts.len()).max_by_key(spare) else { return };
            let taken = (least - parts[index]).min(parts[largest].saturating_sub(least));
            if taken == 0 {
                return;
            }
            parts[largest] -= taken;
            parts[index] += taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_exact_and_minimums_are_kept(
            units in prop_oneof![0u64..50, 0u64..5000],
            each in any::<bool>(),
            weights in prop::collection::vec(1e-3..1e3f64, 5000),
            speeds in prop::collection::vec(
                prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(1e-300), Just(1e300), 0.1..10.0f64],
                1..40,
            ),
            least in 0u64..10,
        ) {
            let weights = if each { Weights::Each(weights[..units as usize].to_vec()) } else { Weights::Equal(units) };
            let parts = divide(&weights, &speeds, least);
            prop_assert_eq!(parts.len(), speeds.len());
            prop_assert_eq!(parts.iter().sum::<u64>(), units);
            let least = least.min(units / speeds.len() as u64);
            prop_assert!(parts.iter().all(|&part| part >= least), "{parts:?}");
        }

        #[test]
        fn parts_are_in_proportion_up_to_a_unit(
            weights in prop::collection::vec(0.5..2.0f64, 100..2000),
            speeds in prop::collection::vec(1.0..10.0f64, 1..8),
        ) {
            let all: f64 = weights.iter().sum();
            let speed: f64 = speeds.iter().sum();
            let weights = Weights::Each(weights);
            let mut begin = 0;
            for (part, own) in divide(&weights, &speeds, 0).into_iter().zip(&speeds) {
                let got = weights.of(begin..begin + part);
                prop_assert!((got - all * own / speed).abs() <= 2.0, "{got} of {all}");
                begin += part;
            }
        }
    }
}
