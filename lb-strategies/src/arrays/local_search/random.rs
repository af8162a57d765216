//! Draws random numbers by rules that no version of a library changes, so that the same snapshot gives the same answer.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A random number below `bound`, which is at least 1.
pub(super) fn below(rng: &mut Pcg64Mcg, bound: usize) -> usize {
    ((u128::from(rng.next_u64()) * bound as u128) >> 64) as usize
}
