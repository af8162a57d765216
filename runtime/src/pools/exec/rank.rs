//! The threads of one rank of a pool.
//!
//! | thread | does |
//! |---|---|
//! | the *monitor*, which is the calling thread | takes and sends packets, passes time, collects parts; sleeps nearly always |
//! | one for each worker, on its vCPU | asks the core for a range, executes it, asks again |
//!
//! A monitor of its own, because an iteration may take seconds and other ranks must not wait for an answer that long. It
//! has no vCPU of its own; a few hundred wake-ups a run cost nothing that could be seen. Workers wait on one lock, once per
//! range (0.1 s by default), so it is a plain mutex.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use lb_strategies::Shape;
use lb_strategies::pool::{Input, Output, PoolRank};

use super::diary::Diary;
use super::meeting::{Inner, Meeting};
use super::monitor::Monitor;
use crate::error::Error;
use crate::ids::Rank;
use crate::measure::cpu::thread_cpu_ns;
use crate::measure::sample::{Gauges, Observed};
use crate::pools::core::rank::{Order, Part, PoolCore, PoolPacket, Tally, Todo, Whole};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::pools::report::PoolWorker;
use crate::run::outcome::Outcome;
use crate::run::seat::{Seat, thread_refused};
use crate::text::of_panic;
use crate::threads::clock::Clock;
use crate::trace::recording::Recording;

/// One rank of a pool about to run.
pub(crate) struct PoolRun<'p> {
    pub(crate) work: &'p dyn PoolWork,
    pub(crate) seat: Seat<'p, PoolPacket>,
    /// Makes the policy's machine of this rank.
    pub(crate) make: &'p dyn Fn() -> Box<dyn PoolRank>,
    /// Takes the result, in each process once.
    pub(crate) deliver: &'p (dyn Fn(Accumulated, Whole) + Sync),
}

/// In place of a machine that could not be made.
struct Silent;

impl PoolRank for Silent {
    fn step(&mut self, _now: u64, _input: Input, _out: &mut Vec<Output>) {}
}

/// What the threads of a rank share.
pub(super) struct Shared<'p> {
    pub(super) work: &'p dyn PoolWork,
    pub(super) rank: Rank,
    pub(super) clock: &'p Clock,
    pub(super) outcome: &'p Outcome,
    pub(super) recording: Arc<Recording>,
    pub(super) meeting: Meeting,
    /// Iterations of each worker so far.
    pub(super) done: Vec<AtomicU64>,
    /// What others leave of the workers' vCPUs.
    pub(super) gauges: Gauges,
}

impl PoolRun<'_> {
    /// Runs the rank; returns when its part and all others' are in the result, or when the run has failed.
    pub(crate) fn run(self) {
        let Seat { config, rank, plan, watch, crew, clock, outcome, transport, session } = self.seat;
        let (recording, untraced) = session.rank(rank, &[], &clock);
        let seats = &plan.seats[rank.index()];
        let asking = format!("asking the policy `{}`", config.lb_spec(Shape::Pools));
        let (machine, refused) = match catch_unwind(AssertUnwindSafe(self.make)) {
            Ok(machine) => (Some(machine), None),
            Err(panic) => (None, Some(panic)),
        };
        let shared = &Shared {
            work: self.work,
            rank,
            clock: &clock,
            outcome: &outcome,
            recording,
            meeting: Meeting::new(crew, PoolCore::new(machine.unwrap_or(Box::new(Silent)), seats.workers)),
            done: (0..seats.workers).map(|_| AtomicU64::new(0)).collect(),
            gauges: Gauges::new(seats.workers, config.background),
        };
        shared.meeting.occupy_as_monitor();
        if shared.recording.writes() {
            shared.gauges.begin_to_look(clock.now_ns());
        }
        let mut monitor = Monitor::new(shared, transport, plan.seats.len() as u32, config);
        if let Some(error) = untraced {
            shared.fail(error);
        }
        shared.catching(&asking, || {
            if let Some(panic) = refused {
                resume_unwind(panic);
            }
            shared.with(|inner, now_ns, todo| inner.core.begin(now_ns, todo));
        });
        thread::scope(|scope| {
            for worker in 0..seats.workers {
                let builder = thread::Builder::new().name(format!("caribou {rank}.{worker}"));
                let doing = format!("{asking}, or making or merging what is accumulated");
                let run = move || {
                    let _bound = seats.take(rank, worker, watch);
                    shared.meeting.occupy_as(worker);
                    shared.gauges.workers[worker as usize].occupy();
                    shared.work(worker);
                };
                let started = builder.spawn_scoped(scope, move || shared.catching(&doing, run));
                if let Err(why) = started {
                    shared.fail(thread_refused(rank, &why));
                    break;
                }
            }
            shared.catching(&format!("{asking}, telling progress or collecting the result"), || {
                if let Some((Some(accumulated), whole)) = monitor.run() {
                    (self.deliver)(accumulated, whole);
                }
            });
            // While all workers are there to be looked at.
            shared.catching("observing its workers", || shared.observe(Observed::AtEnd));
            // Those that are still in a range come back from it; others need not wait for that.
            shared.meeting.crew.stop();
            shared.catching("telling others why it failed", || monitor.say_why());
        });
        monitor.close();
        outcome.finish(clock.now_ns());
    }
}

impl Shared<'_> {
    /// Gives the core an input, and sees to what follows from it.
    pub(super) fn with<T>(&self, input: impl FnOnce(&mut Inner, u64, &mut Todo) -> T) -> T {
        self.meeting.with(|inner, todo| input(inner, self.clock.now_ns(), todo))
    }

    /// Ends the run on this rank; the monitor tells the others.
    pub(super) fn fail(&self, error: Error) {
        self.outcome.fail(error);
        self.meeting.crew.stop();
    }

    /// A panic of user code ends the run.
    pub(super) fn catching(&self, doing: &str, act: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(act)) {
            self.fail(Error::PoolPanicked {
                rank: self.rank.0,
                doing: doing.into(),
                panic: of_panic(&*panic),
            });
        }
    }

    /// Keeps for the record how the rank is doing, if that was not done just before.
    pub(super) fn observe(&self, when: Observed) {
        if self.recording.profiled
            && let Some(sample) = self.gauges.observe(self.clock.now_ns(), when)
        {
            self.recording.sample(sample);
            self.recording.look(|| self.gauges.look(&sample));
        }
    }

    /// Iterations of this rank so far.
    pub(super) fn done(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }

    /// The life of a worker.
    pub(super) fn work(&self, worker: u32) {
        let (mut accumulated, mut tally) = (self.work.init(), Tally::default());
        let mut apart: Option<(Accumulated, Tally)> = None;
        let mut diary = Diary::new(&self.recording, self.rank.0, worker, self.clock.now_ns());
        while let Some((counts, order)) = self.next(worker, &mut diary) {
            if let Some((kept, its_tally)) = apart.take() {
                if counts == Some(true) {
                    self.work.merge(&mut accumulated, kept);
                    self.count(&mut tally, its_tally, &mut diary);
                } else {
                    diary.record.discarded += its_tally.count;
                }
            }
            let Order::Run { range, apart: keep_apart } = order else {
                diary.waited(self.clock.now_ns());
                self.hand_in(accumulated, tally, diary.record);
                return self.rest(worker, &mut diary, || self.meeting.wait_for_end(worker));
            };
            let mut fresh = keep_apart.then(|| self.work.init());
            let into = fresh.as_mut().unwrap_or(&mut accumulated);
            diary.waited(self.clock.now_ns());
            let cpu_start_ns = thread_cpu_ns();
            let at_work = &self.recording.at_work[worker as usize];
            at_work.iterates(range.start);
            let executed = catch_unwind(AssertUnwindSafe(|| self.work.execute(into, range.clone())));
            at_work.rests();
            let end_ns = self.clock.now_ns();
            if let Err(panic) = executed {
                let doing = format!("executing iterations {}..{}", range.start, range.end);
                let panic = of_panic(&*panic);
                return self.fail(Error::PoolPanicked { rank: self.rank.0, doing, panic });
            }
            let cpu_clock_ns = thread_cpu_ns();
            diary.executed(&range, cpu_clock_ns - cpu_start_ns, end_ns, || self.clock.now_ns());
            self.gauges.workers[worker as usize].publish(diary.published(cpu_clock_ns));
            self.observe(Observed::Between);
            match fresh {
                Some(kept) => apart = Some((kept, Tally::of(&range))),
                None => self.count(&mut tally, Tally::of(&range), &mut diary),
            }
        }
        diary.waited(self.clock.now_ns());
    }

    /// Waits for something, which is idle time.
    pub(super) fn rest<T>(&self, worker: u32, diary: &mut Diary, wait: impl FnOnce() -> T) -> T {
        let gauge = &self.gauges.workers[worker as usize];
        gauge.parks(self.clock.now_ns());
        let answer = wait();
        let now_ns = self.clock.now_ns();
        gauge.wakes(now_ns);
        diary.waited(now_ns);
        answer
    }

    /// Some iterations of a worker count.
    pub(super) fn count(&self, tally: &mut Tally, its: Tally, diary: &mut Diary) {
        tally.add(its);
        diary.record.iterations = tally.count;
        self.done[diary.record.worker as usize].store(tally.count, Ordering::Relaxed);
    }

    /// Asks for the next order, and waits for it; none if the run is over.
    pub(super) fn next(&self, worker: u32, diary: &mut Diary) -> Option<(Option<bool>, Order)> {
        let cancelled = self.work.is_cancelled();
        let ask = |inner: &mut Inner, now_ns, todo: &mut Todo| {
            // At once: until the monitor looks, cheap iterations may all be executed.
            if cancelled {
                inner.core.cancel(todo);
            }
            inner.core.wants(worker, now_ns, todo);
            let sent: Vec<u32> = todo.packets.iter().map(|(to, _)| to.0).collect();
            (inner.core.take_order(worker), sent)
        };
        let (answer, sent) = self.with(ask);
        diary.asked(&sent, self.clock.now_ns());
        if self.meeting.crew.stopped() {
            return None;
        }
        answer.or_else(|| self.rest(worker, diary, || self.meeting.wait_for_order(worker)))
    }

    pub(super) fn hand_in(&self, accumulated: Accumulated, tally: Tally, record: PoolWorker) {
        self.with(|inner, _, _| {
            inner.parts.push((accumulated, tally, record));
            inner.core.handed_in();
        });
    }

    /// What this rank has done, once all workers have handed in; what they accumulated merged in their order.
    pub(super) fn part(&self) -> Option<(Accumulated, Part)> {
        let (mut parts, messages, said) = {
            let mut inner = self.meeting.lock();
            if !inner.core.is_through() {
                return None;
            }
            (std::mem::take(&mut inner.parts), inner.core.messages(), inner.core.said())
        };
        self.recording.count(messages);
        parts.sort_by_key(|(_, _, record)| record.worker);
        let mut part = Part { messages, said, ..Part::default() };
        let mut all = None;
        for (accumulated, tally, record) in parts {
            part.tally.add(tally);
            part.workers.push(record);
            self.work.gather(&mut all, accumulated);
        }
        Some((all.expect("a rank has a worker"), part))
    }
}
