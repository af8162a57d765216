//! Builds a pool on a cluster from options.

use lb_strategies::pool::Pool;
use virtual_cluster::{Costs, Scenario};

use super::compare::DESCRIBED;
use super::{cluster, values};
use crate::Error;

/// Largest number of ranges or iterations. One policy simulates as many in minutes.
const SIMULATED_MOST: f64 = 1e9;

/// Default length in seconds of a range of iterations under most policies.
const CHUNK_S: f64 = 0.1;

/// A pool.
#[derive(clap::Args)]
#[group(id = "described", multiple = true)]
#[command(next_help_heading = "Cluster")]
pub(super) struct Options {
    /// Iterations of the pool, as in 100000000 or 1e8.
    #[arg(long, value_name = "COUNT", default_value = "1e8", value_parser = values::count)]
    iterations: u64,
    /// The cost of iterations: all the same, or lognormal with this sigma and a mean of 1.
    #[arg(long, value_name = "constant|lognormal:SIGMA", default_value = "constant", value_parser = values::cost)]
    cost: values::Cost,
}

impl Options {
    /// The pool on this cluster.
    pub(super) fn scenario(&self, cluster: &cluster::Options, seed: u64) -> Result<Scenario, Error> {
        cluster.check_pairs()?;
        let pool = Pool::new(self.iterations, cluster.workers());
        let workers = f64::from(pool.workers());
        let scenario = Scenario::new(DESCRIBED, pool, cluster.vcpus(seed)?);
        let costs = match self.cost {
            values::Cost::Constant => Costs::Equal,
            values::Cost::Lognormal(sigma) => Costs::lognormal(sigma, seed),
        };
        // `ideal_s` uses the mean cost, 1, because adding up lognormal costs may take too long.
        self.check_size(cluster, scenario.ideal_s(), workers)?;
        Ok(Scenario { costs, ..scenario })
    }

    /// Refuses a pool that is too large to simulate. `ideal_s` is about the time of the best schedule.
    fn check_size(&self, cluster: &cluster::Options, ideal_s: f64, workers: f64) -> Result<(), Error> {
        cluster.check_ideal(ideal_s, "--iterations", self.iterations)?;
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
}
