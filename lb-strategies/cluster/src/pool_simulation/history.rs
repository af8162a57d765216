//! Runs the event loop of a simulated pool: workers execute at their speeds, and machines' outputs are carried out.

use std::ops::Range;

use super::event::{Event, digest};
use super::{PoolRun, RunPool, WorkerRun};
use crate::execution::Execution;
use lb_strategies::pools::driver::{Action, Driver, Order};
use lb_strategies::pools::machine::Nanos;
use lb_strategies::pools::message::Message;
use lb_strategies::pools::range_set::RangeSet;
use lb_strategies::virtual_time::events::Events;
use lb_strategies::virtual_time::links::Links;
use lb_strategies::virtual_time::post::Post;
use lb_strategies::virtual_time::vcpus::Worker;
use lb_strategies::{Rank, WorkerId};

struct Running {
    range: Range<u64>,
    copy: bool,
    begun: Nanos,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    /// The range whose result the worker keeps apart.
    apart: Option<Range<u64>>,
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

pub(super) struct EventLoop<'r> {
    drivers: Vec<Driver>,
    work: Box<dyn Fn(Range<u64>) -> f64 + 'r>,
    now: Nanos,
    end: Nanos,
    events: Events<Event>,
    execution: Execution<'r>,
    /// By rank, the number of its first worker.
    firsts: Vec<usize>,
    workers: Vec<State>,
    post: Post<Box<dyn Links + 'r>, Message>,
    /// Empty; kept to reuse its memory.
    actions: Vec<Action>,
    run: PoolRun,
}

impl<'r> EventLoop<'r> {
    pub(super) fn new(plan: RunPool<'r>) -> Self {
        let RunPool { pool, drivers, vcpus, links, work, starts, end } = plan;
        let ranks = drivers.len();
        let mut names = Vec::new();
        let mut firsts = Vec::new();
        for (rank, &workers) in (0..).map(Rank).zip(&pool.workers) {
            firsts.push(names.len());
            names.extend((0..workers).map(|number| Worker { rank, number }));
        }
        let mut events = Events::default();
        for (index, name) in names.iter().enumerate() {
            let late = starts.iter().find(|(worker, _)| worker == name);
            events.at(late.map_or(0, |&(_, at)| at), Event::Arrives(index));
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
            drivers,
            work,
            now: 0,
            end,
            events,
            firsts,
            workers: names.iter().map(|_| State::default()).collect(),
            execution: Execution::new(vcpus, names),
            post: Post::new(ranks as u32, links),
            actions: Vec::new(),
            run,
        }
    }

    /// Handles events until none is left.
    pub(super) fn run(mut self) -> PoolRun {
        for rank in 0..self.drivers.len() as u32 {
            self.tell(rank, Driver::begin);
        }
        while let Some((now, event)) = self.events.pop() {
            if now > self.end {
                break;
            }
            self.now = now;
            self.handle_event(event);
        }
        self.over()
    }

    fn handle_event(&mut self, event: Event) {
        self.run.digest = digest(self.run.digest, self.now, &event);
        match event {
            Event::Arrives(index) => self.wants(index),
            Event::WorkerEvent(look) => {
                if self.execution.advance_to(look, self.now, &mut self.events) {
                    self.through(look.worker);
                }
            }
            Event::Delivered { from, to } => {
                let served = self.post.serve(Rank(to), self.now);
                self.events.at(served, Event::Served { from, to });
            }
            Event::Served { from, to } => {
                let message = self.post.take(Rank(from), Rank(to)).expect("it is on its way");
                self.tell(to, |driver, now, actions| {
                    let heard = driver.hear(Rank(from), message, now, actions);
                    heard.expect("the machines of a policy send what they can read");
                });
            }
            Event::Timer { rank } => {
                let due = self.drivers[rank as usize].wake_at().is_some_and(|at| at <= self.now);
                if due {
                    self.tell(rank, |driver, now, actions| _ = driver.pass_time(now, actions));
                }
            }
        }
    }

    fn wants(&mut self, index: usize) {
        let Worker { rank, number } = self.execution.name(index);
        self.tell(rank.0, |driver, now, actions| driver.wants(WorkerId(number), now, actions));
    }

    fn tell(&mut self, rank: u32, tell: impl FnOnce(&mut Driver, Nanos, &mut Vec<Action>)) {
        self.run.inputs += 1;
        let mut actions = std::mem::take(&mut self.actions);
        let driver = &mut self.drivers[rank as usize];
        tell(driver, self.now, &mut actions);
        if driver.is_over() {
            self.run.closed[rank as usize].get_or_insert(self.now);
        }
        for action in actions.drain(..) {
            self.carry_out(rank, action);
        }
        self.actions = actions;
    }

    fn carry_out(&mut self, rank: u32, action: Action) {
        match action {
            Action::Send { to, message } => {
                assert_ne!(to.0, rank, "a rank does not write to itself");
                let arrival = self.post.send(Rank(rank), to, message, self.now);
                self.events.at(arrival, Event::Delivered { from: rank, to: to.0 });
            }
            Action::WakeAt(when) => self.events.at(when.max(self.now), Event::Timer { rank }),
            Action::Call { worker } => {
                let order = self.drivers[rank as usize].take_order(worker);
                let (counts, order) = order.expect("a called worker has an order");
                self.execute_order(rank, worker, counts, order);
            }
        }
    }

    fn execute_order(&mut self, rank: u32, worker: WorkerId, counts: Option<bool>, order: Order) {
        let now = self.now;
        let state = self.state(rank, worker);
        assert!(state.running.is_none(), "{rank}.{worker} is not through");
        if let Some(range) = state.apart.take() {
            if counts.expect("it is said what becomes of what is kept apart") {
                state.has_executed(range);
            } else {
                self.run.discarded += range.end - range.start;
            }
        }
        match order {
            Order::Run { range, apart } => self.start(rank, worker, range, apart),
            Order::Leave => self.state(rank, worker).run.released = Some(now),
        }
    }

    fn state(&mut self, rank: u32, worker: WorkerId) -> &mut State {
        &mut self.workers[self.firsts[rank as usize] + worker.index()]
    }

    fn start(&mut self, rank: u32, worker: WorkerId, range: Range<u64>, copy: bool) {
        let (now, work) = (self.now, (self.work)(range.clone()));
        let index = self.firsts[rank as usize] + worker.index();
        self.workers[index].running = Some(Running { range, copy, begun: now });
        if self.execution.begin(index, work, now, &mut self.events) {
            self.through(index);
        }
    }

    fn through(&mut self, index: usize) {
        let now = self.now;
        let state = &mut self.workers[index];
        let Running { range, copy, begun } = state.running.take().expect("it runs");
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
        self.execution.rest(index, now, &mut self.events);
    }

    fn over(mut self) -> PoolRun {
        let mut executed: Vec<Range<u64>> = Vec::new();
        for state in &mut self.workers {
            executed.extend_from_slice(&state.executed);
            self.run.ranges.push(std::mem::take(&mut state.executed));
            self.run.workers.push(state.run);
        }
        self.run.messages = self.drivers.iter().map(Driver::messages).sum();
        self.run.said = self.drivers[0].said();
        // In ascending order, most ranges continue the one before, and the set stays small.
        executed.sort_unstable_by_key(|range| range.start);
        for range in executed {
            let count = range.end - range.start;
            self.run.repeated += count - self.run.executed.insert(range);
        }
        self.run
    }
}
