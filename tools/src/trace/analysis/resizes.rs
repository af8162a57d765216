//! Describes shrinking and expanding of a run: the numbers of active ranks, and the idle time of inactive ranks.

use super::sync_effect::SyncEffect;
use crate::trace::page::{duration, plural};

/// Number of changes that the sentence lists.
const NAMED_MAX: usize = 6;

/// Time of inactive ranks over the time of all `ranks`, from 0 to 1, in a run of `end_ns` ns. The result is 0 where the
/// number of active ranks is unknown.
pub(crate) fn inactive_share(ranks: u32, end_ns: u64, outcomes: &[SyncEffect<'_>]) -> f64 {
    let until = outcomes.iter().skip(1).map(|next| next.report.at_ns).chain([end_ns]);
    let inactive = outcomes.iter().zip(until).map(|(outcome, until_ns)| {
        let length_ns = until_ns.saturating_sub(outcome.report.at_ns) as f64;
        outcome.report.active.map_or(0.0, |active| f64::from(ranks.saturating_sub(active)) * length_ns)
    });
    let share = inactive.sum::<f64>() / (f64::from(ranks) * end_ns as f64);
    if share.is_finite() { share } else { 0.0 }
}

/// Describes the changes in one sentence; none without changes.
pub(crate) fn sentence(ranks: u32, end_ns: u64, outcomes: &[SyncEffect<'_>]) -> Option<String> {
    let all = outcomes.iter().filter_map(|outcome| Some((outcome.resize()?.1, outcome.report.at_ns)));
    let all: Vec<String> =
        all.map(|(active, at_ns)| format!("{active} from {} on", duration(at_ns as f64))).collect();
    let (named, others) = all.split_at(all.len().min(NAMED_MAX));
    let more = match others.len() {
        0 => String::new(),
        count => format!(", and {} more", plural(count, "change")),
    };
    (!named.is_empty()).then(|| {
        format!(
            "resized: active ranks (of {ranks}): {}{more}; {:.1} % of the time of all ranks was idle time of inactive ones",
            named.join(", "),
            100.0 * inactive_share(ranks, end_ns, outcomes)
        )
    })
}

#[cfg(test)]
mod tests {
    use caribou::report::SyncReport;

    use super::*;
    use crate::trace::analysis::sync_effect::sync_effects;

    /// The sentence of a run of 100 ns on four ranks with these numbers of active ranks, from these times on.
    fn told(active: &[(u64, u32)]) -> Option<String> {
        let sync = |(number, &(at_ns, active)): (usize, &(u64, u32))| {
            let mut sync = SyncReport::default();
            (sync.sync, sync.at_ns, sync.active) = (number as u64, at_ns, Some(active));
            sync.before_ns = vec![1; 4];
            sync
        };
        let syncs: Vec<SyncReport> = active.iter().enumerate().map(sync).collect();
        sentence(4, 100, &sync_effects(&syncs))
    }

    #[test]
    fn the_sentence_names_the_first_changes_and_counts_the_others() {
        assert_eq!(told(&[(10, 4), (20, 4)]), None);
        let twice = told(&[(10, 4), (20, 2), (50, 2), (60, 3)]).expect("it was resized");
        assert!(twice.contains("(of 4): 2 from 20 ns on, 3 from 60 ns on; 30.0 %"), "{twice}");
        let often: Vec<(u64, u32)> = (1..=9).map(|at| (at * 10, 1 + (at % 2) as u32)).collect();
        let often = told(&often).expect("it was resized");
        assert!(often.contains("and 3 changes more"), "{often}");
    }
}
