//! Reads the parameters of `ruper`. By default, durations except `chunk` are fractions of the interval between
//! rebalances, so that one number adapts the policy to runs of seconds.
//!
//! The [RUPER-LB paper](super) gives the value of this interval only: 300 s, in runs of an hour.

use crate::parameters::{Parameter, Parameters};
use crate::parse_error::ParseError;
use crate::pools::equal;
use crate::pools::machine::{Nanos, SECOND};
use crate::renamed::renamed;

/// The name of the time between rebalances. Other durations but `chunk` are fractions of it.
const INTERVAL: &str = "interval";

/// The largest duration that can be set, in seconds.
const LONGEST: f64 = 1e6;

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: INTERVAL,
        default: "300",
        meaning: "seconds from one rebalance of a rank's workers to the next (the paper's checkpoints)",
    },
    Parameter {
        name: "t-min",
        default: "interval/2",
        meaning: "seconds before the end of a rank in which its workers are not rebalanced",
    },
    Parameter {
        name: "t-min-mpi",
        default: "interval/2",
        meaning: "seconds before the end of the pool in which ranks are not rebalanced",
    },
    Parameter { name: "mpi-interval", default: "interval", meaning: "seconds between reports of a rank" },
    Parameter {
        name: "mpi-adapt",
        default: "off",
        meaning: "on: up to 4 times as long between reports of a rank whose speed is steady",
    },
    Parameter {
        name: "first-interval",
        default: "interval/1.5",
        meaning: "seconds to a worker's first report",
    },
    Parameter {
        name: "report-floor",
        default: "interval/30",
        meaning: "shortest time between a worker's reports, in seconds",
    },
    Parameter {
        name: "min-measure",
        default: "interval/300",
        meaning: "shortest time from which a speed is computed, in seconds",
    },
    Parameter {
        name: "spacing",
        default: "interval/300",
        meaning: "shortest time between rebalances, and between a rank's requests to finish, in seconds",
    },
    Parameter {
        name: "start-deadline",
        default: "mpi-interval",
        meaning: "seconds after which a rank that has not started loses its share",
    },
    Parameter {
        name: "ds-max",
        default: "0.1",
        meaning: "relative change of speed above which reports become more frequent",
    },
    Parameter {
        name: "counts",
        default: "indexed",
        meaning: "indexed: each index exactly once; fungible: only their number matters (the paper)",
    },
    equal::CHUNK,
];

/// The unit of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Indices, each of which is run exactly once.
    Indexed,
    /// Interchangeable iterations, as Monte Carlo histories in the paper; a few too many do no harm.
    Fungible,
}

/// The values of all parameters, durations in ns.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Time between rebalances of a task (paper, Table 1: Δt_pc).
    pub(crate) interval: Nanos,
    /// Remaining time at or below which workers may leave and quotas stay (paper, Fig. 3: t_min).
    pub(crate) t_min: Nanos,
    /// The same threshold between ranks (paper, Fig. 4).
    pub(crate) t_min_mpi: Nanos,
    /// Time between reports of a rank, at first.
    pub(crate) mpi_interval: Nanos,
    /// True if that time is longer for a rank of steady speed (paper, Fig. 4: Δt_report).
    pub(crate) mpi_adapt: bool,
    /// Time to the first report of a worker.
    pub(crate) first_interval: Nanos,
    /// Shortest time between two reports of a worker.
    pub(crate) report_floor: Nanos,
    /// Shortest time over which a speed is measured.
    pub(crate) min_measure: Nanos,
    /// Shortest time between two rebalances of a task, and between two requests of a rank to finish.
    pub(crate) spacing: Nanos,
    /// Time after which a rank that has not started counts as absent.
    pub(crate) start_deadline: Nanos,
    /// Change of speed above which the next report comes sooner (paper, Fig. 2: ds_max).
    pub(crate) ds_max: f64,
    /// The unit of a quota.
    pub(crate) counts: Counts,
    /// Time that a worker runs before it wants the next range.
    pub(crate) chunk: Nanos,
}

impl Settings {
    pub(crate) fn read(parameters: &Parameters) -> Result<Self, ParseError> {
        let seconds = parameters.number(INTERVAL, 1e-3..=LONGEST)?;
        let duration = |key| duration(parameters, key, seconds);
        let mpi_interval = duration("mpi-interval")?;
        let start_deadline = match parameters.value("start-deadline") {
            "mpi-interval" => mpi_interval,
            _ => duration("start-deadline")?,
        };
        Ok(Self {
            interval: nanos(seconds),
            t_min: duration("t-min")?,
            t_min_mpi: duration("t-min-mpi")?,
            mpi_interval,
            mpi_adapt: parameters.switch("mpi-adapt")?,
            first_interval: duration("first-interval")?,
            report_floor: duration("report-floor")?,
            min_measure: duration("min-measure")?,
            spacing: duration("spacing")?,
            start_deadline,
            ds_max: parameters.number("ds-max", 0.0..=1.0)?,
            counts: counts(parameters)?,
            chunk: equal::chunk(parameters)?,
        })
    }

    /// The defaults, for tests.
    #[cfg(test)]
    pub(crate) fn of(settings: &str) -> Self {
        let parameters = Parameters::read("ruper", PARAMETERS, settings).expect("known keys");
        Self::read(&parameters).expect("good values")
    }
}

/// Seconds, as a number or as a fraction of the interval: `interval/30`.
fn duration(parameters: &Parameters, key: &'static str, interval: f64) -> Result<Nanos, ParseError> {
    let value = parameters.value(key);
    let of_interval = |fraction: &str| match fraction {
        "" => Some(interval),
        _ => fraction.strip_prefix('/').and_then(number).map(|divisor| interval / divisor),
    };
    let names = [INTERVAL].into_iter().chain(old_names_of_interval());
    let seconds = match names.filter_map(|name| value.strip_prefix(name)).next() {
        Some(fraction) => of_interval(fraction),
        None => number(value),
    };
    // No duration is 0, because an event that repeats after a time must not repeat at once.
    seconds
        .filter(|seconds| (0.0..=LONGEST).contains(seconds))
        .map(|seconds| nanos(seconds).max(1))
        .ok_or_else(|| parameters.bad(key, format!("a number from 0 to {LONGEST}, or {INTERVAL}/NUMBER")))
}

fn old_names_of_interval() -> impl Iterator<Item = &'static str> {
    renamed(super::ENTRY.name).filter(|renamed| renamed.new == INTERVAL).map(|renamed| renamed.old)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

fn counts(parameters: &Parameters) -> Result<Counts, ParseError> {
    match parameters.value("counts") {
        "indexed" => Ok(Counts::Indexed),
        "fungible" => Ok(Counts::Fungible),
        _ => Err(parameters.bad("counts", "indexed or fungible".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::POOLS;

    #[test]
    fn durations_follow_the_interval_unless_they_are_set() {
        let settings = Settings::of("interval=3,mpi-interval=1,t-min=interval/4,spacing=0");
        assert_eq!((settings.interval, settings.first_interval), (3 * SECOND, 2 * SECOND));
        assert_eq!((settings.mpi_interval, settings.start_deadline), (SECOND, SECOND));
        assert_eq!((settings.t_min, settings.t_min_mpi), (SECOND * 3 / 4, SECOND * 3 / 2));
        assert_eq!(
            (settings.report_floor, settings.min_measure, settings.spacing),
            (SECOND / 10, SECOND / 100, 1)
        );
    }

    #[test]
    fn the_old_name_of_the_interval_means_the_same() {
        let [old, new] = ["checkpoint=3,t-min=checkpoint/4", "interval=3,t-min=interval/4"].map(Settings::of);
        assert_eq!((old.interval, old.t_min, old.spacing), (new.interval, new.t_min, new.spacing));
        assert_eq!(old.interval, 3 * SECOND);
    }

    #[test]
    fn what_is_no_duration_is_refused_with_its_name() {
        for wrong in ["t-min=interval/0", "t-min=-1", "t-min=interval2", "counts=some", "ds-max=2"] {
            let Err(error) = POOLS.parse(&format!("ruper,{wrong}")) else { panic!("{wrong} is accepted") };
            assert!(error.to_string().contains(wrong.split('=').next().unwrap()), "{error}");
        }
    }
}
