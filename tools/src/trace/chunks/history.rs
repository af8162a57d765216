//! Keeps the history of one chunk for `caribou trace chunks`.

use caribou::trace::{Event, What};

/// Executions shorter than this are short: the runtime's work per message becomes visible.
const SMALL_NS: u64 = 20_000;
/// A return to a rank within this number of phases is a ping-pong.
const RETURN_PHASES: u64 = 3;
/// Departures kept to detect returns.
const LEFT_MAX: usize = 8;
/// Ranks kept per chunk.
const VISITED_MAX: usize = 64;
/// Phases and moves of a chunk that are listed.
pub(super) const LISTED_MAX: usize = 100_000;

/// Figures of one chunk, in some hundred bytes. Events must come in order of time.
#[derive(Default)]
pub(super) struct History {
    pub(super) executions: u64,
    pub(super) wall_ns: f64,
    pub(super) cpu_ns: f64,
    /// CPU time of short executions.
    pub(super) small_ns: f64,
    /// Last recorded size of its state.
    pub(super) bytes: u64,
    pub(super) moves: u64,
    /// Number of returns to a rank that the chunk had left shortly before.
    pub(super) returns: u64,
    /// The current rank.
    pub(super) rank: Option<u32>,
    /// All ranks of the chunk, each once.
    pub(super) visited: Vec<u32>,
    /// Ranks that the chunk left, each with the phase.
    left: Vec<(u32, u64)>,
    /// The current phase.
    phase: u64,
    /// Number of loads, their mean, and the sum of squared deviations (Welford).
    loads: u64,
    mean_ns: f64,
    squares: f64,
}

/// Details for `--index`.
#[derive(Default)]
pub(super) struct Detail {
    pub(super) loads: Vec<Load>,
    /// Time, old rank and new rank of each move.
    pub(super) moves: Vec<(u64, u32, u32)>,
    /// Whether there were too many to list.
    pub(super) cut: bool,
}

/// Load of the chunk at one sync.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) sync: u64,
    pub(super) rank: u32,
    pub(super) load_ns: u64,
    pub(super) bytes: u64,
}

impl History {
    /// Sets the phase, which is the number of syncs so far.
    pub(super) fn is_in(&mut self, phase: u64) {
        self.phase = self.phase.max(phase);
    }

    /// Adds an event of this chunk on a rank.
    pub(super) fn see(&mut self, rank: u32, event: &Event, mut detail: Option<&mut Detail>) {
        match event.what {
            What::Handler { .. } => {
                self.executions += 1;
                self.wall_ns += event.duration_ns() as f64;
                let cpu_ns = event.cpu_ns();
                self.cpu_ns += cpu_ns as f64;
                self.small_ns += if cpu_ns < SMALL_NS { cpu_ns as f64 } else { 0.0 };
                if self.rank.is_none() {
                    self.be_on(rank, event.end_ns, detail);
                }
            }
            What::Load { sync, load_ns, bytes, .. } => {
                self.be_on(rank, event.end_ns, detail.as_deref_mut());
                self.load(load_ns as f64);
                (self.bytes, self.phase) = (bytes, sync.saturating_add(1));
                if let Some(detail) = detail {
                    detail.list_load(Load { sync, rank, load_ns, bytes });
                }
            }
            What::Arrive { bytes, .. } => {
                self.be_on(rank, event.end_ns, detail);
                self.bytes = if bytes > 0 { bytes } else { self.bytes };
            }
            What::Depart { rank: to, bytes, .. } => {
                self.rank.get_or_insert(rank);
                self.be_on(to, event.end_ns, detail);
                self.bytes = bytes;
            }
            _ => {}
        }
    }

    /// Sets the current rank and counts a move if it changed. Departures, arrivals and loads all report the rank, and
    /// any of them may be missing, so only a change counts.
    fn be_on(&mut self, rank: u32, at_ns: u64, detail: Option<&mut Detail>) {
        let from = self.rank.replace(rank);
        if let Some(from) = from.filter(|&from| from != rank) {
            self.moves += 1;
            let phase = self.phase;
            self.left.retain(|&(_, left)| phase.saturating_sub(left) <= RETURN_PHASES);
            self.returns += u64::from(self.left.iter().any(|&(left, _)| left == rank));
            if self.left.len() == LEFT_MAX {
                self.left.remove(0);
            }
            self.left.push((from, phase));
            self.visit(from);
            if let Some(detail) = detail {
                detail.list_move((at_ns, from, rank));
            }
        }
        self.visit(rank);
    }

    fn visit(&mut self, rank: u32) {
        if self.visited.len() < VISITED_MAX && !self.visited.contains(&rank) {
            self.visited.push(rank);
        }
    }

    fn load(&mut self, load_ns: f64) {
        self.loads += 1;
        let off = load_ns - self.mean_ns;
        self.mean_ns += off / self.loads as f64;
        self.squares += off * (load_ns - self.mean_ns);
    }

    /// Number of syncs with a load of this chunk.
    pub(super) fn phases(&self) -> u64 {
        self.loads
    }

    /// Average load of a phase, in ns.
    pub(super) fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// Load of all phases in ns. For a chunk that came to no sync, the CPU time of its handlers.
    pub(super) fn load_ns(&self) -> f64 {
        if self.loads > 0 { self.mean_ns * self.loads as f64 } else { self.cpu_ns }
    }

    /// Standard deviation over mean of the loads of phases; 0 for fewer than two phases.
    pub(super) fn variation(&self) -> f64 {
        if self.loads < 2 || self.mean_ns <= 0.0 {
            return 0.0;
        }
        (self.squares / (self.loads - 1) as f64).sqrt() / self.mean_ns
    }
}

impl Detail {
    fn list_load(&mut self, load: Load) {
        self.cut |= self.loads.len() == LISTED_MAX;
        if !self.cut {
            self.loads.push(load);
        }
    }

    fn list_move(&mut self, journey: (u64, u32, u32)) {
        self.cut |= self.moves.len() == LISTED_MAX;
        if !self.cut {
            self.moves.push(journey);
        }
    }
}

#[cfg(test)]
mod tests {
    use caribou::trace::{ArrayId, ChunkId};

    use super::*;

    const ME: ChunkId = ChunkId { array: ArrayId(0), key: 0 };

    fn load(sync: u64, load_ns: u64) -> Event {
        Event::point(sync * 1000, What::Load { chunk: ME, sync, load_ns, bytes: 8 })
    }

    fn depart(at_ns: u64, rank: u32) -> Event {
        Event::point(at_ns, What::Depart { chunk: ME, rank, bytes: 8 })
    }

    #[test]
    fn a_move_that_is_said_three_times_counts_once() {
        let mut history = History::default();
        history.see(0, &load(0, 5), None);
        history.see(0, &depart(1, 3), None);
        history.see(3, &Event::point(2, What::Arrive { chunk: ME, bytes: 8 }), None);
        history.see(3, &load(1, 5), None);
        assert_eq!((history.moves, history.returns, &history.visited[..]), (1, 0, &[0, 3][..]));
    }

    #[test]
    fn coming_back_within_three_phases_is_a_return_and_later_is_not() {
        for (away, returns) in [(3, 1), (4, 0)] {
            let mut history = History::default();
            history.see(0, &load(0, 5), None);
            history.see(0, &depart(1, 1), None);
            for sync in 1..=away {
                history.see(1, &load(sync, 5), None);
            }
            history.see(1, &depart(away * 1000 + 1, 0), None);
            assert_eq!((history.moves, history.returns), (2, returns), "{away} phases away");
        }
    }

    #[test]
    fn the_variation_is_that_of_the_textbook() {
        let mut history = History::default();
        [2, 4, 4, 4, 5, 5, 7, 9]
            .iter()
            .zip(0..)
            .for_each(|(&load_ns, sync)| history.see(0, &load(sync, load_ns), None));
        // The mean is 5, the sum of squares 32.
        assert!((history.variation() - (32.0f64 / 7.0).sqrt() / 5.0).abs() < 1e-12);
        assert!((history.load_ns() - 40.0).abs() < 1e-9);
    }
}
