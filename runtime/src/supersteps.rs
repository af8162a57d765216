//! Programs in supersteps (BSP): steps on divisible data, each of which ends when all workers have finished it. Start
//! one with [`supersteps()`](crate::supersteps()).
//!
//! Supersteps are a layer on arrays. The *share* of a worker (its part of the data) is a chunk that never migrates, and
//! shares exchange messages of chunks. So arrays provide simulation by seed, MPI, traces and exactly-once delivery.
//!
//! | module | content |
//! |---|---|
//! | `api`, `program` | the trait that users implement; its calls, with the data common to all shares of a process |
//! | `share`, `root` | a share with its states and rules; the additional state of the first share |
//! | `units`, `jobs` | the units that a share holds; the jobs of a step |
//! | `step`, `compute` | begin and end of the steps of a share; the computation of its jobs |
//! | `messages` | the messages between shares |
//! | `edges`, `exchange`, `redistribution` | exchange of boundary data, and of parts; moves of units to new workers |
//! | `measure` | the measurement of a share in a step |
//! | `checkpoint` | checkpoints of the state between two steps, and restarts |
//! | `run`, `report` | the start of a run; its report |

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
