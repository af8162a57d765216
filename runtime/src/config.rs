//! The settings of a run: a builder. Each field is also a `CARIBOU_*` variable, except the ones that belong to the
//! program: its own strategies, and ranks it slows down.
//!
//! A setting is a field with its default, a method, and a row of [`VARIABLES`]. The environment is read in
//! [`Config::from_env`] and nowhere else. A variable that starts with `CARIBOU_` and has no row is an error that suggests
//! the nearest name.

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
pub use crate::measure::topology::plan::Pin;
use crate::text::counted;
use crate::trace::Filter;
use crate::warn::warn;
pub use lb_strategies::{Period, Prediction};

/// The nature of ranks: threads, or processes.
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
    pub(crate) monitor: Option<String>,
    pub(crate) watchdog: Duration,
    pub(crate) simulate: Option<u64>,
    pub(crate) simulate_disturbed: bool,
    pub(crate) checkpoint: Option<Settings>,
    pub(crate) restart: Option<PathBuf>,
    pub(crate) spot: Spot,
    /// The checkpoint of a restart is of one of the runs of the process.
    restarts_process: bool,
    slowed: Vec<(u32, f64)>,
    /// Settings besides these that must be the same in all processes: names and values.
    also_agreed: Vec<(String, String)>,
    /// Settings of the program that a restart must have as its checkpoint: names and values.
    program: Vec<(String, String)>,
}

/// Workers of a simulated run, at most: ranks keep something for each other, and are looked at in turn.
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

    /// This configuration, changed by the environment: for programs with defaults or strategies of their own.
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

    /// The defaults, changed by these variables; names that do not start with `CARIBOU_` are passed over.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Result<Config, Error> {
        Config::default().changed_by(variables)
    }

    /// Ranks in this process. The default is the number of vCPUs that the process may use, divided by the
    /// [workers](Self::workers) per rank. A CPU quota, rounded up, bounds the vCPUs that count. A pool has one rank by
    /// default. Under `mpirun` each process is one rank, and this may only confirm their number. A run refuses 0.
    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Config {
        self.ranks = Some(ranks);
        self
    }

    /// Workers of each rank; idle ones steal ready chunks from each other. By default 1, of a pool one per vCPU;
    /// under `mpirun` one for each physical core in the rank's part of its host. A CPU quota bounds them like ranks. A
    /// run refuses 0.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Config {
        self.workers = Some(workers);
        self
    }

    /// Names a value of the program that must be the same in all processes of a job, such as an option. If it differs,
    /// the run does not begin, and the error names it. Processes call this with the same names in the same order.
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

    /// Names a setting of the program that chunks or iterations depend on, such as its input or its step. A checkpoint
    /// saves it, and a restart with another value is refused.
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

    /// All that must be the same in all processes of a job, by name. The program's own values come first: the others may
    /// follow from them.
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

    /// Keeps the reports of ranks in the record of each sync, in the trace as well
    /// ([`SyncReport::reported`](crate::report::SyncReport::reported)): all that a
    /// [`Balancer`](crate::lb::balancer::Balancer) needs to decide again. Takes some 100 bytes per chunk and sync; the
    /// report of the run has it of as many of the newest syncs as fit in some 64 MB.
    #[must_use]
    pub fn lb_reports(mut self, kept: bool) -> Config {
        self.lb_reports = kept;
        self
    }

    /// Binds workers to vCPUs, or leaves them free.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Config {
        self.pin = pin;
        self
    }

    /// Measures the CPU time of chunks, or not: then the load of a chunk is what it declares.
    ///
    /// Measuring and the [profile](Config::profile) share one clock reading per message: it is saved only with both off.
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

    /// Encodes and decodes every message, and everything else that goes to another rank, as if that were another process.
    #[must_use]
    pub fn wire_always(mut self, always: bool) -> Config {
        self.wire = always;
        self
    }

    /// Bytes of messages that may wait in the mailboxes of a rank, or with its chunks at a sync; by default 64 MiB. Above
    /// that, chunks that send to the rank are blocked until half of it was handled: a sender cannot outrun its receivers
    /// for long. If all ranks wait for each other, or a sync does not end, the limit and the bytes in flight are doubled.
    /// See "When a consumer is slow" in `docs/settings.md`.
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

    /// Lets processes of one host exchange messages through shared memory, or not: to compare and to test.
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

    /// Bytes of events that each rank records at most; later ones are dropped, and counted. Samples, syncs and names may
    /// be an eighth more.
    #[must_use]
    pub fn trace_limit(mut self, bytes: u64) -> Config {
        self.trace_bytes_max = bytes;
        self
    }

    /// Tells on this address, `HOST:PORT` or `PORT`, how the run is doing: see [`monitor`](crate::monitor).
    #[must_use]
    pub fn monitor(mut self, address: impl Into<String>) -> Config {
        self.monitor = Some(address.into());
        self
    }

    /// The time after which the watchdog warns, on standard error or in the log, and again after ever longer times. It
    /// warns of a handler that has not returned and of a pool whose workers all wait for the policy. It also warns of an
    /// idle rank 0 of an array that waits for other processes. After the same time without work a process pings the
    /// others. A process that does not answer, since it is stopped, is named by its number, process and host. A failed
    /// run waits no longer than this for processes that do not answer, and returns the error. It must wait for threads of
    /// this process, since they use data that the caller lends. Zero means never.
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

    /// Runs in one thread in virtual time, with seeded random delays and orders: every order that is not promised is
    /// broken on purpose. The same seed gives the same run. A handler takes the time that it
    /// [charges](crate::Ctx::charge). If it charges nothing, it takes up to 2 us times a weight from 1 to 8, which the
    /// seed draws for each chunk. This time is the measured load, so strategies have something to balance. All ranks have
    /// the same speed and no competing process, so capacities are 1. (The workers of a pool do differ in speed.) The
    /// speeds, shares and bounds in reports of programs in supersteps mean nothing then.
    ///
    /// By default there are 4 ranks, of a pool 4 ranks with 2 workers each. More than 16384 workers are refused. With
    /// thousands of ranks a sync takes seconds. A simulated run is not recorded ([`trace`](Self::trace)), answers no
    /// [`monitor`](Self::monitor), and slows no rank ([`slowed`](Self::slowed)); a warning says so where one of these was
    /// asked for. It has no profile either, without a warning. Under `mpirun` it is refused, unless
    /// `CARIBOU_PROCESSES=threads` lets every process make the same run.
    #[must_use]
    pub fn simulate(mut self, seed: u64) -> Config {
        self.simulate = Some(seed);
        self
    }

    /// A [simulated](Self::simulate) run is also disturbed at random moments. It is shrunk and expanded, as by
    /// [`Ctx::resize`](crate::Ctx::resize): inactive ranks lose their chunks, units or ranges. Ranks of arrays and of programs in
    /// supersteps stop for up to an hour of virtual time, and in about half of all runs one rank is slow throughout. (The workers of
    /// a simulated pool always stop and slow down.) The measured loads do not show that. Off by default.
    #[must_use]
    pub fn simulate_disturbed(mut self, disturbed: bool) -> Config {
        self.simulate_disturbed = disturbed;
        self
    }

    /// Writes checkpoints, by which the run can be [restarted](Self::restart) if it dies. See [`checkpoint`](crate::checkpoint)
    /// for what can be saved; a run refuses where something cannot.
    #[must_use]
    pub fn checkpoint(mut self, settings: Settings) -> Config {
        self.checkpoint = Some(settings);
        self
    }

    /// Goes on from the newest checkpoint of this directory, or from this one (`DIR/000007`): the checkpoint has the
    /// chunks. The functions of the setup that make chunks are called for [groups](crate::Setup::group) only. The setup
    /// must describe the same arrays. The number of ranks and workers, the strategy and the transport may differ. A line
    /// on standard error names the checkpoint and the time.
    ///
    /// `auto` is the newest undamaged checkpoint in the directory of [checkpoints](Self::checkpoint). If there is none,
    /// the run begins anew. So the same command begins a run and goes on with it. Every process reads the checkpoint
    /// twice.
    #[must_use]
    pub fn restart(mut self, dir: impl Into<PathBuf>) -> Config {
        (self.restart, self.restarts_process) = (Some(dir.into()), false);
        self
    }

    /// The metadata service of the cloud that tells a run with [checkpoints](Self::checkpoint) that its machine is taken
    /// back. The run then saves its state and ends, as at [SIGTERM](crate::checkpoint#notice). By default none.
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

    /// True if a run goes on from a checkpoint.
    pub fn restarts(&self) -> bool {
        self.restart.is_some()
    }

    /// The same for a program that makes one run: a restart by the environment is of that.
    #[must_use]
    pub fn of_one_run(self) -> Config {
        Config { restarts_process: false, ..self }
    }

    /// The same for a run that is not to be saved, and does not go on from a checkpoint.
    #[must_use]
    pub fn without_checkpoints(self) -> Config {
        Config { checkpoint: None, restart: None, spot: Spot::none(), ..self }
    }

    /// Takes the vCPUs of a rank for `factor` times slower than they are, for experiments with unequal vCPUs on equal
    /// ones: the calibration loop does that much more. The program must prolong the computing of the rank accordingly:
    /// see [`Ctx::slowness`](crate::Ctx::slowness). A run refuses a rank that it does not have, and a factor that is not
    /// above 0.
    #[must_use]
    pub fn slowed(mut self, rank: u32, factor: f64) -> Config {
        self.slowed.push((rank, factor));
        self
    }

    pub(crate) fn slowness(&self, rank: Rank) -> f64 {
        self.slowed.iter().filter(|(slow, _)| *slow == rank.0).map(|(_, factor)| factor).product()
    }

    /// The way in which this process was started, as far as the run depends on it.
    ///
    /// Under `mpirun` every process runs the same `main`, and its result is [`Report::value`](crate::Report::value) in all of
    /// them; one prints it:
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
    /// Ranks share no memory then: a value that a handler stores in a service is only in the process of its chunk.
    pub fn launch(&self) -> Launch {
        match launch::found() {
            _ if self.processes == Processes::Threads => Launch::Alone,
            Launch::Alone if self.processes == Processes::Mpi && self.simulate.is_none() => {
                Launch::Together { process: 0, processes: 1 }
            }
            found => found,
        }
    }

    /// The seed of the simulation, if the run is to be one. Processes that were started together would all make the same.
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
            (!self.spot.is_none(), "asks no metadata service: CARIBOU_SPOT has no effect"),
            (self.monitor.is_some(), "tells nobody how it is doing: CARIBOU_MONITOR has no effect"),
            (
                !self.slowed.is_empty(),
                "has ranks of one speed: Config::slowed has no effect on their capacity",
            ),
        ];
        asked.into_iter().filter_map(|(asked, what)| asked.then_some(what))
    }

    /// Settings without effect on a program of this shape. Only arrays balance chunks. Only chunks have mailboxes, the
    /// shares of supersteps included.
    pub(crate) fn without_effect(&self, shape: Shape) -> impl Iterator<Item = &'static str> {
        let made = [
            (self.period != Config::default().period, "CARIBOU_LB_PERIOD"),
            (self.prediction != Prediction::Auto, "CARIBOU_LB_PREDICT"),
            (self.lb_reports, "CARIBOU_LB_REPORTS"),
            (!self.measure, "CARIBOU_MEASURE"),
        ];
        let mail = self.mail_limit != Config::default().mail_limit && shape == Shape::Pools;
        let made = made.into_iter().map(move |(made, setting)| (made && shape != Shape::Arrays, setting));
        let speaks = self.launch().speaks();
        let told = made.chain([(mail, "CARIBOU_MAIL_LIMIT")]);
        told.filter_map(move |(without, setting)| (without && speaks).then_some(setting))
    }

    /// Ranks that the run will have.
    pub fn rank_count(&self) -> u32 {
        let default = match (self.launch(), self.simulate) {
            (Launch::Together { processes, .. }, _) => processes,
            (_, Some(_)) => 4,
            (_, None) => useful_vcpus() / self.worker_count(),
        };
        self.ranks.unwrap_or(default).max(1)
    }

    /// Workers that each rank will have; under `mpirun` and unless set, the run may choose more.
    pub fn worker_count(&self) -> u32 {
        self.workers.unwrap_or(1).max(1)
    }

    /// Ranks and workers of each that a pool will have; under `mpirun` and unless set, the run may choose more workers.
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
                format!("there is no rank {rank}, but {}", counted(ranks as usize, "rank", "ranks"))
            } else if !factor.is_finite() || factor <= 0.0 {
                format!("rank {rank} cannot be {factor} times slower: expected a number above 0")
            } else {
                continue;
            };
            return Err(wrong("slowed", why));
        }
        // Ranks of threads are counted when they are started, processes by their launcher.
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
                "a simulated run is one process, but this is process {process} of {processes}: start it by itself, or \
                 set CARIBOU_PROCESSES=threads to let each make the same run"
            );
            Err(wrong("CARIBOU_SIMULATE", why))
        }
        _ => Ok(seed),
    }
}

pub(crate) fn wrong(setting: &str, why: String) -> Error {
    Error::Config { setting: setting.into(), why }
}
