//! A cluster described on the command line: ranks, speeds, neighbours, measured hosts, costs.

use std::path::PathBuf;

use lb_strategies::cluster::{Beside, Costs, Neighbour, PerWorker, Scenario, Series, Shared, on_hosts};
use lb_strategies::pool::Pool;

use super::{host_trace, neighbour, values};
use crate::Error;

/// The name of such a cluster in reports.
const NAME: &str = "described";

/// Three years: a hundred times as long, which a policy may take, is still a number of nanoseconds.
const IDEAL_MOST_S: f64 = 1e8;

/// Simulated in minutes, for each policy.
const SIMULATED_MOST: f64 = 1e9;

/// How long a chunk takes under most policies unless they are told otherwise.
const CHUNK_S: f64 = 0.1;

/// Ranks are connected in pairs, all of which are kept in memory.
const RANKS_MOST: i64 = 1024;

/// A pool and the cluster under it.
#[derive(clap::Args)]
#[group(id = "described", multiple = true)]
#[command(next_help_heading = "A cluster described")]
pub(super) struct Options {
    /// Ranks of the cluster.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=RANKS_MOST))]
    ranks: u32,
    /// Workers of each rank.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,
    /// Iterations of the pool, as in 100000000 or 1e8.
    #[arg(long, value_name = "COUNT", default_value = "1e8", value_parser = values::count)]
    iterations: u64,
    /// Iterations per second of each worker.
    #[arg(long, default_value = "1000", value_parser = values::speed)]
    speed: f64,
    /// Iterations per second of each rank's workers, or of each worker: a list as in 1000,2000, or a file of one.
    #[arg(long, value_name = "LIST|FILE", conflicts_with = "speed")]
    speeds: Option<String>,
    /// Somebody who computes beside a rank's workers, or beside one: from when to when (seconds) and with which duty (above
    /// 0, up to 1). May be repeated.
    #[arg(long = "neighbour", value_name = "RANK[.WORKER][:FROM-TO][:DUTY]", value_parser = neighbour::parse)]
    neighbours: Vec<Neighbour>,
    /// Where neighbours run: on the same vCPU, or on the other hardware thread of the core.
    #[arg(long, default_value = "vcpu", value_parser = ["vcpu", "core"])]
    beside: String,
    /// Speeds of hosts as they were measured, one host for each rank: CSV as `time_s,host,share`, `starttime,value`, `vm,value` or
    /// `name,percent,percent,...` every 300 s. --seed N begins with the N-th group of so many hosts.
    #[arg(long, value_name = "FILE")]
    hosts_trace: Option<PathBuf>,
    /// Seconds between two samples of a host, instead of what its trace says.
    #[arg(long, value_name = "SECONDS", requires = "hosts_trace", value_parser = values::seconds)]
    trace_step: Option<f64>,
    /// What iterations cost: all the same, or lognormal with this sigma and a mean of 1.
    #[arg(long, value_name = "constant|lognormal:SIGMA", default_value = "constant", value_parser = values::cost)]
    cost: values::Cost,
}

impl Options {
    /// The scenario described.
    pub(super) fn scenario(&self, seed: u64) -> Result<Scenario, Error> {
        let pool = Pool::new(self.iterations, vec![self.workers; self.ranks as usize]);
        let speeds = self.speeds(&pool)?;
        let neighbours = self.neighbour_shares(&pool)?;
        let hosts = self.host_shares(&pool, seed)?;
        let scenario = Scenario::new(NAME, pool, move || {
            let beside_neighbours = Shared::new(Box::new(speeds.clone()), neighbours.clone());
            Box::new(Shared::new(Box::new(beside_neighbours), hosts.clone()))
        });
        let costs = match self.cost {
            values::Cost::Constant => Costs::Equal,
            values::Cost::Lognormal(sigma) => Costs::lognormal(sigma, seed),
        };
        // The mean cost is 1, and to add up costs may take too long.
        self.check_size(scenario.ideal_s())?;
        Ok(Scenario { costs, ..scenario })
    }

    /// Refuses what cannot be simulated, or by nobody's patience; `ideal_s` is what the best schedule takes, about.
    fn check_size(&self, ideal_s: f64) -> Result<(), Error> {
        if !ideal_s.is_finite() {
            let words = "from some time on all speeds are 0, expected a worker that can end the pool";
            return Err(Error::Usage(words.to_owned()));
        }
        if ideal_s > IDEAL_MOST_S {
            return Err(Error::Usage(format!(
                "--iterations {:e}: even the best schedule takes {ideal_s:.0e} s, expected {IDEAL_MOST_S:e} s at most",
                self.iterations as f64
            )));
        }
        let workers = f64::from(self.ranks) * f64::from(self.workers);
        let iterations = self.iterations as f64;
        let (simulated, what) = match self.cost {
            values::Cost::Constant => ((ideal_s * workers / CHUNK_S).min(iterations), "chunks of 0.1 s"),
            values::Cost::Lognormal(_) => (iterations, "iterations of different costs"),
        };
        if simulated > SIMULATED_MOST {
            return Err(Error::Usage(format!(
                "--iterations {iterations:e}: {simulated:.0e} {what} to simulate, expected {SIMULATED_MOST:e} at most"
            )));
        }
        Ok(())
    }

    fn speeds(&self, pool: &Pool) -> Result<PerWorker, Error> {
        let (ranks, all) = (self.ranks as usize, pool.workers() as usize);
        let Some(list) = &self.speeds else {
            return Ok(PerWorker::new(&pool.workers, |_| Series::constant(self.speed)));
        };
        let speeds = values::speeds(list).map_err(Error::Usage)?;
        if speeds.len() != ranks && speeds.len() != all {
            return Err(Error::Usage(format!(
                "--speeds {list}: {} speeds, expected one for each of the {ranks} ranks or {all} workers",
                speeds.len()
            )));
        }
        let of_workers = speeds.len() == all;
        Ok(PerWorker::new(&pool.workers, |worker| {
            let index = worker.rank.index() * self.workers as usize + worker.number as usize;
            Series::constant(speeds[if of_workers { index } else { worker.rank.index() }])
        }))
    }

    fn neighbour_shares(&self, pool: &Pool) -> Result<PerWorker, Error> {
        for neighbour in &self.neighbours {
            if neighbour.rank.0 >= self.ranks {
                let (rank, last) = (neighbour.rank, self.ranks - 1);
                return Err(Error::Usage(format!("--neighbour {rank}: expected a rank from 0 to {last}")));
            }
            if let Some(worker) = neighbour.worker.filter(|&worker| worker >= self.workers) {
                let (rank, last) = (neighbour.rank, self.workers - 1);
                return Err(Error::Usage(format!(
                    "--neighbour {rank}.{worker}: expected a worker from 0 to {last}"
                )));
            }
        }
        let beside = if self.beside == "core" { Beside::Core } else { Beside::Vcpu };
        Ok(beside.shares(&pool.workers, &self.neighbours))
    }

    fn host_shares(&self, pool: &Pool, seed: u64) -> Result<PerWorker, Error> {
        let Some(file) = &self.hosts_trace else {
            return Ok(PerWorker::new(&pool.workers, |_| Series::constant(1.0)));
        };
        let mut hosts = host_trace::read(file, self.trace_step)?;
        let group = (u128::from(seed) * u128::from(self.ranks) % hosts.len() as u128) as usize;
        hosts.rotate_left(group);
        Ok(on_hosts(&pool.workers, &hosts))
    }
}
