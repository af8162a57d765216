//! Asks the strategy: on the worker itself where the answer comes soon, else on a thread beside it.
//!
//! A worker that thinks runs no chunk, and worker 0 receives nothing meanwhile: chunks that go on at a sync stand still, and
//! so do all who have sent to them. So a decision that is expected to be long is made by a thread of its own, and the worker
//! finds the answer among what it looks for between chunks; if it sleeps, it is woken.
//!
//! That thread has the strategy and the snapshot, and nothing of the rank. Nobody waits for it: where the run ends before it
//! has answered, it thinks to its end unheard.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use lb_strategies::balancer::Answer;
use lb_strategies::{Assignment, Snapshot, Strategy};

use super::worker::Worker;
use crate::error::Error;
use crate::ids::SyncId;
use crate::panics::of_panic;
use crate::threads::clock::Clock;
use crate::trace::Part;

/// A decision is expected to be long if the last one took so long. To hand it over takes some 0.1 ms, for a thread that
/// starts on a vCPU where others run, and an answer that waits until a handler returns: so that adds a tenth at most. And
/// handlers that are as long are nothing unusual, so others are used to waiting for that.
const LONG_NS: u64 = 1_000_000;
/// Before there is a last one, if there are so many chunks: the slowest strategy of ours takes 0.1 us for each.
const MANY_CHUNKS: usize = 10_000;

/// A sync that the strategy decides.
pub(super) struct Question {
    strategy: Arc<dyn Strategy>,
    expected: Snapshot,
    clock: Clock,
    answer: Mutex<Option<Thought>>,
}

/// The assignment and how long it took, ns; or a panic.
type Thought = thread::Result<(Assignment, u64)>;

impl Question {
    /// Asks the strategy, which may be the user's own.
    fn ask(&self) -> Thought {
        catch_unwind(AssertUnwindSafe(|| {
            let start_ns = self.clock.now_ns();
            let assignment = self.strategy.assign(&self.expected);
            (assignment, self.clock.now_ns().saturating_sub(start_ns))
        }))
    }

    fn sync(&self) -> SyncId {
        SyncId(self.expected.phase)
    }

    fn answer(&self) -> MutexGuard<'_, Option<Thought>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker<'_> {
    /// Decides a sync, or lets it be decided while this worker goes on; without the strategy if no plan can pay for its time.
    pub(super) fn decide(&mut self, expected: Snapshot) {
        let (strategy, last_ns, declined) = {
            let rank = &self.shared.plane.lock().rank;
            let strategy = rank.strategy().expect("rank 0 has the strategy");
            (strategy, rank.last_decision_ns(), rank.declines(&expected))
        };
        if let Some(verdict) = declined {
            self.instruments.interrupt();
            return self.settle(&expected, Answer::Unasked(verdict));
        }
        let long = last_ns.map_or(expected.chunks.len() >= MANY_CHUNKS, |last_ns| last_ns >= LONG_NS);
        let clock = self.shared.clock.clone();
        let question = Arc::new(Question { strategy, expected, clock, answer: Mutex::default() });
        self.instruments.interrupt();
        let open = if self.shared.clock.is_virtual() {
            self.simulated.puts_off()
        } else {
            long && self.hand_over(&question)
        };
        if open {
            self.shared.record.recording().beside.decides(question.sync());
            self.instruments.skip(Part::Decide, question.sync());
            self.question = Some(question);
            self.looks_around = true;
        } else {
            self.decide_now(&question);
        }
    }

    /// Lets a thread ask the strategy. False if there can be none.
    fn hand_over(&self, question: &Arc<Question>) -> bool {
        let (question, wake) = (question.clone(), self.shared.scheduler.waker(self.id));
        let think = move || {
            let answer = question.ask();
            *question.answer() = Some(answer);
            wake();
        };
        let started = thread::Builder::new().name("caribou decides".into()).spawn(think);
        started.inspect_err(|why| tracing::warn!(%why, "no thread to decide on")).is_ok()
    }

    /// Asks the strategy here.
    fn decide_now(&mut self, question: &Question) {
        self.instruments.begin_decision(question.sync());
        let answer = question.ask();
        self.instruments.end_decision();
        self.conclude(question, answer);
    }

    /// Tells whether a sync is being decided while this worker goes on.
    pub(super) fn has_question(&self) -> bool {
        self.question.is_some()
    }

    /// Tells whether that has been decided.
    pub(super) fn has_answer(&self) -> bool {
        self.question.as_ref().is_some_and(|question| question.answer().is_some())
    }

    /// Carries out what was decided meanwhile. False if nothing was.
    pub(super) fn take_answer(&mut self) -> bool {
        let Some(answer) = self.question.as_ref().and_then(|question| question.answer().take()) else {
            return false;
        };
        let question = self.close_question().expect("it has an answer");
        self.instruments.turn_to_other("a decision");
        self.conclude(&question, answer);
        true
    }

    /// In a simulation: the seed has put a decision off until now.
    pub(super) fn decide_at_last(&mut self) {
        let question = self.close_question().expect("there is something to decide");
        self.decide_now(&question);
    }

    fn close_question(&mut self) -> Option<Arc<Question>> {
        self.shared.record.recording().beside.rests();
        let question = self.question.take();
        self.looks_around = self.must_look_around();
        question
    }

    /// Tells the core what the strategy has answered, which may be wrong.
    fn conclude(&mut self, question: &Question, thought: Thought) {
        let Question { strategy, expected, .. } = question;
        let thought = thought.map_err(|panic| format!("it panicked: {}", of_panic(&*panic)));
        let possible = thought.and_then(|(assignment, took_ns)| {
            let impossible = self.impossible(expected, &assignment);
            impossible.map_or(Ok(Answer::Assigned { assignment, took_ns }), Err)
        });
        match possible {
            Ok(answer) => self.settle(expected, answer),
            Err(why) => {
                let strategy = strategy.name().to_owned();
                self.fail(Error::StrategyFailed { strategy, sync: expected.phase, why });
            }
        }
    }

    fn settle(&mut self, expected: &Snapshot, answer: Answer) {
        self.with_core(|core, now_ns, out| core.decided(expected, answer, now_ns, out));
        // Here and not with a sample: rank 0 may have no chunks.
        self.instruments.record_syncs();
        self.instruments.skip(Part::Decide, SyncId(expected.phase));
    }

    /// The reason why an assignment cannot be carried out, if there is one.
    fn impossible(&self, snapshot: &Snapshot, assignment: &Assignment) -> Option<String> {
        let (chunks, answers) = (snapshot.chunks.len(), assignment.ranks.len());
        if chunks != answers {
            return Some(format!("it assigned {answers} chunks of {chunks}"));
        }
        let mut moving =
            snapshot.chunks.iter().zip(&assignment.ranks).filter(|(chunk, to)| chunk.rank != **to);
        moving.find_map(|(chunk, &to)| {
            let why = match snapshot.ranks.get(to.index()) {
                None => format!("there are {} ranks", snapshot.ranks.len()),
                Some(rank) if !rank.available => "that rank is not available".into(),
                Some(_) if !chunk.migratable => "the chunk is not migratable".into(),
                Some(_) => return None,
            };
            Some(format!("it assigned {} to rank {to}, but {why}", self.describe(chunk.id)))
        })
    }
}
