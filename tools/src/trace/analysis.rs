//! Analyses of a run. Commands, the report and the exports are views of them.
//!
//! [`events`] reads a trace. Each collector is an [`Observer`](events::Observer), and all observers of a command are shown
//! the same events in one pass. A summary, a comparison of runs and the report begin with [`facts::Facts`]. Collectors that
//! a single command uses stand beside that command (durations, long executions, the critical path).
//!
//! | file | knows |
//! |---|---|
//! | [`events`], [`merge`] | which events to read, per worker or in the order of time; the one merge of sequences |
//! | [`facts`] | figures of the whole run: the next five, and how much of the machine was used |
//! | [`time_breakdown`], [`lost_time`] | where workers spent their time, from profiles or events; the causes of lost time |
//! | [`event_counts`], [`sync_effect`] | the number of events of each kind, and of messages sent; the effect of each sync |
//! | [`efficiency`] | causes whose product is the use of the machine |
//! | [`chunk_times`], [`messages`] | CPU time per chunk; which handler handles which message |
//! | [`bins`], [`log_histogram`] | time cut into bins; the distribution of values |

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
pub(crate) mod resizes;
pub(crate) mod sync_effect;
pub(crate) mod time_breakdown;
