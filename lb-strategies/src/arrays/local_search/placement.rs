//! A placement that is changed one chunk at a time, with the completion time, traffic and memory of each rank.

use rand_pcg::Pcg64Mcg;

use super::latest_rank::LatestRank;
use super::random::below;
use crate::arrays::loads::Loads;
use crate::arrays::memory::MemoryUse;
use crate::arrays::snapshot::{Assignment, Edge, Snapshot};
use crate::arrays::strategy::Background;
use crate::arrays::traffic::{EdgeCosts, Traffic};
use crate::rank::Rank;

/// A message stream between a chunk and another chunk.
#[derive(Clone, Copy)]
struct Stream {
    other: u32,
    /// True if the chunk sends, false if it receives.
    sends: bool,
    /// Time within a host and between hosts, ns.
    ns: [u64; 2],
}

/// The streams of all chunks, chunk by chunk.
pub(super) struct Streams {
    all: Vec<Stream>,
    /// By chunk, the end of its streams.
    ends: Vec<u32>,
}

impl Streams {
    /// The streams that cost something, of chunks that are on ranks or may move there. O(edges + chunks).
    pub(super) fn new(snapshot: &Snapshot) -> Option<Self> {
        let costs = EdgeCosts::new(snapshot)?;
        let mut ends = vec![0_u32; snapshot.chunks.len() + 1];
        let is_placed = |chunk: usize| {
            let chunk = &snapshot.chunks[chunk];
            chunk.migratable || chunk.rank.index() < snapshot.ranks.len()
        };
        let counts = |edge: &&Edge| costs.connects(edge) && is_placed(edge.from) && is_placed(edge.to);
        let edges = || snapshot.edges.iter().filter(counts);
        edges().flat_map(|edge| [edge.from, edge.to]).for_each(|chunk| ends[chunk + 1] += 1);
        (1..ends.len()).for_each(|chunk| ends[chunk] += ends[chunk - 1]);
        let empty = Stream { other: 0, sends: false, ns: [0; 2] };
        let mut all = vec![empty; ends[snapshot.chunks.len()] as usize];
        for edge in edges() {
            let ns = costs.both_ns(edge);
            for (chunk, other, sends) in [(edge.from, edge.to, true), (edge.to, edge.from, false)] {
                all[ends[chunk] as usize] = Stream { other: other as u32, sends, ns };
                ends[chunk] += 1;
            }
        }
        ends.pop();
        Some(Self { all, ends })
    }

    fn of(&self, chunk: usize) -> &[Stream] {
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start as usize..self.ends[chunk] as usize]
    }
}

/// Most chunks that move together because they use the same block.
const SHARERS_MAX: usize = 15;

/// A placement under change.
pub(super) struct Placement<'a> {
    snapshot: &'a Snapshot,
    assignment: Assignment,
    loads: Loads,
    times: LatestRank,
    /// The sum of the squares of all times.
    squares: f64,
    traffic: Option<(&'a Streams, Traffic)>,
    hosts: Vec<u32>,
    memory: Option<MemoryUse<'a>>,
    /// Chunks of each rank that may move.
    held: Vec<Vec<u32>>,
    /// By chunk, its position in `held` of its rank.
    seats: Vec<u32>,
    /// Chunks away from the rank of the snapshot.
    moved: Vec<u32>,
    /// By chunk, its position in `moved`.
    moved_at: Vec<u32>,
}

impl<'a> Placement<'a> {
    /// Begins with `start`, in which every chunk that may move is on an available rank. `streams` are those of the
    /// snapshot.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        streams: Option<&'a Streams>,
        model: Background,
        start: Assignment,
    ) -> Self {
        let loads = Loads::placed(snapshot, &start, model);
        let traffic = streams.zip(Traffic::of(snapshot, &start));
        let (chunks, ranks) = (snapshot.chunks.len(), snapshot.ranks.len());
        let mut placement = Self {
            snapshot,
            times: LatestRank::new(vec![0.0; ranks]),
            squares: 0.0,
            traffic,
            hosts: snapshot.ranks.iter().map(|rank| rank.host).collect(),
            memory: MemoryUse::placed(snapshot, &start),
            held: vec![Vec::new(); ranks],
            seats: vec![0; chunks],
            moved: Vec::new(),
            moved_at: vec![0; chunks],
            loads,
            assignment: start,
        };
        (0..ranks).for_each(|rank| placement.retime(rank));
        for chunk in 0..chunks {
            let rank = placement.assignment.ranks[chunk];
            if !snapshot.chunks[chunk].migratable || !placement.is_available(rank) {
                continue;
            }
            placement.seats[chunk] = placement.held[rank.index()].len() as u32;
            placement.held[rank.index()].push(chunk as u32);
            if rank != snapshot.chunks[chunk].rank {
                placement.moved_at[chunk] = placement.moved.len() as u32;
                placement.moved.push(chunk as u32);
            }
        }
        placement
    }

    pub(super) fn into_assignment(self) -> Assignment {
        self.assignment
    }

    /// Completion time of the latest rank, ns.
    pub(super) fn latest_ns(&self) -> f64 {
        self.times.latest_time()
    }

    pub(super) fn latest(&self) -> Rank {
        Rank(self.times.latest() as u32)
    }

    /// Completion time of a rank, ns.
    pub(super) fn time_ns(&self, rank: Rank) -> f64 {
        self.times.time(rank.index())
    }

    /// Time of a chunk on a rank without its messages, ns.
    pub(super) fn load_ns(&self, chunk: usize, rank: Rank) -> f64 {
        let ticks = self.loads.clamp_load(self.snapshot.chunks[chunk].ticks);
        ticks as f64 / self.loads.capacity[rank.index()]
    }

    /// Chunks with which this chunk exchanges messages; those of several streams several times.
    pub(super) fn partners(&self, chunk: usize) -> Vec<u32> {
        self.streams(chunk).iter().map(|stream| stream.other).collect()
    }

    /// Time of the messages of a chunk on rank `at` with the chunks of each other rank that it exchanges any with, ns.
    pub(super) fn exchanged_ns(&self, chunk: usize, at: Rank) -> Vec<(Rank, u64)> {
        let mut sums: Vec<(Rank, u64)> = Vec::new();
        for stream in self.streams(chunk) {
            let rank = self.assignment.ranks[stream.other as usize];
            let ns = stream.ns[self.way(at, rank)];
            match sums.iter_mut().find(|(known, _)| *known == rank) {
                Some((_, sum)) => *sum += ns,
                None if rank != at => sums.push((rank, ns)),
                None => {}
            }
        }
        sums
    }

    /// Time that the messages of a chunk with others of its rank `from` would take if it were on rank `to`, ns.
    pub(super) fn kept_ns(&self, chunk: usize, from: Rank, to: Rank) -> u64 {
        let streams = self.streams(chunk).iter();
        let kept = streams.filter(|stream| self.assignment.ranks[stream.other as usize] == from);
        kept.map(|stream| stream.ns[self.way(from, to)]).sum()
    }

    fn streams(&self, chunk: usize) -> &[Stream] {
        self.traffic.as_ref().map_or(&[], |(streams, _)| streams.of(chunk))
    }

    /// The link between two ranks: 0 within a host, 1 between hosts.
    fn way(&self, one: Rank, other: Rank) -> usize {
        usize::from(self.hosts[one.index()] != self.hosts[other.index()])
    }

    /// The mean of the squares of completion times.
    pub(super) fn mean_square(&self) -> f64 {
        self.squares / self.hosts.len() as f64
    }

    pub(super) fn rank_of(&self, chunk: usize) -> Rank {
        self.assignment.ranks[chunk]
    }

    /// The rank of the chunk in the snapshot.
    pub(super) fn home(&self, chunk: usize) -> Rank {
        self.snapshot.chunks[chunk].rank
    }

    pub(super) fn is_available(&self, rank: Rank) -> bool {
        self.snapshot.ranks.get(rank.index()).is_some_and(|rank| rank.available)
    }

    pub(super) fn available(&self) -> &[Rank] {
        &self.loads.available
    }

    /// Chunks away from the rank of the snapshot.
    pub(super) fn moved(&self) -> &[u32] {
        &self.moved
    }

    pub(super) fn ticks(&self, chunk: usize) -> u64 {
        self.snapshot.chunks[chunk].ticks
    }

    /// Chunks of a rank that may move.
    pub(super) fn held(&self, rank: Rank) -> &[u32] {
        &self.held[rank.index()]
    }

    /// True if the chunk fits into the memory of the rank.
    pub(super) fn fits(&self, chunk: usize, rank: Rank) -> bool {
        self.memory.as_ref().is_none_or(|memory| memory.fits(chunk, rank))
    }

    /// The bytes by which a rank exceeds its limit.
    pub(super) fn excess(&self, rank: Rank) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.excess(rank))
    }

    /// A chunk with which this chunk exchanges messages, drawn at random.
    pub(super) fn partner(&self, chunk: usize, rng: &mut Pcg64Mcg) -> Option<usize> {
        let streams = self.streams(chunk);
        (!streams.is_empty()).then(|| streams[below(rng, streams.len())].other as usize)
    }

    /// True if the chunk is on this rank and may move.
    pub(super) fn may_leave(&self, chunk: usize, rank: Rank) -> bool {
        self.rank_of(chunk) == rank && self.snapshot.chunks[chunk].migratable
    }

    /// The rank of a chunk that uses the same block, drawn at random.
    pub(super) fn sharer(&self, chunk: usize, rng: &mut Pcg64Mcg) -> Option<Rank> {
        let sharers = self.memory.as_ref()?.sharers(chunk)?;
        Some(self.rank_of(sharers[below(rng, sharers.len())]))
    }

    /// The other chunks of a rank that may move and use the same block.
    pub(super) fn sharers_on(&self, chunk: usize, rank: Rank) -> Vec<usize> {
        let sharers = self.memory.as_ref().and_then(|memory| memory.sharers(chunk)).unwrap_or_default();
        let goes_along = |&other: &usize| other != chunk && self.may_leave(other, rank);
        sharers.iter().copied().filter(goes_along).take(SHARERS_MAX).collect()
    }

    /// Moves a chunk that may move to an available rank. O(streams of the chunk + log ranks).
    pub(super) fn transfer(&mut self, chunk: usize, to: Rank) {
        let from = std::mem::replace(&mut self.assignment.ranks[chunk], to);
        if from == to {
            return;
        }
        let ticks = self.loads.clamp_load(self.snapshot.chunks[chunk].ticks);
        self.loads.ticks[from.index()] -= ticks;
        self.loads.ticks[to.index()] += ticks;
        if let Some(memory) = &mut self.memory {
            memory.transfer(chunk, from, to);
        }
        self.reseat(chunk, from, to);
        self.redirect(chunk, from, to);
        self.retime(from.index());
        self.retime(to.index());
    }

    /// Updates the traffic of all ranks that exchange messages with a chunk.
    fn redirect(&mut self, chunk: usize, from: Rank, to: Rank) {
        let Some((streams, traffic)) = &mut self.traffic else { return };
        let mut others = Vec::new();
        for stream in streams.of(chunk) {
            let other = self.assignment.ranks[stream.other as usize];
            let way = |rank: Rank| usize::from(self.hosts[rank.index()] != self.hosts[other.index()]);
            let Traffic { sent, received } = traffic;
            let (own, others_side) = if stream.sends { (sent, received) } else { (received, sent) };
            if other != from {
                let ns = stream.ns[way(from)];
                own[from.index()] -= ns;
                others_side[other.index()] -= ns;
            }
            if other != to {
                let ns = stream.ns[way(to)];
                own[to.index()] += ns;
                others_side[other.index()] += ns;
            }
            if other != from && other != to && way(from) != way(to) {
                others.push(other);
            }
        }
        others.into_iter().for_each(|rank| self.retime(rank.index()));
    }

    /// Updates the lists of chunks by rank and of moved chunks.
    fn reseat(&mut self, chunk: usize, from: Rank, to: Rank) {
        take_out(&mut self.held[from.index()], &mut self.seats, chunk);
        put_in(&mut self.held[to.index()], &mut self.seats, chunk);
        let home = self.snapshot.chunks[chunk].rank;
        if from == home {
            put_in(&mut self.moved, &mut self.moved_at, chunk);
        } else if to == home {
            take_out(&mut self.moved, &mut self.moved_at, chunk);
        }
    }

    /// Computes the time of a rank anew.
    fn retime(&mut self, rank: usize) {
        let traffic_ns = self.traffic.as_ref().map_or(0, |(_, traffic)| traffic.ns(rank));
        let time = self.loads.ticks[rank] as f64 / self.loads.capacity[rank] + traffic_ns as f64;
        let before = self.times.time(rank);
        self.squares += time * time - before * before;
        self.times.set(rank, time);
    }
}

/// Appends a chunk to a list that knows the position of each of its chunks.
fn put_in(list: &mut Vec<u32>, positions: &mut [u32], chunk: usize) {
    positions[chunk] = list.len() as u32;
    list.push(chunk as u32);
}

/// Takes a chunk out of such a list. The last chunk takes its position.
fn take_out(list: &mut Vec<u32>, positions: &mut [u32], chunk: usize) {
    let position = positions[chunk];
    list.swap_remove(position as usize);
    if let Some(&last) = list.get(position as usize) {
        positions[last as usize] = position;
    }
}
