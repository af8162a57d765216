//! Builds the replayed program with chunks of another size: each divided into equal parts, or neighbours joined.
//!
//! The cost of a chunk on a step has two parts: its messages, each of which takes a fixed time, and its computation. Parts
//! of a chunk share the computation and have messages of their own. Parts exchange messages with each other, and a pair of
//! chunks becomes as many pairs of parts as the boundary between two squares would have.

use std::collections::BTreeSet;

use lb_strategies::Rank;
use virtual_cluster::Home;

use super::recording::Recording;

/// CPU time of a message at its sender and its receiver, over that at its receiver. Measured with `stencil2d`: the time of an
/// iteration with chunks of several sizes.
const MESSAGE_ENDS: f64 = 2.2;
/// CPU time to record the sending and the handling of a message, and the handling alone, ns.
const RECORDING_NS: f64 = 62.0;
const RECORDING_HANDLER_NS: f64 = 40.0;
/// The part of the CPU time of a chunk that may at most be that of messages, and of recording. More is a wrong estimate.
const PART_MAX: f64 = 0.8;

/// The size of chunks, relative to those of the recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Size {
    /// As recorded.
    Same,
    /// Each chunk divided into so many.
    Divided(u32),
    /// So many chunks joined to one; a power of two.
    Joined(u32),
}

impl Size {
    /// Number of chunks, relative to the recorded run.
    pub(super) fn factor(self) -> f64 {
        match self {
            Size::Same => 1.0,
            Size::Divided(parts) => f64::from(parts),
            Size::Joined(count) => 1.0 / f64::from(count),
        }
    }
}

/// A chunk of the replayed program.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    /// The recorded chunks whose computation it has.
    sources: Vec<u32>,
    /// The part of their computation.
    part: f64,
    /// Number of messages that it handles on a step.
    messages: u32,
    /// Number of messages that the recorded chunks handle on a step.
    recorded: u32,
}

/// A program to replay.
#[derive(Clone, Debug)]
pub(super) struct Program<'r> {
    recording: &'r Recording,
    pieces: Vec<Piece>,
    /// Number of messages that each recorded chunk handles on a step.
    received: Vec<u32>,
    pub(super) homes: Vec<Home>,
    pub(super) sends_to: Vec<Vec<u32>>,
    pub(super) state_bytes: u64,
    pub(super) message_bytes: u64,
}

impl<'r> Program<'r> {
    /// The program with chunks of this size; none if they cannot be joined so far.
    pub(super) fn new(recording: &'r Recording, size: Size) -> Option<Program<'r>> {
        let recorded = Program::recorded(recording);
        match size {
            Size::Same => Some(recorded),
            Size::Divided(parts) => Some(recorded.divided(parts)),
            Size::Joined(count) => (0..count.ilog2()).try_fold(recorded, |program, _| program.joined()),
        }
    }

    fn recorded(recording: &'r Recording) -> Program<'r> {
        let chunks = recording.chunks();
        let mut sends_to = vec![Vec::new(); chunks];
        let mut received = vec![0; chunks];
        for &(from, to) in &recording.edges {
            sends_to[from as usize].push(to);
            received[to as usize] += 1;
        }
        let piece = |(chunk, &messages): (u32, &u32)| Piece {
            sources: vec![chunk],
            part: 1.0,
            messages,
            recorded: messages,
        };
        Program {
            recording,
            pieces: (0..).zip(&received).map(piece).collect(),
            received,
            homes: recording.homes.clone(),
            sends_to,
            state_bytes: recording.state_bytes,
            message_bytes: recording.message_bytes,
        }
    }

    /// Number of chunks.
    pub(super) fn chunks(&self) -> u32 {
        self.pieces.len() as u32
    }

    /// The work of a chunk on a step, in seconds on the fastest vCPU, without what recording took. Each message takes
    /// `lock_ns` more than recorded.
    pub(super) fn work(&self, chunk: u32, step: usize, lock_ns: f64) -> f64 {
        let piece = &self.pieces[chunk as usize];
        let row = &self.recording.work[step % self.recording.steps()];
        let message_ns = (self.recording.message_ns as f64 - RECORDING_HANDLER_NS).max(0.0) * MESSAGE_ENDS
            + self.recording.keep_ns;
        let recorded =
            |&source: &u32| (f64::from(row[source as usize]), f64::from(self.received[source as usize]));
        let (mut computation_ns, mut messages_ns, mut is_idle) = (0.0, 0.0, true);
        for (ns, received) in piece.sources.iter().map(recorded).filter(|(ns, _)| *ns > 0.0) {
            let ns = ns - (RECORDING_NS * received).min(PART_MAX * ns);
            let of_messages = (message_ns * received).min(PART_MAX * ns);
            computation_ns += ns - of_messages;
            messages_ns += of_messages * f64::from(piece.messages) / f64::from(piece.recorded.max(1));
            is_idle = false;
        }
        if is_idle {
            return 0.0;
        }
        (piece.part * computation_ns + messages_ns + lock_ns * f64::from(piece.messages)) / 1e9
    }

    /// The work of a chunk of the recorded size on a step, as it was recorded, in seconds on the fastest vCPU.
    pub(super) fn recorded_work(&self, chunk: u32, step: usize) -> f64 {
        f64::from(self.recording.work[step % self.recording.steps()][chunk as usize]) / 1e9
    }

    /// Each chunk divided into `parts`.
    fn divided(self, parts: u32) -> Program<'r> {
        let mut pairs = BTreeSet::new();
        let boundary = f64::from(parts).sqrt().ceil() as u32;
        for chunk in 0..self.chunks() {
            for part in 0..parts {
                let (one, other) = (chunk * parts + part, chunk * parts + (part + 1) % parts);
                if one != other {
                    pairs.extend([(one, other), (other, one)]);
                }
            }
            for (place, &to) in (0..).zip(&self.sends_to[chunk as usize]) {
                // Both directions of a pair of chunks join the same parts.
                let first = if chunk < to { place } else { self.place_of(to, chunk).unwrap_or(place) };
                for part in 0..boundary {
                    let (own, others) = ((first + part) % parts, (first + part + parts / 2) % parts);
                    let (own, others) = if chunk < to { (own, others) } else { (others, own) };
                    pairs.insert((chunk * parts + own, to * parts + others));
                }
            }
        }
        let piece = |piece: &Piece| Piece { part: piece.part / f64::from(parts), ..piece.clone() };
        let times = |piece: Piece| std::iter::repeat_n(piece, parts as usize);
        let pieces = self.pieces.iter().map(piece).flat_map(times).collect();
        let homes = self.homes.iter().flat_map(|&home| std::iter::repeat_n(home, parts as usize)).collect();
        let state_bytes = self.state_bytes.div_ceil(u64::from(parts));
        let message_bytes = self.message_bytes.div_ceil(u64::from(boundary));
        Program { pieces, homes, state_bytes, message_bytes, ..self }.connected(&pairs)
    }

    /// The place of a receiver in the list of a sender.
    fn place_of(&self, from: u32, to: u32) -> Option<u32> {
        self.sends_to[from as usize].iter().position(|&other| other == to).map(|place| place as u32)
    }

    /// Each chunk joined with a neighbour on its rank; none if there is no such pair.
    fn joined(self) -> Option<Program<'r>> {
        let chunks = self.chunks();
        let mut group = vec![u32::MAX; chunks as usize];
        let mut pieces: Vec<Piece> = Vec::new();
        let mut homes = Vec::new();
        for chunk in 0..chunks {
            if group[chunk as usize] != u32::MAX {
                continue;
            }
            let home = self.homes[chunk as usize];
            let is_free = |&other: &u32| {
                other != chunk && group[other as usize] == u32::MAX && self.homes[other as usize] == home
            };
            let beside = self.sends_to[chunk as usize].iter().copied().find(is_free);
            let next = if self.recording.edges.is_empty() { Some(chunk + 1) } else { None };
            let partner = beside.or_else(|| next.filter(|&next| next < chunks).filter(is_free));
            let mut piece = self.pieces[chunk as usize].clone();
            group[chunk as usize] = pieces.len() as u32;
            if let Some(partner) = partner {
                group[partner as usize] = pieces.len() as u32;
                piece.sources.extend(&self.pieces[partner as usize].sources);
                piece.recorded += self.pieces[partner as usize].recorded;
            }
            pieces.push(piece);
            homes.push(home);
        }
        if pieces.len() == chunks as usize
            || pieces.len() < self.recording.workers.iter().sum::<u32>() as usize
        {
            return None;
        }
        let all = (0..).zip(&self.sends_to).flat_map(|(from, to)| to.iter().map(move |&to| (from, to)));
        let pairs = all.map(|(from, to): (u32, u32)| (group[from as usize], group[to as usize]));
        let pairs: BTreeSet<(u32, u32)> = pairs.filter(|(from, to)| from != to).collect();
        Some(Program { pieces, homes, state_bytes: 2 * self.state_bytes, ..self }.connected(&pairs))
    }

    /// The program with these messages, sender first.
    fn connected(mut self, pairs: &BTreeSet<(u32, u32)>) -> Program<'r> {
        self.sends_to = vec![Vec::new(); self.pieces.len()];
        self.pieces.iter_mut().for_each(|piece| piece.messages = 0);
        for &(from, to) in pairs {
            self.sends_to[from as usize].push(to);
            self.pieces[to as usize].messages += 1;
        }
        self
    }

    /// Where chunks begin on so many ranks: in blocks, in the order of their recorded ranks.
    pub(super) fn homes_on(&self, ranks: usize) -> Vec<Home> {
        let mut homes = self.homes.clone();
        if ranks == self.recording.workers.len() {
            return homes;
        }
        let mut order: Vec<usize> = (0..homes.len()).collect();
        order.sort_by_key(|&chunk| (homes[chunk].rank, chunk));
        let chunks = homes.len() as u64;
        for (place, chunk) in (0..).zip(order) {
            homes[chunk].rank = Rank((place * ranks as u64 / chunks.max(1)) as u32);
        }
        homes
    }
}
