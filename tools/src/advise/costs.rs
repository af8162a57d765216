//! Gives a replay the costs of the runtime: as the trace shows them, and those that `caribou calibrate` measured.

use virtual_cluster::{Array, ArrayScenario, Bandwidths, CpuCosts, DecisionCost, Noise, Overheads, Traces};

use lb_strategies::MoveCost;

use super::program::Program;
use super::recording::Recording;

/// The costs of messages, syncs and decisions, and the cost of a move.
pub(super) fn of(
    recording: &Recording,
    program: &Program<'_>,
    array: &Array,
    seed: u64,
) -> (Overheads, MoveCost) {
    let hosts = recording.hosts.iter().copied().max().map_or(1, |last| last as usize + 1);
    let overheads = Overheads {
        bandwidths: Bandwidths {
            message_bytes: program.message_bytes,
            ranks_per_host: array.workers.len().div_ceil(hosts) as u32,
            ..Bandwidths::default()
        },
        decision: DecisionCost::PerChunk(recording.decision_ns),
        noise: Noise { relative_sd: recording.noise, seed },
        ..Overheads::default()
    };
    let Some(costs) = &recording.costs else { return (overheads, recording.move_cost) };
    let mut scenario = ArrayScenario::new("replay", array.clone(), || Box::new(Traces::constant(|_| 1.0)));
    scenario.overheads = overheads;
    costs.apply(&mut scenario);
    let overheads = &mut scenario.overheads;
    // The recorded handlers have these costs.
    overheads.message_cpu = 0;
    overheads.cpu = CpuCosts { iteration: 0.0, local_message: 0.0, message_byte: 0.0, ..overheads.cpu };
    (scenario.overheads, scenario.move_cost)
}
