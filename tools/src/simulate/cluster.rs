//! Has the options for a simulated cluster: ranks, speeds, neighbours (other processes), measured hosts, and the network.
//! They are converted to a description, whose hosts are ranks.

use std::path::PathBuf;

use presentation::count_parser;

use super::description::{Description, HostGroup, HostName, Neighbours, Place, Source, Speeds};
use super::{neighbour, values};
use crate::Error;

/// Largest number of ranks of an array.
pub(super) const RANKS_MOST: u32 = 1_000_000;
/// Defaults: ranks, and workers per rank.
const RANKS: u32 = 4;
const WORKERS: u32 = 8;

/// Value of `--beside`: neighbours run on the other hardware thread of the core.
const CORE: &str = "core";

/// The network between ranks, for described and recorded clusters alike.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct NetworkOptions {
    /// Round-trip time between two ranks, as in 0.1ms, 200us or 2s; if not given that of the scenario, without a
    /// scenario 10ms for a pool and 0.1ms for an array.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    rtt: Option<u64>,
    /// Largest random delay of a message, one way.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::time)]
    jitter: u64,
    /// Seed of costs, jitter and the choice of hosts; with a scenario, of its jitter only.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = presentation::count_parser(0..=u64::MAX))]
    seed: u64,
}

impl NetworkOptions {
    /// Writes the options into a description.
    pub(super) fn describe(&self, description: &mut Description) {
        description.network.rtt = self.rtt;
        description.network.jitter = Some(self.jitter);
        description.seed = Some(self.seed);
    }
}

/// Ranks and the vCPUs under them.
#[derive(Clone, clap::Args)]
#[group(id = "cluster", multiple = true)]
#[command(next_help_heading = "Cluster")]
pub(super) struct Options {
    /// Ranks of the cluster; 4 if not given.
    #[arg(long, value_parser = count_parser(1..=RANKS_MOST))]
    ranks: Option<u32>,
    /// Workers of each rank; 8 if not given.
    #[arg(long, value_parser = count_parser(1..=1024u32))]
    workers: Option<u32>,
    /// Iterations per second of each worker, in an array iterations of a chunk; 1000 if not given.
    #[arg(long, value_parser = values::speed)]
    speed: Option<f64>,
    /// Iterations per second of each rank's workers, or of each worker: a list as in 1000,2000, or a file of one.
    #[arg(long, value_name = "LIST|FILE", conflicts_with = "speed")]
    speeds: Option<String>,
    /// A process that computes beside a rank's workers, or beside one: from when to when (seconds) and with which duty (above
    /// 0, up to 1). RANK[.WORKER]:random:SEED comes and goes at random, by seed. May be repeated.
    #[arg(long = "neighbour", value_name = "RANK[.WORKER][:FROM-TO][:DUTY]", value_parser = neighbour::parse)]
    neighbours: Vec<Neighbours>,
    /// The place of neighbours: on the same vCPU, or on the other hardware thread of the core.
    #[arg(long, default_value = "vcpu", value_parser = ["vcpu", CORE])]
    beside: String,
    /// Speeds of hosts as they were measured, a host for each rank, from the first again where there are more ranks: CSV as
    /// `time_s,host,share`, `timestamp,value` (percent of CPU in use), `starttime,value` (speed), `vm,value` (speed),
    /// `name,percent,percent,...` every 300 s, or Google's task usage. Several files follow each other. --seed N begins with
    /// the N-th group of hosts.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    hosts_trace: Vec<PathBuf>,
    /// Seconds between two samples of a host, instead of what its trace says.
    #[arg(long, value_name = "SECONDS", requires = "hosts_trace", value_parser = values::seconds)]
    trace_step: Option<f64>,
}

impl Options {
    /// Writes the options into a description. A run that was recorded has its own number of ranks, of one worker each.
    pub(super) fn describe(&self, description: &mut Description, recorded: bool) -> Result<(), Error> {
        let (ranks, workers) = (self.ranks.unwrap_or(RANKS), self.workers.unwrap_or(WORKERS));
        let [ranks, workers] =
            if recorded { [self.ranks, self.workers] } else { [Some(ranks), Some(workers)] };
        let speed = match (&self.speeds, self.speed) {
            (Some(list), _) => Some(Speeds::Each(values::speeds(list).map_err(Error::Usage)?)),
            (None, speed) => speed.map(Speeds::Same),
        };
        description.hosts = vec![HostGroup { count: ranks, vcpus: workers, speed, ..HostGroup::default() }];
        for neighbour in &self.neighbours {
            check_worker(neighbour, workers.unwrap_or(1))?;
            let beside = if self.beside == CORE { Place::Core } else { Place::Vcpu };
            description.neighbours.push(Neighbours { beside, ..neighbour.clone() });
        }
        if !self.hosts_trace.is_empty() {
            let step = self.trace_step.map(|seconds| (seconds * 1e9).round() as u64);
            let trace = Some(self.hosts_trace.clone());
            description.neighbours.push(Neighbours { trace, step, ..Neighbours::default() });
        }
        Ok(())
    }

    /// The source of a description by these options. `turns` is the option for iterations or steps.
    pub(super) fn source(&self, turns: &'static str) -> OptionSource {
        let speeds = self.speeds.iter().map(|list| format!("--speeds {list}"));
        let files: Vec<String> = self.hosts_trace.iter().map(|file| file.display().to_string()).collect();
        let hosts = (!files.is_empty()).then(|| format!("--hosts-trace {}", files.join(" ")));
        let speeds = speeds.chain(hosts).collect::<Vec<_>>().join(" ");
        OptionSource { speeds, turns }
    }
}

/// Refuses a neighbour of a worker that the rank does not have.
fn check_worker(neighbour: &Neighbours, workers: u32) -> Result<(), Error> {
    let (Some(worker), Some([HostName::Number(rank)])) = (neighbour.vcpu, neighbour.host.as_deref()) else {
        return Ok(());
    };
    if worker < workers {
        return Ok(());
    }
    let last = workers - 1;
    Err(Error::Usage(format!("--neighbour {rank}.{worker}: expected a worker from 0 to {last}")))
}

/// Options as the source of a description. It names the option of a field.
pub(super) struct OptionSource {
    /// The options by which a worker may have speed 0, with their values.
    speeds: String,
    /// The option for iterations or steps.
    turns: &'static str,
}

impl OptionSource {
    /// The option of a field with the number of its element.
    fn option(&self, field: &str) -> &str {
        let field: String = field.split(['[', ']']).step_by(2).collect();
        match field.as_str() {
            "hosts.speed" if self.speeds.is_empty() => "--speed",
            "hosts" | "hosts.speed" => &self.speeds,
            "hosts.count" => "--ranks",
            "hosts.vcpus" => "--workers",
            "neighbours.host" | "neighbours.random" => "--neighbour",
            "neighbours.trace" => "--hosts-trace",
            "network.jitter" => "--jitter",
            "program.iterations" | "program.steps" => self.turns,
            "program.chunks" => "--chunks",
            "program.cost" => "--cost",
            "program.loads" => "--cost recorded",
            "program.units" => "--units",
            "balance.period" => "--period",
            "costs.calibration" => "--costs",
            "costs.time_slice" => "--time-slice",
            _ => "",
        }
    }
}

impl Source for OptionSource {
    fn place(&self, field: &str) -> String {
        match (field, self.option(field)) {
            (_, "") => String::new(),
            // The name of the files follows.
            ("program.loads", option) => format!("{option}:"),
            (_, option) => format!("{option}: "),
        }
    }

    fn line(&self, field: &str, value: &str, what: &str) -> String {
        match (self.option(field), value) {
            ("", _) => what.to_owned(),
            (option, "") => format!("{option}: {what}"),
            (option, value) => format!("{option} {value}: {what}"),
        }
    }

    fn words(&self) -> [&'static str; 2] {
        ["rank", "worker"]
    }
}
