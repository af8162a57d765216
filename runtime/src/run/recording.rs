//! The record of one run in this process: the name of the run, its options, and the recordings of its ranks.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lb_strategies::Shape;
use serde::{Deserialize, Serialize};

use super::resize::ResizeRequests;
use crate::config::Config;
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::measure::topology::plan::Plan;
use crate::threads::clock::Clock;
use crate::trace::Filter;
use crate::trace::activity_board::{ActivitySampler, Running};
use crate::trace::recording::{RankProfile, Recording, RecordingOptions};
use crate::trace::records::{End, RunRecord};
use crate::warn::warn;
use rustix::process::{Resource, getrlimit};

/// Maximum time between two samples of the workers that counts as activity, ns.
pub(crate) const SAMPLE_GAP_MAX_NS: u64 = 2_000_000_000;

/// The record of a run.
pub(crate) struct Session {
    options: RecordingOptions,
    run: RunRecord,
    recordings: Mutex<Vec<Arc<Recording>>>,
    /// The clock of the run, once it has begun.
    clock: OnceLock<Clock>,
    activity_sampler: Mutex<ActivitySampler>,
    /// Set when the run has ended, with the reason if it failed.
    ended: OnceLock<Option<String>>,
    /// The requests to shrink or expand the run.
    resizes: Arc<ResizeRequests>,
}

/// The name of a run, the same in all processes of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunName {
    /// A unique name: the time when the run began, in s since 1970, and the number of the process that made the name.
    id: String,
    /// The number of the run's directory, if the run is traced.
    number: u32,
}

impl RunName {
    /// A new name. If the run is traced, also creates its directory, so that no other run uses it.
    pub(crate) fn new(config: &Config) -> Result<RunName, Error> {
        let now = since_1970();
        let id = format!("{}.{:03}-{}", now.as_secs(), now.subsec_millis(), std::process::id());
        let number = config.trace.as_ref().map_or(Ok(0), |dir| new_directory(dir))?;
        Ok(RunName { id, number })
    }
}

fn directory(number: u32) -> String {
    format!("run-{number}")
}

/// Creates the directory with the next free number, and returns the number.
fn new_directory(dir: &Path) -> Result<u32, Error> {
    fs::create_dir_all(dir).map_err(|why| refused(dir, &why))?;
    let number = |entry: DirEntry| entry.file_name().to_str()?.strip_prefix("run-")?.parse::<u32>().ok();
    let there = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut next = there.filter_map(number).max().unwrap_or(0).saturating_add(1);
    loop {
        let path = dir.join(directory(next));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(next),
            // Another run has created it meanwhile.
            Err(why) if why.kind() == ErrorKind::AlreadyExists && next < u32::MAX => next += 1,
            Err(why) => return Err(refused(&path, &why)),
        }
    }
}

fn refused(dir: &Path, why: &io::Error) -> Error {
    let why = format!("the directory {} cannot be created: {why}", dir.display());
    Error::Config { setting: "CARIBOU_TRACE".into(), why }
}

#[expect(clippy::disallowed_methods, reason = "the one place that asks for the date; nothing depends on it")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Half of the file size limit (`ulimit -f`), bytes. The other half is for the end of the file.
fn file_bytes_max() -> u64 {
    getrlimit(Resource::Fsize).current.map_or(u64::MAX, |bytes| bytes / 2)
}

impl Session {
    /// Begins the record of a run. `name` is the same in all processes.
    pub(crate) fn begin(config: &Config, shape: Shape, lb: &str, plan: &Plan, name: RunName) -> Arc<Session> {
        let dir = config.trace.as_ref().map(|dir| dir.join(directory(name.number)));
        if dir.is_none() && config.trace_filter != Filter::default() && config.launch().speaks() {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                warn("CARIBOU_TRACE_FILTER has no effect without CARIBOU_TRACE: no events are recorded");
            });
        }
        config.without_effect(shape).for_each(|setting| {
            warn(&format!("{setting} has no effect on {}", shape.program()));
        });
        let wanted = RecordingOptions {
            dir,
            filter: config.trace_filter.clone(),
            bytes_max: config.trace_bytes_max.min(file_bytes_max()),
            profile: config.profile,
        };
        let host = |host: &u32| plan.hosts.get(*host as usize).cloned().unwrap_or_default();
        let run = RunRecord {
            run_id: name.id,
            arguments: std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
            git_hash: env!("GIT_HASH_OF_BUILD").into(),
            started_unix_ns: since_1970().as_nanos() as u64,
            shape,
            lb: lb.into(),
            predict: if shape == Shape::Arrays { config.prediction.to_string() } else { String::new() },
            memory_limit: config.lb_memory.filter(|_| shape == Shape::Arrays),
            ranks: plan.placements.len() as u32,
            workers: plan.workers(),
            hosts: plan.placements.iter().map(|seats| host(&seats.host)).collect(),
            placement: plan.to_string(),
            pinned: plan.is_pinned(),
            trace: wanted.dir.as_ref().map_or_else(String::new, |dir| dir.display().to_string()),
            filter: wanted.filter.to_string(),
            arrows: wanted.filter.arrows(),
            rank: 0,
            pid: std::process::id(),
        };
        Arc::new(Session {
            options: wanted,
            run,
            recordings: Mutex::default(),
            clock: OnceLock::new(),
            activity_sampler: Mutex::default(),
            ended: OnceLock::new(),
            resizes: Arc::new(ResizeRequests::new(plan.placements.len() as u32)),
        })
    }

    /// The recording of a rank, and the error if a requested trace of it cannot be written.
    pub(crate) fn rank(
        &self,
        rank: Rank,
        arrays: &[String],
        clock: &Clock,
    ) -> (Arc<Recording>, Option<Error>) {
        self.clock.get_or_init(|| clock.clone());
        if let (ROOT, Some(dir), Some(name)) =
            (rank, &self.options.dir, self.options.filter.unknown_array(arrays))
        {
            let (dir, known) = (dir.display(), arrays.join(", "));
            warn(&format!("CARIBOU_TRACE_FILTER: {dir} has no array `{name}`, expected one of {known}"));
        }
        let run = RunRecord { rank: rank.0, ..self.run.clone() };
        let (recording, refused) = Recording::begin(&self.options, &run, arrays);
        let recording = Arc::new(recording);
        self.recordings().push(recording.clone());
        (recording, refused)
    }

    /// The recordings of the ranks of this process that have begun.
    pub(crate) fn recordings(&self) -> MutexGuard<'_, Vec<Arc<Recording>>> {
        self.recordings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the run began, ns.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.clock.get().map_or(0, Clock::now_ns)
    }

    /// The requests to shrink or expand the run, in this process.
    pub(crate) fn resizes(&self) -> &Arc<ResizeRequests> {
        &self.resizes
    }

    /// The handlers that have been running since the last sample.
    pub(crate) fn running(&self) -> Vec<Running> {
        let (ranks, now_ns) = (self.recordings().clone(), self.elapsed_ns());
        let sightings = &mut *self.activity_sampler.lock().unwrap_or_else(PoisonError::into_inner);
        sightings.look(&ranks, now_ns, SAMPLE_GAP_MAX_NS)
    }

    /// Number of handlers that have begun and iterations that were executed, on all ranks of this process. If two calls
    /// return the same number, nothing was done in between.
    #[cfg(feature = "mpi")]
    pub(crate) fn begun(&self) -> u64 {
        self.recordings().iter().map(|rank| rank.begun()).sum()
    }

    pub(crate) fn run(&self) -> &RunRecord {
        &self.run
    }

    /// The record of a run that has ended, without its trace if that was removed.
    pub(crate) fn record(&self) -> RunRecord {
        let trace = if Path::new(&self.run.trace).exists() { self.run.trace.clone() } else { String::new() };
        RunRecord { trace, ..self.run.clone() }
    }

    /// Set after the run has ended; then the reason if it failed.
    pub(crate) fn ended(&self) -> Option<&Option<String>> {
        self.ended.get()
    }

    /// Ends the traces, because the run has ended. Returns how the ranks of this process spent their time.
    pub(crate) fn end(&self, end: &End) -> Vec<RankProfile> {
        self.ended.get_or_init(|| end.failed.clone());
        let mut recordings = std::mem::take(&mut *self.recordings());
        recordings.sort_unstable_by_key(|recording| recording.rank());
        let profiled = recordings.iter().filter(|recording| recording.profiled);
        let profiles: Vec<RankProfile> = profiled.map(|recording| recording.end(end.clone())).collect();
        if let Some(dir) = self.options.dir.as_ref().filter(|dir| !dir.exists()) {
            warn(&format!("there is no trace of this run: {} was removed while it ran", dir.display()));
        }
        profiles
    }
}
