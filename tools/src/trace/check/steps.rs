//! Checks the records of supersteps: each by itself, and compared with the record before it.

use caribou::lb::supersteps::Division;
use caribou::trace::{Shape, StepRecord};
use lb_strategies::supersteps::row::moved;
use trace_reader::Trace;

use super::finding::{FindingLocation, Findings, Severity};

const STEP: (Severity, &str) = (Severity::Wrong, "step record that cannot be");

/// Checks all steps. `whole` means that the trace is complete, so that no step may be missing.
pub(super) fn look(trace: &Trace, whole: bool, findings: &mut Findings) {
    let workers = trace.run.workers.iter().fold(0u64, |sum, &workers| sum + u64::from(workers)) as usize;
    let file = trace.ranks.first().map_or(&trace.path, |rank| &rank.path);
    let mut before: Option<&StepRecord> = None;
    for step in &trace.steps {
        let mut faults = of_one(step, workers);
        if trace.run.shape != Shape::Supersteps {
            faults.push("is of a program without steps".into());
        }
        // A record that is faulty by itself is not compared.
        if faults.is_empty() {
            faults.extend(place(step, before, whole));
            faults.extend(before.and_then(|before| shares(step, before)));
        }
        faults.into_iter().for_each(|why| findings.add(STEP, file, FindingLocation::Step(step.step), || why));
        before = Some(step);
    }
}

/// Faults of a record by itself.
fn of_one(step: &StepRecord, workers: usize) -> Vec<String> {
    let mut faults = Vec::new();
    if step.end_ns < step.begin_ns {
        faults.push(format!("began at {} ns and ended at {} ns", step.begin_ns, step.end_ns));
    }
    if step.workers.len() != workers {
        faults.push(format!("has {} workers, the run had {workers}", step.workers.len()));
    }
    if !(1..=workers as u64).contains(&u64::from(step.copies)) {
        faults.push(format!("has {} copies for {workers} workers", step.copies));
    }
    let moved = step.moved > 0 || step.workers.iter().any(|worker| worker.moving_ns > 0);
    if !step.divided && (moved || step.reason.is_some()) {
        faults.push(format!("moved {} units without a new division", step.moved));
    }
    for (number, worker) in step.workers.iter().enumerate() {
        let (jobs, ns) = (worker.dropped, worker.dropped_ns);
        if jobs > 0 && step.copies < 2 {
            faults.push(format!("worker {number} dropped {jobs} jobs, of which no worker had a copy"));
        } else if ns > worker.computing_ns || jobs == 0 && ns > 0 {
            let all_ns = worker.computing_ns;
            faults.push(format!("worker {number} computed {jobs} jobs for {ns} ns and dropped them, and computed {all_ns} ns in all"));
        }
    }
    faults
}

/// Fault of the number or time of a record, compared with the record before it.
fn place(step: &StepRecord, before: Option<&StepRecord>, whole: bool) -> Option<String> {
    let Some(before) = before else {
        let begins = step.step == 0 || step.restarted;
        return (whole && !begins).then(|| "is the first that is recorded".into());
    };
    if before.step == step.step {
        return Some("is recorded twice".into());
    }
    if step.begin_ns < before.end_ns {
        return Some(format!("began at {} ns, before step {} ended", step.begin_ns, before.step));
    }
    (whole && step.step != before.step + 1).then(|| format!("follows step {}", before.step))
}

/// Fault of the shares of a step, compared with those of the step before it.
fn shares(step: &StepRecord, before: &StepRecord) -> Option<String> {
    let all = |step: &StepRecord| step.workers.iter().map(|worker| u128::from(worker.units)).sum::<u128>();
    let (units, old_units) = (all(step), all(before));
    if units != old_units {
        return Some(format!("divides {units} units, and there were {old_units}"));
    }
    // If steps are missing in between, there may have been another division.
    let next = before.step.checked_add(1) == Some(step.step);
    let comparable = next && before.workers.len() == step.workers.len();
    if !comparable || units * step.workers.len() as u128 > u128::from(u64::MAX) {
        return None;
    }
    let division = |step: &StepRecord| Division {
        units: step.workers.iter().map(|worker| worker.units).collect(),
        copies: step.copies,
    };
    let (old, new) = (division(before), division(step));
    if !step.divided && old != new {
        return Some("has other shares than the step before it without a new division".into());
    }
    let between = moved(&old, &new);
    let said = step.moved;
    (between != said)
        .then(|| format!("moved {said} units, between its shares and those before are {between}"))
}
