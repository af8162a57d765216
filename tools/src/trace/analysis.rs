//! Computes figures of a run from its trace, which the subcommands of `caribou trace` display.
//!
//! [`events`] reads a trace. Each collector is an [`Observer`](events::Observer), and all collectors of a command
//! receive the same events in one pass.
//!
//! | module | purpose |
//! |---|---|
//! | [`events`], [`merge`] | read events, per worker or in order of time; merge sorted sequences |
//! | [`facts`] | figures of the whole run, which the summary, `diff` and the report need |
//! | [`time_breakdown`], [`lost_time`] | time of workers by activity, from profiles or events; causes of lost time |
//! | [`event_counts`], [`sync_effect`], [`resizes`] | counts of events and messages; effects of syncs; active ranks |
//! | [`efficiency`] | efficiency factors (POP, TALP) and lower bounds of the run time |
//! | [`chunk_times`], [`messages`] | CPU time per chunk; match of sends and handlers of messages |
//! | [`bins`], [`log_histogram`] | time divided into bins; distribution of values |

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
