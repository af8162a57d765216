//! Computes the length of pieces: fixed, or from measurements of the first pieces.

use super::size::EVEN;
use crate::pools::machine::Nanos;

/// Even iterations of at most this part of a piece, 1/100, come in long pieces.
const CHEAP: Nanos = 100;
/// Erratic iterations of at least this part of a piece, 1/10, come singly.
const HEAVY: Nanos = 10;
/// The factor by which long pieces are longer.
const LONG: Nanos = 5;

/// The rule for the time that a worker runs between two requests to the policy.
///
/// ```
/// use lb_strategies::pool::{SECOND, leases::Pace};
/// let (pace, tenth) = (Pace::Measured, SECOND / 10);
/// assert_eq!(pace.piece(tenth, 1_000, Some(0.1)), 5 * tenth, "microseconds, all alike");
/// assert_eq!(pace.piece(tenth, 20_000_000, Some(1.5)), 0, "20 ms, erratic: one by one");
/// assert_eq!(pace.piece(tenth, 1_000, Some(1.5)), tenth);
/// assert_eq!(Pace::Fixed.piece(tenth, 1_000, Some(0.1)), tenth);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Always the given length.
    Fixed,
    /// Five times as long while iterations are even and short. Single iterations if they are erratic and long.
    Measured,
}

impl Pace {
    /// The length of a piece instead of `base`, if an iteration takes `iteration` with this coefficient of variation.
    pub fn piece(self, base: Nanos, iteration: Nanos, variation: Option<f64>) -> Nanos {
        match (self, variation) {
            (Self::Fixed, _) | (_, None) => base,
            (_, Some(variation)) if variation < EVEN => {
                if iteration <= base / CHEAP {
                    LONG * base
                } else {
                    base
                }
            }
            (_, Some(_)) => {
                if iteration >= base / HEAVY {
                    0
                } else {
                    base
                }
            }
        }
    }
}
