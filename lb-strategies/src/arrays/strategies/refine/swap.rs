//! Improves a plan by single moves and one-for-one swaps between the latest rank and the earliest ones.

use std::collections::BTreeSet;
use std::iter::successors;

use super::Plan;
use crate::arrays::snapshot::Snapshot;
use crate::rank::Rank;

/// Number of earliest ranks that the latest rank is compared with.
const PARTNERS: usize = 8;

/// Movable chunks of a rank by rising load: (ticks, position in the snapshot). Empty until the rank is visited.
type MovableChunks = Vec<(u64, usize)>;

/// The chunks of ranks that were not visited, in a linked list per rank, because few ranks are ever visited.
struct UnvisitedRanks<'a> {
    snapshot: &'a Snapshot,
    /// By rank, the position of its last chunk; none once the rank is visited.
    last: Vec<Option<usize>>,
    /// By chunk, the position of the chunk before it on the same rank.
    before: Vec<Option<usize>>,
}

impl<'a> UnvisitedRanks<'a> {
    fn new(snapshot: &'a Snapshot, plan: &Plan) -> Self {
        let mut last = vec![None; snapshot.ranks.len()];
        let positions = plan.assignment.ranks.iter().enumerate();
        let before =
            positions.map(|(position, rank)| last.get_mut(rank.index())?.replace(position)).collect();
        Self { snapshot, last, before }
    }

    /// Sorts the chunks of a rank, on the first visit.
    fn look_at(&mut self, plan: &Plan, rank: Rank, held: &mut [MovableChunks]) {
        let Some(last) = self.last[rank.index()].take() else { return };
        let chunk = |position: usize| (&self.snapshot.chunks[position], position);
        let chunks = successors(Some(last), |&position| self.before[position]).map(chunk);
        let may_move = chunks.filter(|(chunk, _)| chunk.migratable && chunk.ticks > 0);
        let held = &mut held[rank.index()];
        held.extend(may_move.map(|(chunk, position)| (plan.loads.clamp_load(chunk.ticks), position)));
        held.sort_unstable();
    }
}

/// A chunk given, perhaps a chunk taken for it, and the later completion time of the two ranks afterwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Swap {
    later_ns: u64,
    partner: Rank,
    give: (u64, usize),
    get: Option<(u64, usize)>,
}

/// Exchanges chunks until the maximum is at most `settled_ns`, or until no exchange with the latest rank lowers it.
///
/// After an exchange, both ranks finish before the time of the latest rank, so the maximum never rises. There is at
/// most about one exchange per rank, because later exchanges gain little.
pub(crate) fn swap_chunks(snapshot: &Snapshot, plan: &mut Plan, settled_ns: u64) {
    let mut unseen = UnvisitedRanks::new(snapshot, plan);
    let mut held = vec![MovableChunks::new(); snapshot.ranks.len()];
    let mut by_completion: BTreeSet<_> =
        plan.loads.available.iter().map(|&rank| (plan.loads.completion_ns(rank), rank)).collect();

    for _ in 0..snapshot.ranks.len() + 64 {
        let Some(&(latest_ns, latest)) = by_completion.last() else { return };
        let partners =
            by_completion.iter().map(|&(_, rank)| rank).filter(|&rank| rank != latest).take(PARTNERS);
        unseen.look_at(plan, latest, &mut held);
        let exchanges = partners.filter_map(|partner| {
            unseen.look_at(plan, partner, &mut held);
            best_swap(plan, &held, latest, partner)
        });
        let best = exchanges.min();
        let Some(best) = best.filter(|best| best.later_ns < latest_ns && latest_ns > settled_ns) else {
            return;
        };

        for rank in [latest, best.partner] {
            by_completion.remove(&(plan.loads.completion_ns(rank), rank));
        }
        hand_over(plan, &mut held, best.give, latest, best.partner);
        if let Some(get) = best.get {
            hand_over(plan, &mut held, get, best.partner, latest);
        }
        for rank in [latest, best.partner] {
            by_completion.insert((plan.loads.completion_ns(rank), rank));
        }
    }
}

/// The exchange after which the later of the two ranks finishes earliest.
fn best_swap(plan: &Plan, held: &[MovableChunks], latest: Rank, partner: Rank) -> Option<Swap> {
    let [from, to] = [latest, partner].map(|rank| plan.loads.capacity[rank.index()]);
    let [ahead, behind] = [latest, partner].map(|rank| plan.loads.ticks[rank.index()]);
    // With x ticks moved, both finish together: (ahead - x) / from = (behind + x) / to.
    let ideal = (ahead as f64 * to - behind as f64 * from) / (from + to);
    let wanted = |give: u64| give.saturating_sub(ideal.max(0.0) as u64);
    let later_ns = |give: u64, get: u64| {
        let here = ((ahead - give + get) as f64 / from) as u64;
        here.max(((behind - get + give) as f64 / to) as u64)
    };
    let mut best: Option<Swap> = None;
    for &give in &held[latest.index()] {
        let others = &held[partner.index()];
        let near = others.partition_point(|other| other.0 < wanted(give.0));
        let swaps =
            [near.checked_sub(1), Some(near)].map(|near| near.and_then(|near| others.get(near)).copied());
        for get in [None].into_iter().chain(swaps) {
            let later_ns = later_ns(give.0, get.map_or(0, |get| get.0));
            let candidate = Swap { later_ns, partner, give, get };
            best = Some(best.map_or(candidate, |best| best.min(candidate)));
        }
    }
    best
}

fn hand_over(plan: &mut Plan, held: &mut [MovableChunks], chunk: (u64, usize), donor: Rank, receiver: Rank) {
    let [from, to] = [donor, receiver].map(Rank::index);
    if let Ok(at) = held[from].binary_search(&chunk) {
        held[from].remove(at);
    }
    let at = held[to].partition_point(|other| *other < chunk);
    held[to].insert(at, chunk);
    plan.transfer(chunk.1, chunk.0, receiver);
}
