//! Builds a simulated cluster from options: ranks, speeds, neighbours (other processes), measured hosts, and the
//! network.

use std::path::PathBuf;

use presentation::count_parser;
use virtual_cluster::{
    Beside, Neighbour, NeighbourShares, Network, PerWorker, Series, Shared, Vcpus, on_hosts,
};

use super::host_trace::{self, Hosts};
use super::{neighbour, values};
use crate::{Error, input};

/// Longest ideal time in seconds, about three years. A policy may take 100 times as long: 64 bits of ns still suffice.
const IDEAL_MOST_S: f64 = 1e8;

/// Largest number of ranks of an array.
pub(super) const RANKS_MOST: u32 = 1_000_000;
/// Largest number of workers of all ranks together.
const WORKERS_MOST: u64 = 10_000_000;
/// Largest number of ranks of a pool or a program in supersteps, where each pair of ranks has a connection in memory.
const PAIRED_MOST: u32 = 1024;

/// Defaults: ranks, workers per rank, and iterations per second of a worker.
const RANKS: u32 = 4;
const WORKERS: u32 = 8;
const SPEED: f64 = 1000.0;

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
    pub(super) seed: u64,
}

impl NetworkOptions {
    /// Replaces the settings of a scenario's network by the options.
    pub(super) fn apply(&self, network: &mut Network) {
        network.rtt = self.rtt.unwrap_or(network.rtt);
        (network.jitter, network.seed) = (self.jitter, self.seed);
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
    neighbours: Vec<Neighbour>,
    /// The place of neighbours: on the same vCPU, or on the other hardware thread of the core.
    #[arg(long, default_value = "vcpu", value_parser = ["vcpu", CORE])]
    beside: String,
    /// Speeds of hosts as they were measured, a host for each rank, from the first again where there are more ranks: CSV as
    /// `time_s,host,share`, `timestamp,value` (percent of CPU in use), `starttime,value` (speed), `vm,value` (speed) or
    /// `name,percent,percent,...` every 300 s. Several files follow each other. --seed N begins with the N-th group of hosts.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    hosts_trace: Vec<PathBuf>,
    /// Seconds between two samples of a host, instead of what its trace says.
    #[arg(long, value_name = "SECONDS", requires = "hosts_trace", value_parser = values::seconds)]
    trace_step: Option<f64>,
}

impl Options {
    /// The options for a run that was recorded on `ranks` ranks. By default a load of 1 s takes a worker 1 s.
    pub(super) fn recorded(&self, ranks: u32) -> Self {
        let (workers, speed) = (self.workers.unwrap_or(1), self.speed.unwrap_or(1.0));
        let ranks = self.ranks.unwrap_or(ranks);
        Self { ranks: Some(ranks), workers: Some(workers), speed: Some(speed), ..self.clone() }
    }

    /// Refuses more ranks than can be simulated if each exchanges messages with all others.
    pub(super) fn check_pairs(&self) -> Result<(), Error> {
        match self.ranks() {
            0..=PAIRED_MOST => Ok(()),
            ranks => Err(Error::Usage(format!(
                "--ranks {ranks}: each rank has a connection to each other here, expected {PAIRED_MOST} at most"
            ))),
        }
    }

    /// Refuses more workers than fit into memory.
    pub(super) fn check_workers(&self) -> Result<(), Error> {
        let (ranks, each) = (self.ranks(), self.workers_each());
        match u64::from(ranks) * u64::from(each) {
            0..=WORKERS_MOST => Ok(()),
            workers => Err(Error::Usage(format!(
                "--workers {each}: {workers} workers on {ranks} ranks, expected {WORKERS_MOST} at most"
            ))),
        }
    }

    /// Number of workers of each rank.
    pub(super) fn workers(&self) -> Vec<u32> {
        vec![self.workers_each(); self.ranks() as usize]
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        self.ranks.unwrap_or(RANKS)
    }

    fn workers_each(&self) -> u32 {
        self.workers.unwrap_or(WORKERS)
    }

    /// The vCPUs of the workers. The seed selects the group of measured hosts.
    pub(super) fn vcpus(
        &self,
        seed: u64,
    ) -> Result<impl Fn() -> Box<dyn Vcpus> + Send + Sync + use<>, Error> {
        let speeds = self.speeds()?;
        let neighbours = self.neighbour_parts()?;
        let beside_core = self.beside == CORE;
        let (hosts, turns) = self.host_parts(seed)?;
        Ok(move || {
            let speeds = Box::new(speeds.clone());
            let neighbours = neighbours.clone();
            // A process on the other hardware thread slows a worker down. A process on its vCPU takes turns with it.
            let beside = if beside_core {
                Shared::slowed(speeds, neighbours)
            } else {
                Shared::new(speeds, neighbours)
            };
            let (beside, hosts) = (Box::new(beside), hosts.clone());
            let on_hosts = if turns { Shared::new(beside, hosts) } else { Shared::slowed(beside, hosts) };
            Box::new(on_hosts) as Box<dyn Vcpus>
        })
    }

    /// The hosts of the trace, if one was named. Prints notes about the trace on standard error.
    pub(super) fn hosts(&self) -> Result<Option<Hosts>, Error> {
        if self.hosts_trace.is_empty() {
            return Ok(None);
        }
        let hosts = host_trace::read(&self.hosts_trace, self.trace_step).map_err(Error::File)?;
        hosts.notes.iter().for_each(|note| input::note(note));
        Ok(Some(hosts))
    }

    /// Refuses a run that never ends or takes too long. `ideal_s` is about the best time of `count` `option`.
    pub(super) fn check_ideal(&self, ideal_s: f64, option: &str, count: u64) -> Result<(), Error> {
        if !ideal_s.is_finite() {
            return Err(Error::Usage(format!(
                "{}all speeds stay 0 from some time on, expected a worker that can end the run",
                self.speed_options()
            )));
        }
        if ideal_s > IDEAL_MOST_S {
            return Err(Error::Usage(format!(
                "{option} {count:e}: even the best schedule takes {ideal_s:.0e} s, expected {IDEAL_MOST_S:e} s at most",
            )));
        }
        Ok(())
    }

    /// The options by which a worker may have speed 0, as the beginning of an error text.
    fn speed_options(&self) -> String {
        let speeds = self.speeds.iter().map(|list| format!("--speeds {list}"));
        let files: Vec<String> = self.hosts_trace.iter().map(|file| file.display().to_string()).collect();
        let hosts = (!files.is_empty()).then(|| format!("--hosts-trace {}", files.join(" ")));
        let options: Vec<String> = speeds.chain(hosts).collect();
        if options.is_empty() { String::new() } else { format!("{}: ", options.join(" ")) }
    }

    /// Refuses workers of speed 0, for programs in which each step waits for all workers.
    ///
    /// # Errors
    /// A line that names the option.
    pub(super) fn all_compute(&self) -> Result<(), Error> {
        let Some(list) = &self.speeds else { return Ok(()) };
        let speeds = values::speeds(list).map_err(Error::Usage)?;
        if speeds.iter().all(|&speed| speed > 0.0) {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--speeds {list}: a worker of speed 0 never ends a step, expected numbers above 0"
        )))
    }

    fn speeds(&self) -> Result<PerWorker, Error> {
        let (ranks, all) = (self.ranks() as usize, self.ranks() as usize * self.workers_each() as usize);
        let Some(list) = &self.speeds else {
            let speed = self.speed.unwrap_or(SPEED);
            return Ok(PerWorker::new(&self.workers(), |_| Series::constant(speed)));
        };
        let speeds = values::speeds(list).map_err(Error::Usage)?;
        if speeds.len() != ranks && speeds.len() != all {
            return Err(Error::Usage(format!(
                "--speeds {list}: {} speeds, expected one for each of the {ranks} ranks or {all} workers",
                speeds.len()
            )));
        }
        let of_workers = speeds.len() == all;
        Ok(PerWorker::new(&self.workers(), |worker| {
            let index = worker.rank.index() * self.workers_each() as usize + worker.number as usize;
            Series::constant(speeds[if of_workers { index } else { worker.rank.index() }])
        }))
    }

    fn neighbour_parts(&self) -> Result<NeighbourShares, Error> {
        for neighbour in &self.neighbours {
            if neighbour.rank.0 >= self.ranks() {
                let (rank, last) = (neighbour.rank, self.ranks() - 1);
                return Err(Error::Usage(format!("--neighbour {rank}: expected a rank from 0 to {last}")));
            }
            if let Some(worker) = neighbour.worker.filter(|&worker| worker >= self.workers_each()) {
                let (rank, last) = (neighbour.rank, self.workers_each() - 1);
                return Err(Error::Usage(format!(
                    "--neighbour {rank}.{worker}: expected a worker from 0 to {last}"
                )));
            }
        }
        let beside = if self.beside == CORE { Beside::Core } else { Beside::Vcpu };
        Ok(beside.shares(&self.neighbours))
    }

    /// The share of each worker's host that is left for it, and whether other processes take turns with the workers.
    fn host_parts(&self, seed: u64) -> Result<(PerWorker, bool), Error> {
        let Some(hosts) = self.hosts()? else {
            return Ok((PerWorker::new(&self.workers(), |_| Series::constant(1.0)), false));
        };
        hosts.shared(self.ranks()).iter().for_each(|note| input::note(note));
        let Hosts { mut parts, time_sliced: turns, .. } = hosts;
        let group = (u128::from(seed) * u128::from(self.ranks()) % parts.len() as u128) as usize;
        parts.rotate_left(group);
        Ok((on_hosts(&self.workers(), &parts), turns))
    }
}
