//! Computes figures of a program in supersteps: times of steps, new divisions of units, and dropped jobs. They come
//! from the records of rank 0, which may contain any numbers.

use caribou::trace::{Activity, StepRecord, StepWorker};
use lb_strategies::median;
use trace_reader::{RankTrace, Trace};

use super::page::{Cell, Table, columns, duration, plural};

/// Steps before and after a division that are compared.
const AROUND: usize = 20;
/// Fraction of waiting for the vCPU above which a note mentions it.
const FOR_VCPU_MIN: f64 = 0.1;
/// Number of shares that are listed.
const SHARES_MAX: usize = 8;

/// Explanation of some heads, for the user.
pub(crate) const WORDS: &str = "before, after: median time of a step in the 20 steps before and after, or fewer if \
    another division was there; copies: workers that compute each job; shares: units of each worker's job; copies before, shares before: in the step before";

/// A new division of the units.
pub(crate) struct Division<'t> {
    pub(crate) step: &'t StepRecord,
    /// The step before the new division, if it is recorded.
    last: Option<&'t StepRecord>,
    before_ns: Option<f64>,
    after_ns: Option<f64>,
}

impl Division<'_> {
    /// Returns whether the number of copies of each job changed.
    fn switches(&self) -> bool {
        self.last.is_some_and(|last| last.copies != self.step.copies)
    }
}

/// The new divisions of a run, in order.
pub(crate) fn divisions(trace: &Trace) -> Vec<Division<'_>> {
    let steps = &trace.steps;
    let places: Vec<usize> = (0..steps.len()).filter(|&place| steps[place].divided).collect();
    let division = |(number, &place): (usize, &usize)| {
        let from = number.checked_sub(1).map_or(0, |before| places[before]);
        let to = places.get(number + 1).copied().unwrap_or(steps.len());
        let of = |steps: &[StepRecord]| median(steps.iter().map(|step| long_ns(step) as f64).collect());
        Division {
            step: &steps[place],
            last: place.checked_sub(1).map(|last| &steps[last]),
            before_ns: of(&steps[from.max(place.saturating_sub(AROUND))..place]),
            after_ns: of(&steps[place..to.min(place.saturating_add(AROUND))]),
        }
    };
    places.iter().enumerate().map(division).collect()
}

/// Times at which work was divided anew, in order: syncs, or new divisions of a program in supersteps.
pub(crate) fn moments(trace: &Trace) -> impl Iterator<Item = u64> {
    let divided = trace.steps.iter().filter(|step| step.divided).map(|step| step.begin_ns);
    trace.syncs.iter().map(|sync| sync.at_ns).chain(divided)
}

/// Describes the time of steps and the effect of balancing in one sentence; none without recorded steps.
pub(crate) fn answer(trace: &Trace) -> Option<String> {
    let (divisions, all) = (divisions(trace), total(trace));
    let longs = || trace.steps.iter().map(|step| long_ns(step) as f64);
    let (longest, count) = (longs().fold(0.0, f64::max), trace.steps.len());
    let mean = (count > 0).then(|| longs().sum::<f64>() / count as f64)?;
    let mut says =
        format!("{}, {} in the mean, {} at most; ", plural(count, "step"), duration(mean), duration(longest));
    match (divisions.first(), divisions.last()) {
        (Some(first), Some(last)) => {
            let switches = match divisions.iter().filter(|division| division.switches()).count() {
                0 => String::new(),
                switches => format!(" ({switches} to other copies)"),
            };
            let moved = divisions.iter().fold(0u64, |sum, division| sum.saturating_add(division.step.moved));
            says += &format!(
                "{}{switches}, {} moved",
                plural(divisions.len(), "new division"),
                plural(moved as usize, "unit")
            );
            if let (Some(before), Some(after)) = (first.before_ns, last.after_ns) {
                // States the number of steps, because in few steps before the first division the program only warms up.
                let steps = trace.steps.iter().take_while(|step| !std::ptr::eq(*step, first.step)).count();
                says += &format!(
                    "; a step took {} in the {} before the first, {} after the last",
                    duration(before),
                    plural(steps.min(AROUND), "step"),
                    duration(after)
                );
            }
        }
        _ => says += "no new division",
    }
    if all.dropped > 0 {
        let mean = all.dropped_ns as f64 / all.dropped as f64;
        says += &format!(
            "; {} dropped, after {} in the mean: {}",
            plural(all.dropped as usize, "job"),
            duration(mean),
            in_vain(&all)
        );
    }
    Some(says)
}

/// Describes how much of the time in chunks was for dropped jobs; none without dropped jobs.
pub(crate) fn dropped(trace: &Trace) -> Option<String> {
    let all = total(trace);
    (all.dropped > 0).then(|| format!("time in chunks includes jobs that were dropped: {}", in_vain(&all)))
}

fn in_vain(all: &StepWorker) -> String {
    let share = all.dropped_ns as f64 / all.computing_ns.max(1) as f64;
    format!("{:.1} % of all computing", 100.0 * share)
}

/// Table with one row per new division.
pub(crate) fn divisions_table(trace: &Trace) -> Table {
    let heads = columns(
        "step | at_ns: at | copies_before: copies before | copies | shares_before: shares before | shares | moved | moving_ns: moving | step_before_ns: before | step_after_ns: after | reason",
    );
    let mut table = Table::new("divisions", "", &heads);
    let ns = |ns: Option<f64>| ns.map_or(Cell::Empty, Cell::Ns);
    for Division { step, last, before_ns, after_ns } in divisions(trace) {
        let moving_ns = step.workers.iter().map(|worker| worker.moving_ns).max().unwrap_or(0);
        table.row([
            Cell::Count(step.step),
            Cell::ns(step.begin_ns),
            last.map_or(Cell::Empty, |last| Cell::Count(last.copies.into())),
            Cell::Count(step.copies.into()),
            last.map_or(Cell::Empty, |last| Cell::Text(shares(&last.workers))),
            Cell::Text(shares(&step.workers)),
            Cell::Count(step.moved),
            Cell::ns(moving_ns),
            ns(before_ns),
            ns(after_ns),
            Cell::text_of(step.reason.as_deref().unwrap_or("")),
        ]);
    }
    table
}

/// Explanation for a program in supersteps of two figures that compare whole runs, not steps.
pub(crate) fn whole_run_text(balance: &str, waiting: &str) -> String {
    format!(
        "{balance} compares the workers' sums over the whole run: waiting within steps for workers that are slow in \
         turns counts as {waiting}"
    )
}

/// Lists the ranks on which workers often waited for their vCPUs.
pub(crate) fn for_vcpus(trace: &Trace) -> Option<String> {
    let (sums, workers) = (sums(trace), &trace.run.workers);
    let mut whose = Vec::new();
    for rank in &trace.ranks {
        let before: usize = workers.iter().take(rank.rank as usize).map(|&workers| workers as usize).sum();
        let of_rank = sums.iter().skip(before).take(rank.workers as usize);
        let waiting_ns: f64 = of_rank.map(|worker| worker.waiting_ns as f64).sum();
        let lost_ns = beside_handlers_ns(rank).min(waiting_ns);
        if lost_ns > FOR_VCPU_MIN * waiting_ns {
            whose.push(format!("{} of rank {}", duration(lost_ns), rank.rank));
        }
    }
    (!whose.is_empty())
        .then(|| format!("waiting of workers includes that for their vCPUs: {}", first(&whose, ", ")))
}

/// Time in ns that a rank did not have its vCPUs while none of its handlers ran, according to samples.
fn beside_handlers_ns(rank: &RankTrace) -> f64 {
    let sampled_ns: f64 =
        rank.samples.iter().map(|sample| sample.wait_ns as f64 + sample.steal_ns as f64).sum();
    let rows = rank.profiles.iter().flat_map(|profile| &profile.rows);
    let in_handlers = rows.filter(|row| row.activity == Activity::Lost).map(|row| row.total_ns() as f64);
    (sampled_ns - in_handlers.sum::<f64>()).max(0.0)
}

/// Table with one row per worker.
pub(crate) fn workers_table(trace: &Trace) -> Table {
    let heads = columns(
        "worker | units: units at the end | computing_ns: computing | waiting_ns: waiting | moving_ns: moving units | \
         dropped: jobs dropped | dropped_ns: after computing them for",
    );
    let mut table = Table::new("step_workers", "Supersteps: all workers", &heads);
    for (worker, sum) in sums(trace).into_iter().enumerate() {
        table.row([
            Cell::Count(worker as u64),
            Cell::Count(sum.units),
            Cell::ns(sum.computing_ns),
            Cell::ns(sum.waiting_ns),
            Cell::ns(sum.moving_ns),
            Cell::Count(sum.dropped),
            Cell::ns(sum.dropped_ns),
        ]);
    }
    table
}

/// Table with one row per step, for JSON and CSV.
pub(crate) fn steps_table(trace: &Trace) -> Table {
    let heads =
        columns("step | at_ns | step_ns | slowest_ns | imbalance | copies | moved | dropped | dropped_ns");
    let mut table = Table::new("steps", "", &heads);
    for step in &trace.steps {
        let sum = step.workers.iter().fold(StepWorker::default(), plus);
        let slowest = step.workers.iter().map(|worker| worker.computing_ns).max().unwrap_or(0);
        table.row([
            Cell::Count(step.step),
            Cell::ns(step.begin_ns),
            Cell::ns(long_ns(step)),
            Cell::ns(slowest),
            imbalance(step).map_or(Cell::Empty, Cell::Number),
            Cell::Count(step.copies.into()),
            Cell::Count(step.moved),
            Cell::Count(sum.dropped),
            Cell::ns(sum.dropped_ns),
        ]);
    }
    table.data_only()
}

/// Time of a step in ns.
pub(crate) fn long_ns(step: &StepRecord) -> u64 {
    step.end_ns.saturating_sub(step.begin_ns)
}

/// Time in `compute` of the slowest worker over that of the average worker; none if no worker computed.
pub(crate) fn imbalance(step: &StepRecord) -> Option<f64> {
    imbalance_of_all(std::slice::from_ref(step))
}

/// Sum of the slowest times over sum of the average times of all steps, because each step waits for its slowest worker.
pub(crate) fn imbalance_of_all(steps: &[StepRecord]) -> Option<f64> {
    let (mut slowest, mut mean) = (0.0, 0.0);
    for step in steps {
        let times = || step.workers.iter().map(|worker| worker.computing_ns as f64);
        slowest += times().fold(0.0, f64::max);
        mean += times().sum::<f64>() / step.workers.len().max(1) as f64;
    }
    (mean > 0.0).then(|| slowest / mean)
}

fn shares(workers: &[StepWorker]) -> String {
    let units: Vec<String> = workers.iter().map(|worker| worker.units.to_string()).collect();
    first(&units, " ")
}

/// Lists the first texts, and the number of further ones.
fn first(texts: &[String], between: &str) -> String {
    let told = &texts[..texts.len().min(SHARES_MAX)];
    match texts.len() - told.len() {
        0 => told.join(between),
        more => format!("{} and {more} more", told.join(between)),
    }
}

/// Sums of each worker over all steps, with its units in the last step.
fn sums(trace: &Trace) -> Vec<StepWorker> {
    let workers = trace.steps.iter().map(|step| step.workers.len()).max().unwrap_or(0);
    let mut sums = vec![StepWorker::default(); workers];
    for step in &trace.steps {
        for (sum, worker) in sums.iter_mut().zip(&step.workers) {
            *sum = plus(*sum, worker);
        }
    }
    sums
}

fn total(trace: &Trace) -> StepWorker {
    sums(trace).iter().fold(StepWorker::default(), plus)
}

fn plus(sum: StepWorker, worker: &StepWorker) -> StepWorker {
    StepWorker {
        units: worker.units,
        computing_ns: sum.computing_ns.saturating_add(worker.computing_ns),
        waiting_ns: sum.waiting_ns.saturating_add(worker.waiting_ns),
        moving_ns: sum.moving_ns.saturating_add(worker.moving_ns),
        dropped: sum.dropped.saturating_add(worker.dropped),
        dropped_ns: sum.dropped_ns.saturating_add(worker.dropped_ns),
    }
}
