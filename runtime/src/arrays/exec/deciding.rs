//! Runs the balancer with its strategy on rank 0, or on the first rank of a group: a short decision on the worker, a long
//! one on a separate thread.
//!
//! While a strategy runs on a worker, the worker runs no chunk, and worker 0 receives no packets. Chunks that continue
//! during the sync would stall, and so would all chunks that have sent to them. So a decision that is expected to be
//! long runs on a thread. The worker polls for the result between chunks, and is woken if it sleeps.
//!
//! The thread owns the balancer and the reports, and nothing of the rank. Nothing waits for the thread: if the run ends
//! first, the decision is completed and ignored.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use lb_strategies::balancer::{Balancer, Decision};
use lb_strategies::{Assignment, Snapshot, Strategy};

use super::worker::Worker;
use crate::arrays::core::sync::coordinator::DecisionRequest;
use crate::error::Error;
use crate::ids::{ChunkId, Rank, SyncId};
use crate::panics::panic_message;
use crate::threads::clock::Clock;
use crate::trace::Part;

/// A decision is expected to be long if each of the last two calls of the strategy took at least this time, ns. A
/// thread costs about 0.1 ms: it starts on a busy vCPU, and the result waits until a handler returns. So it adds at
/// most a tenth. Handlers of this length are common, so other chunks tolerate the wait.
const LONG_NS: u64 = 1_000_000;
/// With at least this number of chunks a decision is expected to be long: predicting takes up to 0.1 us per chunk.
const MANY_CHUNKS: usize = 10_000;

/// A decision that was requested and has not been passed to the core yet.
pub(super) struct PendingDecision {
    sync: SyncId,
    strategy: Arc<dyn Strategy>,
    clock: Clock,
    state: Mutex<State>,
}

enum State {
    /// No thread has begun to decide.
    Open(Box<DecisionRequest>),
    /// A worker or a thread is deciding, or the result was taken.
    Away,
    /// The result, or a panic.
    Decided(Box<thread::Result<Outcome>>),
}

/// A decision and the balancer that made it, or an invalid assignment.
type Outcome = Result<(Balancer, Decision), InvalidAssignment>;

/// An assignment that cannot be carried out.
enum InvalidAssignment {
    Number { answers: usize, chunks: usize },
    Move { chunk: ChunkId, to: Rank, why: String },
}

impl PendingDecision {
    fn new(request: Box<DecisionRequest>, clock: Clock) -> PendingDecision {
        let (sync, strategy) = (request.sync(), request.balancer.strategy().clone());
        PendingDecision { sync, strategy, clock, state: Mutex::new(State::Open(request)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the decision. This calls the strategy, which may be user code.
    fn think(&self) {
        let State::Open(request) = std::mem::replace(&mut *self.state(), State::Away) else { return };
        let decided = catch_unwind(AssertUnwindSafe(|| self.decide(*request)));
        *self.state() = State::Decided(Box::new(decided));
    }

    fn decide(&self, DecisionRequest { report, mut balancer }: DecisionRequest) -> Outcome {
        let decision = balancer.decide_by(&report, |expected| {
            let begin_ns = self.clock.now_ns();
            let assignment = self.strategy.assign(expected);
            let took_ns = self.clock.now_ns().saturating_sub(begin_ns);
            impossible(expected, &assignment).map_or(Ok((assignment, took_ns)), Err)
        });
        decision.map(|decision| (balancer, decision))
    }

    fn is_decided(&self) -> bool {
        matches!(*self.state(), State::Decided(_))
    }
}

/// The reason why an assignment cannot be carried out, or none if it can.
fn impossible(snapshot: &Snapshot, assignment: &Assignment) -> Option<InvalidAssignment> {
    let (chunks, answers) = (snapshot.chunks.len(), assignment.ranks.len());
    if chunks != answers {
        return Some(InvalidAssignment::Number { answers, chunks });
    }
    assignment.moves(snapshot).find_map(|(chunk, to)| {
        let why = match snapshot.ranks.get(to.index()) {
            None => format!("there are {} ranks", snapshot.ranks.len()),
            Some(rank) if !rank.available => "that rank is not available".into(),
            Some(_) if !chunk.migratable => "the chunk is not migratable".into(),
            Some(_) => return None,
        };
        Some(InvalidAssignment::Move { chunk: chunk.id, to, why })
    })
}

impl Worker<'_> {
    /// Decides a sync, or starts a thread that decides while this worker goes on.
    pub(super) fn decide(&mut self, request: Box<DecisionRequest>) {
        let many = request.report.chunks.len() >= MANY_CHUNKS;
        let long = many || request.balancer.took_lately_ns() >= Some(LONG_NS);
        let clock = self.shared.clock.clone();
        let question = Arc::new(PendingDecision::new(request, clock));
        self.instruments.interrupt();
        let open = if self.shared.clock.is_virtual() {
            self.simulated.puts_off()
        } else {
            long && self.hand_over(&question)
        };
        if open {
            self.shared.measurements.recording().strategy_activity.set_deciding(question.sync);
            self.instruments.skip(Part::Decide, question.sync);
            self.pending_decision = Some(question);
            self.update_poll_schedule();
        } else {
            self.decide_now(&question);
        }
    }

    /// Starts a thread that decides. False if no thread could be started.
    fn hand_over(&self, question: &Arc<PendingDecision>) -> bool {
        let (question, wake) = (question.clone(), self.shared.scheduler.waker(self.id));
        let think = move || {
            question.think();
            wake();
        };
        let started = thread::Builder::new().name("caribou decides".into()).spawn(think);
        started
            .inspect_err(
                |why| tracing::warn!(%why, "the thread of the strategy cannot be started: a worker runs it"),
            )
            .is_ok()
    }

    fn decide_now(&mut self, question: &PendingDecision) {
        self.instruments.begin_decision(question.sync);
        question.think();
        self.instruments.end_decision();
        self.conclude(question);
    }

    pub(super) fn has_question(&self) -> bool {
        self.pending_decision.is_some()
    }

    pub(super) fn has_answer(&self) -> bool {
        self.pending_decision.as_ref().is_some_and(|question| question.is_decided())
    }

    /// Passes the pending decision to the core. False if the decision is not made yet.
    pub(super) fn take_answer(&mut self) -> bool {
        if !self.has_answer() {
            return false;
        }
        let question = self.close_question();
        self.instruments.turn_to_other("a decision");
        self.conclude(&question);
        true
    }

    /// In a simulation: makes the decision that the seed has deferred until now.
    pub(super) fn decide_at_last(&mut self) {
        let question = self.close_question();
        self.decide_now(&question);
    }

    fn close_question(&mut self) -> Arc<PendingDecision> {
        self.shared.measurements.recording().strategy_activity.set_idle();
        let question = self.pending_decision.take().expect("there is something to decide");
        self.update_poll_schedule();
        question
    }

    /// Passes the decision to the core. Fails the run if the strategy panicked or its assignment cannot be carried out.
    fn conclude(&mut self, question: &PendingDecision) {
        let State::Decided(decided) = std::mem::replace(&mut *question.state(), State::Away) else {
            unreachable!("it was decided just now");
        };
        let why = match *decided {
            Ok(Ok((balancer, decision))) => return self.settle(question.sync, balancer, decision),
            Ok(Err(InvalidAssignment::Number { answers, chunks })) => {
                format!("it assigned {answers} chunks, expected {chunks}")
            }
            Ok(Err(InvalidAssignment::Move { chunk, to, why })) => {
                format!("it assigned {} to rank {to}, but {why}", self.describe(chunk))
            }
            Err(panic) => format!("it panicked: {}", panic_message(&*panic)),
        };
        let strategy = question.strategy.name().to_owned();
        self.fail(Error::StrategyFailed { strategy, sync: question.sync.0, why });
    }

    fn settle(&mut self, sync: SyncId, balancer: Balancer, decision: Decision) {
        self.with_core(|core, now_ns, out| core.decided(balancer, decision, now_ns, out));
        // Record here and not with a sample, since rank 0 may have no chunks.
        self.instruments.record_syncs();
        self.instruments.skip(Part::Decide, sync);
    }
}
