//! Tests the cost of a sync for the control plane of up to 10^5 ranks: cores without workers, in virtual time.
//!
//! Every rank has some chunks, which send messages to other ranks and come to a sync. One chunk in [`ONE_MOVES_OF`]
//! moves. The cost of a packet is a model: a time in flight, and a time for which it occupies its sender and its
//! receiver. A rank handles one packet at a time. Messages between chunks take time too, but only other packets are
//! counted.
//!
//! `cargo test --release -p caribou --lib -- --ignored --nocapture a_table_of_syncs` prints a table.

use lb_strategies::virtual_time::Events;
use lb_strategies::virtual_time::splitmix::mix;

use super::drive::{CoreDriver, Plan};
use super::*;
use crate::arrays::core::collectives::tree::ARITY;
use crate::arrays::core::sync::SyncPacket;
use crate::wire::encoded_bytes;

/// One chunk in this number of chunks moves.
const ONE_MOVES_OF: u64 = 100;
/// One chunk in this number of chunks sends messages to other ranks: to the next chunks, and to some random ones.
const ONE_SENDS_OF: u64 = 100;
const NEIGHBOURS: u64 = 4;
const STRANGERS: u64 = 4;
/// The network: 2 us in flight; the sender and the receiver are each occupied for 0.5 us and 0.1 ns per byte.
pub(super) const UNDER_WAY_NS: u64 = 2_000;
pub(super) const PACKET_NS: u64 = 500;
pub(super) const BYTES_A_NS: u64 = 10;
/// Bytes of the state of a chunk that moves, beside the bytes of its packet.
const STATE_BYTES: u64 = 4096;

/// The cost of a sync.
#[derive(Debug)]
struct Cost {
    moved: usize,
    /// Packets sent and received by the busiest rank.
    busiest_packets: u64,
    /// Packets of all ranks.
    all_packets: u64,
    /// Bytes sent and received by the rank with most bytes.
    busiest_bytes: u64,
    /// From the first report until the migration is complete on the last rank.
    time_ns: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Load {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

struct Network {
    /// Time at which each rank has finished the packets that it has begun, ns.
    free_ns: Vec<u64>,
    loads: Vec<Load>,
    under_way: Events<(Rank, Rank, Packet)>,
}

/// One sync of `ranks` ranks with `chunks` chunks each.
fn sync_of(ranks: u32, chunks: u64) -> Cost {
    let sends_to = |key: u64, plan: Plan| {
        let ahead = (1..=NEIGHBOURS).map(|ahead| key + ahead);
        let by_chance = (1..=STRANGERS).map(|stranger| mix(key * STRANGERS + stranger));
        let sends = mix(!key).is_multiple_of(ONE_SENDS_OF);
        ahead.chain(by_chance).filter(|_| sends).map(|to| to % plan.chunks).collect()
    };
    let goes_to = |key, _, plan: Plan| {
        let by_chance = mix(key);
        let goes = by_chance.is_multiple_of(ONE_MOVES_OF);
        goes.then(|| Rank((by_chance / ONE_MOVES_OF % u64::from(plan.ranks)) as u32))
    };
    let plan = Plan { ranks, arity: ARITY, chunks: chunks * u64::from(ranks), syncs: 1, sends_to, goes_to };
    let mut drive = CoreDriver::new(plan);
    let mut network = Network {
        free_ns: vec![0; ranks as usize],
        loads: vec![Load::default(); ranks as usize],
        under_way: Events::default(),
    };
    for rank in (0..ranks).map(Rank) {
        drive.start(rank, 0);
        network.take(&mut drive, rank);
    }
    let mut time_ns = 0;
    while let Some((at_ns, (from, to, packet))) = network.under_way.pop() {
        let now_ns = network.take_time(to, at_ns, &packet);
        let lands = matches!(packet, Packet::Sync(SyncPacket::CompleteMigration(_)));
        drive.receive(from, to, packet, now_ns);
        network.take(&mut drive, to);
        time_ns = if lands { now_ns } else { time_ns };
    }
    drive.check();
    let loads = network.loads;
    Cost {
        moved: drive.moved,
        busiest_packets: loads.iter().map(|load| load.packets).max().unwrap_or(0),
        all_packets: loads.iter().map(|load| load.packets).sum::<u64>() / 2,
        busiest_bytes: loads.iter().map(|load| load.bytes).max().unwrap_or(0),
        time_ns,
    }
}

impl Network {
    /// Takes the packets that a rank has sent. Each leaves when the rank has finished the packets before. The handlers
    /// of outgoing chunks return at once.
    fn take(&mut self, drive: &mut CoreDriver, rank: Rank) {
        loop {
            for (from, to, packet) in std::mem::take(&mut drive.sent) {
                let sent_ns = self.take_time(from, 0, &packet);
                self.under_way.at(sent_ns + UNDER_WAY_NS, (from, to, packet));
            }
            if drive.running[rank.index()] == 0 {
                return;
            }
            drive.held(rank, self.free_ns[rank.index()]);
        }
    }

    /// The time at which a rank has finished a packet that it begins at `now_ns`, or when the rank is free.
    fn take_time(&mut self, rank: Rank, now_ns: u64, packet: &Packet) -> u64 {
        let bytes = bytes_of(packet);
        if !matches!(packet, Packet::Message(_)) {
            self.loads[rank.index()].packets += 1;
            self.loads[rank.index()].bytes += bytes;
        }
        let free_ns = &mut self.free_ns[rank.index()];
        *free_ns = now_ns.max(*free_ns) + PACKET_NS + bytes / BYTES_A_NS;
        *free_ns
    }
}

pub(super) fn bytes_of(packet: &Packet) -> u64 {
    let state_bytes =
        if matches!(packet, Packet::Lifecycle(LifecyclePacket::TransferChunk(_))) { STATE_BYTES } else { 0 };
    encoded_bytes(packet) + state_bytes
}

#[test]
fn the_packets_of_one_rank_in_a_sync_do_not_grow_with_the_number_of_ranks() {
    let costs = [100, 1_000].map(|ranks| sync_of(ranks, 10));
    for (Cost { busiest_packets, all_packets, .. }, ranks) in costs.iter().zip([100, 1_000]) {
        // Down and up the tree, with each of nine neighbours: `Hello` with the array signatures, loads, moves, counts,
        // expected counts, flushed, completed.
        assert!(*busiest_packets < 7 * 9 + 10, "{busiest_packets} of {ranks}");
        assert!(*all_packets < 8 * ranks, "{all_packets} of {ranks}");
    }
    let [few, many] = costs.map(|cost| (cost.busiest_bytes, cost.time_ns));
    assert!(many.0 < 11 * few.0, "the loads are ten times as many: {few:?} {many:?}");
}

#[test]
#[ignore = "prints a table, for which it takes minutes and some GB"]
fn a_table_of_syncs() {
    println!("      ranks chunks moved  packets: busiest         all   KB: busiest   sync, us");
    for (ranks, chunks) in [(10, 100), (100, 100), (1_000, 100), (10_000, 100), (100_000, 1)] {
        let Cost { moved, busiest_packets, all_packets, busiest_bytes, time_ns } = sync_of(ranks, chunks);
        let (kilobytes, time_us) = (busiest_bytes / 1000, time_ns / 1000);
        println!(
            "{ranks:>11} {chunks:>6} {moved:>5} {busiest_packets:>17} {all_packets:>11} {kilobytes:>13} {time_us:>10}"
        );
    }
}
