//! Policies for supersteps: units of data that can be divided anew between any two steps, and copied.
//!
//! | module | answers |
//! |---|---|
//! | [`policy`] | the inputs and the answers of a policy |
//! | [`row`] | where to cut a row of units |
//! | [`pace`] | the time of a worker for a unit |
//! | [`smoothing`] | predicts the next number of a series |
//! | `redivide` | whether it pays to divide anew |
//! | [`race`](mod@race) | the time of a group where jobs have copies |
//! | [`line`](mod@line) | a straight line through points |
//! | `equal` | `equal`: equal shares, the baseline |
//! | `load_factor` | `load-factor`: shares times load factors (jacobi-factor.txt) |
//! | `des` | `des`: shares in proportion to predicted speeds (dlb-jr.txt) |
//! | `replicate` | `replicate`: the first to finish counts (dlb-jr.txt) |
//! | `dlb_jr` | `dlb-jr`: either of the two (dlb-jr.txt) |
//! | `adaptive` | `adaptive`: the one that did best lately |

mod adaptive;
mod des;
mod dlb_jr;
mod equal;
pub mod line;
mod load_factor;
pub mod pace;
pub mod policy;
pub mod race;
mod redivide;
mod regret;
mod replicate;
pub mod row;
pub mod smoothing;
pub(crate) mod table;

pub use line::Line;
pub use pace::{By, Paces};
pub use policy::{Divider, Division, Problem, Step, SuperstepStrategy, Weights, Work};
pub use race::{Attempt, Race, race};
pub use row::Row;
pub use smoothing::Smoothing;
