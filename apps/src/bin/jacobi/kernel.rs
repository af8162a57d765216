//! Computes with matrix rows in a fixed order of additions, so that serial and parallel results have the same bits.

/// Number of partial sums, so that the compiler can vectorise them.
const LANES: usize = 8;

/// The dot product of two vectors of one length, in an order of additions that depends only on the length. O(length).
#[inline]
pub(crate) fn dot(a: &[f64], x: &[f64]) -> f64 {
    let (a_lanes, x_lanes) = (a.chunks_exact(LANES), x.chunks_exact(LANES));
    let rest = a_lanes.remainder().iter().zip(x_lanes.remainder()).fold(0.0, |sum, (a, x)| sum + a * x);
    let mut sums = [0.0_f64; LANES];
    for (a, x) in a_lanes.zip(x_lanes) {
        sums.iter_mut().zip(a.iter().zip(x)).for_each(|(sum, (a, x))| *sum += a * x);
    }
    sums.iter().fold(rest, |sum, lane| sum + lane)
}

/// The greater of two numbers. NaN is greater than every number, so that it is not lost.
#[inline]
pub(crate) fn greater(one: f64, other: f64) -> f64 {
    if one.is_nan() || one >= other { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_summed_whatever_the_length() {
        for length in [0, 1, 7, 8, 9, 31] {
            let a: Vec<f64> = (0..length).map(f64::from).collect();
            let expected: f64 = a.iter().map(|a| a * a).sum();
            assert!((dot(&a, &a) - expected).abs() < 1e-9, "{length}");
        }
    }

    #[test]
    fn a_size_that_is_not_a_number_is_the_greatest_from_either_side() {
        assert!(greater(f64::NAN, 1.0).is_nan() && greater(1.0, f64::NAN).is_nan());
        assert_eq!(vec![greater(1.0, 2.0), greater(2.0, 1.0)], vec![2.0; 2]);
    }
}
