//! Builds the scenario of a described pool of iterations.

use lb_strategies::pool::Pool;
use virtual_cluster::{Costs, Scenario};

use super::array::set_network;
use super::cluster::{Cluster, Defaults};
use super::{Description, Source, wrong};
use crate::Error;
use crate::simulate::values;

/// Largest number of ranges or iterations. One policy simulates as many in minutes.
const SIMULATED_MOST: f64 = 1e9;
/// Default length in seconds of a range of iterations under most policies.
const CHUNK_S: f64 = 0.1;
/// Default number of iterations.
const ITERATIONS: u64 = 100_000_000;

/// The pool of a description.
pub(in super::super) fn scenario(description: &Description, source: &dyn Source) -> Result<Scenario, Error> {
    let program = &description.program;
    program.generator(source)?;
    let cluster = Cluster::new(description, source, Defaults::default(), program.per_second(source)?)?;
    cluster.check_pairs()?;
    let pool = Pool::new(program.iterations.unwrap_or(ITERATIONS), cluster.workers());
    let text = program.cost.as_deref().unwrap_or("constant");
    let cost =
        values::cost(text).map_err(|what| wrong(source, "program.cost", &format!("{text:?}"), &what))?;
    let iterations = pool.iterations;
    let scenario = Scenario::new(description.name(), pool, cluster.vcpus()?);
    cluster.check_work(iterations as f64, "program.iterations", iterations)?;
    let costs = match cost {
        values::Cost::Constant => Costs::Equal,
        values::Cost::Lognormal(sigma) => Costs::lognormal(sigma, description.seed()),
    };
    // `ideal_s` uses the mean cost, 1, because adding up lognormal costs may take too long.
    check_size(&scenario, &cluster, cost, source)?;
    let mut scenario = Scenario { costs, ..scenario };
    set_network(description, &mut scenario.network);
    Ok(scenario)
}

/// Refuses a pool that is too large to simulate.
fn check_size(
    scenario: &Scenario,
    cluster: &Cluster<'_>,
    cost: values::Cost,
    source: &dyn Source,
) -> Result<(), Error> {
    let (ideal_s, count) = (scenario.ideal_s(), scenario.pool.iterations);
    cluster.check_ideal(ideal_s, "program.iterations", count)?;
    let workers = f64::from(scenario.pool.workers());
    let (simulated, what) = match cost {
        values::Cost::Constant => ((ideal_s * workers / CHUNK_S).min(count as f64), "chunks of 0.1 s"),
        values::Cost::Lognormal(_) => (count as f64, "iterations of different costs"),
    };
    if simulated > SIMULATED_MOST {
        let what = format!("{simulated:.0e} {what} to simulate, expected {SIMULATED_MOST:e} at most");
        return Err(wrong(source, "program.iterations", &format!("{:e}", count as f64), &what));
    }
    Ok(())
}
