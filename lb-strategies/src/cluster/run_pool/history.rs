//! The events of a run, one after the other: who executes what at which speed, and what the machines say to that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::event::{Event, digest};
use super::{PoolRun, RunPool, WorkerRun};
use crate::cluster::vcpus::Worker;
use crate::pools::message::Message;
use crate::pools::policy::{Input, Nanos, Output, SECOND};
use crate::pools::range_set::RangeSet;
use crate::rank::Rank;

struct Running {
    range: Range<u64>,
    copy: bool,
    left: f64,
    since: Nanos,
    begun: Nanos,
    speed: f64,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// Whether the vCPUs take it for running: between two ranges without a pause it does not stop for them.
    occupies: bool,
    /// What it keeps apart.
    apart: Option<Range<u64>>,
    version: u64,
    run: WorkerRun,
    executed: Vec<Range<u64>>,
}

impl State {
    fn has_executed(&mut self, range: Range<u64>) {
        match self.executed.last_mut() {
            // Most ranges continue the one before.
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.executed.push(range),
        }
    }
}

pub(super) struct History<'r> {
    plan: RunPool<'r>,
    now: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
    /// Of each rank, the number of its first worker.
    firsts: Vec<usize>,
    names: Vec<Worker>,
    workers: Vec<State>,
    /// By sender and receiver: what is on its way, and when the last of it arrives.
    ways: Vec<(std::collections::VecDeque<Message>, Nanos)>,
    /// Until when a rank is busy with messages.
    serving: Vec<Nanos>,
    timers: Vec<u64>,
    /// Empty; kept for its memory.
    outputs: Vec<Output>,
    run: PoolRun,
}

impl<'r> History<'r> {
    pub(super) fn new(plan: RunPool<'r>) -> Self {
        let ranks = plan.pool.ranks() as usize;
        let mut names = Vec::new();
        let mut firsts = Vec::new();
        for (rank, &workers) in (0..).map(Rank).zip(&plan.pool.workers) {
            firsts.push(names.len());
            names.extend((0..workers).map(|number| Worker { rank, number }));
        }
        let run = PoolRun {
            executed: RangeSet::default(),
            repeated: 0,
            discarded: 0,
            workers: Vec::new(),
            ranges: Vec::new(),
            closed: vec![None; ranks],
            messages: 0,
            inputs: 0,
            said: None,
            digest: 0,
        };
        Self {
            now: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            firsts,
            workers: names.iter().map(|_| State::default()).collect(),
            names,
            ways: (0..ranks * ranks).map(|_| Default::default()).collect(),
            serving: vec![0; ranks],
            timers: vec![0; ranks],
            outputs: Vec::new(),
            run,
            plan,
        }
    }

    fn at(&mut self, when: Nanos, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((when, self.sequence, event)));
    }

    /// Lets everything happen until nothing does any more.
    pub(super) fn run(mut self) -> PoolRun {
        self.begin();
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now > self.plan.end {
                break;
            }
            self.now = now;
            self.happen(event);
        }
        self.over()
    }

    fn begin(&mut self) {
        for index in 0..self.names.len() {
            let late = self.plan.starts.iter().find(|(worker, _)| *worker == self.names[index]);
            let at = late.map_or(0, |&(_, at)| at);
            self.at(at, Event::Arrives(index));
        }
        for rank in 0..self.plan.pool.ranks() {
            self.tell(rank, Input::Begin);
        }
    }

    fn happen(&mut self, event: Event) {
        self.run.digest = digest(self.run.digest, self.now, &event);
        match event {
            Event::Arrives(index) => self.wants(index),
            Event::Looks { worker, version } if self.workers[worker].version == version => self.look(worker),
            Event::Delivered { from, to } => {
                let service = self.plan.links.service(Rank(to));
                let free = self.serving[to as usize].max(self.now) + service;
                self.serving[to as usize] = free;
                self.at(free, Event::Served { from, to });
            }
            Event::Served { from, to } => {
                if let Some(message) = self.way(from, to).0.pop_front() {
                    self.tell(to, Input::Message { from: Rank(from), message });
                }
            }
            Event::Timer { rank, version } if self.timers[rank as usize] == version => {
                self.tell(rank, Input::Timer);
            }
            Event::Looks { .. } | Event::Timer { .. } => {}
        }
    }

    fn way(&mut self, from: u32, to: u32) -> &mut (std::collections::VecDeque<Message>, Nanos) {
        let ranks = self.plan.pool.ranks();
        &mut self.ways[(from * ranks + to) as usize]
    }

    fn wants(&mut self, index: usize) {
        let Worker { rank, number } = self.names[index];
        self.tell(rank.0, Input::Wants { worker: number });
    }

    fn tell(&mut self, rank: u32, input: Input) {
        self.run.inputs += 1;
        let mut out = std::mem::take(&mut self.outputs);
        self.plan.machines[rank as usize].step(self.now, input, &mut out);
        for output in out.drain(..) {
            self.carry_out(rank, output);
        }
        self.outputs = out;
    }

    fn carry_out(&mut self, rank: u32, output: Output) {
        match output {
            Output::Run { worker, range, copy } => self.start(rank, worker, range, copy),
            Output::Commit { worker } => {
                let state = self.state(rank, worker);
                let range = state.apart.take().expect("something is kept apart");
                state.has_executed(range);
            }
            Output::Discard { worker } => {
                let range = self.state(rank, worker).apart.take().expect("something is kept apart");
                self.run.discarded += range.end - range.start;
            }
            Output::Send { to, message } => {
                assert_ne!(to.0, rank, "a rank does not write to itself");
                let delay = self.plan.links.delay(Rank(rank), to, self.now);
                let now = self.now;
                let way = self.way(rank, to.0);
                way.0.push_back(message);
                way.1 = way.1.max(now + delay);
                let arrival = way.1;
                self.run.messages += 1;
                self.at(arrival, Event::Delivered { from: rank, to: to.0 });
            }
            Output::WakeAt(when) => {
                self.timers[rank as usize] += 1;
                let version = self.timers[rank as usize];
                self.at(when.max(self.now), Event::Timer { rank, version });
            }
            Output::Release { worker } => {
                let now = self.now;
                let state = self.state(rank, worker);
                assert!(state.running.is_none() && state.apart.is_none(), "{rank}.{worker} is not through");
                assert!(state.run.released.replace(now).is_none(), "{rank}.{worker} is released twice");
            }
            Output::Closed => {
                let closed = &mut self.run.closed[rank as usize];
                assert!(closed.replace(self.now).is_none(), "rank {rank} is closed twice");
            }
        }
    }

    fn state(&mut self, rank: u32, worker: u32) -> &mut State {
        &mut self.workers[self.firsts[rank as usize] + worker as usize]
    }

    fn start(&mut self, rank: u32, worker: u32, range: Range<u64>, copy: bool) {
        assert!(range.start < range.end, "{rank}.{worker} gets nothing to run");
        let (now, left) = (self.now, (self.plan.work)(range.clone()));
        let index = self.firsts[rank as usize] + worker as usize;
        let state = &mut self.workers[index];
        assert!(state.running.is_none() && state.apart.is_none(), "{rank}.{worker} is not through");
        assert!(state.run.released.is_none(), "{rank}.{worker} is released");
        state.running = Some(Running { range, copy, left, since: now, begun: now, speed: 0.0 });
        self.occupies(index, true);
        self.look(index);
    }

    /// A worker begins to run or stops, which may change the speed of others.
    fn occupies(&mut self, index: usize, occupied: bool) {
        let before = std::mem::replace(&mut self.workers[index].occupies, occupied);
        if before != occupied && self.plan.vcpus.occupied(self.names[index], occupied, self.now) {
            self.look_everywhere_but(index);
        }
    }

    #[expect(clippy::float_cmp, reason = "it is the same number or another speed")]
    fn look_everywhere_but(&mut self, but: usize) {
        for other in 0..self.workers.len() {
            let Some(running) = &self.workers[other].running else { continue };
            // An earlier look stays planned, and is right as long as the speed is.
            if other != but && self.plan.vcpus.speed(self.names[other], self.now).0 != running.speed {
                self.look(other);
            }
        }
    }

    /// Accounts for what a worker has executed since the last look, and says when to look again.
    fn look(&mut self, index: usize) {
        let now = self.now;
        let state = &mut self.workers[index];
        state.version += 1;
        let version = state.version;
        let running = state.running.as_mut().expect("only who runs is looked at");
        running.left -= running.speed * (now - running.since) as f64 / SECOND as f64;
        running.since = now;
        if running.left <= 1e-9 * running.speed.max(1.0) {
            return self.through(index);
        }
        let (speed, until) = self.plan.vcpus.speed(self.names[index], now);
        debug_assert!(until > now, "a speed holds for a while");
        running.speed = speed;
        let rest = running.left / speed * SECOND as f64;
        // Zero speed gives infinity, which is too long.
        let end = if rest < 1e18 { now + (rest.ceil() as Nanos).max(1) } else { Nanos::MAX };
        let next = end.min(until);
        if next < Nanos::MAX {
            self.at(next, Event::Looks { worker: index, version });
        }
    }

    fn through(&mut self, index: usize) {
        let now = self.now;
        let state = &mut self.workers[index];
        let Running { range, copy, begun, .. } = state.running.take().expect("it runs");
        state.run.busy += now - begun;
        state.run.end = now;
        state.run.chunks += 1;
        state.run.done += range.end - range.start;
        if copy {
            state.apart = Some(range);
        } else {
            state.has_executed(range);
        }
        self.wants(index);
        if self.workers[index].running.is_none() {
            self.occupies(index, false);
        }
    }

    fn over(mut self) -> PoolRun {
        let mut executed: Vec<Range<u64>> = Vec::new();
        for state in &mut self.workers {
            executed.extend_from_slice(&state.executed);
            self.run.ranges.push(std::mem::take(&mut state.executed));
            self.run.workers.push(state.run);
        }
        self.run.said = self.plan.machines[0].said();
        // In ascending order most of them continue the one before, and the set stays small.
        executed.sort_unstable_by_key(|range| range.start);
        for range in executed {
            let count = range.end - range.start;
            self.run.repeated += count - self.run.executed.insert(range);
        }
        self.run
    }
}
