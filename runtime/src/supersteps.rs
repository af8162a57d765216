//! Programs in supersteps (BSP): steps on divisible data, each of which ends when all workers have finished it. Start one
//! with [`supersteps()`](crate::supersteps()).
//!
//! A layer on arrays. The share of a worker is a chunk that never migrates, and shares exchange messages of chunks. So
//! arrays provide simulation by seed, MPI, traces and exactly-once delivery.
//!
//! | module | part |
//! |---|---|
//! | `api` | what users write; `program` calls it |
//! | `share` | one share, its states and rules; `root` adds the duties of the first share |
//! | `units`, `jobs` | the data of a share: its units; the jobs of a step |
//! | `step`, `compute` | begins and ends the steps of a share; computes its jobs |
//! | `messages` | the messages between shares |
//! | `edges`, `exchange`, `redistribution` | boundary data of units, parts of all shares, units on their way to a new worker |
//! | `measure` | the measurement of a share in a step |
//! | `checkpoint` | saves the state between two steps, and restarts from it |
//! | `run`, `report` | starts a run; its report |

pub(crate) mod api;
mod checkpoint;
mod compute;
mod edges;
mod exchange;
mod jobs;
mod measure;
mod messages;
mod program;
mod redistribution;
pub(crate) mod report;
mod root;
pub(crate) mod run;
mod share;
mod step;
mod units;

pub use self::api::{Exchange, Job, Parts, Supersteps, Then};
pub use self::report::{DivisionReport, SuperstepOutcome, SuperstepReport, SuperstepWorker};
