//! Collects single slices, with the senders of their messages, in parts of the run that are small enough for the page.

use caribou::trace::{ChunkId, Event, RUNTIME, What};
use rustc_hash::FxHashMap;
use trace_reader::Trace;

use super::activities::IDLE;
use super::balance::Balance;
use super::figures::Figures;
use crate::trace::analysis::events::{Observer, Scope, WorkerRef, by_worker};
use crate::trace::analysis::messages::{Name, name};
use crate::trace::select::Window;

/// Largest number of slices: of the whole run, or else of a first and a second window.
const SLICES_MAX: u64 = 40_000;
const FIRST_MAX: u64 = 28_000;
const SECOND_MAX: u64 = 12_000;
/// Largest number of names. Names of later slices are left out.
const NAMES_MAX: usize = 65_535;
/// Stands for an unknown name or row.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// The windows with single slices.
#[derive(Debug, Default)]
pub(super) struct DetailWindows {
    /// Whether the windows cover the whole run.
    pub(super) whole: bool,
    /// In order of time, without overlap.
    pub(super) all: Vec<DetailWindow>,
    /// Names of chunks to which slices refer.
    pub(super) names: Vec<String>,
}

/// A window with its slices.
#[derive(Debug, Default)]
pub(super) struct DetailWindow {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Reason why the window was selected. The page prints it in brackets after the times.
    pub(super) why: &'static str,
    /// Slices by worker and then by time, without idle time.
    pub(super) slices: Vec<Exact>,
    /// Index of the first slice of each row.
    pub(super) offsets: Vec<usize>,
}

/// A single slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exact {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) lost_ns: u64,
    pub(super) activity: u8,
    /// Its chunk, and the chunk that sent its message, as indices in `names`.
    pub(super) chunk: u16,
    pub(super) sender: u16,
    /// Row and time of the send of its message, if the send is in the window.
    pub(super) sent: Option<(u16, u64)>,
}

impl DetailWindows {
    pub(super) fn of(trace: &Trace, figures: &Figures, balance: &Balance<'_>) -> DetailWindows {
        let mut names = Names::default();
        let ranges = ranges(figures, balance);
        let whole = ranges.len() == 1 && ranges[0].bins == (0, figures.count_grid.bins);
        // A row of several workers has no space for slices that overlap.
        let ranges = if figures.workers_per_row == 1 { ranges } else { Vec::new() };
        let all = ranges.iter().map(|range| DetailWindow::read(trace, figures, range, &mut names)).collect();
        DetailWindows {
            whole,
            all,
            names: names.known.iter().map(|chunk| chunk_name(trace, *chunk)).collect(),
        }
    }

    /// Number of slices in all windows.
    pub(super) fn slices(&self) -> usize {
        self.all.iter().map(|stretch| stretch.slices.len()).sum()
    }

    /// Number of messages that were sent and handled in the same window.
    pub(super) fn messages(&self) -> usize {
        let sent =
            |stretch: &DetailWindow| stretch.slices.iter().filter(|slice| slice.sent.is_some()).count();
        self.all.iter().map(sent).sum()
    }
}

fn chunk_name(trace: &Trace, chunk: ChunkId) -> String {
    if chunk == RUNTIME { "the runtime".into() } else { trace.chunk_name(chunk) }
}

/// Numbers of chunks in slices.
#[derive(Default)]
struct Names {
    known: Vec<ChunkId>,
    numbers: FxHashMap<ChunkId, u16>,
}

impl Names {
    fn number(&mut self, chunk: ChunkId) -> u16 {
        if let Some(&number) = self.numbers.get(&chunk) {
            return number;
        }
        if self.known.len() == NAMES_MAX {
            return UNKNOWN;
        }
        let number = self.known.len() as u16;
        self.known.push(chunk);
        self.numbers.insert(chunk, number);
        number
    }
}

/// First bin of a window, the bin after its last one, and the reason for its selection.
struct Range {
    bins: (usize, usize),
    why: &'static str,
}

/// The whole run if its slices fit. Otherwise windows that lead to the most uneven sync and to a median sync.
fn ranges(figures: &Figures, balance: &Balance<'_>) -> Vec<Range> {
    let (grid, counts) = (figures.count_grid, &figures.counts);
    if counts.iter().sum::<u64>() <= SLICES_MAX {
        return vec![Range { bins: (0, grid.bins), why: "" }];
    }
    let uneven = if balance.worst.is_some() { "to the most uneven sync" } else { "the run" };
    let first = around(counts, grid.bin(balance.focus_ns()), FIRST_MAX, (0, 0));
    let outside = |bin: &usize| !(first.0..first.1).contains(bin);
    let usual = balance.usual_ns().map(|at_ns| grid.bin(at_ns)).find(outside);
    let why = if usual.is_some() { "to the sync of median imbalance" } else { "the middle of the run" };
    let focus = usual.or_else(|| Some(grid.bins / 2).filter(outside));
    let second = focus.map(|focus| around(counts, focus, SECOND_MAX, first)).unwrap_or_default();
    let mut ranges = vec![Range { bins: first, why: uneven }, Range { bins: second, why }];
    ranges.retain(|range| range.bins.0 < range.bins.1);
    ranges.sort_by_key(|range| range.bins);
    ranges
}

/// The bins around `focus` with at most `most` slices, without the bins in `taken`.
fn around(counts: &[u64], focus: usize, most: u64, taken: (usize, usize)) -> (usize, usize) {
    let (mut first, mut end, mut sum) = (focus, focus, 0);
    let free = |bin: usize| bin < counts.len() && !(taken.0..taken.1).contains(&bin);
    loop {
        // Takes three bins before the focus for each bin after it, because the causes are of more interest.
        let (can_back, can_go_on) = (first > 0 && free(first - 1), free(end));
        let back = can_back && (end - focus >= (focus - first).div_ceil(3) || !can_go_on);
        let bin = if back { first - 1 } else { end };
        if !free(bin) || sum + counts[bin] > most {
            return (first, end);
        }
        sum += counts[bin];
        if back { first = bin } else { end = bin + 1 }
    }
}

impl DetailWindow {
    fn read(trace: &Trace, figures: &Figures, range: &Range, names: &mut Names) -> DetailWindow {
        let grid = figures.count_grid;
        let from_ns = range.bins.0 as u64 * grid.bin_ns;
        let to_ns = (range.bins.1 as u64).saturating_mul(grid.bin_ns).min(figures.elapsed_ns);
        let stretch = DetailWindow { from_ns, to_ns, why: range.why, ..DetailWindow::default() };
        let scope = Scope::of(&trace.ranks, Window { from_ns, to_ns });
        let mut slices = Slices { figures, names, stretch, handled: FxHashMap::default() };
        // Problems of blocks were reported before.
        by_worker(&scope, &mut [&mut slices]);
        let Slices { mut stretch, handled, .. } = slices;
        stretch.offsets.resize(figures.rows.len() + 1, stretch.slices.len());
        let mut senders = Senders { figures, handled: &handled, slices: &mut stretch.slices };
        by_worker(&scope, &mut [&mut senders]);
        stretch
    }
}

/// The row of a worker. If single slices are shown, each worker has its own row.
fn row(figures: &Figures, place: WorkerRef<'_>) -> usize {
    figures.row_of(place.name()).unwrap_or(usize::from(UNKNOWN))
}

/// Collects slices, and the slice that handled each message. Handlers are read before all sends: handlers in the window
/// are few, and their senders may be on any worker.
struct Slices<'s> {
    figures: &'s Figures,
    names: &'s mut Names,
    stretch: DetailWindow,
    handled: FxHashMap<Name, usize>,
}

impl Observer<'_> for Slices<'_> {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        let stretch = &mut self.stretch;
        stretch.offsets.resize(row(self.figures, place) + 1, stretch.slices.len());
        let Some(slice) = exact(self.figures, event, self.names) else { return };
        if let What::Handler { from, number, .. } = event.what
            && let Some(name) = name(from, number)
        {
            self.handled.insert(name, stretch.slices.len());
        }
        stretch.slices.push(slice);
    }
}

/// Finds the sends of the messages that slices handled.
struct Senders<'s> {
    figures: &'s Figures,
    handled: &'s FxHashMap<Name, usize>,
    slices: &'s mut [Exact],
}

impl Observer<'_> for Senders<'_> {
    fn see(&mut self, place: WorkerRef<'_>, event: &Event) {
        if let What::Send { chunk, number, .. } = event.what
            && let Some(&slice) = self.handled.get(&(chunk, number))
        {
            self.slices[slice].sent = Some((row(self.figures, place) as u16, event.begin_ns));
        }
    }
}

fn exact(figures: &Figures, event: &Event, names: &mut Names) -> Option<Exact> {
    let slice = figures.known_slice(event)?;
    if slice.activity == IDLE {
        return None;
    }
    let (chunk, sender) = match event.what {
        What::Handler { chunk, from, .. } => (names.number(chunk), names.number(from)),
        What::Depart { chunk, .. } => (names.number(chunk), UNKNOWN),
        _ => (UNKNOWN, UNKNOWN),
    };
    let (begin_ns, end_ns, lost_ns) = (slice.begin_ns, slice.end_ns, slice.lost_ns);
    Some(Exact { begin_ns, end_ns, lost_ns, activity: slice.activity, chunk, sender, sent: None })
}
