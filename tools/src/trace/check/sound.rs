//! Runs all checks of a trace in one pass over its events.

use trace_reader::Trace;

use super::chunk_locations::ChunkLocations;
use super::finding::{FindingLocation, Findings, Severity};
use super::messages::Messages;
use super::steps;
use super::totals::Totals;
use crate::trace::analysis::events::{Events, Scope};

/// Returns whether the trace is complete. If not, a missing event is not a fault.
pub(crate) fn complete(trace: &Trace) -> bool {
    let all = trace.ranks.len() as u64 == u64::from(trace.run.ranks) && trace.problems.is_empty();
    let ended = |end: &caribou::trace::End| end.dropped == 0;
    all && unfiltered(trace) && trace.ranks.iter().all(|rank| rank.end.as_ref().is_some_and(ended))
}

fn unfiltered(trace: &Trace) -> bool {
    matches!(trace.run.filter.as_str(), "" | "all")
}

/// Error and drift of the clock of each rank, in ns.
pub(crate) struct Clocks(Vec<u64>);

impl Clocks {
    fn new(trace: &Trace) -> Clocks {
        let clocks = trace.ranks.iter().filter_map(|rank| rank.end.as_ref()).map(|end| &end.clocks);
        let best = clocks.max_by_key(|clocks| clocks.len());
        let errors = best.into_iter().flatten();
        Clocks(errors.map(|clock| clock.error_ns.saturating_add(clock.drift_ns.unsigned_abs())).collect())
    }

    pub(crate) fn error_ns(&self, one: u32, other: u32) -> u64 {
        if one == other {
            return 0;
        }
        let error = |rank: u32| self.0.get(rank as usize).copied().unwrap_or(0);
        error(one).saturating_add(error(other))
    }
}

/// Checks the whole trace. At most `messages_max` messages in flight are kept.
pub(crate) fn look(trace: &Trace, messages_max: usize, findings: &mut Findings) {
    let damaged = (Severity::Wrong, "damaged file");
    for problem in &trace.problems {
        findings.add(damaged, &problem.file, FindingLocation::Byte(problem.at), || problem.what.clone());
    }
    for problem in trace.ranks.iter().flat_map(|rank| rank.differing_headers()) {
        findings.add(damaged, &problem.file, FindingLocation::Byte(problem.at), || problem.what.clone());
    }
    let clocks = Clocks::new(trace);
    let (mut messages, mut places) =
        (Messages::new(trace, &clocks, messages_max), ChunkLocations::new(trace, &clocks));
    let mut totals = Totals::new(trace);
    let mut events = Events::new(Scope::all(trace));
    for (place, event) in &mut events {
        messages.event(place, &event, findings);
        places.event(place, &event, findings);
        totals.event(place, &event);
    }
    let mut whole = complete(trace);
    for problem in events.problems() {
        whole = false;
        let lost = || format!("a block of events is left out: {}", problem.what);
        findings.add(damaged, &problem.file, FindingLocation::Byte(problem.at), lost);
    }
    messages.finish(whole, findings);
    places.finish(whole, findings);
    totals.finish(whole, findings);
    steps::look(trace, whole, findings);
    let dropped = trace.dropped();
    if dropped > 0 {
        let what = || format!("{dropped} events were not kept, so sums of events are too low");
        findings.add((Severity::Note, "dropped events"), &trace.path, FindingLocation::Whole, what);
    }
    if !unfiltered(trace) {
        let what =
            || "not everything was recorded (see the filter of the run), so little can be compared".into();
        findings.add((Severity::Note, "filtered"), &trace.path, FindingLocation::Whole, what);
    }
}
