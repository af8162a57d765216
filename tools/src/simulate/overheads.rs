//! Options of `caribou simulate array` for what messages and decisions cost, for time slices, and for errors of
//! measurements. By default they cost nothing, vCPUs are shared at any time, and measurements are exact.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lb_strategies::pool::Nanos;
use presentation::count_parser;

use super::cluster::RANKS_MOST;
use super::description::{Decision, Description};
use super::values;

/// The shortest time slice. Each slice is simulated, so shorter ones take very long.
const SLICE_MIN: Nanos = 10_000;

/// What a run pays beside the work of its chunks.
#[derive(clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Overheads")]
pub(super) struct OverheadOptions {
    /// Bytes a second that a host sends to other hosts, one message after another; if not given without limit.
    #[arg(long, value_name = "BYTES/S", value_parser = values::speed)]
    link_bandwidth: Option<f64>,
    /// Bytes a second that a rank sends to other ranks of its host; if not given without limit.
    #[arg(long, value_name = "BYTES/S", value_parser = values::speed)]
    host_bandwidth: Option<f64>,
    /// Ranks on each host, in order, for the two bandwidths.
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = count_parser(1..=RANKS_MOST))]
    ranks_per_host: u32,
    /// Bytes of a message from chunk to chunk, for the two bandwidths.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = count_parser(0..=1_000_000_000_000u64))]
    message_bytes: u64,
    /// CPU time of a worker to send, and again to receive, a message of a chunk to another rank, as in 500ns or 2us. Its
    /// latency is half of --rtt.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::time)]
    message_cpu: Nanos,
    /// Time of a decision for each chunk of the array, as in 50ns; or `measured`, the time that the strategy takes here, with
    /// which two runs differ.
    #[arg(long, value_name = "TIME|measured", default_value = "0s", value_parser = decision)]
    decision_cost: Decision,
    /// Time slice on a vCPU, as in 4ms: a worker and its neighbours run in turn, each at least so long. 0s if they share the
    /// vCPU at any time; otherwise 10us at least.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = slice)]
    time_slice: Nanos,
    /// Standard deviation of measured loads of chunks and clocks of workers, as a part of the true value from 0 to 1; by --seed.
    #[arg(long, value_name = "PART", default_value = "0", value_parser = part)]
    noise: f64,
    /// Costs of the runtime on a machine, as `caribou calibrate` writes them, instead of --message-cpu and --decision-cost.
    /// They replace --bandwidth, and with all ranks on one host also --rtt.
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["message_cpu", "decision_cost"])]
    costs: Option<PathBuf>,
}

/// The time of a decision.
pub(super) fn decision(text: &str) -> Result<Decision, String> {
    if text == "measured" {
        return Ok(Decision::Measured);
    }
    match values::time(text) {
        Ok(ns @ 0..=1_000_000_000) => Ok(Decision::PerChunk(ns)),
        _ => Err("expected measured, or a time up to 1s for each chunk, as in 50ns".to_owned()),
    }
}

/// A time slice, ns.
pub(super) fn slice(text: &str) -> Result<Nanos, String> {
    let slice = values::time(text)?;
    if (1..SLICE_MIN).contains(&slice) {
        return Err("expected 0s or a time from 10us on, as in 4ms".to_owned());
    }
    Ok(slice)
}

/// A part from 0 to 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1, as in 0.05".to_owned())
}

impl OverheadOptions {
    /// Writes the options into a description.
    pub(super) fn describe(&self, description: &mut Description) {
        description.network.bandwidth_between_hosts = self.link_bandwidth;
        description.network.bandwidth_within_host = self.host_bandwidth;
        description.network.message_bytes = Some(self.message_bytes);
        description.ranks_per_link = Some(self.ranks_per_host);
        description.costs.message_cpu = Some(self.message_cpu);
        description.costs.decision = Some(self.decision_cost);
        description.costs.time_slice = Some(self.time_slice);
        description.costs.noise = Some(self.noise);
        description.costs.calibration.clone_from(&self.costs);
    }
}

/// A clock of this machine, ns.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of a strategy is measured, if the user asks for that"
)]
pub(super) fn clock() -> Arc<dyn Fn() -> Nanos + Send + Sync> {
    let begin = Instant::now();
    Arc::new(move || begin.elapsed().as_nanos() as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_costs_a_time_for_each_chunk_or_what_is_measured() {
        assert_eq!(decision("50ns"), Ok(Decision::PerChunk(50)));
        assert_eq!(decision("measured"), Ok(Decision::Measured));
        for bad in ["2s", "50", "-1ns", "meas"] {
            let expected = "expected measured, or a time up to 1s for each chunk, as in 50ns";
            assert_eq!(decision(bad).unwrap_err(), expected, "{bad}");
        }
    }

    #[test]
    fn a_time_slice_is_none_or_not_too_short() {
        assert_eq!((slice("0s"), slice("4ms"), slice("10us")), (Ok(0), Ok(4_000_000), Ok(10_000)));
        assert_eq!(slice("1ns").unwrap_err(), "expected 0s or a time from 10us on, as in 4ms");
    }

    #[test]
    fn noise_is_a_part() {
        assert_eq!(part("0.05"), Ok(0.05));
        for bad in ["5%", "-0.1", "1.1", "nan"] {
            assert!(part(bad).is_err(), "{bad}");
        }
    }
}
