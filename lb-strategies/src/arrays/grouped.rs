//! Decides a balancing window on two levels, so that no rank needs the loads of all chunks.
//!
//! ```text
//! reports of a group --> GroupBalancer --> GroupReport: moves, and sums of ranks
//! all GroupReports   --> GroupedWindow --> Decision of the moves within groups
//!   a group is late, and the window is an n-th one: it asks late groups for offers
//! GroupBalancer      --> Offer: chunks of the latest ranks, for that much work
//! all Offers         --> GroupedWindow --> Decision of all moves
//! ```
//!
//! A [`GroupBalancer`] has the whole [`Balancer`] for its ranks: predictions, prices and judgement. Between groups only
//! sums count, so no prediction is made there. Work is compared in ticks, whose unit is the fastest rank of a group;
//! [`GroupReport::fastest`] converts between groups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::balancer::{Balancer, ChunkReport, Decision, Move, PhaseReport, UndecidedWindows};
use super::groups::{Exchange, Groups, Hierarchy};
use super::loads::Loads;
use super::predict::Prediction;
use super::snapshot::{ChunkId, ChunkLoad};
use super::strategy::Strategy;
use super::window_policy::Look;
use crate::rank::Rank;

/// The part of the chunks of a group that may come or go before their old loads are forgotten.
const CHANGED_MAX: f64 = 0.01;

/// A rank in a [`GroupReport`].
///
/// ```
/// assert_eq!(lb_strategies::grouped::RankSum::default().chunks, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankSum {
    /// Share times speed, relative to the fastest rank of the group.
    pub capacity: f64,
    /// Estimated part of its vCPUs that the rank gets.
    pub share: f64,
    /// Completion time in the phase that ended, ns.
    pub before_ns: u64,
    /// Completion time of the phase that ended after the moves within the group, ns.
    pub predicted_ns: u64,
    /// Number of chunks after the moves within the group.
    pub chunks: u32,
}

/// What a group reports of a window in place of the loads of its chunks.
///
/// ```
/// assert!(lb_strategies::grouped::GroupReport::default().moves.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The first rank of the group.
    pub first: Rank,
    /// The ranks of the group, in order.
    pub ranks: Vec<RankSum>,
    /// The moves within the group, and the moves that the program wants.
    pub moves: Vec<Move>,
    /// Speed of the fastest rank, as measured.
    pub fastest: f64,
    /// True if chunks declare their loads, which are then in the same unit in all groups.
    pub declared: bool,
    /// Time that the strategy took, ns; none if it was not asked.
    pub took_ns: Option<u64>,
    /// Number of moves that the strategy proposed.
    pub proposed: u64,
    /// True if the proposal is carried out.
    pub accepted: bool,
    /// Gain of the proposal in one phase, and the gain above which it is carried out, ns.
    pub gain_ns: u64,
    /// See [`gain_ns`](Self::gain_ns).
    pub needed_ns: u64,
    /// Ideal time of this phase and the undecided windows before it, ns.
    pub ideal_ns: u64,
    /// The predictor of loads.
    pub prediction: Prediction,
    /// Expected time of the moves, ns.
    pub move_ns: u64,
    /// Number of messages that the chunks handled since the last decision.
    pub handled: u64,
}

/// A chunk that a late group gives.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, Rank, grouped::Offer};
/// let offer = Offer { chunk: ChunkId { array: ArrayId(0), key: 7 }, rank: Rank(3), ticks: 1_000_000 };
/// assert_eq!(offer.rank, Rank(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The chunk.
    pub chunk: ChunkId,
    /// Its rank.
    pub rank: Rank,
    /// Its measured load.
    pub ticks: u64,
}

/// Balances the ranks of one group. The first rank of the group has it.
///
/// ```
/// use lb_strategies::{ARRAYS, Rank, grouped::GroupBalancer};
/// let strategy = ARRAYS.parse("hierarchical")?.into();
/// let group = GroupBalancer::new(strategy, Rank(64), 2);
/// assert!(!group.is_deciding());
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct GroupBalancer {
    /// None while it decides elsewhere.
    balancer: Option<Balancer>,
    first: Rank,
    size: u32,
    hierarchy: Hierarchy,
    undecided: UndecidedWindows,
    /// Moves that the program wants, out of the group.
    wanted: Vec<Move>,
    /// Speed of the fastest rank in the last report.
    fastest: f64,
    /// True if a chunk of the last report declares its load.
    declared: bool,
    /// The chunks of the last report.
    members: BTreeSet<ChunkId>,
    /// Chunks that may be offered after the last decision.
    offered: Vec<Offer>,
    /// By rank, the completion time after the last decision, ns, and the capacity.
    times_ns: Vec<u64>,
    capacity: Vec<f64>,
    moved: bool,
    /// Messages that the chunks handled since the last decision.
    handled: u64,
}

impl GroupBalancer {
    /// The balancer of `size` ranks from `first` on. `strategy` must have a hierarchy.
    ///
    /// # Panics
    /// If the strategy has none.
    pub fn new(strategy: Arc<dyn Strategy>, first: Rank, size: u32) -> Self {
        let hierarchy = strategy.terms().hierarchy.expect("a strategy on two levels");
        let inner = strategy.within_group().map_or(strategy, Arc::from);
        Self {
            balancer: Some(Balancer::new(inner)),
            first,
            size,
            hierarchy,
            undecided: UndecidedWindows::default(),
            wanted: Vec::new(),
            fastest: 0.0,
            declared: false,
            members: BTreeSet::new(),
            offered: Vec::new(),
            times_ns: Vec::new(),
            capacity: Vec::new(),
            moved: false,
            handled: 0,
        }
    }

    /// Uses this predictor of loads.
    #[must_use]
    pub fn predicting(self, prediction: Prediction) -> Self {
        Self { balancer: self.balancer.map(|balancer| balancer.predicting(prediction)), ..self }
    }

    /// True while a decision is made.
    pub fn is_deciding(&self) -> bool {
        self.balancer.is_none()
    }

    /// Takes the reports of the group in a window, with its ranks counted from 0; only the ranks that programs want for
    /// chunks count from rank 0. Returns the report to decide by and the balancer, if the window is decided.
    pub fn reported(&mut self, mut window: PhaseReport, look: Look) -> Option<(PhaseReport, Balancer)> {
        let handled = window.chunks.iter().map(|chunk| u64::from(chunk.handled)).sum::<u64>();
        let speeds = window.ranks.iter().filter_map(|rank| Some(rank.sample?.speed));
        self.fastest = speeds.fold(0.0, f64::max);
        let wanted = self.take_wanted(&mut window);
        match look {
            Look::Decide => {}
            Look::Collect => {
                self.handled += handled;
                self.undecided.collect(window);
                return None;
            }
            Look::Begin | Look::Wait => {
                self.handled = 0;
                self.undecided.push(window);
                return None;
            }
        }
        self.handled += handled;
        self.wanted = wanted;
        let mut balancer = self.balancer.take()?;
        let report = self.undecided.decide(window);
        self.declared = report.chunks.iter().any(|chunk| chunk.declared);
        let members: BTreeSet<ChunkId> = report.chunks.iter().map(|chunk| chunk.load.id).collect();
        let changed = members.symmetric_difference(&self.members).count();
        if changed as f64 > CHANGED_MAX * members.len() as f64 {
            balancer.forget_loads();
        }
        self.members = members;
        Some((report, balancer))
    }

    /// Takes the chunks that their program sends to another group out of the reports, with those that go along.
    fn take_wanted(&self, window: &mut PhaseReport) -> Vec<Move> {
        let first = self.first.0;
        let members = first..first + self.size;
        let leaders = std::mem::take(&mut window.leaders);
        let leader = |chunk: ChunkId| ChunkId {
            array: leaders.get(chunk.array.index()).copied().unwrap_or(chunk.array),
            ..chunk
        };
        let mut wishes: Vec<(ChunkId, Rank)> =
            window.chunks.iter().filter_map(|chunk| Some((chunk.load.id, chunk.wish?))).collect();
        wishes.sort_unstable();
        // The first wish of several chunks that go together counts.
        let mut wish_of: BTreeMap<ChunkId, Rank> = BTreeMap::new();
        for (chunk, to) in wishes {
            wish_of.entry(leader(chunk)).or_insert(to);
        }
        wish_of.retain(|_, to| !members.contains(&to.0));
        let leaves = |chunk: &mut ChunkReport| wish_of.contains_key(&leader(chunk.load.id));
        let leaving = window.chunks.extract_if(.., leaves);
        let mut wanted: Vec<Move> = leaving
            .map(|chunk| {
                let from = Rank(first + chunk.load.rank.0);
                Move { chunk: chunk.load.id, from, to: wish_of[&leader(chunk.load.id)] }
            })
            .collect();
        wanted.sort_unstable_by_key(|one| one.chunk);
        for chunk in &mut window.chunks {
            chunk.wish = chunk.wish.filter(|to| members.contains(&to.0)).map(|to| Rank(to.0 - first));
        }
        window.leaders = leaders;
        wanted
    }

    /// Forgets the windows since the last decision, because rank 0 decides the next one alone.
    pub fn forget_windows(&mut self) {
        self.undecided = UndecidedWindows::default();
        (self.handled, self.wanted) = (0, Vec::new());
    }

    /// Takes the decision on the last reports. Returns what goes to rank 0.
    pub fn decided(&mut self, balancer: Balancer, decision: &Decision) -> GroupReport {
        let first = self.first.0;
        let global = |rank: Rank| Rank(first + rank.0);
        let here = |one: &Move| Move { from: global(one.from), to: global(one.to), ..*one };
        let mut moves: Vec<Move> = decision.moves.iter().map(here).collect();
        self.moved = !moves.is_empty();
        let to: BTreeMap<ChunkId, Rank> = decision.moves.iter().map(|one| (one.chunk, one.to)).collect();
        // Groups are compared by what was measured: predictions of a group are parts of its own sum.
        let mut ticks = vec![0.0; decision.capacity.len()];
        for chunk in balancer.placed() {
            ticks[to.get(&chunk.id).unwrap_or(&chunk.rank).index()] += chunk.ticks as f64;
        }
        let time_ns = |(ticks, capacity): (&f64, &f64)| (ticks / capacity.max(1e-9)) as u64;
        self.times_ns = ticks.iter().zip(&decision.capacity).map(time_ns).collect();
        self.capacity.clone_from(&decision.capacity);
        // A chunk that moves already is not offered, and neither is one of several that go together.
        let goes = |chunk: &&ChunkLoad| chunk.migratable && !to.contains_key(&chunk.id);
        let offer =
            |chunk: &ChunkLoad| Offer { chunk: chunk.id, rank: global(chunk.rank), ticks: chunk.ticks };
        let is_free = balancer.places_single_chunks();
        self.offered = balancer.placed().iter().filter(|_| is_free).filter(goes).map(offer).collect();
        self.balancer = Some(balancer);
        let mut wanted = std::mem::take(&mut self.wanted);
        let mut chunks = decision.chunks_per_rank.clone();
        wanted.iter().for_each(|one| chunks[(one.from.0 - first) as usize] += 1);
        let sum = |rank: usize| RankSum {
            capacity: decision.capacity[rank],
            share: decision.share[rank],
            before_ns: decision.before_ns[rank],
            predicted_ns: self.times_ns[rank],
            chunks: chunks[rank],
        };
        let ranks = (0..decision.capacity.len()).map(sum).collect();
        moves.append(&mut wanted);
        GroupReport {
            first: self.first,
            ranks,
            moves,
            fastest: self.fastest,
            declared: self.declared,
            took_ns: decision.took_ns,
            proposed: decision.proposed,
            accepted: decision.accepted,
            gain_ns: decision.gain_ns,
            needed_ns: decision.needed_ns,
            ideal_ns: decision.ideal_ns,
            prediction: decision.prediction,
            move_ns: decision.move_ns,
            handled: std::mem::take(&mut self.handled),
        }
    }

    /// Chunks for this much work, and half as much again, because not every chunk may fit: each time the heaviest of the
    /// rank that then finishes last. At most [`Hierarchy::offers`] for each rank.
    pub fn offers(&mut self, ticks: u64) -> Vec<Offer> {
        let mut held = vec![Vec::new(); self.size as usize];
        let mut offered = std::mem::take(&mut self.offered);
        offered.sort_unstable_by_key(|offer| (offer.ticks, Reverse(offer.chunk)));
        offered.into_iter().for_each(|offer| held[(offer.rank.0 - self.first.0) as usize].push(offer));
        let ranks = 0..self.capacity.len();
        let mut latest: BinaryHeap<_> = ranks.map(|rank| (self.times_ns[rank], Reverse(rank))).collect();
        let wanted = ticks.saturating_add(ticks / 2);
        let most = self.hierarchy.offers.saturating_mul(self.size as usize);
        let (mut sum, mut offers) = (0_u64, Vec::new());
        while sum < wanted && offers.len() < most {
            let Some((late_ns, Reverse(rank))) = latest.pop() else { break };
            let Some(offer) = held[rank].pop() else { continue };
            let sooner_ns = (offer.ticks as f64 / self.capacity[rank].max(1e-9)) as u64;
            latest.push((late_ns.saturating_sub(sooner_ns), Reverse(rank)));
            sum = sum.saturating_add(offer.ticks);
            offers.push(offer);
        }
        offers
    }

    /// Notes that the moves of the last decision have taken this long, ns.
    pub fn moved(&mut self, took_ns: u64) {
        if std::mem::take(&mut self.moved)
            && let Some(balancer) = &mut self.balancer
        {
            balancer.moved(took_ns);
        }
    }
}

/// A window of all groups. Rank 0 has it.
///
/// ```
/// use lb_strategies::{ARRAYS, grouped::GroupedWindow};
/// let hierarchy = ARRAYS.parse("hierarchical")?.terms().hierarchy.expect("it has two levels");
/// let (window, asks) = GroupedWindow::new(hierarchy, 64, 0, Vec::new());
/// assert!(asks.is_empty() && window.decide().moves.is_empty());
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct GroupedWindow {
    reports: Vec<GroupReport>,
    /// By group, its ticks in units of the fastest rank of all.
    units: Vec<f64>,
    phase: u64,
    loads: Loads,
    exchange: Option<Exchange>,
    /// The late groups, the latest first, each with its offers; none until they have come.
    late: Vec<(usize, Option<Vec<Offer>>)>,
}

impl GroupedWindow {
    /// Adds up the reports of all groups of `size` ranks. Also returns the groups to be asked for offers: the first rank
    /// of each, and the ticks that the group should give.
    pub fn new(
        hierarchy: Hierarchy,
        size: u64,
        phase: u64,
        mut reports: Vec<GroupReport>,
    ) -> (Self, Vec<(Rank, u64)>) {
        reports.sort_by_key(|report| report.first);
        let fastest = reports.iter().map(|report| report.fastest).fold(0.0, f64::max);
        // Ticks and capacities in units of the fastest rank of all.
        let slower = |report: &GroupReport| {
            let is_known = fastest > 0.0 && report.fastest > 0.0;
            if is_known { report.fastest / fastest } else { 1.0 }
        };
        let units = reports.iter().map(|report| if report.declared { 1.0 } else { slower(report) }).collect();
        for report in &mut reports {
            let slower = slower(report);
            for rank in &mut report.ranks {
                rank.capacity *= slower;
                if report.declared {
                    // Declared work is not in units of the group, so a slower group takes longer.
                    let longer = |ns: u64| (ns as f64 / slower) as u64;
                    (rank.before_ns, rank.predicted_ns) = (longer(rank.before_ns), longer(rank.predicted_ns));
                }
            }
        }
        let units: Vec<f64> = units;
        let ranks = || reports.iter().flat_map(|report| &report.ranks);
        let loads = Loads::of_ranks(ranks().map(|rank| (rank.capacity, rank.predicted_ns)));
        let groups = Groups::of_size(ranks().count(), size);
        let is_due = phase.is_multiple_of(hierarchy.every);
        let exchange = is_due.then(|| Exchange::new(&groups, &loads, hierarchy.between)).flatten();
        let late = exchange.as_ref().map(Exchange::late).unwrap_or_default();
        let ask =
            |&(group, ticks): &(usize, u64)| (reports[group].first, (ticks as f64 / units[group]) as u64);
        let asks = late.iter().map(ask).collect();
        let late = late.into_iter().map(|(group, _)| (group, None)).collect();
        (Self { reports, units, phase, loads, exchange, late }, asks)
    }

    /// Takes the offers of the group whose first rank is `first`. Returns true if all offers have come.
    pub fn offered(&mut self, first: Rank, offers: Vec<Offer>) -> bool {
        let group = self.reports.iter().position(|report| report.first == first);
        if let Some((_, place)) = self.late.iter_mut().find(|(late, _)| Some(*late) == group) {
            *place = Some(offers);
        }
        self.late.iter().all(|(_, offers)| offers.is_some())
    }

    /// The decision on the window, with all moves.
    pub fn decide(mut self) -> Decision {
        let mut between = Vec::new();
        let late = std::mem::take(&mut self.late);
        for (group, offers) in late {
            let unit = self.units[group];
            for Offer { chunk, rank, ticks } in offers.unwrap_or_default() {
                let ticks = self.loads.clamp_load((ticks as f64 * unit) as u64);
                let ticks = ticks.min(self.loads.ticks.get(rank.index()).copied().unwrap_or(0));
                let exchange = self.exchange.as_mut();
                let to = exchange.and_then(|exchange| exchange.place(group, rank, ticks, &mut self.loads));
                between.extend(to.map(|to| Move { chunk, from: rank, to }));
            }
        }
        self.sum(between)
    }

    fn sum(&self, between: Vec<Move>) -> Decision {
        let ranks = || self.reports.iter().flat_map(|report| &report.ranks);
        let mut chunks_per_rank: Vec<u32> = ranks().map(|rank| rank.chunks).collect();
        let inner = |report: &GroupReport, to: Rank| {
            (report.first.0..report.first.0 + report.ranks.len() as u32).contains(&to.0)
        };
        let wanted = self
            .reports
            .iter()
            .flat_map(|report| report.moves.iter().filter(move |one| !inner(report, one.to)));
        for one in wanted.chain(&between) {
            chunks_per_rank[one.from.index()] -= 1;
            chunks_per_rank[one.to.index()] += 1;
        }
        let capacity: Vec<f64> = ranks().map(|rank| rank.capacity).collect();
        let before_ns: Vec<u64> = ranks().map(|rank| rank.before_ns).collect();
        let predicted_ns: Vec<u64> =
            (0..capacity.len()).map(|rank| self.loads.completion_ns(Rank(rank as u32))).collect();
        let fair_ns = |times: &[u64]| {
            let work: f64 = times.iter().zip(&capacity).map(|(&ns, capacity)| ns as f64 * capacity).sum();
            work / capacity.iter().sum::<f64>().max(1e-9)
        };
        let imbalance = |times: &[u64]| {
            let fair_ns = fair_ns(times);
            let latest_ns = times.iter().copied().max().unwrap_or(0) as f64;
            if fair_ns > 0.0 { latest_ns / fair_ns } else { 1.0 }
        };
        let all = |of: fn(&GroupReport) -> u64| self.reports.iter().map(of).max().unwrap_or(0);
        let mut moves: Vec<Move> =
            self.reports.iter().flat_map(|report| report.moves.iter().copied()).collect();
        let proposed: u64 = self.reports.iter().map(|report| report.proposed).sum();
        let proposed = proposed + between.len() as u64;
        let accepted = !between.is_empty() || self.reports.iter().any(|report| report.accepted);
        moves.extend(between);
        moves.sort_unstable_by_key(|one| one.chunk);
        Decision {
            phase: self.phase,
            // Without a time, moves would count as scattering.
            took_ns: self
                .reports
                .iter()
                .filter_map(|report| report.took_ns)
                .max()
                .or((!moves.is_empty()).then_some(0)),
            proposed,
            accepted,
            gain_ns: all(|report| report.gain_ns),
            needed_ns: all(|report| report.needed_ns),
            imbalance_before: imbalance(&before_ns),
            imbalance_predicted: imbalance(&predicted_ns),
            bound_ns: fair_ns(&predicted_ns) as u64,
            before_ns,
            predicted_ns,
            // Rank 0 decides alone if memory is limited.
            over_memory: None,
            ideal_ns: all(|report| report.ideal_ns),
            prediction: self.reports.first().map(|report| report.prediction).unwrap_or_default(),
            move_ns: all(|report| report.move_ns),
            unmoved_ns: None,
            chunks_per_rank,
            share: ranks().map(|rank| rank.share).collect(),
            capacity,
            moves,
        }
    }
}

#[cfg(test)]
mod tests;
