//! The table of environment variables, one row each. Only [`Config::with_env`] reads the environment itself.

use std::time::Duration;

use lb_strategies::Choice;

use super::{BackgroundSource, Config, EdgeRecording, Pin, Processes, wrong};
use crate::error::Error;

/// One variable of the environment.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name of the variable.
    pub name: &'static str,
    /// The default, for people.
    pub default: &'static str,
    /// The effect.
    pub meaning: &'static str,
    /// A value other than the default.
    pub example: &'static str,
    /// Applies a value to a configuration, or returns what was expected.
    set: fn(Config, &str) -> Result<Config, String>,
}

/// All variables that Caribou reads.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "CARIBOU_RANKS",
        default: "one per vCPU (per `CARIBOU_WORKERS` vCPUs), at most the CPU quota; pools: 1",
        meaning: "number of ranks in this process; under mpirun each process is one rank",
        example: "3",
        set: |config, value| Ok(config.ranks(parse_integer(value, 1)? as u32)),
    },
    Variable {
        name: "CARIBOU_WORKERS",
        default: "1; pools: one per vCPU; under mpirun: one per core of the rank; at most the CPU quota",
        meaning: "number of workers (threads) of each rank",
        example: "2",
        set: |config, value| Ok(config.workers(parse_integer(value, 1)? as u32)),
    },
    Variable {
        name: "CARIBOU_LB",
        default: "arrays: refine; pools: leases; supersteps: des",
        meaning: "the balancing strategy or policy with its parameters, as in refine,tolerance=0.05; `help` lists those for the program",
        example: "greedy",
        set: |config, value| config.lb(value).map_err(reason),
    },
    Variable {
        name: "CARIBOU_LB_PERIOD",
        default: "auto",
        meaning: "arrays only: when chunks are balanced. auto: while they run, if that is likely to gain more than it costs. A time from 1us to 3600s: while they run, with a measurement per time and at most one decision per 40ms. A number: at syncs, that many steps apart, in programs that call sync_due. 0: never",
        example: "7",
        set: |config, value| Ok(config.balance(value.parse()?)),
    },
    Variable {
        name: "CARIBOU_LB_PREDICT",
        default: "auto",
        meaning: "arrays only: the predictor of loads: auto (the best so far), last, smoothing, trend, seasonal, drift",
        example: "drift",
        set: |config, value| Ok(config.predict(value.parse()?)),
    },
    Variable {
        name: "CARIBOU_LB_REPORTS",
        default: "off",
        meaning: "arrays only: record the measurements from which each sync was decided, for `caribou balance --trace`: on, off",
        example: "on",
        set: |config, value| Ok(config.lb_reports(parse_choice(value, &ON_OFF)?)),
    },
    Variable {
        name: "CARIBOU_LB_EDGES",
        default: "auto",
        meaning: "arrays only: record which chunks send how much to which: auto (where the strategy uses it), on (always, for a trace with `CARIBOU_LB_REPORTS=on`, and for `refine` within a host), off",
        example: "on",
        set: |config, value| Ok(config.lb_edges(parse_choice(value, &EDGES)?)),
    },
    Variable {
        name: "CARIBOU_LB_MEMORY",
        default: "none",
        meaning: "arrays only: MiB of chunk states that no strategy lets a rank exceed: none, or a number",
        example: "4096",
        set: |config, value| {
            let mib = || parse_integer(value, 1).map_err(in_unit("MiB, or none"));
            Ok(config.lb_memory(if value == "none" { None } else { Some(mib()? << 20) }))
        },
    },
    Variable {
        name: "CARIBOU_PIN",
        default: "auto",
        meaning: "bind workers to vCPUs: auto (if there are enough), on, off",
        example: "off",
        set: |config, value| {
            Ok(config.pin(parse_choice(value, &[("auto", Pin::Auto), ("on", Pin::On), ("off", Pin::Off)])?))
        },
    },
    Variable {
        name: "CARIBOU_MEASURE",
        default: "on",
        meaning: "arrays only: measure the CPU time of chunks: on, off (then only declared load counts)",
        example: "off",
        set: |config, value| Ok(config.measure(parse_choice(value, &ON_OFF)?)),
    },
    Variable {
        name: "CARIBOU_BACKGROUND",
        default: "auto",
        meaning: "source of O_p, the time that other processes take, for strategies with background=additive: auto, schedstat, procstat, off",
        example: "procstat",
        set: |config, value| Ok(config.background(parse_choice(value, &BACKGROUND)?)),
    },
    Variable {
        name: "CARIBOU_WIRE",
        default: "auto",
        meaning: "encode messages: auto (when they leave the process), always (all of them, to test serialisation)",
        example: "always",
        set: |config, value| {
            Ok(config.wire_always(parse_choice(value, &[("auto", false), ("always", true)])?))
        },
    },
    Variable {
        name: "CARIBOU_MAIL_LIMIT",
        default: "65536",
        meaning: "arrays and supersteps only: KiB of messages that may wait on a rank before chunks that send to this rank are blocked",
        example: "1024",
        set: |config, value| {
            Ok(config.mail_limit(parse_integer(value, 1).map_err(in_unit("KiB, as in 65536"))? << 10))
        },
    },
    Variable {
        name: "CARIBOU_PROCESSES",
        default: "auto",
        meaning: "ranks are processes: auto (if mpirun or srun started several), mpi (always), threads (never)",
        example: "mpi",
        set: |config, value| Ok(config.processes(parse_choice(value, &PROCESSES)?)),
    },
    Variable {
        name: "CARIBOU_SHARED_MEMORY",
        default: "on",
        meaning: "processes of one host exchange messages through shared memory: on, off (all through MPI)",
        example: "off",
        set: |config, value| Ok(config.shared_memory(parse_choice(value, &ON_OFF)?)),
    },
    Variable {
        name: "CARIBOU_TRACE",
        default: "unset",
        meaning: "directory in which each run is recorded, in run-1, run-2, ..., after those that exist; `caribou trace` shows a record",
        example: "traces",
        set: |config, value| Ok(config.trace(value)),
    },
    Variable {
        name: "CARIBOU_TRACE_FILTER",
        default: "all",
        meaning: "what is recorded, such as handlers,messages=16 or -idle,array=Block; see `trace::Filter`",
        example: "handlers",
        set: |config, value| Ok(config.trace_filter(value.parse()?)),
    },
    Variable {
        name: "CARIBOU_TRACE_LIMIT",
        default: "4096",
        meaning: "maximum MiB of events that each rank records; later events are dropped and counted",
        example: "10",
        set: |config, value| Ok(config.trace_limit(parse_integer(value, 1)? << 20)),
    },
    Variable {
        name: "CARIBOU_PROFILE",
        default: "on",
        meaning: "keep a bounded profile of each worker's time: on, off (a trace includes the profile in any case)",
        example: "off",
        set: |config, value| Ok(config.profile(parse_choice(value, &ON_OFF)?)),
    },
    Variable {
        name: "CARIBOU_MONITOR",
        default: "unset",
        meaning: "HOST:PORT or PORT on which the state of the run is served; `caribou top` shows it, `caribou resize` shrinks or expands the run. Rank R of several processes adds R to PORT",
        example: "9977",
        set: |config, value| Ok(config.monitor(value.trim())),
    },
    Variable {
        name: "CARIBOU_WATCHDOG",
        default: "10",
        meaning: "seconds until a warning names a handler that has not returned, a pool whose workers all wait, or a rank 0 of arrays or supersteps that waits for other processes; a stopped process is named 3 seconds later. A failed run waits the same time for processes that do not answer. 0: never",
        example: "60",
        set: |config, value| {
            Ok(config.watchdog(Duration::from_secs(
                parse_integer(value, 0).map_err(in_unit("seconds, as in 60"))?,
            )))
        },
    },
    Variable {
        name: "CARIBOU_CHECKPOINT",
        default: "unset",
        meaning: "the directory of checkpoints, the time from one to the next in ms, s, m or h, and how many are kept: DIR[,every=10m][,keep=3]",
        example: "checkpoints,every=1m",
        set: |config, value| Ok(config.checkpoint(value.parse()?)),
    },
    Variable {
        name: "CARIBOU_RESTART",
        default: "unset",
        meaning: "continue from the newest checkpoint of this directory, or from this one (DIR/000007); auto: from the newest undamaged one of CARIBOU_CHECKPOINT, or from the beginning if there is none",
        example: "checkpoints",
        set: |config, value| Ok(config.restart_process(value)),
    },
    Variable {
        name: "CARIBOU_SPOT",
        default: "none",
        meaning: "the cloud whose metadata service is polled, so that a run with checkpoints saves its state before its machine is taken back: none, aws, gcp, azure, or auto for the first that answers; another address for tests: aws@http://IP:PORT",
        example: "aws",
        set: |config, value| Ok(config.spot(value.parse()?)),
    },
    Variable {
        name: "CARIBOU_SIMULATE",
        default: "unset",
        meaning: "seed of a simulated run: one thread, virtual time, and random delays, orders and loads of chunks. By default 4 ranks, for pools 4 ranks of 2 workers. Not recorded",
        example: "42",
        set: |config, value| Ok(config.simulate(parse_integer_in(value, 0, u64::MAX)?)),
    },
];

const ON_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];

const EDGES: [(&str, EdgeRecording); 3] =
    [("auto", EdgeRecording::Auto), ("on", EdgeRecording::On), ("off", EdgeRecording::Off)];

const BACKGROUND: [(&str, BackgroundSource); 4] = [
    ("auto", BackgroundSource::Auto),
    ("schedstat", BackgroundSource::Schedstat),
    ("procstat", BackgroundSource::Procstat),
    ("off", BackgroundSource::Off),
];

const PROCESSES: [(&str, Processes); 3] =
    [("auto", Processes::Auto), ("mpi", Processes::Mpi), ("threads", Processes::Threads)];

/// The prefix of the names of all variables of Caribou.
pub(super) const PREFIX: &str = "CARIBOU_";

impl Config {
    /// This configuration, changed by these variables. Names without the prefix and empty values are ignored.
    pub(super) fn changed_by(
        self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, Error> {
        self.lb.check_registered()?;
        let mut config = self;
        for (name, value) in variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let variable = VARIABLES.iter().find(|variable| variable.name == name);
            let variable = variable.ok_or_else(|| unknown_variable(&name))?;
            if !value.trim().is_empty() {
                config = (variable.set)(config, &value).map_err(|why| wrong(&name, why))?;
            }
        }
        Ok(config)
    }
}

/// Adds the unit to the error of a number.
fn in_unit(unit: &str) -> impl Fn(String) -> String {
    move |why| format!("{why}, in {unit}")
}

fn parse_integer(value: &str, least: u64) -> Result<u64, String> {
    parse_integer_in(value, least, u64::from(u32::MAX))
}

fn parse_integer_in(value: &str, least: u64, most: u64) -> Result<u64, String> {
    match value.trim().parse() {
        Ok(number) if number < least => Err(format!("`{value}` is too few: expected at least {least}")),
        Ok(number) if number <= most => Ok(number),
        _ => Err(format!("`{value}` is not a whole number from {least} to {most}")),
    }
}

fn parse_choice<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(text, _)| *text == value.trim());
    found.map(|&(_, choice)| choice).ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(text, _)| *text).collect();
        format!("`{value}` is none of {}", known.join(", "))
    })
}

/// The text of an error, without the name of the method: the name of the variable is put before it.
fn reason(error: Error) -> String {
    match error {
        Error::Config { why, .. } => why,
        other => other.to_string(),
    }
}

fn unknown_variable(name: &str) -> Error {
    // All names share the prefix, so only the rest is compared.
    let rest = |name: &'static str| name.trim_start_matches(PREFIX);
    let choice =
        Choice::new(name.trim_start_matches(PREFIX), VARIABLES.iter().map(|variable| rest(variable.name)));
    let hint = match choice.nearest {
        Some(nearest) => format!("did you mean {PREFIX}{nearest}?"),
        None => format!("those that begin with {PREFIX} are {}", choice.known.join(", ")),
    };
    wrong(name, format!("there is no such variable; {hint}"))
}
