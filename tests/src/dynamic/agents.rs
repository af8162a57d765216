//! Every agent is a chunk, every pasture another: agents visit pastures, which feed them. An agent that starves is removed;
//! one that thrives inserts a child.

use caribou::{Array, Chunk, Config, Ctx, Error, Halo, Halos, Reducer, ReplyTo, Target, Values};
use serde::{Deserialize, Serialize};

use super::grazing::{Agent, Grass, Id, PASTURES, STEPS, birthplace, first_herd, first_ids};

pub(super) use super::grazing::serial;

#[derive(Serialize, Deserialize)]
struct Animal {
    agent: Agent,
    step: u64,
    pasture: [u16; 2],
    pastures: Array<Pasture>,
}

impl Animal {
    fn visit(&self, ctx: &mut Ctx<'_, Self>) {
        let visit = Visit { step: self.step, agent: self.agent, reply: ctx.reply_to_self() };
        ctx.send_to(self.pastures, self.pasture, Message::Visit(visit));
    }

    /// Of one that lives or was born in the step.
    fn end_step(&mut self, ctx: &mut Ctx<'_, Self>) {
        let target = Target::chunk_of(self.pastures, [0, 0]);
        ctx.contribute_at(self.step, self.step as u32, Reducer::WrappingSum, self.agent.count(), target);
        self.pasture = self.agent.next(self.pasture, self.step);
        self.step += 1;
        match self.step {
            STEPS => (),
            step if ctx.sync_due(step) => ctx.at_sync(),
            _ => self.visit(ctx),
        }
    }
}

impl Chunk for Animal {
    type Index = Id;
    /// Itself after a step, and its child.
    type Message = (Agent, Option<Agent>);

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.index()[0] == 0 { self.visit(ctx) } else { self.end_step(ctx) }
    }

    fn receive(&mut self, (agent, child): Self::Message, ctx: &mut Ctx<'_, Self>) {
        if agent.energy == 0 {
            return ctx.remove();
        }
        if let Some(child) = child {
            ctx.insert(child.id, Animal { agent: child, ..*self });
        }
        self.agent = agent;
        self.end_step(ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.visit(ctx);
    }
}

#[derive(Serialize, Deserialize)]
struct Pasture {
    grass: Grass,
    /// Agents that come in this step, until the herd is fed.
    expected: Option<u32>,
    visits: Vec<Visit>,
    /// Numbers of agents that come from each neighbour in the next step.
    arrivals: Halos<u32>,
    counts: Vec<Vec<u64>>,
}

#[derive(Serialize, Deserialize)]
struct Visit {
    step: u64,
    agent: Agent,
    reply: ReplyTo<(Agent, Option<Agent>)>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Visit(Visit),
    Arrivals(Halo<u32>),
    Counted(u32, Vec<u64>),
}

impl Chunk for Pasture {
    type Index = [u16; 2];
    type Message = Message;

    /// Feeds the herd, if it is complete.
    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.expected != Some(self.visits.len() as u32) {
            return;
        }
        self.expected = None;
        let (me, step) = (ctx.index(), self.arrivals.step());
        self.visits.sort_by_key(|visit| visit.agent.id);
        let herd: Vec<Agent> = self.visits.iter().map(|visit| visit.agent).collect();
        let mut leaving = [0; 8];
        for (fate @ (agent, child), visit) in
            self.grass.graze(step, me, &herd).into_iter().zip(self.visits.drain(..))
        {
            let both = [Some(agent), child].into_iter().flatten();
            both.filter(|agent| agent.energy > 0).for_each(|agent| leaving[agent.slot(step)] += 1);
            ctx.reply(&visit.reply, fate);
        }
        for neighbour in PASTURES.neighbours(me) {
            let arrivals = self.arrivals.halo(neighbour.their_slot, leaving[neighbour.slot as usize]);
            ctx.send(neighbour.index, Message::Arrivals(arrivals));
        }
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            Message::Visit(visit) => visit.step == self.arrivals.step(),
            Message::Arrivals(halo) => self.expected.is_none() && self.arrivals.expects(halo),
            Message::Counted(step, _) => *step as usize == self.counts.len(),
        }
    }

    fn reduced(step: u32, values: Values) -> Message {
        let Values::U64(count) = values else { unreachable!("agents contribute u64") };
        Message::Counted(step, count)
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Visit(visit) => {
                self.visits.push(visit);
                self.start(ctx);
            }
            Message::Arrivals(halo) => {
                let Some(arrivals) = self.arrivals.add(halo) else { return };
                self.expected = Some(arrivals.sum());
                match self.arrivals.step() {
                    STEPS => (),
                    step if ctx.sync_due(step) => ctx.at_sync(),
                    _ => self.start(ctx),
                }
            }
            Message::Counted(_, count) => {
                self.counts.push(count);
                if self.counts.len() as u64 == STEPS {
                    ctx.exit_with(&self.counts);
                }
            }
        }
    }
}

/// The agents that are alive after each step, and their checksum.
pub(super) fn run(config: Config) -> Result<Vec<Vec<u64>>, Error> {
    let report = caribou::run(config, |setup| {
        let pastures = setup.array(PASTURES, |index| Pasture {
            grass: Grass::new(index),
            expected: Some(first_herd(index).len() as u32),
            visits: Vec::new(),
            arrivals: Halos::of(PASTURES.neighbours(index)),
            counts: Vec::new(),
        });
        setup.array(first_ids(), move |id| Animal {
            agent: Agent::first(id),
            step: 0,
            pasture: birthplace(id),
            pastures,
        });
    })?;
    assert_eq!(report.undelivered.messages, 0, "{}", report.undelivered);
    report.value()
}
