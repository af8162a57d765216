//! Combines the figures of a whole run: time of workers, causes of lost time, effects of syncs, and counts of events.

use trace_reader::{Problem, Trace};

use super::efficiency::{Efficiency, phases};
use super::event_counts::{EventCounter, EventCounts};
use super::events::{Observer, Scope, by_worker};
use super::lost_time::LostTime;
use super::sync_effect::{SyncEffect, sync_effects};
use super::time_breakdown::{TimeBreakdown, TimeCollector, time_breakdown};
use crate::trace::select::Selection;

/// Figures of a run. Times are divided into bins as long as its average phase.
pub(crate) struct Facts<'t> {
    pub(crate) trace: &'t Trace,
    pub(crate) spent: TimeBreakdown,
    pub(crate) lost_time: LostTime,
    pub(crate) outcomes: Vec<SyncEffect<'t>>,
    /// None if there are no events, or if they were not read.
    pub(crate) census: Option<EventCounts>,
    pub(crate) efficiency: Option<Efficiency>,
    /// What could not be read.
    pub(crate) problems: Vec<Problem>,
}

impl<'t> Facts<'t> {
    /// Computes the figures from the records, without events unless the time of workers needs them.
    pub(crate) fn of_records(trace: &'t Trace) -> Facts<'t> {
        let everything = Selection::default();
        let mut spent = time_breakdown(trace, &everything, phases(trace, everything.window(trace)));
        let problems = std::mem::take(&mut spent.problems);
        Facts::new(trace, spent, None, problems)
    }

    /// Reads all events once, worker by worker, and passes them to the observers in `others` too.
    pub(crate) fn read(trace: &'t Trace, others: &mut [&mut dyn Observer<'t>]) -> Facts<'t> {
        let everything = Selection::default();
        let mut time = TimeCollector::new(trace, &everything, phases(trace, everything.window(trace)));
        let mut counting = EventCounter::new(trace);
        let mut observers: Vec<&mut dyn Observer<'t>> = vec![&mut time, &mut counting];
        observers.extend(others.iter_mut().map(|other| &mut **other as &mut dyn Observer<'t>));
        let problems = by_worker(&Scope::all(trace), &mut observers);
        let census = (trace.events() > 0).then_some(counting.event_counts);
        Facts::new(trace, time.spent, census, problems)
    }

    fn new(
        trace: &'t Trace,
        spent: TimeBreakdown,
        census: Option<EventCounts>,
        problems: Vec<Problem>,
    ) -> Facts<'t> {
        Facts {
            trace,
            lost_time: LostTime::of_selection(trace, &spent, &Selection::default()),
            outcomes: sync_effects(&trace.syncs),
            efficiency: Efficiency::of(&spent),
            spent,
            census,
            problems,
        }
    }
}
