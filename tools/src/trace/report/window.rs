//! Handlers and messages one by one, for a stretch of the run in which there are not too many.

use std::collections::BTreeMap;

use caribou::trace::{ChunkId, Event, RUNTIME, Trace, What};

use super::activities::IDLE;
use super::figures::Figures;

/// Slices that are kept.
const SLICES_MAX: u64 = 40_000;
/// Messages that are drawn.
pub(super) const ARROWS_MAX: usize = 3000;
/// Messages of which one end has been seen, at most.
const OPEN_MAX: usize = 60_000;

/// A stretch of time, and what happened in it.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Whether it is the whole run.
    pub(super) whole: bool,
    /// In the order of workers, then of time; idle time is not among them.
    pub(super) slices: Vec<Exact>,
    /// Where the slices of each row begin.
    pub(super) offsets: Vec<usize>,
    /// Names that slices refer to.
    pub(super) chunk_names: Vec<String>,
    pub(super) arrows: Vec<Arrow>,
    /// One in so many messages is among the arrows.
    pub(super) one_in: u64,
}

/// A slice as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exact {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) lost_ns: u64,
    pub(super) activity: u8,
    /// Its place in the names; `u32::MAX` for none.
    pub(super) chunk: u32,
}

/// A message, from the row that sent it to the row that handled it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrow {
    pub(super) from_row: usize,
    pub(super) to_row: usize,
    pub(super) sent_ns: u64,
    pub(super) handled_ns: u64,
}

impl Window {
    pub(super) fn of(trace: &Trace, figures: &Figures, focus_ns: u64) -> Window {
        let (from_ns, to_ns, whole) = stretch(figures, focus_ns);
        let mut window = Window { from_ns, to_ns, whole, one_in: 1, ..Window::default() };
        if to_ns == from_ns && !whole {
            window.offsets = vec![0; figures.rows.len() + 1];
            return window;
        }
        let (mut names, mut messages) = (BTreeMap::new(), Messages::default());
        let mut number = 0;
        for rank in &trace.ranks {
            for worker in 0..rank.workers {
                let row = number / figures.workers_per_row;
                window.offsets.resize(row + 1, window.slices.len());
                let mut stream = rank.stream_between(worker, from_ns, to_ns);
                while let Some(block) = stream.next_block() {
                    // What is wrong with a block has been told in the first pass.
                    let events = block.unwrap_or_default().iter();
                    for event in events.filter(|event| event.end_ns >= from_ns && event.begin_ns <= to_ns) {
                        messages.event(row, event);
                        // Rows of several workers have no room for slices that overlap.
                        if figures.workers_per_row == 1 {
                            window.slices.extend(exact(figures, event, &mut names));
                        }
                    }
                }
                number += 1;
            }
        }
        window.offsets.resize(figures.rows.len() + 1, window.slices.len());
        let mut chunks: Vec<_> = names.into_iter().collect();
        chunks.sort_by_key(|&(_, place)| place);
        window.chunk_names = chunks.into_iter().map(|(chunk, _)| trace.chunk_name(chunk)).collect();
        (window.arrows, window.one_in) = messages.finish();
        window
    }

    /// Whether nothing is shown one by one.
    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }
}

/// The whole run if its slices fit, else the largest stretch around a moment that does.
fn stretch(figures: &Figures, focus_ns: u64) -> (u64, u64, bool) {
    let (grid, counts) = (figures.count_grid, &figures.counts);
    if counts.iter().sum::<u64>() <= SLICES_MAX {
        return (0, figures.elapsed_ns, true);
    }
    let focus = grid.bin(focus_ns);
    let (mut first, mut end, mut sum) = (focus, focus, 0);
    loop {
        // Three bins before the moment for one after it: what led to it is of more interest.
        let back = first > 0 && (end - focus >= (focus - first).div_ceil(3) || end == grid.bins);
        let bin = if back { first - 1 } else { end };
        if bin >= grid.bins || sum + counts[bin] > SLICES_MAX {
            break;
        }
        sum += counts[bin];
        if back { first = bin } else { end = bin + 1 }
    }
    (first as u64 * grid.bin_ns, (end as u64 * grid.bin_ns).min(figures.elapsed_ns), false)
}

fn exact(figures: &Figures, event: &Event, names: &mut BTreeMap<ChunkId, u32>) -> Option<Exact> {
    let slice = figures.known_slice(event)?;
    if slice.activity == IDLE {
        return None;
    }
    let chunk = match event.what {
        What::Handler { chunk, .. } | What::Depart { chunk, .. } => Some(chunk),
        _ => None,
    };
    let next = names.len() as u32;
    let chunk = chunk.map_or(u32::MAX, |chunk| *names.entry(chunk).or_insert(next));
    let (begin_ns, end_ns, lost_ns) = (slice.begin_ns, slice.end_ns, slice.lost_ns);
    Some(Exact { begin_ns, end_ns, lost_ns, activity: slice.activity, chunk })
}

/// Messages between chunks, of which ever fewer are followed as there are more.
#[derive(Default)]
struct Messages {
    /// One in 2^halvings is followed.
    halvings: u32,
    sent: BTreeMap<Message, (usize, u64)>,
    handled: BTreeMap<Message, (usize, u64)>,
}

/// Its sender and number.
type Message = (ChunkId, u32);

impl Messages {
    fn event(&mut self, row: usize, event: &Event) {
        match event.what {
            What::Send { chunk, number, .. } if number > 0 => {
                if self.follows(&(chunk, number)) {
                    self.sent.insert((chunk, number), (row, event.end_ns));
                }
            }
            What::Handler { from, number, .. } if number > 0 && from != RUNTIME => {
                if self.follows(&(from, number)) {
                    self.handled.insert((from, number), (row, event.begin_ns));
                }
            }
            _ => return,
        }
        while self.sent.len() + self.handled.len() > OPEN_MAX {
            self.halve();
        }
    }

    /// Both ends of a message give the same answer.
    fn follows(&self, (chunk, number): &Message) -> bool {
        let mut hash = chunk.key ^ u64::from(chunk.array) << 48 ^ u64::from(*number).rotate_left(32);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ hash >> 31).trailing_zeros() >= self.halvings
    }

    fn halve(&mut self) {
        self.halvings += 1;
        let (sent, handled) = (std::mem::take(&mut self.sent), std::mem::take(&mut self.handled));
        self.sent = sent.into_iter().filter(|(message, _)| self.follows(message)).collect();
        self.handled = handled.into_iter().filter(|(message, _)| self.follows(message)).collect();
    }

    fn pairs(&self) -> usize {
        self.handled.keys().filter(|message| self.sent.contains_key(message)).count()
    }

    /// The arrows, and that one in so many messages is among them.
    fn finish(mut self) -> (Vec<Arrow>, u64) {
        while self.pairs() > ARROWS_MAX {
            self.halve();
        }
        let arrow = |(message, &(to_row, handled_ns)): (&Message, &(usize, u64))| {
            let &(from_row, sent_ns) = self.sent.get(message)?;
            let handled_ns = handled_ns.max(sent_ns);
            Some(Arrow { from_row, to_row, sent_ns, handled_ns })
        };
        let mut arrows: Vec<Arrow> = self.handled.iter().filter_map(arrow).collect();
        arrows.sort_by_key(|arrow| (arrow.sent_ns, arrow.handled_ns, arrow.from_row, arrow.to_row));
        (arrows, 1 << self.halvings)
    }
}
