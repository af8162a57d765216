//! Rank 0's part of `caa`: it collects the reports, decides in phase 2, and is the master of phase 3.
//!
//! 1. A round of shares ends with one report from every rank. No rank gets a new share before.
//! 2. The first `First` of a round stops the round. Later ones have no effect.
//! 3. If nothing is left after a round, all workers are dismissed. Else rank 0 decides, and the next round or the queue
//!    begins. The queue dismisses all workers itself.

use super::decide::{NextPhase, RoundStats, TaskStats, Thresholds, decide};
use super::{CaaMessage, Until, WorkerReport};
use crate::pools::apportion::{apportion, equal};
use crate::pools::central::{Master, Outbox, Queue, QueueMessage, SizeRule};
use crate::pools::policy::Pool;
use crate::rank::{Rank, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Shares,
    Stopping,
    Serving,
}

/// The state of rank 0.
pub(super) struct CaaRoot {
    conditions: Thresholds,
    later: Until,
    phase: Phase,
    /// By rank, for this round.
    reports: Vec<Option<Vec<WorkerReport>>>,
    /// The remaining tasks after each round. In phase 3, workers request tasks from it.
    queue: Queue,
    decisions: Vec<String>,
}

impl CaaRoot {
    /// The root before phase 1. Each rank computes its shares of phase 1 itself.
    pub(super) fn new(pool: &Pool, conditions: Thresholds, rule: SizeRule, later: Until) -> Self {
        let mut queue = Queue::new(pool, rule, Master::Apart);
        queue.take(pool.iterations);
        Self {
            conditions,
            later,
            phase: Phase::Shares,
            reports: vec![None; pool.workers.len()],
            queue,
            decisions: Vec::new(),
        }
    }

    /// The decisions, one per round.
    pub(super) fn said(&self) -> Option<String> {
        (!self.decisions.is_empty()).then(|| self.decisions.join("; "))
    }

    /// True if rank 0 handles this message as the root, and not as a member.
    pub(super) fn is_for(&self, message: &CaaMessage) -> bool {
        matches!(
            message,
            CaaMessage::First | CaaMessage::Report { .. } | CaaMessage::Queue(QueueMessage::Ask { .. })
        )
    }

    pub(super) fn receive(&mut self, from: Rank, message: CaaMessage, outbox: &mut Outbox<CaaMessage>) {
        match message {
            CaaMessage::First => self.stop(outbox),
            CaaMessage::Report { workers, left } => {
                self.reports[from.index()] = Some(workers);
                for range in left {
                    self.queue.give_back(range);
                }
                self.decide_if_all_reported(outbox);
            }
            CaaMessage::Queue(QueueMessage::Ask { worker, fitting }) => {
                self.with_queue(outbox, |queue, outbox| queue.ask(from, worker, fitting, outbox));
            }
            _ => {}
        }
    }

    fn stop(&mut self, outbox: &mut Outbox<CaaMessage>) {
        if self.phase == Phase::Shares {
            self.phase = Phase::Stopping;
            self.tell_all(&CaaMessage::Stop, outbox);
        }
    }

    fn decide_if_all_reported(&mut self, outbox: &mut Outbox<CaaMessage>) {
        if self.reports.iter().any(Option::is_none) {
            return;
        }
        if self.queue.waiting() == 0 {
            return self.serve(outbox);
        }
        let (there, facts) = self.facts();
        let choice = decide(&facts, &self.conditions);
        self.decisions.push(self.line(&facts, choice));
        self.reports.fill(None);
        match choice {
            NextPhase::OneEach => self.share(&there, &one_each(&facts), outbox),
            NextPhase::Shares => self.share(&there, &in_proportion(&facts), outbox),
            NextPhase::Master => {
                self.tell_all(&CaaMessage::Serve, outbox);
                self.serve(outbox);
            }
        }
    }

    /// Lets the queue serve workers. The queue dismisses all if nothing is left.
    fn serve(&mut self, outbox: &mut Outbox<CaaMessage>) {
        self.phase = Phase::Serving;
        self.with_queue(outbox, Queue::serve);
    }

    /// The workers that have come, and the facts for the decision.
    fn facts(&self) -> (Vec<(Rank, WorkerId)>, RoundStats) {
        let mut there = Vec::new();
        let mut facts = RoundStats { left: self.queue.waiting(), ..RoundStats::default() };
        for (rank, workers) in (0..).map(Rank).zip(&self.reports) {
            let workers = workers.iter().flatten();
            for (worker, report) in (0..).map(WorkerId).zip(workers).filter(|(_, report)| report.there) {
                there.push((rank, worker));
                facts.clocks.push(report.clock);
                facts.done.push(report.tally.done);
                facts.tasks = TaskStats::and(facts.tasks, report.tally);
            }
        }
        (there, facts)
    }

    fn share(&mut self, there: &[(Rank, WorkerId)], parts: &[u64], outbox: &mut Outbox<CaaMessage>) {
        self.phase = Phase::Shares;
        for rank in self.ranks() {
            let mut shares = Vec::new();
            for (&(_, worker), &part) in there.iter().zip(parts).filter(|((of, _), _)| *of == rank) {
                let mut rest = part;
                while let Some(range) = self.queue.take(rest) {
                    rest -= range.end - range.start;
                    shares.push((worker, range));
                }
            }
            outbox.push_back((rank, CaaMessage::Shares { shares, until: self.later }));
        }
    }

    fn tell_all(&self, message: &CaaMessage, outbox: &mut Outbox<CaaMessage>) {
        outbox.extend(self.ranks().map(|rank| (rank, message.clone())));
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.reports.len() as u32).map(Rank)
    }

    fn with_queue(
        &mut self,
        outbox: &mut Outbox<CaaMessage>,
        act: impl FnOnce(&mut Queue, &mut Outbox<QueueMessage>),
    ) {
        let mut of_queue = Outbox::new();
        act(&mut self.queue, &mut of_queue);
        outbox.extend(of_queue.into_iter().map(|(rank, message)| (rank, CaaMessage::Queue(message))));
    }

    fn line(&self, facts: &RoundStats, choice: NextPhase) -> String {
        let names = ["clocks alike", "few workers", "counts alike", "durations alike"];
        let held: Vec<&str> = (names.into_iter().zip(self.conditions.hold(facts)))
            .filter_map(|(name, holds)| holds.then_some(name))
            .collect();
        format!("{choice} ({} left for {} workers; {})", facts.left, facts.done.len(), held.join(", "))
    }
}

/// One task each for the workers that have finished most tasks.
fn one_each(facts: &RoundStats) -> Vec<u64> {
    let mut order: Vec<usize> = (0..facts.done.len()).collect();
    order.sort_by_key(|&worker| std::cmp::Reverse(facts.done[worker]));
    let mut parts = vec![0; facts.done.len()];
    for &worker in &order[..facts.left as usize] {
        parts[worker] = 1;
    }
    parts
}

/// Shares in proportion to finished tasks; equal if no worker has finished any.
fn in_proportion(facts: &RoundStats) -> Vec<u64> {
    let speeds: Vec<f64> = facts.done.iter().map(|&done| done as f64).collect();
    apportion(facts.left, &speeds).unwrap_or_else(|| equal(facts.left, facts.done.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_ranks_report_decide_where_they_count() {
        let clocks_only = Thresholds { weights: [1.0, 0.0, 0.0, 0.0], ..Thresholds::PAPER };
        let said = |clocks: [f64; 2]| {
            let pool = Pool::new(40, vec![1, 1]);
            let mut head = CaaRoot::new(&pool, clocks_only, SizeRule::Fixed(1), Until::AllFinished);
            for (rank, (clock, left)) in (0..).map(Rank).zip(clocks.into_iter().zip([10..20, 30..40])) {
                let workers = vec![WorkerReport { there: true, clock, tally: TaskStats::default() }];
                let report = CaaMessage::Report { workers, left: vec![left] };
                head.receive(rank, report, &mut Outbox::new());
            }
            head.said().expect("all have reported")
        };
        assert!(
            said([1.0, 1.1]).starts_with("DD (20 left for 2 workers; clocks alike"),
            "{}",
            said([1.0, 1.1])
        );
        assert!(said([1.0, 1.5]).starts_with("MS (20 left"), "{}", said([1.0, 1.5]));
    }
}
