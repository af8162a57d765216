//! Saves the state of a run on disk (a *checkpoint*), so that a run that died can be restarted.
//!
//! A run with a [`Settings`] directory writes checkpoints there at intervals, while it goes on. [`Config::restart`]
//! starts from the newest checkpoint of a directory, on any number of ranks and workers, as threads or processes.
//!
//! # Files
//!
//! | path | content |
//! |---|---|
//! | `DIR/lock` | locked while a run writes to the directory |
//! | `DIR/unfinished` | exists from the beginning of a run until the run has its result |
//! | `DIR/000007.partial/` | a checkpoint that is being written, or that was incomplete when the run died |
//! | `DIR/000007/rank-0`, ... | one file per rank, an LZ4 frame |
//! | `DIR/000007/manifest` | written last: a line of JSON with the arrays, and the length and checksum of each file; a line with its checksum |
//!
//! A checkpoint's directory loses the suffix `.partial` when all of it is on the disk. Only its owner can read files.
//!
//! # Content of a checkpoint
//!
//! Of arrays: all chunks with their messages, reductions in progress, and messages that wait for quiescence or for
//! [`send_after`](crate::Ctx::send_after). A delayed message waits for the rest of its delay. Chunks restart on the
//! ranks that they were on, if there are as many ranks as before, all were active, and the strategy moves chunks.
//! Otherwise they restart on their home ranks. [`Chunk::on_arrive`](crate::Chunk::on_arrive) is called as after a migration. If a chunk has a random
//! stream, it is part of the state that the program serialises. [Groups](crate::Setup::group) are made anew.
//!
//! Chunks must be balanced while they run ([`Period`](crate::config::Period)), because the state of syncs is not saved.
//! Programs that reduce over sections or spawn chunks have no checkpoints.
//!
//! Of a [pool](crate::pool()): the accumulated value of each worker, and the iterations that are in it. The restarted
//! run executes all other iterations.
//!
//! Of a program in [supersteps](crate::supersteps()): the state between two steps, that is the shared data and, if
//! steps change them, the units. There is one file per worker.
//!
//! # Notice
//!
//! SIGTERM or SIGUSR1, sent to a process of a run that makes checkpoints, gives notice that the run is to end. The run
//! makes a checkpoint at once and ends with [`Error::Interrupted`]; its [`Error::exit_code`] is 75. A second SIGTERM
//! ends the process at once.
//!
//! With [`Config::spot`], the run polls the metadata service of a cloud, which gives the same notice before it takes a
//! spot instance back.
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
