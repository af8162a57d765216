//! Chooses the phases in which edges (messages between chunks) are recorded, for strategies that want them where they
//! matter ([`EdgeUse::WhereTheyMatter`](crate::EdgeUse::WhereTheyMatter)).
//!
//! | state | next state |
//! |---|---|
//! | edges are recorded | not recorded, after [`TRIED`] phases in a row in which they do not matter |
//! | edges are not recorded | recorded, after [`RESTED`] phases |
//!
//! Edges matter if they would take a few per cent of the phase with all their messages between ranks. Messages that
//! the present placement keeps within ranks count as well. Otherwise recording would end once a strategy has put
//! chunks together, and the next plan would part them.

/// Number of phases in a row in which edges are recorded although they do not matter. In the first, they may have been
/// recorded on some ranks only.
const TRIED: u32 = 3;
/// Number of phases from one trial to the next.
const RESTED: u32 = 16;
/// The least part of a phase that matters.
const MATTERS: f64 = 0.03;

/// Whether edges are recorded from now on.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeWatch {
    records: bool,
    /// Number of phases until this changes.
    left: u32,
    /// True if edges mattered in the last phase.
    matters: bool,
}

impl Default for EdgeWatch {
    fn default() -> Self {
        Self { records: true, left: TRIED, matters: false }
    }
}

impl EdgeWatch {
    pub(super) fn records(self) -> bool {
        self.records
    }

    /// True if edges were recorded in the last phase, and matter.
    pub(super) fn matters(self) -> bool {
        self.matters
    }

    /// Notes the part of a phase that all messages would take between ranks. It is 0 if no edges were recorded.
    pub(super) fn follow(&mut self, part: f64) {
        if part >= MATTERS {
            *self = Self { matters: true, ..Self::default() };
            return;
        }
        self.matters = false;
        self.left -= 1;
        if self.left == 0 {
            self.records = !self.records;
            self.left = if self.records { TRIED } else { RESTED };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_that_do_not_matter_are_tried_from_time_to_time() {
        let mut watch = EdgeWatch::default();
        let mut phases = |part: f64, count: usize| -> Vec<bool> {
            let phase = |_| {
                let recorded = watch.records();
                watch.follow(if recorded { part } else { 0.0 });
                recorded
            };
            (0..count).map(phase).collect()
        };
        let quiet = phases(0.01, 2 * 19);
        let expected = [vec![true; 3], vec![false; 16]].concat();
        assert_eq!(quiet, expected.repeat(2));
        assert_eq!(phases(0.05, 100), [true; 100]);
        assert_eq!(phases(0.0, 19), expected);
        watch.follow(0.05);
        assert!(watch.matters());
        watch.follow(0.01);
        assert!(!watch.matters());
    }
}
