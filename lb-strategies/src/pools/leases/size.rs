//! Computes the size of a lease (factoring).
//!
//! A lease is a part of the free iterations. So early leases are large, which saves messages, and late leases are
//! small, which balances the end. The part is smaller if the time of a lease is less predictable.

use super::root_link::seconds;
use crate::pools::machine::Nanos;

/// The part of the free iterations that the ranks get in one round.
///
/// ```
/// use lb_strategies::pool::leases::Batch;
/// assert_eq!(Batch::Part(0.5).part(1000, 4, Some(9.0)), 0.5);
/// let even = Batch::Factoring.part(1_000_000, 4, Some(0.1));
/// let erratic = Batch::Factoring.part(100, 4, Some(3.0));
/// assert!((0.49..=0.5).contains(&even) && erratic < 0.3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Batch {
    /// Always this part.
    Part(f64),
    /// As much as is safe for the measured variation (Hummel, Schonberg, Flynn: Factoring, 1992): `1 / x` with `x = 2 +
    /// b^2 + b sqrt(b^2 + 4)` and `b = P cv / (2 sqrt(R))`.
    Factoring,
    /// Three quarters while the first ranges show even iterations, else [`Factoring`](Self::Factoring).
    Measured,
}

/// Iterations are even below this coefficient of variation.
pub(super) const EVEN: f64 = 0.5;

impl Batch {
    /// The part if `free` iterations are left for `ranks` ranks, whose times have this coefficient of variation.
    pub fn part(self, free: u64, ranks: u32, variation: Option<f64>) -> f64 {
        match (self, variation) {
            (Self::Part(part), _) => part,
            (Self::Measured, Some(variation)) if variation < EVEN => 0.75,
            (_, None) => 0.5,
            (_, Some(variation)) => {
                let b = f64::from(ranks) * variation / (2.0 * (free.max(1) as f64).sqrt());
                1.0 / (2.0 + b * b + b * (b * b + 4.0).sqrt())
            }
        }
    }
}

/// The bounds of the time of a lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The shortest and the longest lease.
    pub(super) min: Nanos,
    pub(super) max: Nanos,
}

/// The speed of one rank and of all ranks together, or their weights while no speed is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speeds {
    pub(super) of_rank: f64,
    pub(super) of_all: f64,
}

/// `clamp(part * free * v / sum, v * min, v * max)`, between 1 and `free`.
pub(super) fn lease(free: u64, part: f64, speeds: Speeds, bounds: Bounds) -> u64 {
    let Speeds { of_rank, of_all } = speeds;
    let fair = part * free as f64 * of_rank / of_all.max(f64::MIN_POSITIVE);
    let (least, most) = (of_rank * seconds(bounds.min), of_rank * seconds(bounds.max));
    (fair.clamp(least, most.max(least)).round() as u64).clamp(1, free.max(1))
}

/// The first lease of a rank of unknown speed: `part` of its fair share, at least one iteration per worker.
pub(super) fn first(iterations: u64, workers: u32, of_all: u32, part: f64) -> u64 {
    let share = iterations as f64 * f64::from(workers) / f64::from(of_all);
    ((part * share).round() as u64).max(u64::from(workers)).min(share.ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::machine::SECOND;

    #[test]
    fn leases_shrink_but_not_below_the_shortest() {
        let bounds = Bounds { min: SECOND, max: 300 * SECOND };
        let speeds = Speeds { of_rank: 100.0, of_all: 400.0 };
        assert_eq!(lease(1_000_000, 0.5, speeds, bounds), 30_000);
        assert_eq!(lease(80_000, 0.5, speeds, bounds), 10_000);
        assert_eq!(lease(100, 0.5, speeds, bounds), 100);
        assert_eq!(lease(500, 0.5, speeds, bounds), 100);
        assert_eq!(lease(5, 0.5, Speeds { of_rank: 0.01, of_all: 1.0 }, bounds), 1);
    }

    #[test]
    fn first_leases_leave_something_for_everybody() {
        assert_eq!(first(40_000, 8, 32, 0.02), 200);
        assert_eq!(first(700, 8, 32, 0.02), 8);
        assert_eq!(first(5, 8, 32, 0.02), 2);
        assert_eq!(first(0, 8, 32, 0.02), 1);
    }
}
