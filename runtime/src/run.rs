//! Starts a run of any program (arrays, pools, supersteps), with its ranks as threads of this process or as processes
//! of a job.

pub(crate) mod context;
#[cfg(feature = "mpi")]
pub(crate) mod job;
pub(crate) mod outcome;
pub(crate) mod recording;
pub(crate) mod report;
pub(crate) mod resize;
pub(crate) mod shape;
mod status;
mod threads;
pub(crate) mod watchdog;

use std::sync::Once;

use self::report::RunReport;
use self::shape::Shape;
use crate::config::Config;
use crate::error::Error;
use crate::launch::{self, Launch};
use crate::warn::warn;

/// The report of a finished run, and the figures of each rank, in rank order.
pub(crate) type Finished<S> = (RunReport, Vec<<S as Shape>::Figures>);

/// Runs a program with the ranks that the configuration and the launcher prescribe.
pub(crate) fn run_shape<S: Shape>(config: &Config, shape: &S) -> Result<Finished<S>, Error> {
    match config.launch() {
        Launch::Alone => {
            warn_of_others(launch::found());
            threads::run(config, shape)
        }
        Launch::Together { process, processes } => run_process(config, process, processes, shape),
    }
}

/// Warns that this process runs without the other processes of the launcher, whose settings may differ.
fn warn_of_others(found: Launch) {
    static TOLD: Once = Once::new();
    if let Launch::Together { process, processes: processes @ 2.. } = found {
        TOLD.call_once(|| {
            warn(&format!("CARIBOU_PROCESSES=threads: process {process} of {processes} runs by itself"));
        });
    }
}

#[cfg(feature = "mpi")]
fn run_process<S: Shape>(
    config: &Config,
    _process: u32,
    _processes: u32,
    shape: &S,
) -> Result<Finished<S>, Error> {
    job::run_in_world(config, shape)
}

#[cfg(not(feature = "mpi"))]
fn run_process<S: Shape>(
    _config: &Config,
    process: u32,
    processes: u32,
    _shape: &S,
) -> Result<Finished<S>, Error> {
    let why = format!(
        "this is process {process} of {processes}, but the program was built without MPI: build it with \
         `--features mpi` (in a crate of your own after `[features] mpi = [\"caribou/mpi\"]`), or set `threads` to run \
         each process by itself"
    );
    Err(Error::Config { setting: "CARIBOU_PROCESSES".into(), why })
}

impl Launch {
    /// Ends the whole job because this process will not take part in it, for example if its options are wrong. Must be
    /// called before the process ends, because the other processes may otherwise wait forever for it to start MPI.
    ///
    /// One process prints `complaint` on standard error, and the job ends with exit code `code`. Does nothing for a
    /// process by itself, without the `mpi` feature, and after a run has started MPI.
    pub fn refuse(&self, complaint: &str, code: u8) {
        #[cfg(feature = "mpi")]
        if let Launch::Together { process, .. } = *self {
            job::refuse(process, complaint, code);
        }
        #[cfg(not(feature = "mpi"))]
        let _ = (complaint, code);
    }
}
