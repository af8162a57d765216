//! Merges the time of workers into bins of several widths (levels). For a picture of any part of the run, one level has
//! bins about as wide as the pixels. Slices of a worker come in order. So each level has one open bin, and memory does
//! not grow with the number of events.

use super::activities::{IDLE, LOST, NOTHING, State};

/// Largest number of bins of all rows on the finest level.
const BINS_MAX: usize = 262_144;
/// Number of bins of a row on the coarsest level.
const COARSEST: usize = 1024;
const FINEST: usize = 65_536;
/// Ratio of the numbers of bins of two adjacent levels.
const FACTOR: usize = 4;

/// A slice of one worker's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) activity: u8,
    /// Part of the slice that was not CPU time.
    pub(super) lost_ns: u64,
}

/// Bins of one width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) bin_ns: u64,
    pub(super) bins: usize,
}

impl Grid {
    /// At most about `bins` bins up to `elapsed_ns`, each at least `least_ns` wide.
    pub(super) fn new(elapsed_ns: u64, bins: usize, least_ns: u64) -> Grid {
        let bin_ns = (elapsed_ns / bins as u64 + 1).max(least_ns).max(1);
        Grid { bin_ns, bins: (elapsed_ns / bin_ns + 1) as usize }
    }

    pub(super) fn bin(&self, at_ns: u64) -> usize {
        ((at_ns / self.bin_ns) as usize).min(self.bins - 1)
    }

    /// Divides a slice among bins and passes bin, activity and time. Each bin gets its proportion of the lost time.
    pub(super) fn split(&self, slice: &Slice, mut part: impl FnMut(usize, u8, u64)) {
        let long_ns = slice.end_ns - slice.begin_ns;
        let (mut left_ns, mut lost_left_ns) = (long_ns, slice.lost_ns);
        let last = self.bin(slice.end_ns);
        for bin in self.bin(slice.begin_ns)..=last {
            let (from_ns, to_ns) = (bin as u64 * self.bin_ns, (bin as u64 + 1) * self.bin_ns);
            let inside_ns = if bin == last {
                left_ns
            } else {
                slice.end_ns.min(to_ns).saturating_sub(slice.begin_ns.max(from_ns))
            };
            let share = u128::from(slice.lost_ns) * u128::from(inside_ns) / u128::from(long_ns.max(1));
            let lost_ns = if bin == last { lost_left_ns } else { share as u64 };
            (left_ns, lost_left_ns) = (left_ns - inside_ns, lost_left_ns - lost_ns);
            if inside_ns > 0 {
                part(bin, slice.activity, inside_ns.saturating_sub(lost_ns));
                part(bin, LOST, lost_ns);
            }
        }
    }
}

/// Levels for a number of rows, the coarsest first.
pub(super) fn levels(elapsed_ns: u64, rows: usize, least_ns: u64) -> Vec<Grid> {
    let mut levels = Vec::new();
    let mut bins = COARSEST;
    while bins <= FINEST && (bins * rows <= BINS_MAX || bins == COARSEST) {
        let grid = Grid::new(elapsed_ns, bins, least_ns);
        if levels.last() != Some(&grid) {
            levels.push(grid);
        }
        bins *= FACTOR;
    }
    levels
}

/// A bin of a row: the activity with most time, kinds before other activities, and the shares of states. 255 is the
/// whole bin. What is missing to 255 was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bin {
    pub(super) kind: u8,
    /// In the order of [`State::ALL`].
    pub(super) shares: [u8; 4],
}

/// A row of the timeline: one worker, or several merged workers.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) workers: u64,
    /// The bins of each level.
    cells: Vec<Vec<Cell>>,
    grids: Vec<Grid>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    kind: u8,
    kind_share: f32,
    /// Sums over the workers of the row.
    shares: [f32; 4],
}

const EMPTY: Cell = Cell { kind: NOTHING, kind_share: 0.0, shares: [0.0; 4] };

impl Row {
    pub(super) fn new(grids: &[Grid]) -> Row {
        let cells = grids.iter().map(|grid| vec![EMPTY; grid.bins]).collect();
        Row { workers: 0, cells, grids: grids.to_vec() }
    }

    pub(super) fn level(&self, level: usize) -> impl Iterator<Item = Bin> + '_ {
        let workers = self.workers.max(1) as f32;
        self.cells[level].iter().map(move |cell| {
            // A share above 0 is at least 1, so that it is visible.
            let byte =
                |share: f32| (share / workers * 255.0).round().max(f32::from(u8::from(share > 0.0))) as u8;
            Bin { kind: cell.kind, shares: cell.shares.map(byte) }
        })
    }

    /// Adds a worker. Its slices must come in order.
    pub(super) fn worker(mut self) -> Lane {
        self.workers += 1;
        let open = self.grids.iter().map(|_| Open { bin: 0, ns: [0; 256], touched: Vec::new() }).collect();
        Lane { row: self, open }
    }
}

/// A row while a worker is added.
pub(super) struct Lane {
    row: Row,
    open: Vec<Open>,
}

/// The current bin of a level.
struct Open {
    bin: usize,
    ns: [u64; 256],
    touched: Vec<u8>,
}

impl Lane {
    pub(super) fn add(&mut self, slice: &Slice) {
        for (level, open) in self.open.iter_mut().enumerate() {
            let (grid, cells) = (self.row.grids[level], &mut self.row.cells[level]);
            grid.split(slice, |bin, activity, ns| {
                if bin != open.bin {
                    open.close(&grid, cells);
                    open.bin = bin;
                }
                if ns > 0 {
                    let sum = &mut open.ns[usize::from(activity)];
                    if *sum == 0 {
                        open.touched.push(activity);
                    }
                    *sum += ns;
                }
            });
        }
    }

    pub(super) fn finish(mut self) -> Row {
        for (level, open) in self.open.iter_mut().enumerate() {
            open.close(&self.row.grids[level], &mut self.row.cells[level]);
        }
        self.row
    }
}

impl Open {
    fn close(&mut self, grid: &Grid, cells: &mut [Cell]) {
        let cell = &mut cells[self.bin];
        for activity in self.touched.drain(..) {
            let ns = std::mem::take(&mut self.ns[usize::from(activity)]);
            let share = (ns as f64 / grid.bin_ns as f64).min(1.0) as f32;
            let state = State::of(activity);
            cell.shares[state as usize] += share;
            // Prefers kinds, because the shares show the other states.
            let rank = if state == State::Chunks { share + 2.0 } else { share };
            if rank > cell.kind_share || cell.kind == NOTHING {
                (cell.kind, cell.kind_share) = (activity, rank);
            }
        }
    }
}

/// Returns whether a bin has only idle time.
pub(super) fn is_idle(bin: &Bin) -> bool {
    bin.kind == NOTHING || bin.kind == IDLE
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALO: u8 = 9;

    fn slice(begin_ns: u64, end_ns: u64, activity: u8, lost_ns: u64) -> Slice {
        Slice { begin_ns, end_ns, activity, lost_ns }
    }

    #[test]
    fn a_slice_is_split_among_bins_and_nothing_is_lost() {
        let grid = Grid { bin_ns: 100, bins: 4 };
        let mut parts = Vec::new();
        grid.split(&slice(50, 350, HALO, 30), |bin, activity, ns| parts.push((bin, activity, ns)));
        parts.retain(|part| part.2 > 0);
        let cpu: Vec<_> = parts.iter().filter(|part| part.1 == HALO).map(|part| (part.0, part.2)).collect();
        assert_eq!(cpu, [(0, 45), (1, 90), (2, 90), (3, 45)]);
        assert_eq!(parts.iter().map(|part| part.2).sum::<u64>(), 300);
    }

    #[test]
    fn bins_say_what_shares_of_time_there_were() {
        let grid = Grid { bin_ns: 100, bins: 2 };
        let mut lane = Row::new(&[grid]).worker();
        lane.add(&slice(0, 60, HALO, 20));
        lane.add(&slice(60, 150, IDLE, 0));
        let row = lane.finish();
        let bins: Vec<Bin> = row.level(0).collect();
        assert_eq!(bins[0], Bin { kind: HALO, shares: [102, 0, 51, 102] });
        assert_eq!(bins[1], Bin { kind: IDLE, shares: [0, 0, 0, 128] });
    }

    #[test]
    fn a_row_of_several_workers_shows_their_average() {
        let mut row = Row::new(&[Grid { bin_ns: 100, bins: 1 }]);
        for (activity, ns) in [(HALO, 100), (IDLE, 50)] {
            let mut lane = row.worker();
            lane.add(&slice(0, ns, activity, 0));
            row = lane.finish();
        }
        let bins: Vec<Bin> = row.level(0).collect();
        assert_eq!(bins, [Bin { kind: HALO, shares: [128, 0, 0, 64] }]);
    }

    #[test]
    fn levels_cover_the_run_and_fit_the_budget() {
        for (elapsed_ns, rows) in [(0, 1), (1, 1), (999, 3), (1 << 53, 256), (1 << 40, 10_000)] {
            for grid in levels(elapsed_ns, rows, 0) {
                assert!(grid.bins as u64 * grid.bin_ns > elapsed_ns);
                assert!(grid.bins * rows <= BINS_MAX || grid.bins <= COARSEST + 1, "{grid:?}");
            }
        }
    }
}
