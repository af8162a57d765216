//! The time of one worker, added up by activity, and drawn into its row of the timeline.

use std::collections::BTreeMap;

use super::activities::{LOST, State};
use super::lanes::{Grid, Lane, Row, Slice};

/// Sums over an activity. Times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Total {
    /// CPU time; of idle and lost time, wall time.
    pub(super) ns: u64,
    pub(super) calls: u64,
    pub(super) longest_ns: u64,
    /// Lost in it, if events tell.
    pub(super) lost_ns: u64,
}

/// The time of one worker as it is added up.
pub(super) struct Account {
    lane: Lane,
    stack_grid: Grid,
    stack: BTreeMap<u8, Vec<u64>>,
    totals: Vec<Total>,
}

impl Account {
    pub(super) fn new(row: Row, stack_grid: Grid) -> Account {
        Account { lane: row.worker(), stack_grid, stack: BTreeMap::new(), totals: Vec::new() }
    }

    pub(super) fn total(&mut self, activity: u8) -> &mut Total {
        let place = usize::from(activity);
        if self.totals.len() <= place {
            self.totals.resize(place + 1, Total::default());
        }
        &mut self.totals[place]
    }

    pub(super) fn add(&mut self, slice: &Slice, cpu_ns: u64) {
        self.draw(slice);
        let total = self.total(slice.activity);
        total.ns += cpu_ns;
        total.calls += 1;
        total.longest_ns = total.longest_ns.max(cpu_ns);
        total.lost_ns += slice.lost_ns;
        if slice.lost_ns > 0 {
            let lost = self.total(LOST);
            lost.ns += slice.lost_ns;
            lost.calls += 1;
            lost.longest_ns = lost.longest_ns.max(slice.lost_ns);
        }
    }

    pub(super) fn draw(&mut self, slice: &Slice) {
        self.lane.add(slice);
        let (stack, bins) = (&mut self.stack, self.stack_grid.bins);
        self.stack_grid.split(slice, |bin, activity, ns| {
            if ns > 0 {
                stack.entry(activity).or_insert_with(|| vec![0; bins])[bin] += ns;
            }
        });
    }

    pub(super) fn sum_ns(&self) -> u64 {
        self.totals.iter().fold(0, |sum, total| sum.saturating_add(total.ns))
    }

    pub(super) fn finish(self) -> (Row, Vec<Total>, BTreeMap<u8, Vec<u64>>) {
        (self.lane.finish(), self.totals, self.stack)
    }
}

/// Time in a state, ns.
pub(super) fn state_ns(totals: &[Total], state: State) -> u64 {
    let of_state = totals.iter().enumerate().filter(|(activity, _)| State::of(*activity as u8) == state);
    of_state.fold(0, |sum, (_, total)| sum.saturating_add(total.ns))
}
