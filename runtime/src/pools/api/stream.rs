//! Random numbers for iterations, with a stream for each, so that results do not depend on the assignment to workers.

use std::convert::Infallible;

use rand::{Rng, TryRng};
use rand_pcg::Pcg64Mcg;

/// Random numbers of one iteration; a [`rand::Rng`].
///
/// ```
/// use rand::Rng;
/// let draw = |iteration| caribou::random::stream(7, iteration).next_u64();
/// assert_eq!(draw(3), draw(3));
/// assert_ne!(draw(3), draw(4));
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

/// The random numbers of an iteration, which depend on the two arguments only. Creating a stream takes a few ns.
///
/// The generator is PCG XSL 128/64 (MCG). Its state is `seed` and `iteration`, mixed by SplitMix64, so that streams of
/// neighbouring iterations are independent.
#[must_use]
pub fn stream(seed: u64, iteration: u64) -> Stream {
    let low = mix(seed ^ mix(iteration.wrapping_add(GOLDEN)));
    let high = mix(low ^ iteration.wrapping_mul(GOLDEN));
    Stream(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_draws_of_neighbours_look_random() {
        // Each of 64 bits is set in about half of the streams, and differs between neighbours in half.
        let draws: Vec<u64> = (0..4096).map(|iteration| stream(1, iteration).next_u64()).collect();
        for bit in 0..64 {
            let set = draws.iter().filter(|draw| *draw >> bit & 1 == 1).count();
            let differs = draws.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
            assert!((1900..2200).contains(&set) && (1900..2200).contains(&differs), "{bit}: {set} {differs}");
        }
    }
}
