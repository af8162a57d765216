//! What moving chunks costs on this machine, learned from the moves that were made.

use super::accept::MoveCost;
use super::balancer::MOVE_COST;
use super::snapshot::{Assignment, Snapshot};

/// The most weight of the newest migration, once the price is known.
const WEIGHT_MAX: f64 = 0.3;
/// The most by which one migration may be dearer than those before, once the price is known: a longer one has waited.
const DEARER_MAX: f64 = 4.0;
/// Bytes that are measured before the price is known. The fewer bytes a migration has, the more of its time it waits for
/// handlers and for vCPUs: one of so many bytes has half the weight.
const BYTES_KNOWN: u64 = 8 << 20;
/// The part of the way that a price goes back to the assumed one in a window without moves.
const RELAXED: f64 = 0.001;
/// Bytes from which a migration tells how fast bytes travel: below, it is mostly waiting for handlers to end.
const BYTES_MIN: u64 = 1 << 20;
/// Bytes that may leave a rank before the price is known.
const BYTES_UNKNOWN: u64 = 16 << 20;

/// The time that bytes take: assumed at first, then what migrations took, by their bytes. Ranks send at the same time, so what
/// counts is what the busiest rank sends or receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovePrice {
    ns_per_byte: f64,
    /// Bytes that were measured.
    measured: u64,
    /// Bytes of the busiest rank in the migration in progress.
    bytes: u64,
}

impl Default for MovePrice {
    fn default() -> MovePrice {
        MovePrice { ns_per_byte: 1e9 / MOVE_COST.bytes_per_second, measured: 0, bytes: 0 }
    }
}

impl MovePrice {
    /// This plan is carried out. Gives the time that its moves are expected to take, ns.
    pub(super) fn begin(&mut self, snapshot: &Snapshot, plan: &Assignment) -> u64 {
        let (chunks, bytes) = busiest(snapshot, plan);
        self.bytes = bytes;
        self.cost().cost_ns(chunks, bytes)
    }

    /// The migration in progress has ended: it has taken this long, ns.
    pub(super) fn end(&mut self, took_ns: u64) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes < BYTES_MIN {
            return;
        }
        let mut ns_per_byte = took_ns as f64 / bytes as f64;
        let mut weight = bytes as f64 / (bytes.saturating_add(BYTES_KNOWN)) as f64;
        if self.is_known() {
            ns_per_byte = ns_per_byte.min(DEARER_MAX * self.ns_per_byte);
            weight = weight.min(WEIGHT_MAX);
        }
        self.ns_per_byte += weight * (ns_per_byte - self.ns_per_byte);
        self.measured = self.measured.saturating_add(bytes);
    }

    fn is_known(&self) -> bool {
        self.measured >= BYTES_KNOWN
    }

    /// Nothing moves: what was once dear may have become cheaper.
    pub(super) fn relax(&mut self) {
        self.ns_per_byte += RELAXED * (1e9 / MOVE_COST.bytes_per_second - self.ns_per_byte);
    }

    /// Time that the moves of a plan take, ns.
    pub(super) fn cost_ns(&self, snapshot: &Snapshot, plan: &Assignment) -> u64 {
        let (chunks, bytes) = busiest(snapshot, plan);
        self.cost().cost_ns(chunks, bytes)
    }

    /// Time of a move, and of its bytes.
    pub(super) fn cost(&self) -> MoveCost {
        MoveCost { bytes_per_second: 1e9 / self.ns_per_byte, ..MOVE_COST }
    }

    /// The part of a plan that may be carried out: its first moves, while the price of bytes is not known.
    pub(super) fn limit(&self, snapshot: &Snapshot, mut plan: Assignment) -> Assignment {
        if self.is_known() {
            return plan;
        }
        let mut sent = vec![0_u64; snapshot.ranks.len()];
        let moves = snapshot.chunks.iter().zip(&mut plan.ranks).filter(|(chunk, to)| chunk.rank != **to);
        for (chunk, to) in moves {
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

/// The most chunks, and the most bytes, that a rank sends or receives in a plan.
fn busiest(snapshot: &Snapshot, plan: &Assignment) -> (usize, u64) {
    let mut sent = vec![(0, 0_u64); snapshot.ranks.len()];
    let mut received = sent.clone();
    for (chunk, to) in plan.moves(snapshot) {
        let ends = [sent.get_mut(chunk.rank.index()), received.get_mut(to.index())];
        for (chunks, bytes) in ends.into_iter().flatten() {
            *chunks += 1;
            *bytes = bytes.saturating_add(chunk.bytes);
        }
    }
    let all = || sent.iter().chain(&received);
    (all().map(|rank| rank.0).max().unwrap_or(0), all().map(|rank| rank.1).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::synthetic::Workload;
    use crate::rank::Rank;

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
        assert_eq!(price.cost(), MOVE_COST);
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

    #[test]
    fn before_the_price_is_known_few_bytes_move() {
        let mut price = MovePrice::default();
        let (snapshot, all) = plan(8);
        assert_eq!(allowed(&price), 2, "one from each rank");
        price.begin(&snapshot, &all);
        price.end(400_000_000);
        assert_eq!(allowed(&price), 8);
    }
}
