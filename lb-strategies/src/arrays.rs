//! Strategies for arrays of chunks: a [`Snapshot`](snapshot::Snapshot) of what was measured goes in, an
//! [`Assignment`](snapshot::Assignment) of chunks to ranks comes out.
//!
//! | module | answers |
//! |---|---|
//! | [`balancer`] | from the reports of a phase to a decision, all of the below |
//! | `activity` | messages that chunks handle, where windows cut steps |
//! | `asked` | what a strategy is asked about: groups of chunks count as one |
//! | `estimate` | what a rank can give: its share and its speed |
//! | [`snapshot`] | what was measured, and what was decided |
//! | [`strategy`] | what a strategy is, and how a neighbour counts |
//! | [`strategies`] | one file a strategy |
//! | [`metrics`] | how good is a placement, and how good could it be |
//! | [`mod@predict`] | what the next phase will look like |
//! | `scatter` | a placement for loads that cannot be followed |
//! | [`mod@accept`] | whether a move pays |
//! | `move_price` | what a move costs on this machine |
//! | `regime` | how long shares and loads stay as they are |
//! | `judgement` | whether to believe that, where phases are windows |
//! | [`period`] | whether chunks are balanced at syncs or in windows |
//! | [`window_policy`] | when to open a window |
//! | [`synthetic`] | workloads to study strategies with |

pub mod accept;
mod activity;
mod balanced_units;
pub mod balancer;
mod estimate;
mod finish_first;
mod homing;
mod judgement;
mod loads;
pub mod metrics;
mod move_price;
pub mod period;
pub mod predict;
mod regime;
mod report;
mod scatter;
mod scatter_trial;
pub mod snapshot;
pub mod strategies;
pub mod strategy;
pub mod synthetic;
pub mod window_policy;
