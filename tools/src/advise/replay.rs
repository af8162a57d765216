//! Runs the recorded program in virtual time, under the balancer of production, with one change or none.

use std::sync::Arc;

use lb_strategies::Period;
use lb_strategies::pool::{Nanos, SECOND};
use virtual_cluster::{Array, PerWorker, RunArray, Series, Shared, Sliced, Traces, Vcpus, Worker, ideal_s};

use super::change::Change;
use super::costs;
use super::program::Program;
use super::recording::{Recording, Vcpu};

/// Additional CPU time of a message where workers share a rank: they take locks that a single worker does not need.
/// Measured with `stencil2d` on two vCPUs, ns.
const SHARED_RANK_NS: f64 = 180.0;

/// How others on a vCPU run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// At any time, so a worker is slower by its share.
    Smooth,
    /// In turn with the worker, each for this time, ns, also while the worker has nothing to do.
    Turns(Nanos),
}

/// The conditions of one replay, the same for all changes that are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) sharing: Sharing,
    /// The part of the run at which the replay begins. It goes on from the start after the end.
    pub(super) shift: f64,
    /// Seed of the errors of measurements.
    pub(super) seed: u64,
    /// Whether workers record and write a trace, as they did. Only for chunks of the recorded size.
    pub(super) records: bool,
}

/// The outcome of one replay.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) time_s: f64,
    pub(super) moves: u64,
    /// By rank, the part of the time in which its workers had nothing to do.
    pub(super) idle: Vec<f64>,
    /// Time of each step, s.
    pub(super) steps_s: Vec<f64>,
}

/// Replays the run with a change. None if its chunks cannot be joined so far, or are fewer than the ranks.
pub(super) fn replay(recording: &Recording, change: &Change, conditions: Conditions) -> Option<Outcome> {
    let program = Program::new(recording, change.size)?;
    let ranks = change.workers.len();
    if (program.chunks() as usize) < ranks {
        return None;
    }
    let steps = recording.steps();
    let first = (conditions.shift * steps as f64) as usize;
    let array = Array {
        chunks: program.chunks(),
        iterations: steps as u64,
        period: match change.period {
            Period::Steps(iterations) => {
                Period::Steps(iterations.saturating_mul(recording.steps_per_iteration))
            }
            windows => windows,
        },
        state_bytes: program.state_bytes,
        workers: change.workers.clone(),
    };
    let shares_ranks =
        change.workers.iter().zip(&recording.workers).any(|(now, recorded)| *now > 1 && *recorded == 1);
    let lock_ns = if shares_ranks { SHARED_RANK_NS } else { 0.0 };
    let (overheads, move_cost) = costs::of(recording, &program, &array, conditions.seed);
    let mut vcpus = vcpus(recording, &change.workers, conditions);
    let run = RunArray::new(&array, Arc::clone(&change.strategy), &mut *vcpus)
        .links(recording.latency_ns)
        .move_cost(move_cost)
        .overheads(&overheads)
        .homes(&program.homes_on(ranks))
        .work(|chunk, step| match (step as usize + first, conditions.records) {
            (step, true) => program.recorded_work(chunk, step),
            (step, false) => program.work(chunk, step, lock_ns),
        })
        .exchange(|chunk| program.sends_to[chunk as usize].clone())
        .run();
    let time = run.makespan().max(1);
    let mut busy = run.busy.iter();
    let idle = change.workers.iter().map(|&workers| {
        let busy: Nanos = busy.by_ref().take(workers as usize).sum();
        (1.0 - busy as f64 / (time as f64 * f64::from(workers))).max(0.0)
    });
    Some(Outcome {
        time_s: time as f64 / SECOND as f64,
        moves: run.moves(),
        idle: idle.collect(),
        steps_s: run.iteration_times().iter().map(|&ns| ns as f64 / SECOND as f64).collect(),
    })
}

/// The time that the best placement would take if chunks could be divided and never waited for each other, s.
pub(super) fn bound_s(recording: &Recording) -> f64 {
    let conditions = Conditions { sharing: Sharing::Smooth, shift: 0.0, seed: 0, records: false };
    let mut vcpus = vcpus(recording, &recording.workers, conditions);
    let workers =
        lb_strategies::virtual_time::vcpus::all_workers(&recording.workers).map(|worker| (worker, 0));
    ideal_s(&workers.collect::<Vec<(Worker, Nanos)>>(), &mut *vcpus, recording.work_s())
}

/// The vCPUs of ranks with these workers.
fn vcpus(recording: &Recording, workers: &[u32], conditions: Conditions) -> Box<dyn Vcpus> {
    let of = |place: Option<usize>| match place.map(|rank| &recording.vcpus[rank]) {
        Some(vcpu) => (vcpu.speed, series(vcpu, recording.took_s, conditions)),
        None => (mean_speed(recording), Series::constant(mean_share(recording))),
    };
    let all: Vec<Vec<(f64, Series)>> =
        places(recording, workers).into_iter().map(|rank| rank.into_iter().map(of).collect()).collect();
    let shares = PerWorker::new(workers, |worker| all[worker.rank.index()][worker.number as usize].1.clone());
    let clocks = Traces::constant(move |worker: Worker| all[worker.rank.index()][worker.number as usize].0);
    let shared = Box::new(Shared::new(Box::new(clocks), shares));
    match conditions.sharing {
        Sharing::Turns(slice) => Box::new(Sliced::new(shared, slice)),
        Sharing::Smooth => shared,
    }
}

/// By rank and worker, the recorded rank whose vCPU it has; none for a vCPU that the run did not have.
fn places(recording: &Recording, workers: &[u32]) -> Vec<Vec<Option<usize>>> {
    let recorded: Vec<usize> = recording
        .workers
        .iter()
        .enumerate()
        .flat_map(|(rank, &workers)| std::iter::repeat_n(rank, workers as usize))
        .collect();
    let mut next = recorded.into_iter();
    workers.iter().map(|&count| (0..count).map(|_| next.next()).collect()).collect()
}

fn mean_speed(recording: &Recording) -> f64 {
    recording.vcpus.iter().map(|vcpu| vcpu.speed).sum::<f64>() / recording.vcpus.len().max(1) as f64
}

fn mean_share(recording: &Recording) -> f64 {
    let shares = recording.vcpus.iter().map(|vcpu| vcpu.mean_share(recording.took_s));
    shares.sum::<f64>() / recording.vcpus.len().max(1) as f64
}

/// The share of a vCPU from the shift on. After the end of the recorded run it is the mean.
fn series(vcpu: &Vcpu, took_s: f64, conditions: Conditions) -> Series {
    let from_s = conditions.shift * took_s;
    let part = if conditions.records { 1.0 - vcpu.flush } else { 1.0 };
    let at = |place: usize| part * vcpu.shares[place].1;
    let first = vcpu.shares.iter().rposition(|&(begin, _)| begin <= from_s).unwrap_or(0);
    let mut series = Series::constant(at(first));
    for place in first + 1..vcpu.shares.len() {
        series = series.then(vcpu.shares[place].0 - from_s, at(place));
    }
    for place in 0..first {
        series = series.then(vcpu.shares[place].0 + took_s - from_s, at(place));
    }
    series.then(took_s, part * vcpu.mean_share(took_s))
}
