//! Collects the figures that only the report needs, from events, and from profiles where events are missing. Sums of
//! time come from [`TimeBreakdown`](crate::trace::analysis::time_breakdown::TimeBreakdown).

use std::collections::{BTreeMap, VecDeque};

use caribou::trace::{ChunkId, Event, NameId, Profile, What};
use trace_reader::Trace;

use super::activities::{Activities, State};
use super::chunks::Chunks;
use super::lanes::{Grid, Lane, Row, Slice, levels};
use crate::trace::analysis::events::{Observer, WorkerName, WorkerRef};
use crate::trace::analysis::time_breakdown::activity;

/// Largest number of rows in the timeline. More workers share rows.
pub(super) const ROWS_MAX: usize = 256;
/// Bins in the picture of utilisation.
const STACK_BINS: usize = 290;
/// Bins in which events are counted, to select the windows that are shown in detail.
const COUNT_BINS: usize = 4096;
/// Kinds with their own colour in the picture of utilisation.
const KINDS_SHOWN: usize = 8;
/// Counters that are plotted.
pub(super) const COUNTERS_MAX: usize = 12;
/// Points of a plotted line.
const POINTS: usize = 500;
/// Marks that are drawn.
pub(super) const MARKS_MAX: usize = 200;
/// Names of spans that are distinguished.
const SPANS_MAX: usize = 200;
/// Handlers `resume` that are stored.
const RESUMES_MAX: usize = 100_000;

/// The values of one counter.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) name: NameId,
    /// Last time and value in each bin.
    pub(super) points: BTreeMap<usize, (u64, f64)>,
    pub(super) values: u64,
}

/// Time of each activity in each bin, in ns.
type Stack = BTreeMap<u8, Vec<u64>>;

/// Figures from one pass over the events.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) elapsed_ns: u64,
    pub(super) activities: Activities,
    /// Rank and worker, in order.
    pub(super) workers: Vec<WorkerName>,
    /// Number of workers drawn from their profile, because their events have less time than the profile.
    pub(super) from_profile: usize,
    /// Number of workers per row of the timeline.
    pub(super) workers_per_row: usize,
    pub(super) rows: Vec<Row>,
    pub(super) levels: Vec<Grid>,
    /// Sums over all workers.
    pub(super) stack: Stack,
    pub(super) stack_grid: Grid,
    /// Number of slices in each of `COUNT_BINS` bins.
    pub(super) counts: Vec<u64>,
    pub(super) count_grid: Grid,
    pub(super) chunks: Chunks,
    /// Lost time in each activity, according to events.
    pub(super) lost_ns: BTreeMap<u8, u64>,
    /// Messages and bytes from one rank to another, by their indices in the trace.
    pub(super) sent: BTreeMap<(usize, usize), (u64, u64)>,
    /// Messages to ranks without a trace.
    pub(super) sent_elsewhere: u64,
    pub(super) counters: Vec<Counter>,
    pub(super) marks: Vec<(u64, NameId)>,
    pub(super) marks_total: u64,
    pub(super) spans: BTreeMap<NameId, (u64, u64)>,
    /// Times of the handlers `resume` of one chunk, and that chunk.
    pub(super) resumes_ns: Vec<u64>,
    pub(super) resumes_of: Option<ChunkId>,
}

/// Collects [`Figures`] from events, worker by worker.
pub(super) struct Gathering<'t> {
    trace: &'t Trace,
    figures: Figures,
    /// The current worker and those after it, each with the index of its rank.
    workers: VecDeque<(usize, WorkerRef<'t>)>,
    open: Option<Open>,
}

/// The current worker.
struct Open {
    lane: Lane,
    /// The row before this worker was added.
    before: Row,
    stack: Stack,
    stack_grid: Grid,
    /// CPU time, and wall time of activities without CPU time.
    drawn_ns: u64,
}

impl Open {
    fn new(before: Row, stack_grid: Grid) -> Open {
        Open { lane: before.clone().worker(), before, stack: Stack::new(), stack_grid, drawn_ns: 0 }
    }

    fn draw(&mut self, slice: &Slice) {
        self.lane.add(slice);
        let (stack, bins) = (&mut self.stack, self.stack_grid.bins);
        self.stack_grid.split(slice, |bin, activity, ns| {
            if ns > 0 {
                stack.entry(activity).or_insert_with(|| vec![0; bins])[bin] += ns;
            }
        });
    }
}

impl<'t> Gathering<'t> {
    pub(super) fn new(trace: &'t Trace) -> Gathering<'t> {
        let ranks = trace.ranks.iter().enumerate();
        let places = ranks.flat_map(|(number, rank)| {
            (0..rank.workers).map(move |worker| (number, WorkerRef { rank, worker }))
        });
        Gathering { trace, figures: Figures::empty(trace), workers: places.collect(), open: None }
    }

    pub(super) fn finish(mut self) -> Figures {
        while !self.workers.is_empty() {
            self.close();
        }
        self.figures.resumes_ns.sort_unstable();
        self.figures.marks.sort_unstable();
        self.figures
    }

    fn open(&mut self) -> &mut Open {
        let figures = &mut self.figures;
        self.open.get_or_insert_with(|| {
            let shared = !figures.workers.len().is_multiple_of(figures.workers_per_row);
            let row = figures.rows.pop_if(|_| shared).unwrap_or_else(|| Row::new(&figures.levels));
            Open::new(row, figures.stack_grid)
        })
    }

    /// Ends the current worker. If its events have less time than its profile, draws the profile instead.
    fn close(&mut self) {
        self.open();
        let Some(mut open) = self.open.take() else { return };
        let Some((_, worker)) = self.workers.pop_front() else { return };
        let profile =
            worker.rank.profiles.get(worker.worker as usize).filter(|profile| !profile.rows.is_empty());
        let more = profile.filter(|profile| (open.drawn_ns as f64) < 0.99 * profile_ns(profile));
        if let Some(profile) = more {
            open = Open::new(open.before, self.figures.stack_grid);
            self.figures.draw_profile(self.trace, profile, &mut open);
        }
        let figures = &mut self.figures;
        for (activity, bins) in open.stack {
            let sums = figures.stack.entry(activity).or_insert_with(|| vec![0; bins.len()]);
            sums.iter_mut().zip(&bins).for_each(|(sum, ns)| *sum += ns);
        }
        figures.rows.push(open.lane.finish());
        figures.workers.push(worker.name());
        figures.from_profile += usize::from(more.is_some());
    }
}

impl<'t> Observer<'t> for Gathering<'t> {
    fn see(&mut self, place: WorkerRef<'t>, event: &Event) {
        let is_other = |one: &WorkerRef<'_>| one.name() != place.name();
        while self.workers.front().is_some_and(|(_, front)| is_other(front)) {
            self.close();
        }
        let Some(&(rank, _)) = self.workers.front() else { return };
        self.figures.event(self.trace, rank, place.name(), event);
        if let Some(slice) = self.figures.slice(self.trace, event) {
            let bin = self.figures.count_grid.bin(slice.begin_ns);
            self.figures.counts[bin] += 1;
            *self.figures.lost_ns.entry(slice.activity).or_default() += slice.lost_ns;
            let open = self.open();
            open.draw(&slice);
            open.drawn_ns = open.drawn_ns.saturating_add(event.cpu_ns()).saturating_add(slice.lost_ns);
        }
    }
}

impl Figures {
    fn empty(trace: &Trace) -> Figures {
        let elapsed_ns = trace.elapsed_ns();
        let workers: usize = trace.ranks.iter().map(|rank| rank.workers as usize).sum();
        let workers_per_row = workers.div_ceil(ROWS_MAX).max(1);
        // Without events, bins are not narrower than those of the profiles, which would suggest a false precision.
        let widths = trace.ranks.iter().flat_map(|rank| &rank.profiles).filter(|all| !all.rows.is_empty());
        let profile_ns = widths.map(|profile| profile.bin_ns).max().unwrap_or(0);
        let least_ns = if trace.events() == 0 { profile_ns } else { 0 };
        Figures {
            elapsed_ns,
            activities: Activities::of(trace),
            workers_per_row,
            levels: levels(elapsed_ns, workers.div_ceil(workers_per_row).max(1), least_ns),
            stack_grid: Grid::new(elapsed_ns, STACK_BINS, least_ns),
            counts: vec![0; Grid::new(elapsed_ns, COUNT_BINS, 0).bins],
            count_grid: Grid::new(elapsed_ns, COUNT_BINS, 0),
            ..Figures::default()
        }
    }

    /// Draws the parts of each profile bin one after the other. Their shares are right, but their order is unknown.
    fn draw_profile(&mut self, trace: &Trace, profile: &Profile, open: &mut Open) {
        let rows: Vec<_> =
            profile.rows.iter().map(|row| (self.activities.number(trace, row.activity), row)).collect();
        for bin in 0..rows.iter().map(|(_, row)| row.ns.len()).max().unwrap_or(0) {
            let mut at_ns = (bin as u64).saturating_mul(profile.bin_ns);
            let bin_end_ns = at_ns.saturating_add(profile.bin_ns);
            for (activity, row) in &rows {
                let end_ns = (at_ns + row.ns.get(bin).copied().unwrap_or(0)).min(bin_end_ns);
                if end_ns > at_ns {
                    open.draw(&Slice { begin_ns: at_ns, end_ns, activity: *activity, lost_ns: 0 });
                }
                at_ns = end_ns;
            }
        }
    }

    fn slice(&mut self, trace: &Trace, event: &Event) -> Option<Slice> {
        let (activity, lost_ns) = activity(event)?;
        let activity = self.activities.number(trace, activity);
        Some(Slice { begin_ns: event.begin_ns, end_ns: event.end_ns, activity, lost_ns })
    }

    /// The slice of an event with an activity that already has a number.
    pub(super) fn known_slice(&self, event: &Event) -> Option<Slice> {
        let (activity, lost_ns) = activity(event)?;
        let activity = self.activities.known(activity);
        Some(Slice { begin_ns: event.begin_ns, end_ns: event.end_ns, activity, lost_ns })
    }

    fn event(&mut self, trace: &Trace, place: usize, worker: WorkerName, event: &Event) {
        self.chunks.add(worker, event);
        match event.what {
            What::Handler { chunk, kind, .. } => {
                let resume = trace.names.get(kind.0 as usize).is_some_and(|name| name.text == "resume");
                if resume
                    && self.resumes_ns.len() < RESUMES_MAX
                    && *self.resumes_of.get_or_insert(chunk) == chunk
                {
                    self.resumes_ns.push(event.begin_ns);
                }
            }
            What::Send { rank: to, bytes, .. } => self.sent(trace, place, to, bytes),
            What::PoolSend { rank: to } => self.sent(trace, place, to, 0),
            What::Counter { name, value, .. } if value.is_finite() => {
                self.count(name, event.end_ns, value);
            }
            What::Mark { name, .. } => {
                self.marks_total += 1;
                if self.marks.len() < MARKS_MAX {
                    self.marks.push((event.begin_ns, name));
                }
            }
            What::Span { name, .. } if self.spans.len() < SPANS_MAX || self.spans.contains_key(&name) => {
                let (count, ns) = self.spans.entry(name).or_default();
                (*count, *ns) = (*count + 1, *ns + event.duration_ns());
            }
            _ => {}
        }
    }

    fn sent(&mut self, trace: &Trace, from: usize, to: u32, bytes: u64) {
        // Ranks are in order, and in most traces all are present.
        let guess = trace.ranks.get(to as usize).filter(|rank| rank.rank == to).map(|_| to as usize);
        let Some(to) = guess.or_else(|| trace.ranks.binary_search_by_key(&to, |rank| rank.rank).ok()) else {
            self.sent_elsewhere += 1;
            return;
        };
        let (messages, size) = self.sent.entry((from, to)).or_default();
        (*messages, *size) = (*messages + 1, size.saturating_add(bytes));
    }

    fn count(&mut self, name: NameId, at_ns: u64, value: f64) {
        let place = self.counters.iter().position(|counter| counter.name == name);
        let place = match place {
            Some(place) => place,
            None if self.counters.len() >= COUNTERS_MAX => return,
            None => {
                self.counters.push(Counter { name, points: BTreeMap::new(), values: 0 });
                self.counters.len() - 1
            }
        };
        let counter = &mut self.counters[place];
        counter.values += 1;
        let bin = Grid::new(self.elapsed_ns, POINTS, 0).bin(at_ns);
        let point = counter.points.entry(bin).or_insert((at_ns, value));
        if at_ns >= point.0 {
            *point = (at_ns, value);
        }
    }

    /// The row of a worker.
    pub(super) fn row_of(&self, worker: WorkerName) -> Option<usize> {
        let place = self.workers.binary_search(&worker).ok()?;
        Some(place / self.workers_per_row)
    }

    /// The kinds with their own colour in the picture of utilisation, the heaviest first.
    pub(super) fn heaviest_kinds(&self) -> Vec<u8> {
        let sums = self.stack.iter().filter(|(activity, _)| State::of(**activity) == State::Chunks);
        let mut sums: Vec<_> = sums.map(|(&activity, bins)| (activity, bins.iter().sum::<u64>())).collect();
        sums.sort_by_key(|&(activity, ns)| (std::cmp::Reverse(ns), activity));
        sums.into_iter().take(KINDS_SHOWN).map(|(activity, _)| activity).collect()
    }
}

fn profile_ns(profile: &Profile) -> f64 {
    profile.rows.iter().map(|row| row.total_ns() as f64).sum()
}
