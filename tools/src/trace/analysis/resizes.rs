//! Changes of the number of active ranks: when, and how much of the time of all ranks inactive ones had.

use trace_reader::Trace;

use super::sync_effect::SyncEffect;
use crate::trace::page::{duration, plural};

/// Changes that a sentence names.
const NAMED_MAX: usize = 6;

/// Part of the time of all ranks in which they were inactive, from 0 to 1: it counts as idle. 0 where that is not known.
pub(crate) fn inactive_share(trace: &Trace, outcomes: &[SyncEffect<'_>]) -> f64 {
    let (ranks, end_ns) = (f64::from(trace.run.ranks), trace.elapsed_ns());
    let mut until = outcomes.iter().skip(1).map(|next| next.report.at_ns).chain([end_ns]);
    let inactive = outcomes.iter().map(|outcome| {
        let length_ns = until.next().unwrap_or(end_ns).saturating_sub(outcome.report.at_ns) as f64;
        let inactive = outcome.report.active.map_or(0.0, |active| (ranks - f64::from(active)).max(0.0));
        inactive * length_ns
    });
    let share = inactive.sum::<f64>() / (ranks * end_ns as f64);
    if share.is_finite() { share } else { 0.0 }
}

/// The changes in one sentence; none if there were none.
pub(crate) fn sentence(trace: &Trace, outcomes: &[SyncEffect<'_>]) -> Option<String> {
    let all = outcomes.iter().filter_map(|outcome| Some((outcome.resize()?.1, outcome.report.at_ns)));
    let all: Vec<String> =
        all.map(|(active, at_ns)| format!("{active} from {} on", duration(at_ns as f64))).collect();
    let (named, others) = all.split_at(all.len().min(NAMED_MAX));
    let more = if others.is_empty() {
        String::new()
    } else {
        format!(", and {} more", plural(others.len(), "change"))
    };
    (!named.is_empty()).then(|| {
        format!(
            "resized: of {} ranks, these many were active: {}{more}; inactive ranks had {:.1} % of the time of all, which counts as idle",
            trace.run.ranks,
            named.join(", "),
            100.0 * inactive_share(trace, outcomes)
        )
    })
}
