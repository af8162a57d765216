//! Describes a cluster, a program on it, and the policies to compare. Files of `caribou simulate file` are read into it by
//! serde, and the options of `caribou simulate array|pool|steps` are converted to it. So there is one way from a
//! description to a scenario.
//!
//! | module | purpose |
//! |---|---|
//! | `fields` | reads times, sizes, rates and ranges of numbers |
//! | `cluster` | builds vCPUs from hosts, neighbours and traces of hosts |
//! | `program` | has the generators of programs and their fields |
//! | `array`, `pool`, `steps` | build the scenario of a shape of program |

pub(super) mod array;
pub(super) mod cluster;
mod fields;
pub(super) mod pool;
pub(super) mod program;
pub(super) mod steps;

use std::fmt::Display;
use std::path::PathBuf;

use lb_strategies::Period;
use lb_strategies::pool::Nanos;
use serde::Deserialize;
use serde::de::IgnoredAny;

pub(super) use self::program::Program;
use crate::Error;

/// A cluster, a program and its policies. Each field has the name that it has in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    /// The name in tables and files.
    pub(super) name: Option<String>,
    /// The seed of costs, jitter, noise, and the choice of measured hosts.
    #[serde(default, deserialize_with = "fields::seed")]
    pub(super) seed: Option<u64>,
    #[serde(default)]
    pub(super) hosts: Vec<HostGroup>,
    #[serde(default)]
    pub(super) network: Network,
    #[serde(default)]
    pub(super) neighbours: Vec<Neighbours>,
    #[serde(default)]
    pub(super) program: Program,
    #[serde(default)]
    pub(super) balance: Balance,
    #[serde(default)]
    pub(super) costs: Costs,
    /// Read before all other fields, see `sweep`. They are here so that they are known names.
    #[serde(default, rename = "seeds")]
    _seeds: IgnoredAny,
    #[serde(default, rename = "sweep")]
    _sweep: IgnoredAny,
    /// Files are relative to this folder.
    #[serde(skip)]
    pub(super) folder: PathBuf,
    /// Set by options, whose hosts are ranks: that number of them share a link.
    #[serde(skip)]
    pub(super) ranks_per_link: Option<u32>,
}

/// Hosts that are alike.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostGroup {
    /// The name by which neighbours name this group.
    pub(super) name: Option<String>,
    /// Number of hosts.
    #[serde(default, deserialize_with = "fields::ranks")]
    pub(super) count: Option<u32>,
    /// Number of vCPUs of each host. There is a worker on each.
    #[serde(default, deserialize_with = "fields::workers")]
    pub(super) vcpus: Option<u32>,
    /// Number of ranks that share the vCPUs of each host.
    #[serde(default, deserialize_with = "fields::workers")]
    pub(super) ranks: Option<u32>,
    /// Units of work per second of each vCPU.
    #[serde(default, deserialize_with = "fields::speeds")]
    pub(super) speed: Option<Speeds>,
}

/// Speeds of the vCPUs of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Speeds {
    Same(f64),
    /// One for each host, each rank or each vCPU of the group.
    Each(Vec<f64>),
}

/// The network between ranks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    /// Time of a round trip between two ranks, ns.
    #[serde(default, deserialize_with = "fields::time")]
    pub(super) rtt: Option<Nanos>,
    /// Largest random delay of a message, one way, ns.
    #[serde(default, deserialize_with = "fields::time")]
    pub(super) jitter: Option<Nanos>,
    /// Bytes per second that a host sends to other hosts.
    #[serde(default, deserialize_with = "fields::rate")]
    pub(super) bandwidth_between_hosts: Option<f64>,
    /// Bytes per second that a rank sends to other ranks of its host.
    #[serde(default, deserialize_with = "fields::rate")]
    pub(super) bandwidth_within_host: Option<f64>,
    /// Bytes of a message from chunk to chunk.
    #[serde(default, deserialize_with = "fields::bytes")]
    pub(super) message_bytes: Option<u64>,
}

/// Other processes on hosts: always, for a time, at random, or as a trace says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Neighbours {
    /// The hosts; none for all.
    #[serde(default, deserialize_with = "fields::hosts")]
    pub(super) host: Option<Vec<HostName>>,
    /// The vCPU of the host; none for each.
    #[serde(default, deserialize_with = "fields::vcpu")]
    pub(super) vcpu: Option<u32>,
    /// When they come, ns.
    #[serde(default, deserialize_with = "fields::time")]
    pub(super) from: Option<Nanos>,
    /// When they leave, ns.
    #[serde(default, deserialize_with = "fields::time")]
    pub(super) to: Option<Nanos>,
    /// The part of a vCPU that they want.
    #[serde(default, deserialize_with = "fields::duty")]
    pub(super) duty: Option<f64>,
    /// The seed of neighbours that come and go at random.
    #[serde(default, deserialize_with = "fields::seed")]
    pub(super) random: Option<u64>,
    /// Where they run: on the same vCPU, or on the other hardware thread of the core.
    #[serde(default)]
    pub(super) beside: Place,
    /// Traces of measured hosts.
    #[serde(default, deserialize_with = "fields::paths")]
    pub(super) trace: Option<Vec<PathBuf>>,
    /// The format of the traces; none to know it by the first line.
    pub(super) format: Option<super::host_trace::Format>,
    /// Time between two samples of a trace, ns, instead of what the trace says.
    #[serde(default, deserialize_with = "fields::step")]
    pub(super) step: Option<Nanos>,
    /// The series of the first host, counted from 0.
    #[serde(default, deserialize_with = "fields::seed")]
    pub(super) first: Option<u64>,
}

/// A host by its number, or all hosts of a group by its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HostName {
    Number(u32),
    Group(String),
}

/// The place of a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    #[default]
    Vcpu,
    Core,
}

/// What balances the program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Balance {
    /// Strategies or policies with their parameters, a list as `--compare` takes it.
    #[serde(default, deserialize_with = "fields::policies")]
    pub(super) strategies: Option<String>,
    /// When chunks are balanced.
    #[serde(default, deserialize_with = "fields::period")]
    pub(super) period: Option<Period>,
}

/// What a run pays beside its work and the delays of the network.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Costs {
    /// CPU time to send, and again to receive, a message to another rank, ns.
    #[serde(default, deserialize_with = "fields::time")]
    pub(super) message_cpu: Option<Nanos>,
    /// The time of a decision.
    #[serde(default, deserialize_with = "fields::decision")]
    pub(super) decision: Option<Decision>,
    /// Bytes per second at which a rank packs chunks that move.
    #[serde(default, deserialize_with = "fields::rate")]
    pub(super) move_bandwidth: Option<f64>,
    /// Time slice on a vCPU, ns.
    #[serde(default, deserialize_with = "fields::slice")]
    pub(super) time_slice: Option<Nanos>,
    /// Standard deviation of measured loads and clocks, as a part of the true value.
    #[serde(default, deserialize_with = "fields::part")]
    pub(super) noise: Option<f64>,
    /// A file of `caribou calibrate`. Its costs replace those of messages, decisions and moves.
    #[serde(default, deserialize_with = "fields::file")]
    pub(super) calibration: Option<PathBuf>,
}

/// The time of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decision {
    /// For each chunk, ns.
    PerChunk(Nanos),
    /// As long as it takes on this machine.
    Measured,
}

/// Where a description comes from: a file, or options. It names fields in error lines.
pub(super) trait Source {
    /// The beginning of a line about this field, up to and with `: `.
    fn place(&self, field: &str) -> String;

    /// The line about a fault of this field and its value, which may be empty.
    fn line(&self, field: &str, value: &str, what: &str) -> String;

    /// The words for what has vCPUs and for a vCPU: host and vCPU, or rank and worker.
    fn words(&self) -> [&'static str; 2];
}

/// An error about a field.
pub(super) fn wrong(source: &dyn Source, field: &str, value: &dyn Display, what: &str) -> Error {
    Error::Usage(source.line(field, &value.to_string(), what))
}

impl Description {
    /// The seed, 0 if there is none.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The name in tables and files.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| super::compare::DESCRIBED.to_owned())
    }
}

impl Description {
    /// Refuses fields that this shape of program does not use.
    pub(super) fn check_shape(&self, shape: program::Shape, source: &dyn Source) -> Result<(), Error> {
        use program::Shape;
        let Self { network, costs, balance, .. } = self;
        let only_arrays = [
            ("balance.period", balance.period.is_some()),
            ("costs.message_cpu", costs.message_cpu.is_some()),
            ("costs.decision", costs.decision.is_some()),
            ("costs.move_bandwidth", costs.move_bandwidth.is_some()),
            ("costs.time_slice", costs.time_slice.is_some()),
            ("costs.noise", costs.noise.is_some()),
            ("costs.calibration", costs.calibration.is_some()),
            ("network.bandwidth_within_host", network.bandwidth_within_host.is_some()),
            ("network.message_bytes", network.message_bytes.is_some()),
        ];
        let no_pools = [("network.bandwidth_between_hosts", network.bandwidth_between_hosts.is_some())];
        let (unused, word) = match shape {
            Shape::Array => return self.check_calibration(source),
            Shape::Pool => ([&only_arrays[..], &no_pools].concat(), "pools"),
            Shape::Steps => (only_arrays.to_vec(), "programs in supersteps"),
        };
        match unused.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((field, _)) => Err(wrong(
                source,
                field,
                &"",
                &format!("simulated {word} do not have it, expected no such field"),
            )),
        }
    }

    /// Refuses costs that the calibration has too.
    fn check_calibration(&self, source: &dyn Source) -> Result<(), Error> {
        let Costs { message_cpu, decision, move_bandwidth, calibration, .. } = &self.costs;
        let both = [
            ("costs.message_cpu", message_cpu.is_some()),
            ("costs.decision", decision.is_some()),
            ("costs.move_bandwidth", move_bandwidth.is_some()),
        ];
        match both.iter().find(|(_, is_given)| *is_given && calibration.is_some()) {
            None => Ok(()),
            Some((field, _)) => {
                Err(wrong(source, field, &"", "the calibration has it too, expected one of them"))
            }
        }
    }
}
