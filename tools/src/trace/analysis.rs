//! Knowledge of a run. Commands, the report and the exports are views of it.
//!
//! [`events`] reads: whoever collects something is an [`Observer`](events::Observer), and all that a command asks for are
//! shown the same events in one pass. [`facts::Facts`] is what a summary, a comparison of runs and the report begin with;
//! collectors that only one command has stand beside it (durations, long executions, the critical path).
//!
//! | file | knows |
//! |---|---|
//! | [`events`], [`merge`] | which events to read, worker by worker or in the order of time; the one merge of sequences |
//! | [`facts`] | the run in figures: the three below, and how much of the machine was used |
//! | [`spent`], [`taken`] | where the time of workers went, from profiles or events; who had what they lost |
//! | [`census`], [`outcome`] | how many events of which sort, what was sent; what became of each sync |
//! | [`efficiency`] | causes whose product is the use of the machine |
//! | [`chunk_times`], [`messages`] | CPU time by chunk; which handler handles which message |
//! | [`bins`], [`spread`] | time cut into bins; how values are spread |

pub(crate) mod bins;
pub(crate) mod chunk_times;
pub(crate) mod efficiency;
pub(crate) mod event_counts;
pub(crate) mod events;
pub(crate) mod facts;
pub(crate) mod log_histogram;
pub(crate) mod lost_time;
pub(crate) mod merge;
pub(crate) mod messages;
pub(crate) mod sync_effect;
pub(crate) mod time_breakdown;
