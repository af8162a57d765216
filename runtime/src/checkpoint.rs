//! Checkpoints on disk: they let a run that died go on.
//!
//! A run with a [`Settings`] directory writes its state there now and then, while it goes on. [`Config::restart`] goes on from
//! the newest checkpoint of a directory, on any number of ranks and workers, as threads or processes.
//!
//! # Files
//!
//! | path | content |
//! |---|---|
//! | `DIR/lock` | locked while a run writes there |
//! | `DIR/unfinished` | there from the beginning of a run until it has its result |
//! | `DIR/000007.partial/` | a checkpoint that is being written, or was when the run died |
//! | `DIR/000007/rank-0`, ... | one file per rank, an LZ4 frame |
//! | `DIR/000007/manifest` | written last: a line of JSON with the arrays, and the length and checksum of each file; a line with its checksum |
//!
//! The directory gets its name when all of it is on the disk. Files can be read by their owner only.
//!
//! # Content of a checkpoint
//!
//! All chunks with their messages, reductions in progress, messages that wait for quiescence or for
//! [`send_after`](crate::Ctx::send_after). The times of the latter go on where they were. Chunks restart on the
//! ranks that they were on, if there are as many ranks as before and all were active, else on their home ranks.
//! [`Chunk::on_arrive`](crate::Chunk::on_arrive) is called as if they had moved there. A chunk's own random stream
//! is part of its state, as the program keeps it. [Groups](crate::Setup::group) are made anew.
//!
//! Chunks must be balanced while they run ([`Period`](crate::config::Period)), since the state of syncs is not saved.
//! Programs that reduce over sections or spawn chunks have no checkpoints.
//!
//! Of a [pool](crate::pool()): the accumulated value of each worker, and the iterations that are in it. The restarted run
//! executes the others.
//!
//! Of a program in [supersteps](crate::supersteps()): the shared data and, if steps change them, the units, between two
//! steps. There is one file per worker.
//!
//! # Notice
//!
//! SIGTERM and SIGUSR1 to a process of a run that makes checkpoints give notice. The run makes a checkpoint at once and
//! ends with [`Error::Interrupted`]; its [`Error::exit_code`] is 75. A second SIGTERM ends the process at once.
//!
//! [`Config::spot`] asks the metadata service of a cloud, which gives the same notice when a spot instance is taken back.
//!
//! [`Config::restart`]: crate::Config::restart
//! [`Config::spot`]: crate::Config::spot
//! [`Error::Interrupted`]: crate::Error::Interrupted
//! [`Error::exit_code`]: crate::Error::exit_code

pub(crate) mod background;
mod packed;
mod saved;
mod schedule;
mod settings;
mod store;

pub use saved::{Saved, list};
pub use settings::Settings;
pub use store::is_unfinished;

pub(crate) use saved::{
    Content, Manifest, PoolSignature, SuperstepsState, Written, chosen, newest_whole, offering_older,
};
pub(crate) use schedule::Schedule;
pub(crate) use store::{Store, finish};
