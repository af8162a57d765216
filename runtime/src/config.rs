//! The settings of a run, as a builder. Each setting is also a `CARIBOU_*` variable, except settings that belong to the
//! program, such as its own strategies, or ranks that it slows down for a test.
//!
//! A setting is a field with its default, a method, and a row of [`VARIABLES`]. Only [`Config::with_env`] reads these
//! variables. A variable that starts with `CARIBOU_` and has no row is an error that suggests the nearest name.

mod balancing;
mod restart;
mod spot;
#[cfg(test)]
mod tests;
mod variables;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use lb_strategies::Shape;

use self::balancing::Balancing;
pub use self::spot::{Cloud, Spot};
use self::variables::PREFIX;
pub use self::variables::{VARIABLES, Variable};
use crate::checkpoint::Settings;
use crate::error::Error;
use crate::ids::Rank;
use crate::launch::{self, Launch};
use crate::measure::cgroup::vcpus_within;
pub use crate::measure::counters::BackgroundSource;
pub use crate::measure::edges::EdgeRecording;
pub use crate::measure::topology::plan::Pin;
use crate::text::counted;
use crate::trace::Filter;
use crate::warn::warn;
pub use lb_strategies::{Period, Prediction};

/// What ranks are: threads, or processes.
///
/// ```
/// assert_eq!(caribou::config::Processes::default(), caribou::config::Processes::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processes {
    /// Processes if a launcher such as `mpirun` or `srun` started several; else threads of this one.
    #[default]
    Auto,
    /// Threads of this process, also if a launcher started it.
    Threads,
    /// Processes of an MPI job, even if it has only this one.
    Mpi,
}

/// The configuration of a run.
///
/// ```
/// use caribou::Config;
/// use caribou::lb::Shape;
/// let config = Config::default().ranks(2).lb("refine,tolerance=0.1")?.period(50);
/// assert_eq!(config.lb_spec(Shape::Arrays), "refine,tolerance=0.1");
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) ranks: Option<u32>,
    pub(crate) workers: Option<u32>,
    lb: Balancing,
    pub(crate) period: Period,
    pub(crate) prediction: Prediction,
    pub(crate) pin: Pin,
    pub(crate) measure: bool,
    pub(crate) background: BackgroundSource,
    pub(crate) wire: bool,
    pub(crate) mail_limit: u64,
    pub(crate) processes: Processes,
    pub(crate) shared_memory: bool,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) trace_filter: Filter,
    pub(crate) trace_bytes_max: u64,
    pub(crate) profile: bool,
    pub(crate) lb_reports: bool,
    pub(crate) lb_memory: Option<u64>,
    pub(crate) lb_edges: EdgeRecording,
    pub(crate) monitor: Option<String>,
    pub(crate) watchdog: Duration,
    pub(crate) simulate: Option<u64>,
    pub(crate) simulate_disturbed: bool,
    pub(crate) checkpoint: Option<Settings>,
    pub(crate) restart: Option<PathBuf>,
    pub(crate) spot: Spot,
    /// The restart goes on with one of several runs of the process: the run that wrote the checkpoint.
    restarts_process: bool,
    slowed: Vec<(u32, f64)>,
    /// Values of the program that must be the same in all processes: names and values.
    also_agreed: Vec<(String, String)>,
    /// Settings of the program that must be the same at a restart as in the checkpoint: names and values.
    program: Vec<(String, String)>,
}

/// Maximum number of workers of a simulated run: ranks keep data about each other, and are visited in turn.
const SIMULATED_MAX: u64 = 16_384;

impl Default for Config {
    fn default() -> Config {
        Config {
            ranks: None,
            workers: None,
            lb: Balancing::default(),
            period: Period::Auto,
            prediction: Prediction::Auto,
            pin: Pin::Auto,
            measure: true,
            background: BackgroundSource::Auto,
            wire: false,
            mail_limit: 64 << 20,
            processes: Processes::Auto,
            shared_memory: true,
            trace: None,
            trace_filter: Filter::default(),
            trace_bytes_max: 4096 << 20,
            profile: true,
            lb_reports: false,
            lb_memory: None,
            lb_edges: EdgeRecording::Auto,
            monitor: None,
            watchdog: Duration::from_secs(10),
            simulate: None,
            simulate_disturbed: false,
            checkpoint: None,
            restart: None,
            spot: Spot::none(),
            restarts_process: false,
            slowed: Vec::new(),
            also_agreed: Vec::new(),
            program: Vec::new(),
        }
    }
}

impl Config {
    /// The defaults, changed by the environment. A variable that is empty counts as unset.
    pub fn from_env() -> Result<Config, Error> {
        Config::default().with_env()
    }

    /// This configuration, changed by the environment: for programs that set defaults or register strategies.
    ///
    /// ```
    /// use caribou::Config;
    /// let config = Config::default().period(50).with_env()?;
    /// # let _ = config;
    /// # Ok::<(), caribou::Error>(())
    /// ```
    #[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
    pub fn with_env(self) -> Result<Config, Error> {
        let ours = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX));
        let texts = ours.map(|(name, value)| {
            let value = value.into_string().map_err(|_| wrong(&name, "expected UTF-8".into()))?;
            Ok((name, value))
        });
        self.changed_by(texts.collect::<Result<Vec<_>, Error>>()?)
    }

    /// The defaults, changed by these variables. Names that do not start with `CARIBOU_` are ignored.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Result<Config, Error> {
        Config::default().changed_by(variables)
    }

    /// Ranks in this process. The default is the number of vCPUs that the process may use, divided by the
    /// [workers](Self::workers) per rank. A CPU quota, rounded up, bounds the number of vCPUs. A pool has one rank by
    /// default. Under `mpirun` each process is one rank, and a number set here must equal theirs. A run refuses 0.
    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Config {
        self.ranks = Some(ranks);
        self
    }

    /// Workers of each rank; idle workers steal ready chunks from others of their rank. The default is 1, and for a
    /// pool one per vCPU. Under `mpirun` it is one per physical core in the rank's part of its host. A CPU quota bounds
    /// the default. A run refuses 0.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Config {
        self.workers = Some(workers);
        self
    }

    /// Names a value of the program that must be the same in all processes of a job, such as an option. If the value
    /// differs, the run does not begin, and the error names it. All processes must name values in the same order.
    ///
    /// ```
    /// let config = caribou::Config::default().agree("--seed", 7);
    /// # let _ = config;
    /// ```
    #[must_use]
    pub fn agree(mut self, name: impl Into<String>, value: impl fmt::Display) -> Config {
        self.also_agreed.push((name.into(), value.to_string()));
        self
    }

    /// Names a setting of the program that the state of chunks or iterations depends on, such as an input or a time
    /// step. A checkpoint saves the setting, and a restart with another value is refused.
    ///
    /// ```
    /// let config = caribou::Config::default().saved_with("timestep", 0.01);
    /// # let _ = config;
    /// ```
    #[must_use]
    pub fn saved_with(mut self, name: impl Into<String>, value: impl fmt::Display) -> Config {
        self.program.push((name.into(), value.to_string()));
        self
    }

    pub(crate) fn program_settings(&self) -> &[(String, String)] {
        &self.program
    }

    /// All settings that must be the same in all processes of a job, by name. The program's values come first, because
    /// the other settings may follow from them.
    #[cfg(feature = "mpi")]
    pub(crate) fn agreed(&self, lb: &str) -> Vec<(String, String)> {
        let trace = self.trace.as_ref().map_or_else(|| "no trace".into(), |dir| dir.display().to_string());
        let own = [
            ("CARIBOU_LB", lb.to_owned()),
            ("CARIBOU_LB_PERIOD", self.period.to_string()),
            ("CARIBOU_PIN", format!("{:?}", self.pin).to_lowercase()),
            ("CARIBOU_MEASURE", if self.measure { "on" } else { "off" }.into()),
            ("CARIBOU_TRACE", trace),
            ("CARIBOU_CHECKPOINT", format!("{:?}", self.checkpoint)),
            ("CARIBOU_RESTART", format!("{:?}", self.restart)),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.also_agreed.iter().cloned().chain(own).collect()
    }

    /// Balances chunks at syncs, with this number of steps between two syncs, for
    /// [`Ctx::sync_due`](crate::Ctx::sync_due). 0 means never. Short for [`balance`](Config::balance) with
    /// [`Period::Steps`].
    #[must_use]
    pub fn period(self, steps: u64) -> Config {
        self.balance(Period::Steps(steps))
    }

    /// When chunks are balanced. By default [`Period::Auto`]: while they run, when it is likely to pay.
    #[must_use]
    pub fn balance(mut self, period: Period) -> Config {
        self.period = period;
        self
    }

    /// The predictor of the loads of chunks. By default the one with the best predictions so far.
    #[must_use]
    pub fn predict(mut self, prediction: Prediction) -> Config {
        self.prediction = prediction;
        self
    }

    /// Keeps the reports of ranks in the record of each sync, also in the trace
    /// ([`SyncReport::reported`](crate::report::SyncReport::reported)). A [`Balancer`](crate::lb::balancer::Balancer)
    /// needs nothing else to decide again. The reports take about 100 bytes per chunk and sync. The report of the run
    /// has the newest ones, up to about 64 MB.
    #[must_use]
    pub fn lb_reports(mut self, kept: bool) -> Config {
        self.lb_reports = kept;
        self
    }

    /// Records the messages between chunks by sender and receiver, or not. By default they are recorded where the strategy
    /// uses them ([`Terms::edges`](crate::lb::Terms::edges)). With [`lb_reports`](Config::lb_reports) they are in the
    /// record of each sync, for each sender the up to 16 heaviest receivers.
    #[must_use]
    pub fn lb_edges(mut self, recording: EdgeRecording) -> Config {
        self.lb_edges = recording;
        self
    }

    /// Sets how many bytes of chunk states no strategy lets a rank exceed; none by default. The size of a chunk is what
    /// [`Chunk::state_bytes`](crate::Chunk::state_bytes) says, corrected by the sizes of chunks that moved. A rank that
    /// begins above the limit gets no chunks until it is below it.
    #[must_use]
    pub fn lb_memory(mut self, bytes: Option<u64>) -> Config {
        self.lb_memory = bytes;
        self
    }

    /// Binds workers to vCPUs, or leaves them free.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Config {
        self.pin = pin;
        self
    }

    /// Measures the CPU time of chunks, or not. Without measuring, the load of a chunk is the load that it declares.
    ///
    /// Measuring and the [profile](Config::profile) share a clock reading per message, saved only with both off.
    #[must_use]
    pub fn measure(mut self, measure: bool) -> Config {
        self.measure = measure;
        self
    }

    /// Sets the source of the background load.
    #[must_use]
    pub fn background(mut self, source: BackgroundSource) -> Config {
        self.background = source;
        self
    }

    /// Encodes and decodes every message and packet to another rank, as if that rank were another process.
    #[must_use]
    pub fn wire_always(mut self, always: bool) -> Config {
        self.wire = always;
        self
    }

    /// Bytes of messages that may wait in the mailboxes of a rank, or with its chunks at a sync; by default 64 MiB. A
    /// rank above this limit blocks chunks that send to it until less than half of the limit waits. So senders cannot
    /// outrun receivers for long. If all ranks wait for each other, or a sync does not end, the limit and the bytes in
    /// flight are doubled. See "When a consumer is slow" in `docs/settings.md`.
    #[must_use]
    pub fn mail_limit(mut self, bytes: u64) -> Config {
        self.mail_limit = bytes;
        self
    }

    /// Makes ranks threads of this process, or processes of an MPI job.
    #[must_use]
    pub fn processes(mut self, processes: Processes) -> Config {
        self.processes = processes;
        self
    }

    /// Lets processes of one host exchange messages through shared memory, or not. Off is for comparisons and tests.
    #[must_use]
    pub fn shared_memory(mut self, shared: bool) -> Config {
        self.shared_memory = shared;
        self
    }

    /// Records a trace: each run of this process in a directory `run-N` of `dir`, one file per rank. See
    /// [`trace`](crate::trace). A simulated run is not recorded.
    #[must_use]
    pub fn trace(mut self, dir: impl Into<PathBuf>) -> Config {
        self.trace = Some(dir.into());
        self
    }

    /// Selects the events that are recorded.
    #[must_use]
    pub fn trace_filter(mut self, filter: Filter) -> Config {
        self.trace_filter = filter;
        self
    }

    /// Maximum number of bytes of events that each rank records. Later events are dropped and counted. Samples, syncs
    /// and names may take an eighth more.
    #[must_use]
    pub fn trace_limit(mut self, bytes: u64) -> Config {
        self.trace_bytes_max = bytes;
        self
    }

    /// Serves the status of the run by HTTP at this address, `HOST:PORT` or `PORT`: see [`monitor`](crate::monitor).
    #[must_use]
    pub fn monitor(mut self, address: impl Into<String>) -> Config {
        self.monitor = Some(address.into());
        self
    }

    /// The time after which the watchdog warns, on standard error or in the log, and again after ever longer times.
    /// Zero means never. The watchdog warns of:
    /// - a handler that has not returned,
    /// - a pool whose workers all wait for the policy,
    /// - an idle rank 0 of an array that waits for other processes,
    /// - a stopped process: after the same time without work a process pings the others, and names a silent one.
    ///
    /// A failed run waits no longer than this for silent processes, and returns the error. It always waits for threads
    /// of this process, because they use data that the caller lends.
    #[must_use]
    pub fn watchdog(mut self, limit: Duration) -> Config {
        self.watchdog = limit;
        self
    }

    /// Keeps a bounded profile of each worker's time, or not. A trace has it in any case.
    #[must_use]
    pub fn profile(mut self, profile: bool) -> Config {
        self.profile = profile;
        self
    }

    /// True if runs are simulated.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.simulate.is_some()
    }

    /// True if the CPU time of chunks is measured.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.measure
    }

    /// True if a profile of each worker's time is kept.
    #[must_use]
    pub fn profiles(&self) -> bool {
        self.profile || self.trace.is_some()
    }

    /// Runs in one thread in virtual time, with random delays and orders by `seed`: every order that is not promised is
    /// broken on purpose. The same seed gives the same run. A handler takes the time that it
    /// [charges](crate::Ctx::charge). If it charges nothing, it takes up to 2 us times a weight from 1 to 8, which the
    /// seed draws for each chunk. This time is the measured load. All ranks have the same speed and no competing process,
    /// so capacities are 1. (The workers of a pool do differ in speed.) In reports of programs in supersteps, speeds,
    /// shares and bounds then have no meaning.
    ///
    /// In a short run the default strategy finds few moves that pay, or none. A test in which chunks are to migrate uses
    /// `.lb("rotate")?.balance(Period::Every(Duration::from_millis(1)))`, with [`Period`].
    ///
    /// The default is 4 ranks, and for a pool 4 ranks with 2 workers each. More than 16384 workers are refused. With
    /// thousands of ranks a sync takes seconds. A simulated run ignores [`trace`](Self::trace),
    /// [`monitor`](Self::monitor), [`spot`](Self::spot) and [`slowed`](Self::slowed), with a warning. It also has no
    /// profile, without a warning. Under `mpirun` it is refused, unless every process repeats it
    /// (`CARIBOU_PROCESSES=threads`).
    #[must_use]
    pub fn simulate(mut self, seed: u64) -> Config {
        self.simulate = Some(seed);
        self
    }

    /// Also disturbs a [simulated](Self::simulate) run, at random moments. The run is shrunk and expanded, as by
    /// [`Ctx::resize`](crate::Ctx::resize): inactive ranks lose their chunks, units or ranges. Ranks of arrays and of
    /// programs in supersteps stop for up to an hour of virtual time. In about half of all runs, one such rank is slow
    /// throughout. (The workers of a simulated pool always stop and slow down.) Measured loads do not include these
    /// delays. Off by default.
    #[must_use]
    pub fn simulate_disturbed(mut self, disturbed: bool) -> Config {
        self.simulate_disturbed = disturbed;
        self
    }

    /// Writes checkpoints, from which the run can be [restarted](Self::restart) if it dies.
    /// [`checkpoint`](crate::checkpoint) lists what can be saved. A run that has something else fails at its start.
    #[must_use]
    pub fn checkpoint(mut self, settings: Settings) -> Config {
        self.checkpoint = Some(settings);
        self
    }

    /// Restarts from the newest checkpoint of this directory, or from this checkpoint (`DIR/000007`), which has the
    /// chunks. Functions of the setup that make chunks are called for [groups](crate::Setup::group) only. The setup
    /// must describe the same arrays. The number of ranks and workers, the strategy and the transport may differ. A
    /// line on standard error names the checkpoint and its time.
    ///
    /// `auto` is the newest undamaged checkpoint in the directory of [checkpoints](Self::checkpoint). If there is none,
    /// the run begins anew. So the same command begins a run and goes on with it. Every process reads the checkpoint
    /// twice.
    #[must_use]
    pub fn restart(mut self, dir: impl Into<PathBuf>) -> Config {
        (self.restart, self.restarts_process) = (Some(dir.into()), false);
        self
    }

    /// The metadata service of a cloud, which notifies a run with [checkpoints](Self::checkpoint) that its machine is
    /// taken back. The run then saves its state and ends, as at [SIGTERM](crate::checkpoint#notice). By default none.
    ///
    /// ```
    /// use caribou::config::{Cloud, Spot};
    /// let config = caribou::Config::default().checkpoint("checkpoints".parse()?).spot(Spot::of(Cloud::Aws));
    /// # let _ = config;
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn spot(mut self, spot: Spot) -> Config {
        self.spot = spot;
        self
    }

    /// True if a run restarts from a checkpoint.
    pub fn restarts(&self) -> bool {
        self.restart.is_some()
    }

    /// For a program that makes one run: a restart by the environment applies to that run.
    #[must_use]
    pub fn of_one_run(self) -> Config {
        Config { restarts_process: false, ..self }
    }

    /// Removes checkpoints and the restart, for a run that is not to be saved.
    #[must_use]
    pub fn without_checkpoints(self) -> Config {
        Config { checkpoint: None, restart: None, spot: Spot::none(), ..self }
    }

    /// Treats the vCPUs of a rank as `factor` times slower than they are, for experiments with unequal vCPUs on equal
    /// ones: the calibration loop does `factor` times the work. The program must lengthen the computing of the rank by
    /// the same factor: see [`Ctx::slowness`](crate::Ctx::slowness). A run refuses a rank that does not exist, and a
    /// factor that is not above 0.
    #[must_use]
    pub fn slowed(mut self, rank: u32, factor: f64) -> Config {
        self.slowed.push((rank, factor));
        self
    }

    pub(crate) fn slowness(&self, rank: Rank) -> f64 {
        self.slowed.iter().filter(|(slow, _)| *slow == rank.0).map(|(_, factor)| factor).product()
    }

    /// How this process was started, as far as the run depends on it.
    ///
    /// Under `mpirun` every process runs the same `main` and gets the same [`Report::value`](crate::Report::value). One
    /// of them prints it:
    ///
    /// ```
    /// # let config = caribou::Config::default();
    /// # fn compute(_: caribou::Config) -> u64 { 285 }
    /// let speaks = config.launch().speaks();
    /// let sum = compute(config);
    /// if speaks {
    ///     println!("{sum}");
    /// }
    /// ```
    ///
    /// Ranks then share no memory: a value that a handler stores in a service is only in the process of its chunk.
    pub fn launch(&self) -> Launch {
        match launch::found() {
            _ if self.processes == Processes::Threads => Launch::Alone,
            Launch::Alone if self.processes == Processes::Mpi && self.simulate.is_none() => {
                Launch::Together { process: 0, processes: 1 }
            }
            found => found,
        }
    }

    /// The seed of a simulated run, if requested. Refused in a job, because all processes would do the same run.
    pub(crate) fn simulates(&self) -> Result<Option<u64>, Error> {
        let seed = simulated(self.simulate, self.launch())?;
        if seed.is_some() {
            self.unsimulated().for_each(|what| warn(&format!("a simulated run {what}")));
        }
        Ok(seed)
    }

    /// Tells which settings have no effect in a simulated run, a line each.
    fn unsimulated(&self) -> impl Iterator<Item = &'static str> {
        let asked = [
            (self.trace.is_some(), "is not recorded: CARIBOU_TRACE has no effect"),
            (!self.spot.is_none(), "polls no metadata service: CARIBOU_SPOT has no effect"),
            (self.monitor.is_some(), "serves no status: CARIBOU_MONITOR has no effect"),
            (
                !self.slowed.is_empty(),
                "has ranks of equal speed: Config::slowed has no effect on their capacity",
            ),
        ];
        asked.into_iter().filter_map(|(asked, what)| asked.then_some(what))
    }

    /// The settings that have no effect on a program of this shape. Only arrays balance chunks. Only chunks have
    /// mailboxes, including the shares of supersteps.
    pub(crate) fn without_effect(&self, shape: Shape) -> impl Iterator<Item = &'static str> {
        let made = [
            (self.period != Config::default().period, "CARIBOU_LB_PERIOD"),
            (self.prediction != Prediction::Auto, "CARIBOU_LB_PREDICT"),
            (self.lb_reports, "CARIBOU_LB_REPORTS"),
            (self.lb_edges != EdgeRecording::Auto, "CARIBOU_LB_EDGES"),
            (self.lb_memory.is_some(), "CARIBOU_LB_MEMORY"),
            (!self.measure, "CARIBOU_MEASURE"),
        ];
        let mail = self.mail_limit != Config::default().mail_limit && shape == Shape::Pools;
        let made = made.into_iter().map(move |(made, setting)| (made && shape != Shape::Arrays, setting));
        let speaks = self.launch().speaks();
        let told = made.chain([(mail, "CARIBOU_MAIL_LIMIT")]);
        told.filter_map(move |(without, setting)| (without && speaks).then_some(setting))
    }

    /// Number of ranks that the run will have.
    pub fn rank_count(&self) -> u32 {
        let default = match (self.launch(), self.simulate) {
            (Launch::Together { processes, .. }, _) => processes,
            (_, Some(_)) => 4,
            (_, None) => useful_vcpus() / self.worker_count(),
        };
        self.ranks.unwrap_or(default).max(1)
    }

    /// Number of workers that each rank will have. Under `mpirun` the run may choose more, unless a number is set.
    pub fn worker_count(&self) -> u32 {
        self.workers.unwrap_or(1).max(1)
    }

    /// Ranks, and workers per rank, of a pool. Under `mpirun` the run may choose more workers, unless a number is set.
    ///
    /// Iterations share no memory, so by default one rank with a worker for each vCPU is enough.
    pub fn pool_size(&self) -> (u32, u32) {
        let ranks = match self.launch() {
            Launch::Together { processes, .. } => processes,
            Launch::Alone => self.ranks.unwrap_or(1).max(1),
        };
        if self.simulate.is_some() {
            return (self.ranks.unwrap_or(4).max(1), self.workers.unwrap_or(2).max(1));
        }
        let share = (useful_vcpus() / ranks).max(1);
        (ranks, self.workers.unwrap_or(share).max(1))
    }

    /// When chunks are balanced.
    pub fn balanced(&self) -> Period {
        self.period
    }

    /// Steps between two syncs, as set; 0 if chunks are balanced in windows, or never.
    pub fn sync_period(&self) -> u64 {
        match self.period {
            Period::Steps(steps) => steps,
            Period::Auto | Period::Every(_) => 0,
        }
    }

    /// Refuses settings that contradict this number of ranks and workers.
    fn check_numbers(&self, ranks: u32, workers: u32) -> Result<(), Error> {
        for (setting, asked) in [("ranks", self.ranks), ("workers", self.workers)] {
            if asked == Some(0) {
                return Err(wrong(setting, "0 is too few: expected at least 1".into()));
            }
        }
        for &(rank, factor) in &self.slowed {
            let why = if rank >= ranks {
                format!(
                    "rank {rank} does not exist, the run has {}",
                    counted(ranks as usize, "rank", "ranks")
                )
            } else if !factor.is_finite() || factor <= 0.0 {
                format!("rank {rank} cannot be {factor} times slower: expected a number above 0")
            } else {
                continue;
            };
            return Err(wrong("slowed", why));
        }
        // Here only for simulations: threads are checked when they start, and a launcher fixes the number of processes.
        if self.simulate.is_some() && u64::from(ranks) * u64::from(workers) > SIMULATED_MAX {
            let all = format!("{} x {workers}", counted(ranks as usize, "rank", "ranks"));
            return Err(wrong(
                "ranks",
                format!("{all} workers are too many to simulate: at most {SIMULATED_MAX}"),
            ));
        }
        Ok(())
    }
}

/// vCPUs that this process can keep busy.
fn useful_vcpus() -> u32 {
    vcpus_within(crate::machine::cpu_quota(), crate::machine::vcpus().len()) as u32
}

fn simulated(seed: Option<u64>, launch: Launch) -> Result<Option<u64>, Error> {
    match launch {
        Launch::Together { process, processes } if seed.is_some() => {
            let why = format!(
                "a simulated run is one process, but this is process {process} of {processes}: start it without \
                 mpirun, or \
                 set CARIBOU_PROCESSES=threads to repeat the run in each process"
            );
            Err(wrong("CARIBOU_SIMULATE", why))
        }
        _ => Ok(seed),
    }
}

pub(crate) fn wrong(setting: &str, why: String) -> Error {
    Error::Config { setting: setting.into(), why }
}
