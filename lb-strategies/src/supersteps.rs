//! Policies for supersteps: steps on units of data, which can be divided anew and copied between any two steps.
//!
//! | module | purpose |
//! |---|---|
//! | [`policy`] | defines the inputs and outputs of a policy |
//! | [`row`] | divides a row of units |
//! | [`pace`], [`smoothing`] | measure the time of a worker per unit, and predict it |
//! | `redivide`, `regret` | decide whether a new division pays, and whether another method would |
//! | [`race`](mod@race) | computes the time of a group of workers that compute copies |
//! | [`line`](mod@line) | fits a straight line to points |
//! | `equal` | `equal`: equal shares, with which other policies are compared |
//! | `load_factor` | `load-factor`: shares times load factors (Al-Ameedi and Fanfakh) |
//! | `des` | `des`: shares in proportion to predicted speeds (Dobber et al.) |
//! | `replicate` | `replicate`: several workers compute each share, and the first result counts (Dobber et al.) |
//! | `dlb_jr` | `dlb-jr`: `des` or `replicate`, whichever is expected to be faster (Dobber et al.) |
//! | `adaptive` | `adaptive`: whichever of these was fastest lately |
//!
//! Sources: Dobber, van der Mei and Koole, "Dynamic Load Balancing and Job Replication in a Global-Scale Grid
//! Environment: a Comparison", 2008 ("Dobber et al."). Al-Ameedi and Fanfakh, "Performance Improvement for Parallel
//! Message Passing Applications", 2021.

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
