//! Computes random numbers that depend only on their arguments: SipHash-2-4 of some integers, over 2^64.

#![expect(deprecated, reason = "it is SipHash-2-4 for good, which its successor does not promise to be")]

use std::hash::{Hasher, SipHasher};

/// The bytes 1, 2, ..., 15, 0, as Task Bench has them.
const KEY: [u64; 2] = [0x0807_0605_0403_0201, 0x000f_0e0d_0c0b_0a09];

/// A number from 0 to 1, uniform over all arguments.
pub(super) fn uniform<const N: usize>(arguments: [u32; N]) -> f64 {
    let mut hasher = SipHasher::new_with_keys(KEY[0], KEY[1]);
    arguments.into_iter().for_each(|number| hasher.write(&i64::from(number).to_le_bytes()));
    hasher.finish() as f64 / 2_f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_task_bench() {
        let close = |number: f64, expected: f64| assert!((number - expected).abs() < 1e-15, "{number}");
        close(uniform([0, 0, 0]), 0.937_142_068_623_675_6);
        close(uniform([0, 1, 3]), 0.538_987_322_268_636_7);
        close(uniform([1, 22, 7]), 0.789_508_440_352_13);
        close(uniform([0, 3, 0, 0, 0]), 0.005_858_835_906_237_567);
        close(uniform([1, 5, 1, 10, 9]), 0.489_854_494_437_912_74);
    }
}
