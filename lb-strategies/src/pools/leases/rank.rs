//! The rank side of `leases`: hands pieces of its pool to its workers, and asks the root for more in time.
//!
//! | stage | a worker that wants | leaves when |
//! |---|---|---|
//! | Working | gets a piece, or waits | `Stop` comes |
//! | Stopped | is released | never: closed when all are released |
//!
//! 1. While Working, a rank one of whose workers has come has iterations that nobody has begun, or a `Want` at the root.
//! 2. It asks when what nobody has begun lasts for two round trips and a piece, or less: the answer is there in time.
//! 3. What it gives up was begun by nobody, and is not its own from then on.
//! 4. A report names what was executed since the last one; all it ever held it has reported, given up or still holds.

mod copying;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use copying::verdict;

use super::conversation::{Conversation, seconds};
use super::message::{Occasion, Order, Output, Report, Standing, list};
use super::range_pool::RangePool;
use super::tail::{Role, Tail};
use crate::pools::machine::{Nanos, SECOND};
use crate::rank::{Rank, WorkerId};

/// A rank looks at itself when this many pieces should have been executed, or after this many round trips.
const PULSE_PIECES: u64 = 3;
const PULSE_TRIPS: u64 = 5;

#[derive(Debug, PartialEq)]
enum Stage {
    Working,
    Stopped,
}

/// The machine of one rank, without the root.
#[derive(Debug)]
pub(super) struct LeaseRank {
    me: Rank,
    pool: RangePool,
    talk: Conversation,
    waiting: BinaryHeap<Reverse<WorkerId>>,
    /// Workers that are not released.
    workers: u32,
    stage: Stage,
    pulse: Pulse,
    tail: Tail,
    copies: Copies,
}

/// The state of tail replication: pieces may be executed twice, or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Copies {
    Never,
    /// Yes, but the root still has something.
    NotYet,
    /// The root has nothing left.
    Now,
}

/// The time to look whether the rank still runs as it said.
#[derive(Debug)]
struct Pulse {
    /// Of a rank that is alone there is nobody to tell.
    alone: bool,
    chunk: Nanos,
    next: Option<Nanos>,
}

impl LeaseRank {
    pub(super) fn new(
        me: Rank,
        pool: RangePool,
        workers: u32,
        chunk: Nanos,
        alone: bool,
        copies: Copies,
    ) -> Self {
        Self {
            me,
            pool,
            talk: Conversation::default(),
            waiting: BinaryHeap::new(),
            workers,
            stage: Stage::Working,
            pulse: Pulse { alone, chunk, next: None },
            tail: Tail::default(),
            copies,
        }
    }

    /// A worker has come, or has executed its piece.
    pub(super) fn wants(&mut self, now: Nanos, worker: WorkerId, out: &mut Vec<Output>) {
        let range = self.pool.finish(now, worker);
        match (range, self.tail.finish(worker)) {
            (Some(range), None) => self.talk.done(range),
            (Some(range), Some(Role::Own(piece))) => {
                let counts = self.tail.settle(piece).is_some();
                if counts {
                    self.talk.done(range);
                }
                out.push(verdict(worker, counts));
            }
            (Some(_), Some(Role::Foreign(owner, piece))) if self.stage == Stage::Working => {
                self.tail.ask(owner, piece, worker);
                self.report(now, Occasion::Copied { owner, piece });
                return self.go_on(now, out);
            }
            (Some(_), Some(Role::Foreign(..))) => out.push(Output::Discard { worker }),
            (None, _) => {}
        }
        self.waiting.push(Reverse(worker));
        self.go_on(now, out);
    }

    /// The root says something.
    pub(super) fn obey(&mut self, now: Nanos, order: Order, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            return;
        }
        match order {
            Order::Lease { ranges, queued, last } => {
                if self.copies != Copies::Never {
                    self.copies = if last { Copies::Now } else { Copies::NotYet };
                }
                let before = self.pool.len();
                ranges.into_iter().for_each(|range| self.pool.insert(range));
                self.talk.leased(now, self.pool.len() - before, queued);
            }
            Order::Cut(thieves) => {
                let speed = self.pool.speed(now);
                let given = self.pool.cut(thieves.part_of(self.pool.len(), speed));
                self.report(now, Occasion::CutOk(list(&given)));
            }
            Order::Copy { owner, piece, range } => self.copy(now, owner, piece, range, out),
            Order::Settle { piece } => {
                let range = self.tail.settle(piece);
                self.report(now, Occasion::Settled { piece, range });
            }
            Order::Verdict { owner, piece, counts } => {
                if let Some(worker) = self.tail.answered(owner, piece) {
                    out.push(verdict(worker, counts));
                    self.waiting.push(Reverse(worker));
                }
            }
            Order::Stop => {
                self.stop(out);
                self.report(now, Occasion::Bye);
            }
        }
        self.go_on(now, out);
    }

    /// A pulse, or a timer for no reason.
    pub(super) fn timer(&mut self, now: Nanos, out: &mut Vec<Output>) {
        if self.pulse.next.is_none_or(|next| now < next) || self.stage == Stage::Stopped {
            return;
        }
        self.pulse.next = None;
        let standing = self.standing(now);
        if self.talk.is_surprise(now, &standing, self.pulse.chunk) {
            self.talk.report(now, Occasion::Progress, standing);
        }
        self.copy_late(now, out);
        self.beat(now, out);
    }

    /// Takes the reports to the root, in order.
    pub(super) fn reports(&mut self) -> Vec<Report> {
        self.talk.take()
    }

    /// Tells whether no worker is left.
    pub(super) fn is_closed(&self) -> bool {
        self.workers == 0
    }

    fn go_on(&mut self, now: Nanos, out: &mut Vec<Output>) {
        if self.stage == Stage::Stopped {
            while let Some(Reverse(worker)) = self.waiting.pop() {
                self.workers -= 1;
                out.push(Output::Release { worker });
            }
            return;
        }
        while let Some(&Reverse(worker)) = self.waiting.peek() {
            let Some(range) = self.pool.claim(now, worker) else { break };
            self.waiting.pop();
            let copy = self.copies == Copies::Now;
            if copy {
                self.tail.begin(worker, range.clone());
            }
            out.push(Output::Run { worker, range, copy });
        }
        self.copy_late(now, out);
        self.speak(now);
        self.beat(now, out);
    }

    fn speak(&mut self, now: Nanos) {
        let standing = self.standing(now);
        if !self.talk.is_asking() {
            if self.is_low(&standing) {
                self.talk.report(now, Occasion::Want, standing);
            }
        } else if self.talk.is_news(&standing, self.pool.running().any(|worker| self.tail.matters(worker))) {
            self.talk.report(now, Occasion::Progress, standing);
        }
    }

    fn is_low(&self, standing: &Standing) -> bool {
        let ahead = seconds(2 * self.talk.rtt() + self.pulse.chunk);
        standing.pool == 0 || standing.speed.is_some_and(|speed| standing.pool as f64 <= speed * ahead)
    }

    fn beat(&mut self, now: Nanos, out: &mut Vec<Output>) {
        let nobody_cares = self.pulse.alone && self.copies == Copies::Never;
        if nobody_cares || self.pulse.next.is_some() || !self.pool.is_running() {
            return;
        }
        let speed = self.pool.speed(now).map_or(f64::INFINITY, |speed| speed / f64::from(self.workers));
        let iteration = ((SECOND as f64 / speed) as Nanos).min(1000 * SECOND);
        let pieces = PULSE_PIECES * self.pulse.chunk.max(iteration);
        let next = now + pieces.max(PULSE_TRIPS * self.talk.rtt());
        self.pulse.next = Some(next);
        out.push(Output::WakeAt(next));
    }

    fn report(&mut self, now: Nanos, occasion: Occasion) {
        let standing = self.standing(now);
        self.talk.report(now, occasion, standing);
    }

    fn standing(&self, now: Nanos) -> Standing {
        Standing {
            pool: self.pool.len(),
            speed: self.pool.speed(now),
            waiting: self.waiting.len() as u32,
            leases: self.talk.leases(),
            rtt: self.talk.rtt(),
            variation: self.pool.variation(),
        }
    }
}
