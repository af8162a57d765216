//! What a sync costs the control plane of very many ranks: cores without workers, in virtual time.
//!
//! Every rank has some chunks, which send messages to other ranks and come to a sync; one in [`ONE_MOVES_OF`] moves. What a
//! packet costs is a model: so long under way, and so long in the hands of sender and receiver, who take one after the
//! other. Messages between chunks take their time as well, but are not counted: only what the runtime says is.
//!
//! `cargo test --release -p caribou --lib -- --ignored --nocapture a_table_of_syncs` prints a table.

use lb_strategies::virtual_time::splitmix::mix;
use lb_strategies::virtual_time::{Events, SplitMix64};
use lb_strategies::{Assignment, Snapshot};

use super::idlers::{Idlers, arrival};
use super::*;
use crate::arrays::core::collect::{Arrival, Reports};
use crate::arrays::core::packet::Cargo;
use crate::measure::measured::Sample;
use crate::wire::encoded_bytes;

/// Of so many chunks one moves.
const ONE_MOVES_OF: u64 = 100;
/// Ranks that chunks of a rank send messages to: the next ones, and others by chance.
const NEIGHBOURS: u32 = 4;
const STRANGERS: u32 = 4;
/// The network: 2 us under way, 0.5 us and 0.1 ns a byte in the hands of each of the two.
const UNDER_WAY_NS: u64 = 2_000;
const PACKET_NS: u64 = 500;
const BYTES_A_NS: u64 = 10;
/// What a chunk that moves weighs, beside what its packet says.
const STATE_BYTES: u64 = 4096;

/// What a sync has cost.
#[derive(Debug)]
struct Cost {
    moved: usize,
    /// Packets sent and received by the rank that has most of them, and by all.
    busiest_packets: u64,
    all_packets: u64,
    /// Bytes sent and received by the rank that has most of them.
    busiest_bytes: u64,
    /// From the first report until the last rank has landed.
    time_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Load {
    packets: u64,
    bytes: u64,
}

struct Drive {
    cores: Vec<RankCore>,
    /// When each rank is through with what it has in hand.
    free_ns: Vec<u64>,
    cells: Vec<u32>,
    loads: Vec<Load>,
    under_way: Events<(Rank, Rank, Packet)>,
    moved: usize,
    landed: usize,
    /// The moves encoded last, by where they lie, and their length: there are as many packets of them as ranks.
    encoded_moves: (usize, u64),
}

/// One sync of `ranks` that have `chunks` each.
fn sync_of(ranks: u32, chunks: u64) -> Cost {
    let places = vec![RankPlace { host: 0, workers: 1 }; ranks as usize];
    let home = |key: u64, ranks: u32| Rank((key % u64::from(ranks)) as u32);
    let idlers: Arc<dyn ErasedArray> = Arc::new(Idlers { chunks: chunks * u64::from(ranks), home });
    let (arrays, strategy) =
        (Arc::from([idlers]), lb_strategies::ARRAYS.parse("rotate").expect("it is there"));
    let strategy: Arc<dyn Strategy> = strategy.into();
    let core = |rank| RankCore::new(Rank(rank), &places, Arc::clone(&arrays), strategy.clone(), false, u64::MAX, 0);
    let mut drive = Drive {
        cores: (0..ranks).map(core).collect(),
        free_ns: vec![0; ranks as usize],
        cells: vec![chunks as u32; ranks as usize],
        loads: vec![Load::default(); ranks as usize],
        under_way: Events::default(),
        moved: 0,
        landed: 0,
        encoded_moves: (0, 0),
    };
    (0..ranks).for_each(|rank| drive.talk(Rank(rank)));
    (0..ranks).for_each(|rank| drive.come_to_sync(Rank(rank), chunks));
    drive.run()
}

impl Drive {
    fn run(mut self) -> Cost {
        let mut out = Actions::new();
        while let Some((at_ns, (from, to, packet))) = self.under_way.pop() {
            let now_ns = self.take_time(to, at_ns, &packet);
            self.cores[to.index()].receive(from, packet, now_ns, &mut out);
            self.carry_out(to, &mut out);
        }
        assert_eq!(self.landed, self.cores.len(), "every rank has landed");
        Cost {
            moved: self.moved,
            busiest_packets: self.loads.iter().map(|load| load.packets).max().unwrap_or(0),
            all_packets: self.loads.iter().map(|load| load.packets).sum::<u64>() / 2,
            busiest_bytes: self.loads.iter().map(|load| load.bytes).max().unwrap_or(0),
            time_ns: self.free_ns.iter().copied().max().unwrap_or(0),
        }
    }

    /// Chunks of a rank send a message each to some others.
    fn talk(&mut self, from: Rank) {
        let ranks = self.cores.len() as u32;
        let mut rng = SplitMix64::new(from.0.into());
        let neighbours = (1..=NEIGHBOURS).map(|ahead| from.0 + ahead);
        let strangers = (0..STRANGERS).map(|_| rng.number() as u32);
        for to in neighbours.chain(strangers.collect::<Vec<_>>()).map(|to| Rank(to % ranks)) {
            if to != from {
                let chunk = ChunkId { array: ArrayId(0), key: to.0.into() };
                let delivery = Delivery { from: Sender::RUNTIME, payload: Payload::Resume };
                let mut out = Actions::new();
                self.cores[from.index()].send_message(Envelope { to: chunk, delivery }, &mut out);
                self.carry_out(from, &mut out);
            }
        }
    }

    fn come_to_sync(&mut self, rank: Rank, chunks: u64) {
        let mut out = Actions::new();
        let keys = (0..chunks).map(|chunk| u64::from(rank.0) + chunk * self.cores.len() as u64);
        let arrivals =
            keys.zip(0..).map(|(key, cell)| Arrival { cell: CellId(cell), ..arrival(key, SyncId(0)) });
        let arrivals: Vec<Arrival> = arrivals.collect();
        let core = &mut self.cores[rank.index()];
        arrivals.iter().for_each(|arrival| core.created(arrival.chunk, arrival.cell));
        for arrival in arrivals {
            assert!(core.at_sync(arrival, &mut out), "it waits for a decision");
        }
        self.carry_out(rank, &mut out);
    }

    /// The time at which a rank is through with a packet that it takes in hand, now or when it is free.
    fn take_time(&mut self, rank: Rank, now_ns: u64, packet: &Packet) -> u64 {
        let bytes = self.bytes_of(packet);
        if !matches!(packet, Packet::Message(_)) {
            self.loads[rank.index()].packets += 1;
            self.loads[rank.index()].bytes += bytes;
        }
        let free_ns = &mut self.free_ns[rank.index()];
        *free_ns = now_ns.max(*free_ns) + PACKET_NS + bytes / BYTES_A_NS;
        *free_ns
    }

    fn bytes_of(&mut self, packet: &Packet) -> u64 {
        match packet {
            Packet::Moves { moves, .. } => {
                let lie_at = moves.as_ptr() as usize;
                if self.encoded_moves.0 != lie_at {
                    self.encoded_moves = (lie_at, encoded_bytes(packet));
                }
                self.encoded_moves.1
            }
            Packet::Arrive(_) => encoded_bytes(packet) + STATE_BYTES,
            _ => encoded_bytes(packet),
        }
    }

    fn carry_out(&mut self, rank: Rank, out: &mut Actions) {
        let mut later = Vec::new();
        loop {
            let core = &mut self.cores[rank.index()];
            let Some(action) = out.pop_front().or_else(|| (!later.is_empty()).then(|| later.remove(0)))
            else {
                return;
            };
            let now_ns = self.free_ns[rank.index()];
            match action {
                Action::Send(to, packet) => {
                    let sent_ns = self.take_time(rank, now_ns, &packet);
                    self.under_way.at(sent_ns + UNDER_WAY_NS, (rank, to, packet));
                }
                Action::Hold(cells) => cells.iter().for_each(|_| core.held(now_ns, out)),
                Action::Admit(traveller) => {
                    let cell = &mut self.cells[rank.index()];
                    *cell += 1;
                    core.admit(traveller.chunk, CellId(*cell), traveller.journey, SyncId(1));
                }
                Action::Landed => self.landed += 1,
                Action::Deliver { .. } | Action::Close(_) | Action::BeginPhase => {}
                first_then_later @ (Action::Release { .. } | Action::Sample(_) | Action::Decide(_))
                    if !out.is_empty() =>
                {
                    later.push(first_then_later);
                }
                Action::Release { chunk, to, journey, .. } => {
                    let (cargo, journey) = (Cargo::Follows, Some(journey));
                    let traveller = Traveller { chunk, cargo, mail: Vec::new(), bytes: STATE_BYTES, journey };
                    core.released(Box::new(traveller), to, now_ns, out);
                }
                Action::Sample(reports) => Self::sample(core, reports, now_ns, out),
                Action::Decide(expected) => self.decide(&expected, out),
                other => panic!("{other:?} has no part in a sync"),
            }
        }
    }

    fn sample(core: &mut RankCore, reports: Reports, now_ns: u64, out: &mut Actions) {
        // As long as real ones: they are encoded in as many bytes as they need.
        let ns = 3_000_000_000;
        let sample =
            Sample { at_ns: ns, wall_ns: ns, cpu_ns: ns, chunk_ns: ns, idle_ns: ns, ..Sample::default() };
        let loads = vec![10_000_000; reports.arrivals.len()];
        core.sampled(reports, sample, &loads, now_ns, out);
    }

    fn decide(&mut self, expected: &Snapshot, out: &mut Actions) {
        let ranks = self.cores.len() as u64;
        let mut assignment = Assignment::current(expected);
        for (chunk, to) in expected.chunks.iter().zip(&mut assignment.ranks) {
            let by_chance = mix(chunk.id.key);
            if by_chance.is_multiple_of(ONE_MOVES_OF) {
                *to = Rank((by_chance / ONE_MOVES_OF % ranks) as u32);
                self.moved += usize::from(*to != chunk.rank);
            }
        }
        let now_ns = self.free_ns[0];
        self.cores[0].decided(expected, assignment, 0, now_ns, out);
    }
}

#[test]
#[ignore = "prints a table, for which it takes minutes and some GB"]
fn a_table_of_syncs() {
    println!("      ranks chunks moved  packets: busiest         all   KB: busiest   sync, us");
    for (ranks, chunks) in [(10, 100), (100, 100), (1_000, 100)] {
        let Cost { moved, busiest_packets, all_packets, busiest_bytes, time_ns } = sync_of(ranks, chunks);
        let (kilobytes, time_us) = (busiest_bytes / 1000, time_ns / 1000);
        println!(
            "{ranks:>11} {chunks:>6} {moved:>5} {busiest_packets:>17} {all_packets:>11} {kilobytes:>13} {time_us:>10}"
        );
    }
}
