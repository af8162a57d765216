//! Decides from the reports of a phase (the time between two syncs, or a balancing window) which chunks go to which
//! ranks for the next phase. Rank 0 of a run calls [`Balancer`] without a lock, and so do replays of recorded reports.
//!
//! ```text
//! PhaseReport --> estimate (share, speed) --> ticks --> history --> predict        report
//!    Snapshot --> worth_asking?                                                     declines
//!    Snapshot --> Strategy::assign --> Assignment                                   the strategy's own
//!    Snapshot, Assignment --> accept --> Decision                                   settle
//! ```
//!
//! The balancer does no IO and reads no clock. Equal reports, strategy and durations of the strategy give equal
//! decisions.
//!
//! # When the strategy is called
//! A strategy whose moves must pay is not called (*asked*) if no plan could save the time of the call:
//!
//! 1. The assumed time of a call is the least that the strategy ever took, because other load delayed the slower calls.
//! 2. The best achievable gain is the distance to [`bound_ns`]. Messages that the last answer of the strategy left between
//!    ranks are expected to stay there.
//! 3. Gains that were forgone while the strategy was not asked add up.
//! 4. The strategy is asked once these gains and the best achievable gain of the next phase exceed that time and the
//!    cheapest move. So a lasting imbalance is always examined, and asking costs little more than the imbalance did.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::accept::{MoveCost, Verdict, accept, is_available, is_forced, worth_asking_above};
use super::activity::Activity;
use super::balanced_units::BalancedUnits;
use super::edge_watch::EdgeWatch;
pub use super::edges::{EDGES_MAX, EdgeReport, EdgeReports};
use super::estimate::Estimate;
pub use super::estimate::{RankPlace, RankSample};
use super::homing::homeward;
use super::judgement::Judgement;
use super::loads::Loads;
use super::memory::fullest;
use super::message_price::MessagePrice;
use super::metrics::{Moved, bound_ns, completion_ns, max_ns, max_over_avg};
use super::move_price::MovePrice;
use super::predict::{Chooser, History, Prediction, Smoothing};
use super::regime::ShareRegimes;
pub use super::report::{ChunkReport, Move, PhaseReport, RankReport, UndecidedWindows};
use super::scatter::{imbalance, scatter};
use super::scatter_trial::ScatterTrial;
use super::snapshot::{Assignment, ChunkId, ChunkLoad, Edge, LinkCosts, Memory, Snapshot};
use super::strategy::{Background, EdgeUse, Strategy, Terms};
use crate::rank::Rank;

/// Number of phases that loads are smoothed over.
pub const HISTORY: usize = Smoothing::PHASES;
/// The assumed cost of a move before any was measured: to pack, send and unpack one chunk, and its bytes.
pub const MOVE_COST: MoveCost = MoveCost { per_chunk_ns: 5_000, bytes_per_second: 4e9 };

/// Number of windows in which a scattered placement must be balanced.
const SCENARIOS: usize = 8;
/// The least number of windows that a plan is expected to be good for.
const WINDOWS_MIN: f64 = 0.01;
/// From this error of predictions on, loads count as unpredictable.
const UNPREDICTED: f64 = 0.25;
/// From this error of predicted completion times on, ranks count as unpredictable.
const UNPREDICTED_RANKS: f64 = 0.15;
/// In a window shorter than this, loads are mostly chance, ns.
const SHORT_NS: f64 = 10e6;
/// The least part of a window that a scattered placement must save, because it moves nearly all chunks.
const SCATTERED_MIN: f64 = 0.1;

/// Where the assignment for the expected phase comes from.
enum StrategyResult {
    /// The strategy's assignment, and the time that the strategy took, ns.
    Assigned { assignment: Assignment, took_ns: u64 },
    /// The balancer itself scatters chunks, or sends them home. `imbalance` is the expected mean in the coming windows.
    Scattered { plan: Assignment, verdict: Verdict, imbalance: f64 },
    /// The strategy was not asked, see [`Balancer::declines`].
    Unasked(Verdict),
}

/// The decision at the end of a phase, with its expected effect. Vectors are by rank.
///
/// ```
/// assert!(lb_strategies::balancer::Decision::default().moves.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The phase that ended, counted from 0.
    pub phase: u64,
    /// The moves to be made, in the order of the chunks.
    pub moves: Vec<Move>,
    /// Time that the strategy took, ns; none if the strategy was not asked.
    pub took_ns: Option<u64>,
    /// Number of moves that the strategy proposed, including moves that the program wants.
    pub proposed: u64,
    /// True if the proposal is carried out.
    pub accepted: bool,
    /// Gain of the proposal in one phase, ns. If the strategy was not asked, the most that any placement could gain.
    pub gain_ns: u64,
    /// The gain above which the proposal is carried out, ns: the cost of its moves. In a window: the larger of this
    /// cost and the error of earlier predictions, divided by the trust in plans (see the module `judgement`). If the
    /// strategy was not asked: the cost of deciding and of the cheapest move.
    pub needed_ns: u64,
    /// Maximum over average of the completion times in the phase that ended.
    pub imbalance_before: f64,
    /// Expected maximum over average of the completion times in the next phase.
    pub imbalance_predicted: f64,
    /// Completion time of each rank in the phase that ended, computed from its loads, ns.
    pub before_ns: Vec<u64>,
    /// Expected completion time of each rank in the next phase, ns.
    pub predicted_ns: Vec<u64>,
    /// The least length of the next phase that any placement could reach, ns.
    pub bound_ns: u64,
    /// The rank that exceeds its limit of memory by most in the next phase, with the memory of its chunks and the limit,
    /// bytes.
    pub over_memory: Option<(Rank, u64, u64)>,
    /// Ideal time of this phase and the undecided windows before it, ns: all work divided in proportion to capacities.
    pub ideal_ns: u64,
    /// The predictor of the loads of the next phase.
    pub prediction: Prediction,
    /// Expected time of the moves, ns.
    pub move_ns: u64,
    /// Length that the phase that ended would have had without the moves before it, ns; none before the first phase.
    pub unmoved_ns: Option<u64>,
    /// Number of chunks on each rank in the next phase.
    pub chunks_per_rank: Vec<u32>,
    /// Estimated part of its vCPUs that each rank gets.
    pub share: Vec<f64>,
    /// Share times the estimated speed of all vCPUs of the rank together.
    pub capacity: Vec<f64>,
}

impl Decision {
    /// Length of the phase that ended, computed from its loads, ns.
    pub fn makespan_before_ns(&self) -> u64 {
        self.before_ns.iter().copied().max().unwrap_or(0)
    }

    /// Expected length of the next phase, ns.
    pub fn makespan_predicted_ns(&self) -> u64 {
        self.predicted_ns.iter().copied().max().unwrap_or(0)
    }
}

/// Decides after each phase which chunks go to which ranks.
///
/// ```
/// use lb_strategies::balancer::{Balancer, ChunkReport, PhaseReport, RankPlace, RankReport, RankSample};
/// use lb_strategies::{ARRAYS, ArrayId, ChunkId, ChunkLoad, Rank};
///
/// // Two ranks of six chunks each, 1 s long; a neighbour takes half of the second rank's vCPU.
/// let rank = |cpu_ns: u64| RankReport {
///     place: RankPlace { host: 0, workers: 1 },
///     sample: Some(RankSample {
///         wall_ns: 1_000_000_000,
///         cpu_ns,
///         wait_ns: 1_000_000_000 - cpu_ns,
///         speed: 1.0,
///         ..RankSample::default()
///     }),
/// };
/// let chunk = |key: u64| ChunkReport {
///     load: ChunkLoad {
///         id: ChunkId { array: ArrayId(0), key },
///         rank: Rank(u32::from(key >= 6)),
///         ticks: 80_000_000,
///         bytes: 4096,
///         migratable: true,
///     },
///     declared: false,
///     wish: None,
///     handled: 0,
/// };
/// let report = PhaseReport {
///     ranks: vec![rank(1_000_000_000), rank(500_000_000)],
///     chunks: (0..12).map(chunk).collect(),
///     ..PhaseReport::default()
/// };
/// let decision = Balancer::new(ARRAYS.parse("refine")?.into()).decide(&report);
/// assert_eq!((decision.share[1], decision.moves.len()), (0.5, 2));
/// assert_eq!(decision.chunks_per_rank, [8, 4]);
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
pub struct Balancer {
    strategy: Arc<dyn Strategy>,
    estimates: Vec<Estimate>,
    share_regimes: ShareRegimes,
    /// The last phase that was reported, with loads in ticks.
    measured: Snapshot,
    /// The loads of the last phases. In windows, each load is a part of the sum, because windows differ in length.
    history: History,
    chooser: Chooser,
    move_price: MovePrice,
    /// The number of the next phase to be reported.
    phase: u64,
    /// The units that the strategy placed in the last report.
    units: BalancedUnits,
    /// Former ranks of the chunks that the last decision moved; none before the first.
    moved_from: Option<BTreeMap<ChunkId, Rank>>,
    /// The least time that the strategy took, ns; none before its first call.
    least_ns: Option<u64>,
    /// The times of the last two calls of the strategy, ns; the first time twice after the first call.
    last_ns: Option<[u64; 2]>,
    /// The gain that was forgone since the last call of the strategy, ns.
    forgone_gain_ns: u64,
    /// Messages that chunks handle, where phases are windows.
    activity: Activity,
    /// Whether edges are recorded, if the strategy wants them where they matter.
    edge_watch: EdgeWatch,
    /// The price of messages, where phases are windows.
    message_price: MessagePrice,
    /// Duration of the moves before the newest phase, ns.
    migration_ns: u64,
    /// The time of messages in the last answer of the strategy, as a part of the bound; 0 before the first.
    traffic_left: f64,
    /// The part of a phase that better placements of communicating chunks are expected to save after the last decision.
    avoidable: f64,
    /// The gain that a plan needs, where phases are windows.
    judgement: Judgement,
    /// Whether chunks may be scattered, where phases are windows.
    scatter_trial: ScatterTrial,
    in_windows: bool,
    /// Bytes that the chunks of a rank may not exceed.
    memory_limit: Option<u64>,
    /// Length of the newest phase, ns.
    phase_ns: f64,
    /// Ideal time of the phases since the last decision, ns: all work divided in proportion to the capacities.
    ideal_ns: f64,
}

impl Balancer {
    /// A balancer that has had no report yet.
    pub fn new(strategy: Arc<dyn Strategy>) -> Self {
        let chooser = Chooser::new(Prediction::Auto, &strategy.terms());
        Self {
            strategy,
            estimates: Vec::new(),
            share_regimes: ShareRegimes::default(),
            measured: Snapshot::default(),
            history: History::default(),
            chooser,
            move_price: MovePrice::default(),
            phase: 0,
            units: BalancedUnits::default(),
            moved_from: None,
            least_ns: None,
            last_ns: None,
            forgone_gain_ns: 0,
            activity: Activity::default(),
            edge_watch: EdgeWatch::default(),
            message_price: MessagePrice::default(),
            migration_ns: 0,
            traffic_left: 0.0,
            avoidable: 0.0,
            judgement: Judgement::default(),
            scatter_trial: ScatterTrial::default(),
            in_windows: false,
            memory_limit: None,
            phase_ns: 0.0,
            ideal_ns: 0.0,
        }
    }

    /// Uses this predictor of loads.
    #[must_use]
    pub fn predicting(self, prediction: Prediction) -> Self {
        Self { chooser: Chooser::new(prediction, &self.strategy.terms()), ..self }
    }

    /// Sets the bytes that the chunks of a rank may not exceed. A rank that is above them from the start gets no chunks,
    /// except those that its program sends or that must leave an unavailable rank.
    #[must_use]
    pub fn within_memory(self, limit: Option<u64>) -> Self {
        Self { memory_limit: limit, ..self }
    }

    /// Notes that a chunk began on this rank, because its first report will come from another rank.
    pub fn began_on(&mut self, chunk: ChunkId, rank: Rank) {
        self.activity.began_on(chunk, rank);
    }

    /// The predictor in use.
    pub fn prediction(&self) -> Prediction {
        self.chooser.chosen()
    }

    /// The shorter of the last two times that the strategy took, ns, as one call may have been delayed; none before a
    /// call.
    pub fn took_lately_ns(&self) -> Option<u64> {
        self.last_ns?.into_iter().min()
    }

    /// True if the messages between chunks are to be recorded from now on, because the strategy uses them.
    pub fn wants_edges(&self) -> bool {
        match self.strategy.terms().edges {
            EdgeUse::Never => false,
            EdgeUse::WhereTheyMatter => self.edge_watch.records(),
            EdgeUse::Always => true,
        }
    }

    /// The strategy of the run.
    pub fn strategy(&self) -> &Arc<dyn Strategy> {
        &self.strategy
    }

    /// Makes a decision from the reports of a phase, as if the strategy took no time.
    pub fn decide(&mut self, report: &PhaseReport) -> Decision {
        self.decide_in(report, 0)
    }

    /// Makes a decision as if the strategy took `took_ns` when it is asked.
    pub fn decide_in(&mut self, report: &PhaseReport, took_ns: u64) -> Decision {
        let strategy = self.strategy.clone();
        let ask = |expected: &Snapshot| Ok::<_, Infallible>((strategy.assign(expected), took_ns));
        let Ok(decision) = self.decide_by(report, ask);
        decision
    }

    /// Makes a decision. `ask` runs the strategy on the predicted snapshot, and returns the assignment and the time
    /// taken, ns. `ask` is not called if no plan could pay for the call.
    ///
    /// # Errors
    /// The error of `ask`. Then this phase is not decided, and no later phase can be.
    pub fn decide_by<E>(
        &mut self,
        report: &PhaseReport,
        ask: impl FnOnce(&Snapshot) -> Result<(Assignment, u64), E>,
    ) -> Result<Decision, E> {
        let expected = self.report(report);
        if let Some(scattered) = self.scattered(&expected) {
            return Ok(self.settle(&expected, scattered));
        }
        let answer = match self.declines(&expected) {
            Some(verdict) => StrategyResult::Unasked(verdict),
            None => {
                let (mut assignment, took_ns) = ask(&expected)?;
                // Chunks go home to be near those that they exchange messages with. Where edges are known, the strategy
                // has placed them so.
                if self.in_windows && self.strategy.terms().must_pay && expected.edges.is_empty() {
                    assignment = homeward(&expected, &assignment, |chunk| self.activity.home(chunk));
                }
                StrategyResult::Assigned { assignment: assignment.within_memory(&expected), took_ns }
            }
        };
        Ok(self.settle(&expected, answer))
    }

    /// Leaves out a phase, which others have decided.
    pub fn skip(&mut self) {
        self.phase += 1;
        self.moved_from = None;
        self.judgement.forget_expectations();
    }

    /// Forgets the loads before the next report. In windows a load is a part of the sum of all loads, so loads before and
    /// after chunks have come or gone do not compare.
    pub(super) fn forget_loads(&mut self) {
        self.history = History::default();
        self.judgement.forget_expectations();
    }

    /// The chunks of the last report, on the ranks where they were measured.
    pub(super) fn placed(&self) -> &[ChunkLoad] {
        &self.measured.chunks
    }

    /// True unless chunks of several arrays go together.
    pub(super) fn places_single_chunks(&self) -> bool {
        self.units.are_chunks()
    }

    /// Notes that the moves of the last decision have taken this long, ns.
    pub fn moved(&mut self, took_ns: u64) {
        self.move_price.end(took_ns);
        self.migration_ns = took_ns;
    }

    /// The last phase that was reported, with the edges and prices of messages that the strategy saw.
    pub fn measured(&self) -> &Snapshot {
        &self.measured
    }

    /// The part of the next phase that another placement could save by its messages, as far as the last decision shows.
    pub fn avoidable_traffic(&self) -> f64 {
        self.avoidable
    }

    /// The number of the next phase to be reported, counted from 0.
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// The verdict if the strategy must not be asked about the expected phase, else none. The first time it is asked.
    fn declines(&self, expected: &Snapshot) -> Option<Verdict> {
        let Terms { background: model, must_pay, moves, .. } = self.strategy.terms();
        let least_ns = self.least_ns.filter(|_| must_pay && moves)?;
        let price_ns = least_ns.saturating_sub(self.forgone_gain_ns);
        let horizon = self.longest_horizon();
        let move_cost = self.least_move_cost(expected);
        let reachable_ns = self.reachable_ns(expected, model);
        let verdict = worth_asking_above(expected, model, horizon, &move_cost, price_ns, reachable_ns);
        let of_phase = |ns| ns / horizon;
        let Verdict { accepted, gain_ns, cost_ns } = verdict;
        (!accepted).then_some(Verdict { accepted, gain_ns: of_phase(gain_ns), cost_ns: of_phase(cost_ns) })
    }

    /// The least time that a placement of the strategy is expected to reach, ns.
    fn reachable_ns(&self, expected: &Snapshot, model: Background) -> u64 {
        let bound_ns = bound_ns(expected, model);
        if expected.edges.is_empty() {
            return bound_ns;
        }
        (bound_ns as f64 * (1.0 + self.traffic_left)) as u64
    }

    /// Learns from the reports of a phase, and returns the snapshot for the strategy: the expected next phase. Chunks
    /// that are kept together are one chunk in it. A chunk that its program moves is pinned to its new rank in it.
    ///
    /// # Panics
    /// If a chunk is on a rank that the first report did not have.
    fn report(&mut self, report: &PhaseReport) -> Snapshot {
        report.undecided.iter().for_each(|window| self.observe(window));
        self.observe(report);
        self.units = BalancedUnits::new(report);
        let series = self.history.series();
        let predicted = self.chooser.predict(&series, series.steps(0));
        let unit = self.unit_ticks();
        let mut expected = self.measured.clone();
        for (chunk, load) in expected.chunks.iter_mut().zip(predicted) {
            chunk.ticks = (load * unit).round() as u64;
        }
        self.units.coarsen(expected)
    }

    /// True if the newest phase is a window too short for any predictor but smoothing.
    fn is_short(&self) -> bool {
        self.in_windows && self.phase_ns < SHORT_NS
    }

    /// The least cost of a move. At syncs it is a constant, so that the same reports give the same decisions.
    fn least_move_cost(&self, expected: &Snapshot) -> MoveCost {
        if self.in_windows { self.move_price.least(expected) } else { MOVE_COST }
    }

    /// The load that counts as 1 in the history, ticks.
    fn unit_ticks(&self) -> f64 {
        if !self.in_windows {
            return 1.0;
        }
        self.measured.chunks.iter().map(|chunk| chunk.ticks as f64).sum::<f64>().max(1.0)
    }

    fn estimate(&mut self, ranks: &[RankReport], inactive: &[Rank]) {
        if self.estimates.is_empty() {
            self.estimates = ranks.iter().map(|rank| Estimate::unknown(rank.place)).collect();
        }
        let was_inactive = |(rank, estimate): (usize, &Estimate)| (!estimate.active).then_some(rank);
        let joining: Vec<usize> = self.estimates.iter().enumerate().filter_map(was_inactive).collect();
        self.estimates.iter_mut().for_each(|estimate| estimate.active = true);
        inactive.iter().for_each(|rank| self.estimates[rank.index()].active = false);
        let speed_noise = self.strategy.terms().speed_noise;
        let samples = ranks.iter().map(|rank| rank.sample.as_ref());
        let fastest = samples.clone().flatten().map(|sample| sample.speed).fold(0.0, f64::max);
        for (estimate, sample) in self.estimates.iter_mut().zip(samples) {
            let ended = estimate.follow(sample, fastest, speed_noise, self.in_windows);
            ended.into_iter().for_each(|regime| self.share_regimes.ended(regime));
        }
        self.estimate_joining(&joining);
    }

    /// Sets the share of ranks that are active again to the mean share of the other ranks of their host. An idle rank
    /// of an overloaded host has no whole vCPU to give.
    fn estimate_joining(&mut self, joining: &[usize]) {
        for &rank in joining {
            let host = self.estimates[rank].host();
            let known = self.estimates.iter().enumerate();
            let known = known.filter(|(other, estimate)| estimate.host() == host && !joining.contains(other));
            let shares: Vec<f64> = known.map(|(_, estimate)| estimate.share).collect();
            if !shares.is_empty() && self.estimates[rank].active {
                self.estimates[rank].share = shares.iter().sum::<f64>() / shares.len() as f64;
            }
        }
    }

    /// Ideal time of these chunks, ns: their work divided in proportion to the capacities.
    fn ideal_ns_of(&self, chunks: &[ChunkReport]) -> f64 {
        let active = self.estimates.iter().filter(|estimate| estimate.active);
        let capacity: f64 = active.map(Estimate::capacity).sum();
        let work = |chunk| self.work(chunk);
        if capacity > 0.0 { chunks.iter().map(work).sum::<f64>() / capacity } else { 0.0 }
    }

    /// The work of a chunk, ticks.
    fn work(&self, ChunkReport { load, declared, .. }: &ChunkReport) -> f64 {
        let speed = if *declared { 1.0 } else { self.estimates[load.rank.index()].speed };
        load.ticks as f64 * speed
    }

    fn in_ticks(&mut self, report: &ChunkReport) -> ChunkLoad {
        let mut load = report.load.clone();
        if !report.declared {
            let work = self.work(report);
            load.ticks = self.activity.whole_steps(load.id, report.handled, work) as u64;
        }
        load
    }

    /// Learns the capacities of ranks and the loads of chunks from the reports of a phase.
    fn observe(&mut self, report: &PhaseReport) {
        let any_handled = self.activity.follow(&report.chunks);
        self.in_windows |= report.window;
        self.estimate(&report.ranks, &report.inactive);
        self.phase_ns = report.length_ns();
        self.ideal_ns += self.ideal_ns_of(&report.chunks);
        let mut chunks: Vec<ChunkLoad> = report.chunks.iter().map(|chunk| self.in_ticks(chunk)).collect();
        chunks.sort_by_key(|chunk| chunk.id);
        let ranks = self.estimates.iter().map(Estimate::rank_load).collect();
        let (edges, links) = self.traffic(report, &chunks);
        let limits = |limit| Memory { limits: vec![limit; self.estimates.len()], ..Memory::default() };
        let memory = self.memory_limit.map(limits);
        self.measured = Snapshot { phase: self.phase, ranks, chunks, edges, links, memory };
        let migration_ns = std::mem::take(&mut self.migration_ns) as f64;
        if self.in_windows {
            let (model, steps) = (self.strategy.terms().background, self.activity.steps());
            self.message_price.follow(&self.measured, model, steps, self.phase_ns, migration_ns);
        }
        let unit = self.unit_ticks();
        let loads = self.measured.chunks.iter().map(|chunk| (chunk.id, chunk.ticks as f64 / unit));
        self.history.push(loads, self.activity.steps());
        if any_handled {
            self.scatter_trial.follow(self.activity.steps(), self.phase_ns);
        }
        if any_handled || !self.in_windows {
            self.chooser.learn(&self.history.series(), self.phase_ns, !self.is_short());
        }
    }

    /// The edges between these chunks, and the cost of messages. Without edges messages are free, and so they are for a
    /// strategy that uses none, because edges that are only recorded must not change decisions.
    fn traffic(&mut self, report: &PhaseReport, chunks: &[ChunkLoad]) -> (Vec<Edge>, LinkCosts) {
        if self.strategy.terms().edges == EdgeUse::Never {
            return Default::default();
        }
        // At syncs prices are constants, so that the same reports give the same decisions.
        let price = if self.in_windows { self.move_price } else { MovePrice::default() };
        let hosts = self.estimates.iter().map(Estimate::host);
        let is_far = hosts.clone().min() != hosts.max();
        let (edges, links) = (report.edges.between(chunks), price.links());
        let links = self.message_price.correct(links, is_far);
        let link = if is_far { links.between_hosts } else { links.within_host };
        let all_ns: f64 = edges.iter().map(|edge| link.ns(edge)).sum();
        let active = self.estimates.iter().filter(|estimate| estimate.active).count();
        self.edge_watch.follow(all_ns / active.max(1) as f64 / self.phase_ns.max(1.0));
        if edges.is_empty() { Default::default() } else { (edges, links) }
    }

    /// A scattered placement, which needs no rebalancing, if loads are unpredictable. It must have been better in the
    /// last windows than the measured placements, by more than its moves cost.
    fn scattered(&mut self, expected: &Snapshot) -> Option<StrategyResult> {
        let Terms { background: model, scatters, .. } = self.strategy.terms();
        let windows = self.history.len();
        if self.scatter_trial.take_failure() {
            return Some(self.gathered(expected));
        }
        // A scattered placement parts chunks that exchange messages.
        let scatters = scatters && !self.edge_watch.matters();
        let is_asked = scatters && self.in_windows && !self.is_short() && self.scatter_trial.is_open();
        if !is_asked || windows < SCENARIOS || self.chooser.error() < UNPREDICTED {
            return None;
        }
        // Loads of chunks may be unpredictable while the sums of ranks are not.
        if self.judgement.noise() < UNPREDICTED_RANKS {
            return None;
        }
        // A smaller imbalance has less than this part to save.
        if self.judgement.imbalance() * (1.0 - SCATTERED_MIN) <= 1.0 {
            return None;
        }
        let scenarios = self.scenarios();
        let plan = scatter(&scenarios, model)?.within_memory(expected);
        let measured = self.judgement.imbalance();
        let scattered = imbalance(&scenarios, &plan, model);
        let saved = 1.0 - scattered / measured;
        let makespan_ns = max_ns(expected, &Assignment::current(expected), model);
        let gain_ns = (saved * makespan_ns as f64) as u64;
        let cost_ns =
            self.move_price.cost_ns(expected, &plan) / windows as u64 + self.crossing_ns(&plan) as u64;
        let cost_ns = cost_ns.max((SCATTERED_MIN * makespan_ns as f64) as u64);
        let accepted = gain_ns > cost_ns;
        let verdict = Verdict { accepted, gain_ns, cost_ns };
        if accepted {
            self.scatter_trial.begin();
        }
        accepted.then_some(StrategyResult::Scattered { plan, verdict, imbalance: scattered })
    }

    /// Sends all chunks home, because scattering has slowed them down.
    fn gathered(&self, expected: &Snapshot) -> StrategyResult {
        let home = |chunk: &ChunkLoad| {
            let home = self.activity.home(chunk.id).filter(|&home| is_available(expected, home));
            home.filter(|_| chunk.migratable).unwrap_or(chunk.rank)
        };
        let plan = Assignment { ranks: expected.chunks.iter().map(home).collect() }.within_memory(expected);
        let verdict = Verdict { accepted: true, gain_ns: 0, cost_ns: 0 };
        StrategyResult::Scattered { plan, verdict, imbalance: self.judgement.imbalance() }
    }

    /// The last windows, each as if it came next.
    fn scenarios(&mut self) -> Vec<Snapshot> {
        let unit = self.unit_ticks();
        let series = self.history.series();
        let scenario = |back: usize| {
            let mut scenario = self.measured.clone();
            for (chunk, &load) in scenario.chunks.iter_mut().zip(series.loads(back).unwrap_or_default()) {
                if !load.is_nan() {
                    chunk.ticks = (load * unit).round() as u64;
                }
            }
            scenario
        };
        let scenarios: Vec<Snapshot> = (0..SCENARIOS).map(scenario).collect();
        scenarios.into_iter().map(|scenario| self.units.coarsen(scenario)).collect()
    }

    /// Expected number of windows, each as long as the newest, for which a plan stays good. Until then, loads and the
    /// shares of the ranks that the plan changes should stay as they are.
    fn horizon(&self, expected: &Snapshot, plan: &Assignment) -> f64 {
        let ranks = plan.moves(expected).flat_map(|(chunk, to)| [chunk.rank, to]);
        let estimates = ranks.filter_map(|rank| self.estimates.get(rank.index()));
        let shares_ns = estimates.map(|estimate| self.share_regimes.remaining_ns(estimate.regime));
        self.windows_in(shares_ns.fold(self.chooser.remaining_ns(), f64::min))
    }

    /// Number of windows as long as the newest in this time, between 1 and 1000.
    fn windows_in(&self, ns: f64) -> f64 {
        (ns / self.phase_ns.max(1.0)).clamp(1.0, 1_000.0)
    }

    /// The largest number of windows for which any plan may stay good; 1 at syncs.
    fn longest_horizon(&self) -> u64 {
        if !self.in_windows {
            return 1;
        }
        let share_ns = |estimate: &Estimate| self.share_regimes.remaining_ns(estimate.regime);
        let shares_ns = self.estimates.iter().map(share_ns).fold(0.0, f64::max);
        self.windows_in(shares_ns.min(self.chooser.remaining_ns())) as u64
    }

    /// The smoothing that the strategy's terms prescribe.
    pub fn smoothing(&self) -> Smoothing {
        Smoothing { weight: self.strategy.terms().smoothing }
    }

    /// Judges a plan in a window that takes `stays_ns` without it. The gain must exceed the errors of predictions, and
    /// the cost of the moves over the plan's lifetime. A forced plan is always accepted.
    fn judge(&self, expected: &Snapshot, plan: &Assignment, stays_ns: u64) -> Verdict {
        let gain_ns = stays_ns.saturating_sub(max_ns(expected, plan, self.strategy.terms().background));
        if plan.moves(expected).next().is_none() {
            return Verdict { accepted: false, gain_ns, cost_ns: 0 };
        }
        let move_ns = self.move_price.cost_ns(expected, plan) as f64;
        // Nothing is gained before the chunks have arrived.
        let windows = (self.horizon(expected, plan) - move_ns / self.phase_ns.max(1.0)).max(WINDOWS_MIN);
        let cost_ns = move_ns / windows + self.crossing_ns(plan);
        let required_ns = self.judgement.required_gain_ns(stays_ns, cost_ns as u64);
        let accepted = gain_ns > required_ns || is_forced(expected, plan);
        Verdict { accepted, gain_ns, cost_ns: required_ns }
    }

    /// The time by which a plan makes a window as long as the newest longer, ns, because messages then cross ranks. It is
    /// 0 if edges are known, because completion times then have the time of messages.
    fn crossing_ns(&self, plan: &Assignment) -> f64 {
        if !self.measured.edges.is_empty() {
            return 0.0;
        }
        let mut ranks = vec![0.0; self.estimates.len()];
        for (chunk, to) in self.measured.chunks.iter().zip(self.units.expand(&plan.ranks)) {
            if chunk.rank != to {
                let both_ns = self.activity.crossing_ns(chunk.id, chunk.rank, to);
                ranks[chunk.rank.index()] += both_ns / 2.0;
                ranks[to.index()] += both_ns / 2.0;
            }
        }
        let times_ns =
            ranks.iter().zip(&self.estimates).map(|(ns, estimate)| ns / estimate.capacity().max(1e-3));
        times_ns.fold(0.0, f64::max)
    }

    /// The first moves of a plan while the price of bytes is unknown. The whole plan if the first moves alone gain
    /// nothing, or if the plan is forced.
    fn probe(&self, expected: &Snapshot, plan: Assignment, stays_ns: u64) -> Assignment {
        if is_forced(expected, &plan) {
            return plan;
        }
        let first = self.move_price.limit(expected, plan.clone()).within_memory(expected);
        let gains = max_ns(expected, &first, self.strategy.terms().background) < stays_ns;
        if gains { first } else { plan }
    }

    /// Decides whether to carry out the answer for the expected phase of [`report`](Self::report).
    fn settle(&mut self, expected: &Snapshot, answer: StrategyResult) -> Decision {
        let Terms { background: model, must_pay, moves: carried_out, .. } = self.strategy.terms();
        let measured = &self.measured;
        let current = Assignment::current(measured);
        let before_ns = completion_ns(measured, &current, model);
        let unmoved_ns = self.moved_from.as_ref().map(|moved| {
            let elsewhere =
                (!moved.is_empty()).then(|| completion_ns(measured, &unmoved(measured, moved), model));
            elsewhere.as_ref().unwrap_or(&before_ns).iter().copied().max().unwrap_or(0)
        });
        if self.in_windows {
            self.judgement.follow(&before_ns, unmoved_ns);
        }
        let stays_ns = max_ns(expected, &Assignment::current(expected), model);
        let (assignment, verdict, took_ns) = match answer {
            StrategyResult::Assigned { assignment, took_ns } => {
                self.least_ns = Some(self.least_ns.map_or(took_ns, |least_ns| least_ns.min(took_ns)));
                let [last_ns, _] = self.last_ns.unwrap_or([took_ns; 2]);
                self.last_ns = Some([took_ns, last_ns]);
                self.forgone_gain_ns = 0;
                self.traffic_left = traffic_left(expected, &assignment, model);
                let verdict = match self.in_windows {
                    true => self.judge(expected, &assignment, stays_ns),
                    false => accept(expected, &assignment, model, 1, &MOVE_COST),
                };
                (assignment, Verdict { accepted: verdict.accepted || !must_pay, ..verdict }, Some(took_ns))
            }
            StrategyResult::Scattered { plan, verdict, imbalance } => {
                self.judgement.scattered(imbalance);
                (plan, verdict, None)
            }
            StrategyResult::Unasked(verdict) => {
                self.forgone_gain_ns = self.forgone_gain_ns.saturating_add(verdict.gain_ns);
                (Assignment::current(expected), verdict, None)
            }
        };
        let accepted = verdict.accepted;
        let placed = |assignment: &Assignment| Assignment { ranks: self.units.expand(&assignment.ranks) };
        let proposed = Moved::of(measured, &placed(&assignment)).chunks as u64;
        let assignment = match accepted {
            true if self.in_windows && must_pay => self.probe(expected, assignment, stays_ns),
            true => assignment,
            false => Assignment::current(expected),
        };
        let next = if carried_out { placed(&assignment) } else { Assignment::current(measured) };
        let moved = next.moves(measured).map(|(chunk, to)| Move { chunk: chunk.id, from: chunk.rank, to });
        let moves: Vec<Move> = moved.collect();
        let move_ns = if moves.is_empty() {
            self.move_price.relax();
            0
        } else {
            self.move_price.begin(measured, &next)
        };
        let predicted_ns = completion_ns(expected, &assignment, model);
        if self.in_windows {
            let makespan_ns = predicted_ns.iter().copied().max().unwrap_or(0);
            self.avoidable = if self.edge_watch.matters() && carried_out {
                let reachable_ns = self.reachable_ns(expected, model);
                makespan_ns.saturating_sub(reachable_ns) as f64 / self.phase_ns.max(1.0)
            } else {
                0.0
            };
            let gain = 1.0 - makespan_ns as f64 / stays_ns.max(1) as f64;
            // Scattering saves time only in the long run.
            let is_planned = accepted && took_ns.is_some() && !moves.is_empty();
            self.judgement.expect(&predicted_ns, is_planned.then_some(gain));
        }
        let mut chunks_per_rank = vec![0; self.estimates.len()];
        next.ranks.iter().for_each(|rank| chunks_per_rank[rank.index()] += 1);
        let decision = Decision {
            phase: self.phase,
            took_ns,
            proposed,
            accepted,
            gain_ns: verdict.gain_ns,
            needed_ns: verdict.cost_ns,
            imbalance_before: max_over_avg(measured, &current, model),
            imbalance_predicted: max_over_avg(expected, &assignment, model),
            before_ns,
            predicted_ns,
            bound_ns: bound_ns(expected, model),
            over_memory: fullest(expected, &assignment),
            ideal_ns: std::mem::take(&mut self.ideal_ns) as u64,
            prediction: self.prediction(),
            move_ns,
            unmoved_ns,
            chunks_per_rank,
            share: self.estimates.iter().map(|estimate| estimate.share).collect(),
            capacity: self.estimates.iter().map(Estimate::capacity).collect(),
            moves,
        };
        self.moved_from = Some(decision.moves.iter().map(|one| (one.chunk, one.from)).collect());
        self.phase += 1;
        decision
    }
}

/// The time by which messages delay the latest rank of a placement, as a part of the bound.
fn traffic_left(snapshot: &Snapshot, assignment: &Assignment, model: Background) -> f64 {
    let loads_ns = Loads::placed(snapshot, assignment, model).max_ns();
    let traffic_ns = max_ns(snapshot, assignment, model).saturating_sub(loads_ns);
    traffic_ns as f64 / bound_ns(snapshot, model).max(1) as f64
}

/// The placement of a phase as if these moves had not been made.
fn unmoved(measured: &Snapshot, moved_from: &BTreeMap<ChunkId, Rank>) -> Assignment {
    let home = |chunk: &ChunkLoad| moved_from.get(&chunk.id).copied().unwrap_or(chunk.rank);
    Assignment { ranks: measured.chunks.iter().map(home).collect() }
}

#[cfg(test)]
mod edge_tests;
#[cfg(test)]
mod tests;
