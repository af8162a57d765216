//! How a run is set up: a builder whose every field is also a `CARIBOU_*` variable, but for what a program has to
//! answer for: strategies of its own, and ranks it slows down.
//!
//! The environment is read in [`Config::from_env`] and nowhere else. A variable that starts with `CARIBOU_` and is not in
//! [`VARIABLES`] is an error that suggests the nearest name.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lb_strategies::pool::PoolStrategy;
use lb_strategies::{
    ARRAYS, Choice, Entry, Listing, POOLS, Shape, Strategy, Table, check_own, help, unknown,
};

use crate::error::Error;
use crate::ids::Rank;
use crate::launch::{self, Launch};
use crate::measure::cgroup::vcpus_within;
pub use crate::measure::sample::BackgroundSource;
pub use crate::measure::topology::plan::Pin;
use crate::trace::Filter;
use crate::warn::warn;

/// What ranks are.
///
/// ```
/// assert_eq!(caribou::Processes::default(), caribou::Processes::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processes {
    /// Processes if a launcher such as `mpirun` or `srun` started several; else threads of this one.
    #[default]
    Auto,
    /// Threads of this process, however it was started.
    Threads,
    /// Processes of an MPI job, even if it has only this one.
    Mpi,
}

/// One variable of the environment.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its default, for people.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// All variables that Caribou reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "CARIBOU_RANKS",
        default: "one per vCPU, within a CPU quota; of a pool 1",
        meaning: "ranks in this process; under mpirun each process is one",
    },
    Variable {
        name: "CARIBOU_WORKERS",
        default: "1, of a pool one per vCPU; under mpirun one per core of the rank; within a CPU quota",
        meaning: "workers (threads) of each rank",
    },
    Variable {
        name: "CARIBOU_LB",
        default: "refine; of a pool leases",
        meaning: "balancing strategy, with parameters: refine,tolerance=0.05; `help` lists them",
    },
    Variable {
        name: "CARIBOU_LB_PERIOD",
        default: "20",
        meaning: "steps between two syncs, for programs that ask sync_due; 0 for never",
    },
    Variable {
        name: "CARIBOU_PIN",
        default: "auto",
        meaning: "bind workers to vCPUs: auto (if there are enough), on, off",
    },
    Variable {
        name: "CARIBOU_MEASURE",
        default: "on",
        meaning: "measure the CPU time of chunks: on, off (then only declared load counts)",
    },
    Variable {
        name: "CARIBOU_BACKGROUND",
        default: "auto",
        meaning: "source of the background load O_p: auto, schedstat, procstat, off",
    },
    Variable {
        name: "CARIBOU_WIRE",
        default: "auto",
        meaning: "encode messages: auto (when they leave the process), always (all of them, to test serialisation)",
    },
    Variable {
        name: "CARIBOU_PROCESSES",
        default: "auto",
        meaning: "ranks are processes: auto (if mpirun or srun started several), mpi (always), threads (never)",
    },
    Variable {
        name: "CARIBOU_SHARED_MEMORY",
        default: "on",
        meaning: "processes of one host exchange messages through shared memory: on, off (all through MPI)",
    },
    Variable {
        name: "CARIBOU_TRACE",
        default: "unset",
        meaning: "a directory: record what happens there, each run in run-1, run-2, ..., after those that are there; `caribou trace` shows it",
    },
    Variable {
        name: "CARIBOU_TRACE_FILTER",
        default: "all",
        meaning: "what is recorded, such as handlers,messages=16 or -idle,array=Block; see `trace::Filter`",
    },
    Variable {
        name: "CARIBOU_TRACE_LIMIT",
        default: "4096",
        meaning: "MiB of events that each rank records at most; later ones are dropped, and counted",
    },
    Variable {
        name: "CARIBOU_PROFILE",
        default: "on",
        meaning: "keep a bounded profile of each worker's time: on, off",
    },
    Variable {
        name: "CARIBOU_MONITOR",
        default: "unset",
        meaning: "HOST:PORT or PORT: tell there how the run is doing; `caribou top` shows it; rank R of several processes adds R",
    },
    Variable {
        name: "CARIBOU_WATCHDOG",
        default: "10",
        meaning: "seconds after which a handler that has not returned is told of, and processes that do not answer are left behind by a run that has failed; 0 for never",
    },
    Variable {
        name: "CARIBOU_SIMULATE",
        default: "unset",
        meaning: "a seed: run in one thread in virtual time, with random delays, orders and weights of chunks; 4 ranks, of a pool 4 of 2 workers; not recorded",
    },
];

/// The configuration of a run.
///
/// ```
/// use caribou::Config;
/// use caribou::lb::Shape;
/// let config = Config::default().ranks(2).lb("refine,tolerance=0.1")?.period(50);
/// assert_eq!(config.lb_spec(Shape::Arrays), "refine,tolerance=0.1");
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) ranks: Option<u32>,
    pub(crate) workers: Option<u32>,
    balance: Balance,
    /// As the strategy was given, if one was.
    spec: String,
    /// What can be selected by name.
    arrays: Table<dyn Strategy>,
    pools: Table<dyn PoolStrategy>,
    pub(crate) period: u64,
    pub(crate) pin: Pin,
    pub(crate) measure: bool,
    pub(crate) background: BackgroundSource,
    pub(crate) wire: bool,
    pub(crate) processes: Processes,
    pub(crate) shared_memory: bool,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) trace_filter: Filter,
    pub(crate) trace_bytes_max: u64,
    pub(crate) profile: bool,
    pub(crate) monitor: Option<String>,
    pub(crate) watchdog: Duration,
    pub(crate) simulate: Option<u64>,
    slowed: Vec<(u32, f64)>,
    /// What else must be the same in all processes: names and values.
    also_agreed: Vec<(String, String)>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("ranks", &self.ranks)
            .field("workers", &self.workers)
            .field("lb", &self.spec)
            .field("period", &self.period)
            .field("pin", &self.pin)
            .field("measure", &self.measure)
            .field("background", &self.background)
            .field("wire", &self.wire)
            .field("processes", &self.processes)
            .field("shared_memory", &self.shared_memory)
            .field("trace", &self.trace)
            .field("trace_filter", &self.trace_filter)
            .field("trace_bytes_max", &self.trace_bytes_max)
            .field("profile", &self.profile)
            .field("monitor", &self.monitor)
            .field("watchdog", &self.watchdog)
            .field("simulate", &self.simulate)
            .field("slowed", &self.slowed)
            .finish()
    }
}

/// The strategies of runs whose configuration names none.
/// What balances: each strategy is for one shape of program.
#[derive(Clone)]
enum Balance {
    /// Each shape of program has its default.
    Default,
    Arrays(Arc<dyn Strategy>),
    Pools(Arc<dyn PoolStrategy>),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            ranks: None,
            workers: None,
            balance: Balance::Default,
            spec: String::new(),
            arrays: ARRAYS.clone(),
            pools: POOLS.clone(),
            period: 20,
            pin: Pin::Auto,
            measure: true,
            background: BackgroundSource::Auto,
            wire: false,
            processes: Processes::Auto,
            shared_memory: true,
            trace: None,
            trace_filter: Filter::default(),
            trace_bytes_max: 4096 << 20,
            profile: true,
            monitor: None,
            watchdog: Duration::from_secs(10),
            simulate: None,
            slowed: Vec::new(),
            also_agreed: Vec::new(),
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

    fn changed_by(self, variables: impl IntoIterator<Item = (String, String)>) -> Result<Config, Error> {
        self.check_registered()?;
        let mut config = self;
        for (name, value) in variables {
            if name.starts_with(PREFIX) {
                config = config.set(&name, &value)?;
            }
        }
        Ok(config)
    }

    fn set(mut self, name: &str, value: &str) -> Result<Config, Error> {
        if value.trim().is_empty() && VARIABLES.iter().any(|variable| variable.name == name) {
            return Ok(self);
        }
        match name {
            "CARIBOU_RANKS" => self.ranks = Some(number(name, value, 1)? as u32),
            "CARIBOU_WORKERS" => self.workers = Some(number(name, value, 1)? as u32),
            "CARIBOU_LB" if value == "help" => return Err(wrong(name, self.help())),
            "CARIBOU_LB" => return self.lb(value).map_err(|error| renamed(error, name)),
            "CARIBOU_LB_PERIOD" => self.period = number(name, value, 0)?,
            "CARIBOU_PIN" => {
                self.pin = choice(name, value, &[("auto", Pin::Auto), ("on", Pin::On), ("off", Pin::Off)])?;
            }
            "CARIBOU_MEASURE" => self.measure = choice(name, value, &[("on", true), ("off", false)])?,
            "CARIBOU_BACKGROUND" => {
                self.background = choice(
                    name,
                    value,
                    &[
                        ("auto", BackgroundSource::Auto),
                        ("schedstat", BackgroundSource::Schedstat),
                        ("procstat", BackgroundSource::Procstat),
                        ("off", BackgroundSource::Off),
                    ],
                )?;
            }
            "CARIBOU_WIRE" => self.wire = choice(name, value, &[("auto", false), ("always", true)])?,
            "CARIBOU_PROCESSES" => {
                let choices =
                    [("auto", Processes::Auto), ("mpi", Processes::Mpi), ("threads", Processes::Threads)];
                self.processes = choice(name, value, &choices)?;
            }
            "CARIBOU_SHARED_MEMORY" => {
                self.shared_memory = choice(name, value, &[("on", true), ("off", false)])?;
            }
            "CARIBOU_TRACE" => self.trace = Some(value.into()),
            "CARIBOU_TRACE_FILTER" => {
                self.trace_filter = value.parse().map_err(|why| wrong(name, why))?;
            }
            "CARIBOU_TRACE_LIMIT" => self.trace_bytes_max = number(name, value, 1)? << 20,
            "CARIBOU_PROFILE" => self.profile = choice(name, value, &[("on", true), ("off", false)])?,
            "CARIBOU_MONITOR" => self.monitor = Some(value.trim().into()),
            "CARIBOU_WATCHDOG" => self.watchdog = Duration::from_secs(number(name, value, 0)?),
            "CARIBOU_SIMULATE" => self.simulate = Some(number_to(name, value, 0, u64::MAX)?),
            unknown => return Err(unknown_variable(unknown)),
        }
        Ok(self)
    }

    /// Ranks in this process; by default one per vCPU that the process may use, and no more than a CPU quota, rounded up,
    /// keeps busy; of a pool one. Under `mpirun` each process is one rank, and this may only say how many processes there
    /// are.
    #[must_use]
    pub fn ranks(mut self, ranks: u32) -> Config {
        self.ranks = Some(ranks.max(1));
        self
    }

    /// Workers of each rank; idle ones steal ready chunks from each other. By default 1, of a pool one per vCPU;
    /// under `mpirun` one for each physical core in the rank's part of its host. A CPU quota bounds them like ranks.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Config {
        self.workers = Some(workers.max(1));
        self
    }

    /// The balancing strategy by name, with parameters: `"refine,tolerance=0.05"`.
    pub fn lb(mut self, spec: &str) -> Result<Config, Error> {
        self.check_registered()?;
        let made = if let Some(entry) = self.arrays.find(spec) {
            entry.make(spec).map(|strategy| Balance::Arrays(strategy.into()))
        } else if let Some(entry) = self.pools.find(spec) {
            entry.make(spec).map(|policy| Balance::Pools(policy.into()))
        } else {
            Err(unknown(&self.tables(), spec))
        };
        self.balance = made.map_err(|error| wrong("lb", error.to_string()))?;
        self.spec = spec.into();
        Ok(self)
    }

    /// Makes a strategy of your own one that [`lb`](Self::lb) and `CARIBOU_LB` know by its name, which wins over that of one
    /// of ours. The environment is read afterwards, by [`with_env`](Self::with_env), which refuses a name that is not one
    /// word, or is that of two strategies of yours or of a policy for pools; `lb` does so too. See [`lb`](mod@crate::lb) for
    /// an example.
    #[must_use]
    pub fn register_strategy(mut self, entry: Entry<dyn Strategy>) -> Config {
        self.arrays.register(entry);
        self
    }

    /// The same for a policy of your own for pools.
    #[must_use]
    pub fn register_pool_strategy(mut self, entry: Entry<dyn PoolStrategy>) -> Config {
        self.pools.register(entry);
        self
    }

    fn tables(&self) -> [&dyn Listing; 2] {
        [&self.arrays, &self.pools]
    }

    fn check_registered(&self) -> Result<(), Error> {
        check_own(&self.tables()).map_err(|error| wrong("register_strategy", error.to_string()))
    }

    fn help(&self) -> String {
        format!("these can be chosen, with defaults, as in refine,tolerance=0.1\n\n{}", help(&self.tables()))
    }

    /// A balancing strategy of your own.
    #[must_use]
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> Config {
        self.spec = strategy.name().into();
        self.balance = Balance::Arrays(Arc::new(strategy));
        self
    }

    /// A policy of your own for pools.
    #[must_use]
    pub fn pool_strategy(mut self, policy: impl PoolStrategy + 'static) -> Config {
        self.spec = policy.name().into();
        self.balance = Balance::Pools(Arc::new(policy));
        self
    }

    /// The strategy as it was given; else the default for programs of this shape.
    pub fn lb_spec(&self, shape: Shape) -> &str {
        if matches!(self.balance, Balance::Default) { shape.default_spec() } else { &self.spec }
    }

    /// Checks that programs of this shape can be run: the strategy is one for them, or none was chosen.
    ///
    /// # Errors
    /// [`Error::Config`], with the strategies that are for this shape.
    pub fn check_shape(&self, shape: Shape) -> Result<(), Error> {
        let (name, of) = match &self.balance {
            Balance::Default => return Ok(()),
            Balance::Arrays(strategy) => (strategy.name(), Shape::Arrays),
            Balance::Pools(policy) => (policy.name(), Shape::Pools),
        };
        match self.tables().into_iter().find(|table| table.shape() == shape) {
            Some(table) if shape != of => Err(wrong("CARIBOU_LB", table.misplaced(name, of).to_string())),
            _ => Ok(()),
        }
    }

    /// The strategy for arrays of chunks.
    pub(crate) fn balance_arrays(&self) -> Result<Arc<dyn Strategy>, Error> {
        self.check_shape(Shape::Arrays)?;
        match &self.balance {
            Balance::Arrays(strategy) => Ok(strategy.clone()),
            _ => Ok(ARRAYS.default_policy().into()),
        }
    }

    /// The policy for pools of iterations.
    pub(crate) fn balance_pools(&self) -> Result<Arc<dyn PoolStrategy>, Error> {
        self.check_shape(Shape::Pools)?;
        match &self.balance {
            Balance::Pools(policy) => Ok(policy.clone()),
            _ => Ok(POOLS.default_policy().into()),
        }
    }

    /// Something of the program's own that must be the same in all processes of a job, such as an option that its result
    /// depends on: where it is not, the run does not begin, and the error names it. Processes call this with the same names
    /// in the same order.
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

    /// All that must be the same in all processes of a job, by name.
    #[cfg(feature = "mpi")]
    pub(crate) fn agreed(&self, lb: &str) -> Vec<(String, String)> {
        let trace = self.trace.as_ref().map_or_else(|| "no trace".into(), |dir| dir.display().to_string());
        let own = [
            ("CARIBOU_LB", lb.to_owned()),
            ("CARIBOU_LB_PERIOD", self.period.to_string()),
            ("CARIBOU_PIN", format!("{:?}", self.pin).to_lowercase()),
            ("CARIBOU_MEASURE", if self.measure { "on" } else { "off" }.into()),
            ("CARIBOU_TRACE", trace),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        own.chain(self.also_agreed.iter().cloned()).collect()
    }

    /// Steps between two syncs, for [`Ctx::sync_due`](crate::Ctx::sync_due); 0 for never.
    #[must_use]
    pub fn period(mut self, steps: u64) -> Config {
        self.period = steps;
        self
    }

    /// Whether workers are bound to vCPUs.
    #[must_use]
    pub fn pin(mut self, pin: Pin) -> Config {
        self.pin = pin;
        self
    }

    /// Whether the CPU time of chunks is measured. If not, what a chunk declares is its load.
    ///
    /// Measuring and the [profile](Config::profile) share one clock reading a message: it is saved only with both off.
    #[must_use]
    pub fn measure(mut self, measure: bool) -> Config {
        self.measure = measure;
        self
    }

    /// Where the background load comes from.
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

    /// Whether ranks are threads of this process or processes of an MPI job.
    #[must_use]
    pub fn processes(mut self, processes: Processes) -> Config {
        self.processes = processes;
        self
    }

    /// Whether processes of one host exchange messages through shared memory. To compare and to test.
    #[must_use]
    pub fn shared_memory(mut self, shared: bool) -> Config {
        self.shared_memory = shared;
        self
    }

    /// Records what happens: each run of this process in a directory `run-N` of `dir`, a file a rank. See
    /// [`trace`](crate::trace). A simulated run is not recorded.
    #[must_use]
    pub fn trace(mut self, dir: impl Into<PathBuf>) -> Config {
        self.trace = Some(dir.into());
        self
    }

    /// Which events are recorded.
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

    /// After how long a handler that has not returned is told of, on standard error or in the log; after ever longer times
    /// again. A run that has failed waits no longer than that for processes that do not answer, and returns the error; for
    /// threads of this process it must wait, since they use what the caller lends. Zero is for never.
    #[must_use]
    pub fn watchdog(mut self, limit: Duration) -> Config {
        self.watchdog = limit;
        self
    }

    /// Whether a bounded profile of each worker's time is kept. A trace has it in any case.
    #[must_use]
    pub fn profile(mut self, profile: bool) -> Config {
        self.profile = profile;
        self
    }

    /// Whether the CPU time of chunks is measured.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.measure
    }

    /// Whether a profile of each worker's time is kept.
    #[must_use]
    pub fn profiles(&self) -> bool {
        self.profile || self.trace.is_some()
    }

    /// Runs in one thread in virtual time, with seeded random delays and orders: every order that is not promised is
    /// broken on purpose. The same seed gives the same run. Time passes by what handlers [`charge`](crate::Ctx::charge);
    /// where they charge nothing it passes by up to 2 us times a weight from 1 to 8, which the seed draws for each chunk, and
    /// that is the load measured: strategies have something to balance. Only these weights are random: every rank has the
    /// same speed and nobody beside it, so capacities are 1. (The workers of a pool do differ in speed.)
    ///
    /// By default there are 4 ranks, of a pool 4 ranks with 2 workers each. A simulated run is not recorded
    /// ([`trace`](Self::trace)), has no profile, and slows no rank ([`slowed`](Self::slowed)); a warning says so where one
    /// was asked for. Under `mpirun` it is refused, unless `CARIBOU_PROCESSES=threads` lets every process make the same run.
    #[must_use]
    pub fn simulate(mut self, seed: u64) -> Config {
        self.simulate = Some(seed);
        self
    }

    /// Takes the vCPUs of a rank for `factor` times slower than they are, for experiments with unequal vCPUs on equal ones:
    /// the calibration loop does that much more. What the rank computes the program has to make as much longer: see
    /// [`Ctx::slowness`](crate::Ctx::slowness).
    #[must_use]
    pub fn slowed(mut self, rank: u32, factor: f64) -> Config {
        self.slowed.push((rank, factor));
        self
    }

    pub(crate) fn slowness(&self, rank: Rank) -> f64 {
        self.slowed.iter().filter(|(slow, _)| *slow == rank.0).map(|(_, factor)| factor).product()
    }

    /// How this process was started, as far as it matters to the run.
    ///
    /// Under `mpirun` ranks share no memory: what a handler stores in a service is in the process of its chunk, and in no
    /// other. So send results to a chunk that is on rank 0 and stays there, and let the process that speaks print them:
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use caribou::{Array, Chunk, Config, Ctx, Placement};
    /// use serde::{Deserialize, Serialize};
    ///
    /// type Answer = Arc<Mutex<Option<u64>>>;
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Square { sum: Array<Sum> }
    ///
    /// impl Chunk for Square {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let me = u64::from(ctx.index());
    ///         ctx.send_to(self.sum, 0, me * me);
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Sum { heard: u32, sum: u64 }
    ///
    /// impl Chunk for Sum {
    ///     type Index = u32;
    ///     type Message = u64;
    ///     fn receive(&mut self, square: u64, ctx: &mut Ctx<'_, Self>) {
    ///         (self.heard, self.sum) = (self.heard + 1, self.sum + square);
    ///         if self.heard == 10 {
    ///             *ctx.service::<Answer>().lock().expect("nobody panics with it") = Some(self.sum);
    ///             ctx.exit();
    ///         }
    ///     }
    /// }
    ///
    /// let config = Config::default().ranks(2);
    /// let speaks = config.launch().speaks();
    /// let answer = Answer::default();
    /// caribou::run(config, |setup| {
    ///     setup.service(answer.clone());
    ///     // One chunk, placed in blocks: on rank 0. An array without sync does not migrate.
    ///     let sum = setup.array_without_sync(1, Placement::Block, |_| Sum { heard: 0, sum: 0 });
    ///     setup.array(10, move |_| Square { sum });
    /// })?;
    /// if speaks {
    ///     assert_eq!(*answer.lock().expect("the run is over"), Some(285));
    /// }
    /// # Ok::<(), caribou::Error>(())
    /// ```
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

    /// What was asked for that a simulated run does not do.
    fn unsimulated(&self) -> impl Iterator<Item = &'static str> {
        let asked = [
            (self.trace.is_some(), "is not recorded: CARIBOU_TRACE has no effect"),
            (self.monitor.is_some(), "tells nobody how it is doing: CARIBOU_MONITOR has no effect"),
            (
                !self.slowed.is_empty(),
                "has ranks of one speed: Config::slowed has no effect on their capacity",
            ),
        ];
        asked.into_iter().filter_map(|(asked, what)| asked.then_some(what))
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
        self.workers.unwrap_or(1)
    }

    /// Ranks and workers of each that a pool will have; under `mpirun` and unless set, the run may choose more workers.
    ///
    /// Iterations need nobody's memory but their own, so by default one rank with a worker for each vCPU does.
    pub fn pool_size(&self) -> (u32, u32) {
        let ranks = match self.launch() {
            Launch::Together { processes, .. } => processes,
            Launch::Alone => self.ranks.unwrap_or(1),
        };
        if self.simulate.is_some() {
            return (self.ranks.unwrap_or(4), self.workers.unwrap_or(2));
        }
        let share = (useful_vcpus() / ranks).max(1);
        (ranks, self.workers.unwrap_or(share))
    }

    /// Steps between two syncs.
    pub fn sync_period(&self) -> u64 {
        self.period
    }
}

/// vCPUs that this process can keep busy.
fn useful_vcpus() -> u32 {
    vcpus_within(crate::cpu_quota(), crate::vcpus().len()) as u32
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

fn wrong(setting: &str, why: String) -> Error {
    Error::Config { setting: setting.into(), why }
}

fn renamed(error: Error, setting: &str) -> Error {
    match error {
        Error::Config { why, .. } => wrong(setting, why),
        other => other,
    }
}

fn number(name: &str, value: &str, least: u64) -> Result<u64, Error> {
    number_to(name, value, least, u64::from(u32::MAX))
}

fn number_to(name: &str, value: &str, least: u64, most: u64) -> Result<u64, Error> {
    let parsed = value.trim().parse().ok();
    if parsed.is_some_and(|number| number < least) {
        return Err(wrong(name, format!("`{value}` is too few: expected at least {least}")));
    }
    let parsed = parsed.filter(|&number| number <= most);
    parsed.ok_or_else(|| wrong(name, format!("`{value}` is not a whole number from {least} to {most}")))
}

fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T, Error> {
    let found = choices.iter().find(|(text, _)| *text == value.trim());
    found.map(|&(_, choice)| choice).ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(text, _)| *text).collect();
        wrong(name, format!("`{value}` is none of {}", known.join(", ")))
    })
}

fn unknown_variable(name: &str) -> Error {
    // All begin alike: a name is near if what follows is.
    let rest = |name: &'static str| name.trim_start_matches(PREFIX);
    let choice =
        Choice::new(name.trim_start_matches(PREFIX), VARIABLES.iter().map(|variable| rest(variable.name)));
    let hint = match choice.nearest {
        Some(nearest) => format!("did you mean {PREFIX}{nearest}?"),
        None => format!("those that begin with {PREFIX} are {}", choice.known.join(", ")),
    };
    wrong(name, format!("there is no such variable; {hint}"))
}

/// What the names of all our variables begin with.
const PREFIX: &str = "CARIBOU_";

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> Result<Config, Error> {
        Config::from_variables([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn every_documented_variable_is_understood() {
        let examples = [
            "3", "2", "greedy", "7", "off", "off", "procstat", "always", "mpi", "off", "traces", "handlers",
            "10", "off", "9977", "60", "42",
        ];
        assert_eq!(examples.len(), VARIABLES.len());
        for (variable, example) in VARIABLES.iter().zip(examples) {
            let config = set(variable.name, example).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(format!("{config:?}"), format!("{:?}", Config::default()), "{}", variable.name);
        }
    }

    #[test]
    fn the_readme_has_a_row_for_each_variable() {
        let readme = include_str!("../../README.md");
        for Variable { name, default, meaning } in VARIABLES {
            let row = format!("| `{name}` | {default} | {meaning} |");
            assert!(readme.contains(&row), "there is no row {row}");
        }
    }

    #[test]
    fn an_unknown_variable_suggests_the_nearest() {
        let error = set("CARIBOU_RANK", "2").expect_err("there is no such variable");
        assert!(error.to_string().contains("CARIBOU_RANKS?"), "{error}");
        let error = set("CARIBOU_FOO", "2").expect_err("there is no such variable").to_string();
        assert!(!error.contains("did you mean") && error.contains("RANKS, WORKERS, LB"), "{error}");
        assert!(set("CARGO_HOME", "2").is_ok());
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        for Variable { name, .. } in VARIABLES {
            let config = set(name, " ").unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()), "{name}");
        }
        assert!(set("CARIBOU_FOO", "").is_err());
    }

    #[test]
    fn a_strategy_is_registered_under_a_name_that_selects_it_alone() {
        let refine = *ARRAYS.find("refine").expect("it is ours");
        let named = |name| Entry { name, ..refine };
        let registered = |names: &[&'static str]| {
            let config =
                names.iter().fold(Config::default(), |config, name| config.register_strategy(named(name)));
            config.changed_by([]).map_err(|error| error.to_string())
        };
        // It may take the place of one of ours.
        assert!(registered(&["mine", "refine"]).is_ok());
        for (names, why) in [
            (&["mine", "mine"][..], "two strategies"),
            (&["mine,how=1"], "is no name"),
            (&["help"], "is no name"),
            (&["leases"], "a policy for pools"),
        ] {
            let error = registered(names).expect_err("it could not be selected");
            assert!(error.starts_with("register_strategy: ") && error.contains(why), "{error}");
        }
        let pool = Entry { name: "refine", ..*POOLS.find("static").expect("it is ours") };
        assert!(Config::default().register_pool_strategy(pool).lb("none").is_err());
    }

    #[test]
    fn a_simulated_run_is_one_process() {
        let second = Launch::Together { process: 1, processes: 2 };
        let error = simulated(Some(7), second).expect_err("both would run it").to_string();
        assert!(error.starts_with("CARIBOU_SIMULATE: ") && error.contains("process 1 of 2"), "{error}");
        assert_eq!(simulated(Some(7), Launch::Alone), Ok(Some(7)));
        assert_eq!(simulated(None, second), Ok(None));
        assert_eq!(set("CARIBOU_SIMULATE", "18446744073709551615").expect("a seed").simulate, Some(u64::MAX));
        let config = Config::default().trace("traces").slowed(1, 2.0);
        let said: Vec<_> = config.unsimulated().collect();
        assert!(said[0].contains("CARIBOU_TRACE") && said[1].contains("Config::slowed"), "{said:?}");
        assert_eq!(Config::default().unsimulated().count(), 0);
    }

    #[test]
    fn a_bad_value_says_what_was_expected() {
        for (name, value, expected) in [
            ("CARIBOU_RANKS", "0", "at least 1"),
            ("CARIBOU_RANKS", "x", "from 1 to"),
            ("CARIBOU_LB", "help", "as in refine,tolerance=0.1\n\nfor arrays of chunks:\n\nnone "),
            ("CARIBOU_WIRE", "yes", "auto, always"),
            ("CARIBOU_LB", "refine,tolerence=1", "tolerance"),
        ] {
            let error = set(name, value).expect_err("the value is bad").to_string();
            assert!(error.starts_with(name) && error.contains(expected), "{error}");
        }
    }
}
