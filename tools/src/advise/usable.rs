//! Tells which traces cannot be replayed, with what to record instead, and which can with less certainty.

use caribou::trace::Shape;
use trace_reader::Trace;

use super::steps::Steps;
use crate::Error;
use crate::trace::page::plural;

/// How to record a run for this command.
const RECORD: &str = "record the run with CARIBOU_TRACE=DIR and without CARIBOU_TRACE_FILTER";
/// The largest number of workers that is replayed.
const WORKERS_MAX: u64 = 100_000;
/// The least part of the CPU time that the replayed chunks should have.
const PART_MIN: f64 = 0.95;
/// The least part of all pairs of chunk and step in which a chunk should compute.
const FILLED_MIN: f64 = 0.2;
/// The least number of steps from which advice follows.
const STEPS_MIN: usize = 10;

/// Refuses a trace that cannot be replayed.
pub(super) fn check(trace: &Trace) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::Usage(format!("{}: {why}", trace.path.display())));
    match trace.run.shape {
        Shape::Arrays => {}
        Shape::Pools => {
            return refuse(
                "the run is of a pool, which has no chunks to place: `caribou simulate pool` compares its policies".into(),
            );
        }
        Shape::Supersteps => {
            return refuse(
                "the run is of a program in supersteps, which has no chunks to place: `caribou simulate steps` compares \
                 its policies"
                    .into(),
            );
        }
    }
    if trace.ranks.len() != trace.run.ranks as usize
        || trace.ranks.iter().zip(0..).any(|(rank, number)| rank.rank != number)
    {
        let (found, all) = (trace.ranks.len(), trace.run.ranks);
        return refuse(format!(
            "it has the files of {found} of {all} ranks, expected those of all: name the directory of the run"
        ));
    }
    let workers: u64 = trace.ranks.iter().map(|rank| u64::from(rank.workers)).sum();
    if workers > WORKERS_MAX {
        return refuse(format!("the run has {workers} workers, expected {WORKERS_MAX} at most"));
    }
    if trace.events() == 0 {
        return refuse(format!("it has no events, only profiles: {RECORD}"));
    }
    let filter = &trace.run.filter;
    if !filter.is_empty() && !filter.split(',').any(|word| matches!(word, "all" | "chunks")) {
        return refuse(format!("CARIBOU_TRACE_FILTER was `{filter}`, without handlers of chunks: {RECORD}"));
    }
    if trace.run.arrows > 1 {
        let one_in = trace.run.arrows;
        return refuse(format!(
            "one in {one_in} messages was recorded, and steps follow from all messages: {RECORD}"
        ));
    }
    if trace.run.arrows == 0 && !filter.is_empty() {
        return refuse(format!(
            "CARIBOU_TRACE_FILTER was `{filter}`, without messages, from which steps follow: {RECORD}"
        ));
    }
    Ok(())
}

/// Reasons for which a replay is less certain, in words that follow "because".
pub(super) fn doubts(trace: &Trace, steps: &Steps, part: f64) -> Vec<String> {
    let mut doubts = Vec::new();
    let unfinished = trace.ranks.iter().filter(|rank| rank.end.is_none()).count();
    if unfinished > 0 {
        doubts.push(format!("the trace of {} was cut off", plural(unfinished, "rank")));
    }
    if trace.dropped() > 0 {
        doubts.push(format!("{} events were dropped", trace.dropped()));
    }
    if let Some(failed) =
        trace.ranks.iter().filter_map(|rank| rank.end.as_ref()).find_map(|end| end.failed.as_ref())
    {
        doubts.push(format!("the run failed: {failed}"));
    }
    if part < PART_MIN {
        doubts.push(format!("only {:.0} % of the CPU time is of chunks that are replayed", 100.0 * part));
    }
    let cells = steps.work.len() * steps.homes.len();
    let filled = steps.work.iter().flatten().filter(|&&ns| ns > 0.0).count();
    if (filled as f64) < FILLED_MIN * cells as f64 {
        doubts.push(
            "chunks compute on few of the steps that messages show, so the program may have no common steps"
                .into(),
        );
    }
    if steps.work.len() < STEPS_MIN {
        doubts.push(format!("the run has only {}", plural(steps.work.len(), "step")));
    }
    if steps.is_cut {
        doubts.push(format!(
            "only the first {} are replayed, to take less time",
            plural(steps.work.len(), "step")
        ));
    }
    if trace.run.hosts.windows(2).any(|pair| pair[0] != pair[1]) {
        doubts
            .push("ranks are on several hosts, between which only the time of a message is modelled".into());
    }
    if trace.ranks.iter().any(|rank| rank.samples.is_empty()) {
        doubts.push("the run was too short for samples of its vCPUs".into());
    }
    doubts
}
