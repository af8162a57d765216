//! Draws how many particles begin in a cell, by the random numbers of the kernel's reference program.
//!
//! One sequence serves the whole grid, with two numbers for each cell. A tile jumps to the numbers of its cells, so it
//! draws only its own particles.

/// A linear congruential generator modulo 2^64.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;
const SEED: u64 = 27_182_818_285;

/// The standard deviation of a count, over its mean.
const DEVIATION: f64 = 0.15;

/// The counts of consecutive cells.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    state: u64,
}

impl Counts {
    /// The counts from a cell on, by the number of the cell in the sequence. O(log cell).
    #[must_use]
    pub(crate) fn from_cell(cell: u64) -> Self {
        // One step is an affine map, and so are 2, 4, 8 steps together.
        let (mut multiplier, mut increment, mut state) = (MULTIPLIER, INCREMENT, SEED);
        let mut steps = 2 * cell;
        while steps > 0 {
            if steps % 2 == 1 {
                state = state.wrapping_mul(multiplier).wrapping_add(increment);
            }
            increment = increment.wrapping_mul(multiplier.wrapping_add(1));
            multiplier = multiplier.wrapping_mul(multiplier);
            steps /= 2;
        }
        Self { state }
    }

    /// The count of the next cell: about normal for a mean of at least 1, else one particle or none.
    pub(crate) fn next(&mut self, mean: f64) -> u64 {
        let [first, second] = [self.step(), self.step()];
        if mean >= 1.0 {
            let [radius, angle] = [first, second].map(|state| (state % u64::MAX) as f64 / u64::MAX as f64);
            let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
            (normal * (DEVIATION * mean) + mean + 0.5) as u64
        } else {
            const MAX: u64 = u32::MAX as u64;
            u64::from(second % MAX <= (mean * MAX as f64) as u64)
        }
    }

    fn step(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_lands_where_steps_lead() {
        let mut counts = Counts::from_cell(0);
        for cell in 0..1000 {
            assert_eq!(Counts::from_cell(cell).state, counts.state, "cell {cell}");
            // Every cell draws twice, whatever its mean.
            counts.next(if cell % 2 == 0 { 0.3 } else { 7.0 });
        }
    }
}
