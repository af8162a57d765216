//! Strategies for arrays of chunks: a [`Snapshot`](snapshot::Snapshot) of measurements goes in, an
//! [`Assignment`](snapshot::Assignment) of chunks to ranks comes out.
//!
//! | module | purpose |
//! |---|---|
//! | [`balancer`] | makes a decision from the reports of a phase (the time between two syncs, or a balancing window), with all modules below |
//! | `report` | defines the reports of a phase |
//! | `edges`, `edge_watch` | add up the messages between chunks, and choose the phases in which they are recorded |
//! | `activity` | counts the messages of chunks, because balancing windows cut steps in the middle |
//! | `estimate` | estimates the share and speed of each rank |
//! | [`mod@predict`] | predicts the loads of the next phase |
//! | `balanced_units` | makes groups of chunks into one chunk for the strategy |
//! | [`snapshot`], [`strategy`] | define the input and output of a strategy, and its trait |
//! | [`strategies`] | has one file per strategy |
//! | [`grouped`] | decides a window on two levels: within groups of ranks, and between groups |
//! | `groups` | divides ranks into groups, for balancing on two levels |
//! | `local_search` | improves a placement by random changes |
//! | `loads`, `traffic`, `memory` | sum the work, the messages and the memory of ranks under a placement |
//! | [`metrics`] | computes the completion times of a placement, and bounds |
//! | `scatter`, `scatter_trial` | place chunks once if their loads cannot be followed |
//! | `homing` | prefers moves back to the rank where a chunk began |
//! | [`mod@accept`], `judgement` | compare the gain of a plan with its cost, at syncs and in windows |
//! | `move_price`, `regime` | predict the cost of moves, and how long a plan stays good |
//! | [`period`], [`window_policy`] | define when chunks are balanced, and when a window opens |
//! | [`synthetic`] | generates workloads to compare strategies on |

pub mod accept;
mod activity;
mod balanced_units;
pub mod balancer;
mod edge_watch;
mod edges;
mod estimate;
mod finish_first;
pub mod grouped;
mod groups;
mod homing;
mod judgement;
mod loads;
mod local_search;
mod memory;
mod message_price;
pub mod metrics;
mod move_price;
pub mod period;
pub mod predict;
mod regime;
mod report;
mod scatter;
mod scatter_trial;
pub mod snapshot;
mod step_cover;
pub mod strategies;
pub mod strategy;

pub mod synthetic;
mod traffic;
pub mod window_policy;

pub use groups::Hierarchy;
