//! Strategies for arrays of chunks: a [`Snapshot`](snapshot::Snapshot) of measurements goes in, an
//! [`Assignment`](snapshot::Assignment) of chunks to ranks comes out.
//!
//! | module | answers |
//! |---|---|
//! | [`balancer`] | from the reports of a phase to a decision, all of the below |
//! | `activity` | messages that chunks handle, where windows cut steps |
//! | `balanced_units` | the snapshot that a strategy sees: groups of chunks count as one |
//! | `estimate` | the capacity of a rank: its share and its speed |
//! | [`snapshot`] | the measurements and the decision |
//! | [`strategy`] | the trait of strategies, and the model of a neighbour |
//! | [`strategies`] | one file per strategy |
//! | [`metrics`] | how good is a placement, and how good could it be |
//! | [`mod@predict`] | the loads of the next phase |
//! | `scatter` | a placement for loads that cannot be followed |
//! | [`mod@accept`] | whether a move pays |
//! | `move_price` | the cost of a move on this machine |
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
