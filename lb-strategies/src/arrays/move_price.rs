//! Predicts from earlier migrations how long the moves of a plan take. The balancer compares its gain with this time.

use std::collections::BTreeSet;

use super::accept::MoveCost;
use super::activity::CROSSING_NS;
use super::balancer::MOVE_COST;
use super::snapshot::{Assignment, LinkCost, LinkCosts, Snapshot};
use crate::rank::Rank;

/// Largest weight of the newest migration, once the price is known.
const WEIGHT_MAX: f64 = 0.3;
/// Largest factor by which the newest migration may exceed its expected time, once the price is known. A longer
/// migration has waited for something else.
const DEARER_MAX: f64 = 4.0;
/// Bytes to measure before the price counts as known. The fewer bytes a migration has, the larger is the part of its
/// time in which it waits for handlers and vCPUs. A migration of this size has weight 1/2.
const BYTES_KNOWN: u64 = 8 << 20;
/// The part of the distance to the assumed price that a price returns in a window without moves of its kind.
const RELAXED: f64 = 0.001;
/// Least bytes of a migration for its speed to be learned. A smaller migration mostly waits for handlers to end.
const BYTES_MIN: u64 = 1 << 20;
/// Bytes that may leave a rank before the price is known.
const BYTES_UNKNOWN: u64 = 16 << 20;

/// Time of a message between hosts on each of its two ranks, ns: packing it, and its part of a call of MPI.
const FAR_MESSAGE_NS: f64 = 1_000.0;

/// Whether a move stays within a host. Workers of one rank share its chunks, so nothing moves between them.
#[derive(Clone, Copy)]
enum Way {
    WithinHost,
    BetweenHosts,
}

impl Way {
    const COUNT: usize = 2;

    fn between(snapshot: &Snapshot, from: Rank, to: Rank) -> Way {
        let host = |rank: Rank| snapshot.ranks.get(rank.index()).map_or(0, |rank| rank.host);
        if host(from) == host(to) { Way::WithinHost } else { Way::BetweenHosts }
    }
}

/// The price of bytes for one kind of move: assumed at first, then learned from migrations.
#[derive(Clone, Copy, Debug)]
struct BytePrice {
    ns_per_byte: f64,
    /// Bytes that were measured.
    measured: u64,
}

impl Default for BytePrice {
    fn default() -> BytePrice {
        BytePrice { ns_per_byte: 1e9 / MOVE_COST.bytes_per_second, measured: 0 }
    }
}

impl BytePrice {
    /// Learns that `bytes` bytes have taken `longer` times as long as expected.
    fn learn(&mut self, bytes: u64, mut longer: f64) {
        if bytes < BYTES_MIN {
            return;
        }
        let mut weight = bytes as f64 / (bytes.saturating_add(BYTES_KNOWN)) as f64;
        if self.is_known() {
            longer = longer.min(DEARER_MAX);
            weight = weight.min(WEIGHT_MAX);
        }
        self.ns_per_byte *= 1.0 + weight * (longer - 1.0);
        self.measured = self.measured.saturating_add(bytes);
    }

    fn is_known(&self) -> bool {
        self.measured >= BYTES_KNOWN
    }

    fn relax(&mut self) {
        self.ns_per_byte += RELAXED * (1e9 / MOVE_COST.bytes_per_second - self.ns_per_byte);
    }
}

/// The traffic of a rank in a migration, sent or received.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    chunks: usize,
    /// By [`Way`].
    bytes: [u64; Way::COUNT],
}

impl Traffic {
    fn add(&mut self, way: Way, bytes: u64) {
        self.chunks += 1;
        let sum = &mut self.bytes[way as usize];
        *sum = sum.saturating_add(bytes);
    }
}

impl LinkCosts {
    /// What a run assumes until it has measured the price of a byte: a message takes each of its two ranks 50 ns within a
    /// host and 1 us between hosts, and 0.25 ns for each of its bytes.
    pub fn assumed() -> Self {
        MovePrice::default().links()
    }
}

/// The price of moves. Ranks send at the same time, so the rank that sends or receives longest determines the time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MovePrice {
    /// By [`Way`].
    prices: [BytePrice; Way::COUNT],
    ongoing: Ongoing,
}

/// The migration in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Ongoing {
    /// The expected time of its bytes, ns.
    expected_ns: f64,
    /// By [`Way`]: largest number of bytes that a rank sends or receives.
    bytes: [u64; Way::COUNT],
}

impl MovePrice {
    /// Notes that this plan is carried out. Returns the time that its moves are expected to take, ns.
    pub(super) fn begin(&mut self, snapshot: &Snapshot, plan: &Assignment) -> u64 {
        let all = traffic(snapshot, plan);
        let busiest = self.busiest(&all);
        let most = |way: usize| all.iter().map(|traffic| traffic.bytes[way]).max().unwrap_or(0);
        self.ongoing = Ongoing { expected_ns: self.bytes_ns(&busiest), bytes: std::array::from_fn(most) };
        let unused = self.prices.iter_mut().zip(self.ongoing.bytes).filter(|(_, bytes)| *bytes == 0);
        unused.for_each(|(price, _)| price.relax());
        self.traffic_ns(&busiest)
    }

    /// Learns from the migration in progress, which took this long, ns. The time of each kind of move is not measured.
    /// So the ratio of measured to expected time counts for each kind, until a migration has one kind only.
    pub(super) fn end(&mut self, took_ns: u64) {
        let Ongoing { expected_ns, bytes } = std::mem::take(&mut self.ongoing);
        let longer = took_ns as f64 / expected_ns.max(1.0);
        for (price, bytes) in self.prices.iter_mut().zip(bytes) {
            price.learn(bytes, longer);
        }
    }

    /// Notes that nothing moves. Prices approach the assumed one, because expensive moves may have become cheaper.
    pub(super) fn relax(&mut self) {
        self.prices.iter_mut().for_each(BytePrice::relax);
    }

    /// Time that the moves of a plan take, ns.
    pub(super) fn cost_ns(&self, snapshot: &Snapshot, plan: &Assignment) -> u64 {
        self.traffic_ns(&self.busiest(&traffic(snapshot, plan)))
    }

    /// The cost of a move of the cheapest kind between these ranks.
    pub(super) fn least(&self, snapshot: &Snapshot) -> MoveCost {
        let hosts: BTreeSet<u32> = snapshot.ranks.iter().map(|rank| rank.host).collect();
        let exists = [hosts.len() < snapshot.ranks.len(), hosts.len() > 1];
        let prices = self.prices.iter().zip(exists).filter(|(_, exists)| *exists);
        let ns_per_byte = prices.map(|(price, _)| price.ns_per_byte).reduce(f64::min);
        let bytes_per_second = ns_per_byte.map_or(MOVE_COST.bytes_per_second, |ns| 1e9 / ns);
        MoveCost { bytes_per_second, ..MOVE_COST }
    }

    /// The cost of messages between ranks. A byte of a message costs as much as a byte of a chunk, once enough bytes are
    /// measured: short migrations mostly wait for handlers and vCPUs, and messages do not. The cost of a message itself
    /// is assumed, not measured.
    pub(super) fn links(&self) -> LinkCosts {
        let assumed = BytePrice::default();
        let link = |way: Way, ns_per_message| {
            let price = &self.prices[way as usize];
            let BytePrice { ns_per_byte, .. } = if price.is_known() { *price } else { assumed };
            LinkCost { ns_per_message, ns_per_byte }
        };
        LinkCosts {
            within_host: link(Way::WithinHost, CROSSING_NS / 2.0),
            between_hosts: link(Way::BetweenHosts, FAR_MESSAGE_NS),
        }
    }

    fn bytes_ns(&self, traffic: &Traffic) -> f64 {
        let bytes_ns = |(price, &bytes): (&BytePrice, &u64)| price.ns_per_byte * bytes as f64;
        self.prices.iter().zip(&traffic.bytes).map(bytes_ns).sum()
    }

    fn traffic_ns(&self, traffic: &Traffic) -> u64 {
        MOVE_COST.cost_ns(traffic.chunks, 0).saturating_add(self.bytes_ns(traffic) as u64)
    }

    /// The traffic of the rank that needs longest.
    fn busiest(&self, all: &[Traffic]) -> Traffic {
        all.iter().max_by_key(|traffic| self.traffic_ns(traffic)).copied().unwrap_or_default()
    }

    /// The part of a plan that may be carried out. Of the moves whose price is not known, only the first ones of each
    /// rank remain, up to [`BYTES_UNKNOWN`].
    pub(super) fn limit(&self, snapshot: &Snapshot, mut plan: Assignment) -> Assignment {
        let mut sent = vec![0_u64; snapshot.ranks.len()];
        let moves = snapshot.chunks.iter().zip(&mut plan.ranks).filter(|(chunk, to)| chunk.rank != **to);
        for (chunk, to) in moves {
            if self.prices[Way::between(snapshot, chunk.rank, *to) as usize].is_known() {
                continue;
            }
            let Some(bytes) = sent.get_mut(chunk.rank.index()) else { continue };
            if *bytes > 0 && bytes.saturating_add(chunk.bytes) > BYTES_UNKNOWN {
                *to = chunk.rank;
            } else {
                *bytes = bytes.saturating_add(chunk.bytes);
            }
        }
        plan
    }
}

/// The traffic that each rank sends in a plan, then the traffic that each rank receives.
fn traffic(snapshot: &Snapshot, plan: &Assignment) -> Vec<Traffic> {
    let mut sent = vec![Traffic::default(); snapshot.ranks.len()];
    let mut received = sent.clone();
    for (chunk, to) in plan.moves(snapshot) {
        let way = Way::between(snapshot, chunk.rank, to);
        let ends = [sent.get_mut(chunk.rank.index()), received.get_mut(to.index())];
        ends.into_iter().flatten().for_each(|traffic| traffic.add(way, chunk.bytes));
    }
    sent.append(&mut received);
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;

    /// Four chunks of 10 MB on each of two ranks, of which this many move to the other.
    fn plan(moves: usize) -> (Snapshot, Assignment) {
        let mut snapshot = Workload::Equal.snapshot(8, 2, 1);
        snapshot.chunks.iter_mut().for_each(|chunk| chunk.bytes = 10_000_000);
        let mut plan = Assignment::current(&snapshot);
        plan.ranks.iter_mut().take(moves).for_each(|rank| *rank = Rank(1 - rank.0));
        (snapshot, plan)
    }

    #[test]
    fn the_more_bytes_a_migration_had_the_more_it_says_of_the_price() {
        let mut price = MovePrice::default();
        let (mut snapshot, one) = plan(1);
        snapshot.chunks[0].bytes = 4096;
        price.begin(&snapshot, &one);
        price.end(50_000_000);
        assert_eq!(price.least(&snapshot), MOVE_COST);
        let (snapshot, all) = plan(8);
        let mut costs_ns = (0..16).map(|_| {
            price.begin(&snapshot, &all);
            price.end(400_000_000);
            price.cost_ns(&snapshot, &all)
        });
        let first_ns = costs_ns.next().expect("there are sixteen");
        assert!(
            (300_000_000..350_000_000).contains(&first_ns),
            "four chunks go each way at once: {first_ns}"
        );
        let last_ns = costs_ns.last().expect("there are sixteen");
        assert!((395_000_000..401_000_000).contains(&last_ns), "{last_ns}");
        let mut price = MovePrice::default();
        let (mut snapshot, one) = plan(1);
        snapshot.chunks[0].bytes = 2_000_000;
        price.begin(&snapshot, &one);
        price.end(25_000_000);
        assert!(price.cost_ns(&snapshot, &one) < 6_000_000, "25 ms were mostly waiting: {price:?}");
        assert_eq!(allowed(&price), 2, "the price is not known yet");
    }

    #[test]
    fn a_migration_that_waits_makes_bytes_at_most_twice_as_dear() {
        let mut price = MovePrice::default();
        let (snapshot, all) = plan(8);
        let mut cost_ns = |took_ns| {
            price.begin(&snapshot, &all);
            price.end(took_ns);
            price.cost_ns(&snapshot, &all)
        };
        let usual_ns = (0..20).map(|_| cost_ns(20_000_000)).last().expect("there are twenty");
        assert!(cost_ns(2_000_000_000) < 2 * usual_ns, "{usual_ns}");
        let slower_ns = (0..20).map(|_| cost_ns(2_000_000_000)).last().expect("there are twenty");
        assert!(slower_ns > 1_900_000_000, "a link that stays slow is believed: {slower_ns}");
    }

    /// Number of moves of a plan while the price is as it is.
    fn allowed(price: &MovePrice) -> usize {
        let (snapshot, all) = plan(8);
        price.limit(&snapshot, all).moves(&snapshot).count()
    }

    impl MovePrice {
        /// The moves of a plan take this long, ns.
        fn migrate(&mut self, snapshot: &Snapshot, plan: &Assignment, took_ns: u64) {
            self.begin(snapshot, plan);
            self.end(took_ns);
        }
    }

    /// Ranks 0 and 1 on one host, 2 and 3 on another; a chunk of 10 MB of rank 0 moves to `to`, of `count` chunks.
    fn plan_to(to: u32, count: usize) -> (Snapshot, Assignment) {
        let mut snapshot = Workload::Equal.snapshot(16, 4, 1);
        snapshot.chunks.iter_mut().for_each(|chunk| chunk.bytes = 10_000_000);
        snapshot.ranks.iter_mut().zip([0, 0, 1, 1]).for_each(|(rank, host)| rank.host = host);
        let mut plan = Assignment::current(&snapshot);
        let of_first = snapshot.chunks.iter().zip(&mut plan.ranks).filter(|(chunk, _)| chunk.rank == Rank(0));
        of_first.take(count).for_each(|(_, rank)| *rank = Rank(to));
        (snapshot, plan)
    }

    #[test]
    fn moves_between_hosts_have_a_price_of_their_own() {
        let mut price = MovePrice::default();
        let (snapshot, near) = plan_to(1, 4);
        let (_, far) = plan_to(2, 4);
        for _ in 0..20 {
            price.migrate(&snapshot, &near, 10_000_000);
            price.migrate(&snapshot, &far, 400_000_000);
        }
        let (near_ns, far_ns) = (price.cost_ns(&snapshot, &near), price.cost_ns(&snapshot, &far));
        assert!((9_900_000..10_100_000).contains(&near_ns), "{near_ns}");
        assert!((380_000_000..401_000_000).contains(&far_ns), "{far_ns}");
        assert_eq!(
            price.least(&snapshot).cost_ns(4, 40_000_000),
            near_ns,
            "the cheapest move stays on its host"
        );
        let (mut apart, _) = plan_to(1, 4);
        apart.ranks.iter_mut().zip(0..).for_each(|(rank, host)| rank.host = host);
        assert_eq!(price.least(&apart).cost_ns(4, 40_000_000), far_ns, "no two ranks share a host");
    }

    #[test]
    fn where_bytes_go_both_ways_each_price_is_found() {
        let mut price = MovePrice::default();
        let (snapshot, mut both) = plan_to(1, 4);
        both.ranks.iter_mut().filter(|rank| **rank == Rank(1)).take(2).for_each(|rank| *rank = Rank(2));
        let (_, near) = plan_to(1, 4);
        for _ in 0..60 {
            price.migrate(&snapshot, &both, 205_000_000);
            price.migrate(&snapshot, &near, 10_000_000);
        }
        let (near_ns, both_ns) = (price.cost_ns(&snapshot, &near), price.cost_ns(&snapshot, &both));
        assert!((9_000_000..11_000_000).contains(&near_ns), "{near_ns}");
        assert!((180_000_000..230_000_000).contains(&both_ns), "{both_ns}");
    }

    #[test]
    fn each_way_of_a_migration_is_learned_from_though_another_was_expected_to_take_longer() {
        let mut price = MovePrice::default();
        let (snapshot, near) = plan_to(1, 2);
        let mut both = near.clone();
        let of_third = snapshot.chunks.iter().position(|chunk| chunk.rank == Rank(2)).expect("it has four");
        both.ranks[of_third] = Rank(0);
        for _ in 0..60 {
            price.migrate(&snapshot, &both, 400_000_000);
            price.migrate(&snapshot, &near, 5_000_000);
        }
        let (near_ns, both_ns) = (price.cost_ns(&snapshot, &near), price.cost_ns(&snapshot, &both));
        assert!((4_500_000..6_000_000).contains(&near_ns), "{near_ns}");
        assert!((350_000_000..410_000_000).contains(&both_ns), "{both_ns}");
    }

    #[test]
    fn only_ways_without_a_price_are_tried_with_few_bytes() {
        let mut price = MovePrice::default();
        let (snapshot, near) = plan_to(1, 4);
        let (_, far) = plan_to(2, 4);
        price.migrate(&snapshot, &near, 10_000_000);
        let moves = |plan| price.limit(&snapshot, plan).moves(&snapshot).count();
        assert_eq!((moves(near), moves(far)), (4, 1));
    }

    #[test]
    fn a_short_migration_that_waits_makes_messages_no_dearer() {
        let mut price = MovePrice::default();
        let assumed = price.links();
        let (snapshot, one) = plan_to(2, 1);
        let mut small = snapshot.clone();
        small.chunks.iter_mut().for_each(|chunk| chunk.bytes = 2_000_000);
        price.migrate(&small, &one, 170_000_000);
        assert_eq!(price.links(), assumed);
        price.migrate(&snapshot, &one, 80_000_000);
        assert!(price.links().between_hosts.ns_per_byte > assumed.between_hosts.ns_per_byte);
    }

    #[test]
    fn before_the_price_is_known_few_bytes_move() {
        let mut price = MovePrice::default();
        let (snapshot, all) = plan(8);
        assert_eq!(allowed(&price), 2, "one from each rank");
        price.migrate(&snapshot, &all, 400_000_000);
        assert_eq!(allowed(&price), 8);
    }
}
