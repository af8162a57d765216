//! Decides balancing windows on two levels, so that no rank receives the loads of all chunks. The strategy asks for it
//! by its [`Hierarchy`](lb_strategies::Hierarchy).
//!
//! The first rank of each group of ranks has a [`Group`], which is driven by [`rank`](crate::arrays::core::rank). Rank 0
//! also has a [`GroupedCoordinator`], in its [coordinator](super::coordinator).
//!
//! | packet | path | content |
//! |---|---|---|
//! | [`OpenWindow`] | down the tree | whether groups decide |
//! | [`WindowReports`] | up the tree of a group | loads of the chunks of the group |
//! | [`WindowReports`] | from first ranks up the tree | a [`GroupReport`] of each group: its moves, and sums by rank |
//! | [`AskOffers`] | rank 0 to the first rank of a late group | the work that the group should give |
//! | [`Offers`] | to rank 0 | chunks for that much work |
//! | [`Decision`] | down the tree | all moves, as in every window |
//!
//! # Rules
//!
//! 1. *Groups decide first.* A first rank decides when all ranks of its group, and all groups below it in the tree, have
//!    reported.
//! 2. *One decision.* Moves within groups, and moves between groups, are carried out together: by one migration, after
//!    all groups have decided.
//! 3. *A chunk moves once.* A group offers no chunk that it moves itself.
//! 4. *Rank 0 decides alone* while ranks are inactive, while reports or edges are recorded, and if ranks have limits of
//!    memory: then it needs all chunks.
//!
//! Cost: rank 0 receives some 25 bytes per rank and per move, instead of 18 bytes per chunk.
//!
//! [`OpenWindow`]: super::SyncPacket::OpenWindow
//! [`WindowReports`]: super::SyncPacket::WindowReports
//! [`AskOffers`]: super::SyncPacket::AskOffers
//! [`Offers`]: super::SyncPacket::Offers
//! [`Decision`]: super::SyncPacket::Decision

use std::sync::Arc;

use lb_strategies::balancer::{Balancer, Decision, PhaseReport, RankPlace};
use lb_strategies::grouped::{GroupBalancer, GroupReport, GroupedWindow, Offer};
use lb_strategies::window_policy::Look;
use lb_strategies::{Hierarchy, Prediction, Strategy};

use super::coordinator::{DecisionRequest, PendingSync, phase_ranks};
use super::migration_bytes::{MigrationBytes, SizeScales};
use super::report_aggregation::AggregatedReports;
use crate::arrays::core::collectives::tree::Tree;
use crate::ids::{ArrayId, Rank};

/// The state of the first rank of a group.
pub(crate) struct Group {
    balancer: GroupBalancer,
    first: Rank,
    /// The places of its ranks.
    places: Vec<RankPlace>,
    leaders: Vec<ArrayId>,
    /// What the open window is for, if groups decide it.
    open: Option<Look>,
    /// The reports of the groups below, and the times of all reports, while this group is decided.
    above: Option<AggregatedReports>,
    /// Time at which the last decision came, ns.
    decided_ns: u64,
    scales: SizeScales,
}

impl Group {
    /// The group that begins with the rank of `tree`. `places` are those of all ranks.
    pub(crate) fn new(
        strategy: Arc<dyn Strategy>,
        tree: &Tree,
        places: &[RankPlace],
        leaders: Vec<ArrayId>,
    ) -> Group {
        let (first, size) = (tree.rank, tree.group_size());
        let own = first.index()..first.index() + size as usize;
        Group {
            balancer: GroupBalancer::new(strategy, first, size),
            first,
            places: places[own].to_vec(),
            leaders,
            open: None,
            above: None,
            decided_ns: 0,
            scales: SizeScales::default(),
        }
    }

    pub(crate) fn predicting(self, prediction: Prediction) -> Group {
        Group { balancer: self.balancer.predicting(prediction), ..self }
    }

    /// A window is opened. `look` is none if rank 0 decides alone.
    pub(crate) fn open(&mut self, look: Option<Look>) {
        if look.is_none() {
            self.balancer.forget_windows();
        }
        self.open = look;
    }

    /// True if groups decide in the open window.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn is_deciding(&self) -> bool {
        self.balancer.is_deciding()
    }

    /// The ranks of the group, and the groups below it, have reported.
    pub(crate) fn reported(&mut self, mut reports: AggregatedReports) -> GroupStep {
        let ranks = std::mem::take(&mut reports.ranks);
        let window = self.window(AggregatedReports { ranks, ..reports.clone_times() });
        match self.balancer.reported(window, self.open.unwrap_or(Look::Wait)) {
            Some((report, balancer)) => {
                self.above = Some(reports);
                GroupStep::Decide(Box::new(DecisionRequest { report, balancer }))
            }
            None => GroupStep::Report(Box::new(reports)),
        }
    }

    /// The reports of the group, with its ranks counted from 0.
    fn window(&self, mut own: AggregatedReports) -> PhaseReport {
        own.ranks.iter_mut().for_each(|measured| measured.rank.0 -= self.first.0);
        let mut pending = PendingSync::new(0, self.places.len(), own.first_ns);
        pending.add(own, &self.scales);
        PhaseReport {
            ranks: phase_ranks(&self.places, &pending.samples),
            chunks: pending.chunks,
            leaders: self.leaders.clone(),
            window: true,
            ..PhaseReport::default()
        }
    }

    /// The group is decided. Returns what goes up the tree.
    pub(crate) fn decided(&mut self, balancer: Balancer, decision: &Decision) -> AggregatedReports {
        let report = self.balancer.decided(balancer, decision);
        let mut reports = self.above.take().expect("its request was handed out");
        reports.groups.push(report);
        reports
    }

    pub(crate) fn offers(&mut self, ticks: u64) -> Vec<Offer> {
        self.balancer.offers(ticks)
    }

    /// The decision of rank 0 has come.
    pub(crate) fn decision_came(&mut self, now_ns: u64) {
        self.decided_ns = now_ns;
    }

    /// All ranks have completed the migration, which has moved these bytes.
    pub(crate) fn migrated(&mut self, bytes: &MigrationBytes, now_ns: u64) {
        self.scales.learn(bytes);
        self.balancer.moved(now_ns.saturating_sub(self.decided_ns));
    }
}

/// What follows the reports of a group and of the groups below it.
pub(crate) enum GroupStep {
    /// The group is decided.
    Decide(Box<DecisionRequest>),
    /// The window is not decided: this goes up the tree.
    Report(Box<AggregatedReports>),
}

/// The windows of all groups, on rank 0.
pub(crate) struct GroupedCoordinator {
    hierarchy: Hierarchy,
    size: u64,
    /// The window that waits for offers.
    waiting: Option<GroupedWindow>,
}

/// What follows the reports of all groups, or an offer.
pub(crate) enum GroupedStep {
    /// Each of these first ranks is asked for offers of this many ticks.
    Ask(Vec<(Rank, u64)>),
    /// Other offers are to come.
    Wait,
    Decide(Box<Decision>),
}

impl GroupedCoordinator {
    pub(crate) fn new(hierarchy: Hierarchy, group: u32) -> GroupedCoordinator {
        GroupedCoordinator { hierarchy, size: u64::from(group), waiting: None }
    }

    /// All groups have reported on the window of this number.
    pub(crate) fn reported(&mut self, phase: u64, reports: Vec<GroupReport>) -> GroupedStep {
        let (window, asks) = GroupedWindow::new(self.hierarchy, self.size, phase, reports);
        if asks.is_empty() {
            return GroupedStep::Decide(Box::new(window.decide()));
        }
        self.waiting = Some(window);
        GroupedStep::Ask(asks)
    }

    /// The group that begins with `first` offers these chunks.
    pub(crate) fn offered(&mut self, first: Rank, offers: Vec<Offer>) -> GroupedStep {
        match self.waiting.take() {
            Some(mut window) => match window.offered(first, offers) {
                true => GroupedStep::Decide(Box::new(window.decide())),
                false => {
                    self.waiting = Some(window);
                    GroupedStep::Wait
                }
            },
            None => GroupedStep::Wait,
        }
    }
}
