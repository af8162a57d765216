//! Builds the scenario of a described program in supersteps.

use std::sync::Arc;

use lb_strategies::Choice;
use lb_strategies::pool::Nanos;
use lb_strategies::supersteps::Weights;
use virtual_cluster::{Exchange, StepProgram, StepScenario, Times, Wire};

use super::cluster::{Cluster, Defaults};
use super::{Description, Source, wrong};
use crate::Error;

/// Default number of units per worker.
const UNITS_PER_WORKER: u64 = 1000;
/// Default number of steps.
const STEPS: u64 = 500;
/// Largest number of units, and of steps.
const COUNT_MOST: u64 = 1_000_000_000_000;
/// Default bytes of a unit that all workers get, and that travel when it moves.
const PART_BYTES: u64 = 8;
const UNIT_BYTES: u64 = 32_768;
/// Default bytes per second of a worker's link.
const BANDWIDTH: f64 = 1.25e9;
/// Default time of a round trip, ns.
const RTT: Nanos = 100_000;
/// Largest number of messages where each worker sends to all. One policy simulates as many in minutes.
const SIMULATED_MOST: f64 = 1e9;

/// The ways in which parts reach all workers, by name.
const EXCHANGES: [(&str, Exchange); 5] = [
    ("direct", Exchange::Direct),
    ("ring", Exchange::Ring),
    ("gather", Exchange::Gather),
    ("blocking", Exchange::Blocking),
    ("doubling", Exchange::Doubling),
];

/// The program of a description.
pub(in super::super) fn scenario(
    description: &Description,
    source: &dyn Source,
) -> Result<StepScenario, Error> {
    let program = &description.program;
    program.generator(source)?;
    if description.network.jitter.is_some_and(|jitter| jitter > 0) {
        let what = "programs in supersteps have none, expected 0s";
        return Err(wrong(source, "network.jitter", &"", what));
    }
    let cluster = Cluster::new(description, source, Defaults::default(), program.per_second(source)?)?;
    cluster.check_pairs()?;
    let of_ranks = cluster.workers();
    let workers = of_ranks.iter().sum::<u32>() as usize;
    let units = program.units.unwrap_or(UNITS_PER_WORKER * workers as u64);
    let steps = program.steps.unwrap_or(STEPS);
    for (field, count) in [("program.units", units), ("program.steps", steps)] {
        if !(1..=COUNT_MOST).contains(&count) {
            return Err(wrong(source, field, &count, &format!("expected a number from 1 to {COUNT_MOST}")));
        }
    }
    let simulated = steps as f64 * (workers * workers) as f64;
    if simulated > SIMULATED_MOST {
        let what = format!(
            "{simulated:.0e} messages of {workers} workers to simulate, expected {SIMULATED_MOST:e} at most"
        );
        return Err(wrong(source, "program.steps", &steps, &what));
    }
    let name = program.exchange.as_deref().unwrap_or("direct");
    let Some((_, exchange)) = EXCHANGES.iter().find(|(known, _)| *known == name) else {
        let choice = Choice::new(name, EXCHANGES.iter().map(|(known, _)| *known));
        return Err(wrong(source, "program.exchange", &name, &format!("unknown value {choice}")));
    };
    let rtt = description.network.rtt.unwrap_or(RTT);
    let bytes_per_s = description.network.bandwidth_between_hosts.unwrap_or(BANDWIDTH);
    let wire = Wire { delay_s: rtt as f64 / 2e9, bytes_per_s };
    let step_program = StepProgram {
        steps,
        exchange: *exchange,
        part_bytes: program.part_bytes.unwrap_or(PART_BYTES) as f64,
        unit_bytes: program.unit_bytes.unwrap_or(UNIT_BYTES) as f64,
        link: wire,
        notify_s: wire.delay_s,
        ..StepProgram::new(Weights::Equal(units), workers)
    };
    cluster.check_all_compute()?;
    let times = Times::Vcpus(Arc::new(cluster.vcpus()?), of_ranks);
    let scenario = StepScenario { name: description.name(), program: step_program, times };
    cluster.check_work(units as f64 * steps as f64, "program.steps", steps)?;
    cluster.check_ideal(scenario.ideal_s(), "program.steps", steps)?;
    Ok(scenario)
}
