//! Splits a whole number exactly in proportion to weights, by largest remainders.

/// Splits `total` in proportion to `speeds`; `None` if no speed is positive and there is something to split.
///
/// The parts add up to `total` exactly. Weights are `round(v / v_max * 2^32)`, at least 1 for a positive speed.
/// Leftover units go to the largest remainders, one each; of equal remainders, the lowest index comes first. Then the
/// *probe rule* holds: if there are at least as many units as entries, an entry without a unit gets one from the
/// largest part. So a worker that had stopped can show that it runs again. The result is the same on every platform,
/// and valid up to `total = u64::MAX`. O(n log n).
///
/// ```
/// use lb_strategies::pool::apportion;
/// assert_eq!(apportion(800, &[10.0, 5.0]), Some(vec![533, 267]));
/// assert_eq!(apportion(10, &[1e6, 0.0]), Some(vec![9, 1]));
/// assert_eq!(apportion(10, &[0.0, 0.0]), None);
/// ```
pub fn apportion(total: u64, speeds: &[f64]) -> Option<Vec<u64>> {
    let fastest = speeds.iter().copied().filter(|speed| speed.is_finite()).fold(0.0, f64::max);
    if fastest <= 0.0 {
        return (total == 0).then(|| vec![0; speeds.len()]);
    }
    let weights: Vec<u64> = speeds.iter().map(|&speed| weight(speed, fastest)).collect();
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    for (index, &weight) in weights.iter().enumerate() {
        let product = u128::from(total) * u128::from(weight);
        parts.push((product / sum) as u64);
        remainders.push((std::cmp::Reverse(product % sum), index));
    }
    remainders.sort_unstable();
    let left = total - parts.iter().sum::<u64>();
    for &(_, index) in &remainders[..left as usize] {
        parts[index] += 1;
    }
    probe(total, &mut parts);
    Some(parts)
}

/// Equal parts; the first parts are larger by one if `total` is not divisible.
///
/// ```
/// assert_eq!(lb_strategies::pool::apportion::equal(10, 4), [3, 3, 2, 2]);
/// ```
pub fn equal(total: u64, parts: usize) -> Vec<u64> {
    let (each, more) = (total / parts as u64, total % parts as u64);
    (0..parts as u64).map(|part| each + u64::from(part < more)).collect()
}

fn weight(speed: f64, fastest: f64) -> u64 {
    if speed <= 0.0 || speed.is_nan() {
        return 0;
    }
    ((speed / fastest).min(1.0) * 4_294_967_296.0).round().max(1.0) as u64
}

fn probe(total: u64, parts: &mut [u64]) {
    if total < parts.len() as u64 {
        return;
    }
    for index in 0..parts.len() {
        if parts[index] == 0 {
            let largest = (0..parts.len()).max_by_key(|&at| (parts[at], std::cmp::Reverse(at)));
            parts[largest.expect("there is an entry")] -= 1;
            parts[index] = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_remainder_is_not_lost() {
        assert_eq!(apportion(1_000_000_007, &[1.0; 3]), Some(vec![333_333_336, 333_333_336, 333_333_335]));
    }

    proptest! {
        #[test]
        fn parts_add_up_and_are_in_proportion(
            total in prop_oneof![0u64..100, 0..=1u64 << 60, Just(u64::MAX)],
            speeds in prop::collection::vec(prop_oneof![Just(0.0), 1e-3..1e9f64], 1..40),
        ) {
            let sum: f64 = speeds.iter().sum();
            let parts = apportion(total, &speeds);
            prop_assert_eq!(parts.is_none(), sum <= 0.0 && total > 0);
            let Some(parts) = parts else { return Ok(()) };
            prop_assert_eq!(parts.iter().map(|&part| u128::from(part)).sum::<u128>(), u128::from(total));
            let probes = parts.len() as f64;
            for (part, speed) in parts.iter().zip(&speeds) {
                let exact = total as f64 * speed / sum.max(f64::MIN_POSITIVE);
                // Weights have 32 bits.
                prop_assert!((*part as f64 - exact).abs() <= 1.0 + probes + total as f64 * 1e-8, "{part} {exact}");
                prop_assert!(*part > 0 || total < parts.len() as u64);
            }
        }
    }
}
