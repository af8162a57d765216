//! Improves a plan by single moves and one-for-one swaps between the latest rank and the earliest ones.

use std::collections::BTreeSet;
use std::iter::successors;

use super::Plan;
use crate::arrays::snapshot::Snapshot;
use crate::rank::Rank;

/// The number of earliest ranks that are tried against the latest one.
const PARTNERS: usize = 8;

/// Chunks of a rank that may move: (ticks, position in the snapshot), by rising load. Empty until the rank is looked at.
type MovableChunks = Vec<(u64, usize)>;

/// The chunks of ranks that were not looked at, linked rank by rank: few ranks are ever looked at.
struct UnvisitedRanks<'a> {
    snapshot: &'a Snapshot,
    /// Per rank, the position of its last chunk; none once it is looked at.
    last: Vec<Option<usize>>,
    /// Per chunk, the position of the one before it on the same rank.
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

    /// Puts the chunks of a rank in order, the first time.
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

/// A chunk given, perhaps one got for it, and when the later of the two ranks then finishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Swap {
    later_ns: u64,
    partner: Rank,
    give: (u64, usize),
    get: Option<(u64, usize)>,
}

/// Exchanges chunks until the maximum is at most `settled_ns` or no exchange with the latest rank lowers it.
///
/// Every exchange makes the later of two ranks earlier than the latest was, so the maximum never rises. At most one
/// exchange per rank, and a few more: the tail is long and gains little.
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

/// The exchange after which the later of both ranks is earliest.
fn best_swap(plan: &Plan, held: &[MovableChunks], latest: Rank, partner: Rank) -> Option<Swap> {
    let [from, to] = [latest, partner].map(|rank| plan.loads.capacity[rank.index()]);
    let [ahead, behind] = [latest, partner].map(|rank| plan.loads.ticks[rank.index()]);
    // With x ticks less here and more there both finish together: (ahead - x) / from = (behind + x) / to.
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
