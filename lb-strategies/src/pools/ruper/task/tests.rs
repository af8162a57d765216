//! Tests a task by computed examples, and its invariants under any reports of its workers.

use super::*;
use crate::pools::machine::SECOND;
use proptest::prelude::*;

const A: WorkerId = WorkerId(0);
const B: WorkerId = WorkerId(1);
const C: WorkerId = WorkerId(2);

fn settings(more: &str) -> Settings {
    Settings::of(&format!("t-min=20,{more}"))
}

/// Total 1000, at 100 s. A has done 100 at 10/s, as of 90 s; B has done 60 at 5/s, as of 95 s; C has finished 40.
fn three_workers(settings: &Settings) -> Task {
    let mut task = Task::new(settings, 1000, 3);
    let starts = [(A, 80, 100, 90), (B, 83, 60, 95), (C, 80, 40, 90)];
    for (worker, start, done, reported) in starts {
        task.start(start * SECOND, worker).unwrap();
        task.report(reported * SECOND, worker, done, Report::Periodic).unwrap();
    }
    task.workers[2].end();
    task
}

fn quotas(task: &Task) -> Vec<u64> {
    task.workers.iter().map(|worker| worker.assigned).collect()
}

#[test]
fn a_rebalance_shares_what_is_left_by_speed_and_adds_up() {
    let mut task = three_workers(&settings(""));
    assert_eq!((task.workers[0].speed(), task.workers[1].speed()), (10.0, 5.0));
    assert_eq!((task.registered(), task.predicted(100 * SECOND)), (200, 325));
    task.workers[2].assigned = 40;
    task.rebalance(100 * SECOND, Urgency::Usual);
    assert_eq!((task.forecast.eta, task.forecast.remaining), (45.0, 800));
    assert_eq!(quotas(&task), [633, 327, 40]);
}

/// Shares of the rest, computed from counts of different ages, end at different times.
#[test]
fn quotas_based_on_registered_counts_end_as_far_apart_as_the_reports_were() {
    let mut task = three_workers(&settings(""));
    task.rebalance(100 * SECOND, Urgency::Usual);
    let ends = [(A, 90.0, 100.0, 10.0), (B, 95.0, 60.0, 5.0)]
        .map(|(worker, reported, done, speed)| reported + (task.quota(worker) as f64 - done) / speed);
    assert!((ends[0] - 143.3).abs() < 0.05 && (ends[1] - 148.4).abs() < 0.05, "{ends:?}");
}

#[test]
fn another_total_moves_the_end_and_back() {
    for (total, remaining, eta) in [(1300, 1100, 61.875), (700, 500, 28.125), (100, 0, 0.0)] {
        let mut task = three_workers(&settings(""));
        task.rebalance(100 * SECOND, Urgency::Usual);
        task.set_total(total);
        assert_eq!((task.forecast.remaining, task.forecast.eta), (remaining, eta));
        task.set_total(1000);
        if remaining > 0 {
            assert_eq!((task.total(), task.forecast.remaining, task.forecast.eta), (1000, 800, 45.0));
        }
    }
}

#[test]
fn the_first_reason_to_stay_is_the_one_given() {
    let mut task = Task::new(&settings(""), 40, 2);
    assert_eq!(task.finish(A), Err(TaskError::NotStarted));
    task.start(0, A).unwrap();
    task.start(0, B).unwrap();
    task.report(SECOND, A, 15, Report::Final).unwrap();
    assert_eq!(task.finish(A), Ok(Finish::Denied(Denial::MoreWork)));
    task.report(2 * SECOND, A, 20, Report::Final).unwrap();
    assert_eq!(task.finish(A), Ok(Finish::Denied(Denial::Rebalance)), "no rebalance yet");
    task.report(2 * SECOND, B, 20, Report::Final).unwrap();
    task.rebalance(2 * SECOND, Urgency::Usual);
    assert_eq!(task.finish(A), Ok(Finish::Denied(Denial::BalancePending)));
    assert!(task.take_finish_raised() && !task.take_finish_raised());
    task.balance_over();
    assert_eq!(task.finish(A), Ok(Finish::Release));
    assert_eq!(task.finish(A), Err(TaskError::Finished));
    assert_eq!(task.finish(C), Err(TaskError::WorkerOutOfRange));
}

#[test]
fn a_remainder_goes_to_the_first_workers() {
    assert_eq!(quotas(&Task::new(&settings(""), 10, 4)), [3, 3, 2, 2]);
}

#[test]
fn a_final_report_leaves_the_interval_and_one_too_soon_keeps_it() {
    let mut task = Task::new(&settings(""), 1000, 1);
    task.start(0, A).unwrap();
    assert_eq!(task.report_at(A), 200 * SECOND);
    task.report(100 * SECOND, A, 10, Report::Final).unwrap();
    assert_eq!(task.report_at(A), 300 * SECOND);
    task.report(300 * SECOND, A, 30, Report::Periodic).unwrap();
    assert_eq!(task.report_at(A), 510 * SECOND);
    task.report(300 * SECOND + 1, A, 31, Report::Periodic).unwrap();
    assert_eq!(task.report_at(A), 510 * SECOND + 1);
}

#[test]
fn rebalances_keep_their_distance_unless_forced() {
    let mut task = three_workers(&settings(""));
    task.rebalance(100 * SECOND, Urgency::Usual);
    assert_eq!(task.rebalance_at(), 400 * SECOND);
    task.rebalance(100 * SECOND + 1, Urgency::Usual);
    assert_eq!((task.rebalances(), task.rebalance_at()), (1, 101 * SECOND));
    task.rebalance(100 * SECOND + 1, Urgency::Forced);
    assert_eq!((task.rebalances(), task.rebalance_at()), (2, 400 * SECOND + 1));
}

/// Near the end quotas stay (paper, §2.1). While the balance between ranks goes on, they do not, and the task asks to
/// finish (paper, §2.2).
#[test]
fn near_the_end_quotas_stay_once_the_balance_between_ranks_is_over() {
    let mut task = three_workers(&Settings::of("t-min=60"));
    task.rebalance(100 * SECOND, Urgency::Usual);
    assert!(task.take_finish_raised());
    let before = quotas(&task);
    task.balance_over();
    task.report(110 * SECOND, A, 400, Report::Periodic).unwrap();
    task.rebalance(110 * SECOND, Urgency::Usual);
    assert_eq!(quotas(&task), before);
    assert!(!task.take_finish_raised());
    task.rebalance(110 * SECOND, Urgency::Forced);
    assert_ne!(quotas(&task), before);
}

/// A worker keeps the iterations that it is executing, unless iterations are interchangeable.
#[test]
fn a_worker_is_relieved_of_what_it_is_at_only_if_iterations_are_fungible() {
    for (counts, expected) in [("indexed", [700, 260, 40]), ("fungible", [633, 327, 40])] {
        let mut task = three_workers(&settings(&format!("counts={counts}")));
        task.took(A, 600);
        task.workers[2].assigned = 40;
        task.rebalance(100 * SECOND, Urgency::Usual);
        assert_eq!(quotas(&task), expected, "{counts}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start(WorkerId),
    /// Takes iterations within the quota, and reports the earlier ones.
    Report(WorkerId, u64),
    Rebalance,
    Total(u64),
    Finish(WorkerId),
}

fn worker() -> impl Strategy<Value = WorkerId> {
    (0..5u32).prop_map(WorkerId)
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        worker().prop_map(Step::Start),
        (worker(), 0..300u64).prop_map(|(worker, iterations)| Step::Report(worker, iterations)),
        (worker(), 0..300u64).prop_map(|(worker, iterations)| Step::Report(worker, iterations)),
        Just(Step::Rebalance),
        (0..3000u64).prop_map(Step::Total),
        worker().prop_map(Step::Finish),
    ];
    prop::collection::vec((0..50 * SECOND, step), 0..60)
}

fn holds(task: &Task) -> Result<(), TestCaseError> {
    let working = task.workers.iter().filter(|worker| worker.is_working());
    let finished = task.workers.iter().filter(|worker| worker.stage == Stage::Finished);
    prop_assert!(working.clone().all(|worker| worker.assigned >= worker.done.max(worker.taken)));
    let floors: u64 = working.clone().map(|worker| worker.taken).sum();
    let done: u64 = finished.map(|worker| worker.done).sum();
    let assigned = working.clone().map(|worker| worker.assigned).sum::<u64>() + done;
    prop_assert_eq!(assigned, task.total.max(floors + done));
    Ok(())
}

proptest! {
    #[test]
    fn after_a_rebalance_or_a_late_start_quotas_add_up_to_the_total(steps in steps(), fungible: bool) {
        let settings = settings(if fungible { "counts=fungible" } else { "" });
        let mut task = Task::new(&settings, 1000, 5);
        let (mut now, mut over) = (0, false);
        for (wait, step) in steps {
            now += wait;
            match step {
                Step::Start(worker) => {
                    let absent = task.stage(worker) == Stage::Absent;
                    prop_assert_eq!(task.start(now, worker).is_ok(), absent);
                    if absent && task.rebalances() > 0 {
                        holds(&task)?;
                    }
                }
                Step::Report(worker, iterations) => {
                    let Worker { assigned, done, taken, .. } = task.workers[worker.index()];
                    let before = task.clone();
                    if task.report(now, worker, done.max(taken), Report::Periodic).is_ok() {
                        task.took(worker, iterations.min(assigned.saturating_sub(done.max(taken))));
                    } else {
                        prop_assert_eq!(quotas(&task), quotas(&before));
                    }
                }
                Step::Rebalance => {
                    let before = task.rebalances();
                    task.rebalance(now, if over { Urgency::Forced } else { Urgency::Usual });
                    if task.rebalances() > before {
                        prop_assert!(!task.forecast.eta.is_nan());
                        holds(&task)?;
                    }
                }
                Step::Total(total) => {
                    // No rank is assigned less than it was granted.
                    let taken: u64 = task.workers.iter().map(|worker| worker.taken).sum();
                    task.set_total(total.max(taken));
                }
                Step::Finish(worker) => {
                    let before = task.clone();
                    if task.finish(worker) == Ok(Finish::Release) {
                        let worker = &before.workers[worker.index()];
                        prop_assert!(worker.done >= worker.assigned && before.forecast.eta <= 20.0 && over);
                    } else if now % 4 == 0 {
                        over = true;
                        task.balance_over();
                    }
                }
            }
        }
    }
}
