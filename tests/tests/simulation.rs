//! The whole runtime by seed: neighbour exchange, reduction, broadcast, insertion and removal, random migration in every
//! phase, under delays and orders that break everything that is not promised.
//!
//! Some seeds let so little mail wait that nearly every chunk is pressed, at all times.
//!
//! The oracle: every message exactly once, messages of a pair in order, every reduction complete, every broadcast once.
//! This shape has lost reductions in a well-known runtime as late as 2026.
//!
//! 200 seeds by default; `SEEDS=10000` runs as many. A failure prints the seed and the command that repeats it.

#[path = "simulation/joining.rs"]
mod joining;
#[path = "simulation/pools.rs"]
mod pools;
#[path = "simulation/pressure.rs"]
mod pressure;
#[path = "simulation/pressure_at_syncs.rs"]
mod pressure_at_syncs;
#[path = "simulation/resizing.rs"]
mod resizing;
#[path = "simulation/seeds.rs"]
mod spawning;
#[path = "simulation/taking_part.rs"]
mod taking_part;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou::config::Period;
use caribou::lb::ARRAYS;
use caribou::lb::balancer::{Balancer, Decision};
use caribou::{Chunk, Config, Ctx, Error, Reducer, Report, Target, Values};
use caribou_tests::{Seeds, expected, run_array, run_array_with_service, simulated};
use serde::{Deserialize, Serialize};

const CHUNKS: u32 = 12;
const STEPS: u64 = 6;
const PERIOD: u64 = 2;
const VISITORS_FROM: u32 = 1000;
/// Of a usual sweep.
const SEEDS: u64 = 200;

/// The totals of the run, summed over all chunks when they are done.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Totals>>);

#[derive(Debug, Default, PartialEq)]
struct Totals {
    halos: u64,
    broadcasts: u64,
    reductions: u64,
    visitors_done: u64,
}

/// A member of a ring that exchanges halos with its neighbours, and now and then brings in a visitor.
#[derive(Serialize, Deserialize)]
struct Node {
    step: u64,
    halos: u64,
    heard: u32,
    /// The next number expected from each sender: exactly once, in order.
    next: BTreeMap<u32, u64>,
    sent: BTreeMap<u32, u64>,
    /// Results of reductions and broadcasts heard so far.
    reductions: u64,
    /// Steps whose broadcast was heard.
    news: BTreeSet<u64>,
    pongs: u64,
    gossip: u64,
    visitor: bool,
    /// Tells whether it goes on at syncs instead of waiting.
    nowait: bool,
    /// Tells whether it declares its load; else the seed has drawn one.
    declares: bool,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Halo {
        from: u32,
        number: u64,
        step: u64,
    },
    /// From a visitor to the node that brought it in, and back.
    Ping {
        from: u32,
        number: u64,
    },
    /// Nobody waits for it, so it may be on its way while its receiver migrates.
    Gossip {
        from: u32,
        number: u64,
    },
    News {
        step: u64,
    },
    Counted {
        members: u64,
        gathered: bool,
    },
}

const COUNT: u32 = 1;
const NAMES: u32 = 2;

/// The chunk that gets the gossip of `chunk` in a step.
fn friend_of(chunk: u32, step: u64) -> u32 {
    (chunk * 5 + step as u32 * 7 + 3) % CHUNKS
}

/// Number of gossip messages that a chunk gets in all.
fn gossip_for(chunk: u32) -> u64 {
    let told = (0..CHUNKS).flat_map(|other| (1..=STEPS).map(move |step| friend_of(other, step)));
    told.filter(|&friend| friend == chunk).count() as u64
}

impl Node {
    fn new(step: u64, visitor: bool, nowait: bool, declares: bool) -> Node {
        Node {
            step,
            halos: 0,
            heard: 0,
            next: BTreeMap::new(),
            sent: BTreeMap::new(),
            reductions: 0,
            news: BTreeSet::new(),
            pongs: 0,
            gossip: 0,
            visitor,
            nowait,
            declares,
        }
    }

    fn number_for(&mut self, to: u32) -> u64 {
        let number = self.sent.entry(to).or_default();
        *number += 1;
        *number - 1
    }

    /// The oracle for exactly-once and per-pair order.
    fn check(&mut self, from: u32, number: u64, me: u32) {
        let next = self.next.entry(from).or_default();
        assert_eq!(*next, number, "chunk {me} expects message {next} of chunk {from}");
        *next += 1;
    }

    fn exchange(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        for to in [(me + 1) % CHUNKS, (me + CHUNKS - 1) % CHUNKS] {
            let number = self.number_for(to);
            ctx.send(to, Message::Halo { from: me, number, step: self.step });
        }
    }

    fn step_done(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        self.step += 1;
        let friend = friend_of(me, self.step);
        let number = self.number_for(friend);
        ctx.send(friend, Message::Gossip { from: me, number });
        if self.declares {
            ctx.charge(1 + u64::from(me % 5) * 700);
        }
        if me == (self.step % u64::from(CHUNKS)) as u32 {
            ctx.broadcast(&Message::News { step: self.step });
        }
        // A visitor takes part in the reduction that its host contributes to next: this one.
        if me.is_multiple_of(3) && self.step.is_multiple_of(2) {
            let visitor = VISITORS_FROM + me * 100 + self.step as u32;
            ctx.insert(visitor, Node::new(self.step, true, false, self.declares));
            let number = self.number_for(visitor);
            ctx.send(visitor, Message::Ping { from: me, number });
        }
        ctx.contribute(COUNT, Reducer::Sum, vec![1u64], Target::All);
        if self.step == STEPS {
            ctx.contribute(NAMES, Reducer::Gather, vec![me as u8], Target::All);
            return;
        }
        if ctx.sync_due(self.step) && !self.nowait {
            return ctx.at_sync();
        }
        if ctx.sync_due(self.step) {
            ctx.at_sync_nowait();
        }
        self.exchange(ctx);
    }

    /// Done when all results and all broadcasts were heard.
    fn finish_if_done(&mut self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        let pongs = if me.is_multiple_of(3) { STEPS / 2 } else { 0 };
        let heard = (self.reductions, self.news.len() as u64, self.pongs, self.gossip);
        if heard != (STEPS + 1, STEPS, pongs, gossip_for(me)) {
            return;
        }
        ctx.contribute(DONE, Reducer::Sum, vec![1u64], Target::Chunk(0));
        let mut totals = ctx.service::<Ledger>().0.lock().expect("nobody panics with it");
        totals.halos += self.halos;
        totals.broadcasts += self.news.len() as u64;
        totals.reductions += self.reductions;
    }
}

impl Chunk for Node {
    type Index = u32;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if !self.visitor {
            self.exchange(ctx);
        }
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            Message::Halo { step, .. } => *step == self.step,
            _ => true,
        }
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        match message {
            Message::Halo { from, number, step } => {
                assert_eq!(step, self.step, "the runtime keeps early halos");
                self.check(from, number, me);
                self.halos += 1;
                self.heard += 1;
                if self.heard == 2 {
                    self.heard = 0;
                    self.step_done(ctx);
                }
            }
            Message::Ping { from, number } => {
                self.check(from, number, me);
                if !self.visitor {
                    self.pongs += 1;
                    self.finish_if_done(ctx);
                } else {
                    // It contributes once with its host, says so, comes to the sync with all others if there is one, and goes.
                    let number = self.number_for(from);
                    ctx.send(from, Message::Ping { from: me, number });
                    ctx.contribute(COUNT, Reducer::Sum, vec![1u64], Target::All);
                    if ctx.sync_due(self.step) && self.step < STEPS {
                        ctx.at_sync();
                    } else {
                        ctx.service::<Ledger>().0.lock().expect("nobody panics with it").visitors_done += 1;
                        ctx.remove();
                    }
                }
            }
            Message::Gossip { from, number } => {
                self.check(from, number, me);
                self.gossip += 1;
                self.finish_if_done(ctx);
            }
            Message::News { step } => {
                assert!(self.news.insert(step), "chunk {me} heard the broadcast of step {step} before");
                if !self.visitor {
                    self.finish_if_done(ctx);
                }
            }
            Message::Counted { members, gathered } => {
                if self.visitor {
                    return;
                }
                if self.reductions > STEPS {
                    return ctx.exit();
                }
                self.reductions += 1;
                let visitors = if self.reductions.is_multiple_of(2) { u64::from(CHUNKS) / 3 } else { 0 };
                let expected = u64::from(CHUNKS) + if gathered { 0 } else { visitors };
                assert_eq!(members, expected, "reduction {} of chunk {me}", self.reductions);
                self.finish_if_done(ctx);
            }
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.visitor {
            ctx.service::<Ledger>().0.lock().expect("nobody panics with it").visitors_done += 1;
            ctx.remove();
        } else if !self.nowait {
            self.exchange(ctx);
        }
    }

    fn reduced(tag: u32, values: Values) -> Message {
        match values {
            Values::U64(count) => Message::Counted { members: count[0], gathered: false },
            Values::Gathered(parts) => {
                assert_eq!(tag, NAMES);
                assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0), "ordered by index");
                Message::Counted { members: parts.len() as u64, gathered: true }
            }
            other => panic!("nobody contributed {other:?}"),
        }
    }
}

const DONE: u32 = 3;

/// When chunks are balanced: at syncs, or in windows that open at any moment.
#[derive(Clone, Copy, PartialEq)]
enum Balance {
    AtSyncs,
    InWindows,
}

fn run_nodes(config: Config, ledger: Ledger, nowait: bool, declares: bool) -> Result<Report, Error> {
    run_array_with_service(config, ledger, CHUNKS, move |_| Node::new(0, false, nowait, declares))
}

fn simulate(seed: u64, balance: Balance) -> Result<(Totals, u64), Error> {
    let ledger = Ledger::default();
    let strategies = ["random", "rotate", "greedy", "refine,tolerance=0.01", "none"];
    let strategy = (seed / 5 % 5) as usize;
    // Every seventh more than are next to rank 0, and than there are chunks.
    let ranks = if seed % 7 == 3 { 10 + seed / 7 % 11 } else { 1 + seed % 5 };
    let config = simulated(seed)
        .ranks(ranks as u32)
        .lb(strategies[strategy])?
        .balance(match balance {
            Balance::AtSyncs => Period::Steps(PERIOD),
            Balance::InWindows => Period::Every(Duration::from_micros(1)),
        })
        .mail_limit([u64::MAX, 1, 500, 3000][(seed / 3 % 4) as usize])
        .wire_always(seed % 2 == 1);
    let nowait = seed / 25 % 2 == 1;
    let report = run_nodes(config, ledger.clone(), nowait, true)?;
    assert_eq!(report.undelivered.messages, 0, "{}", report.undelivered);
    let at_syncs = balance == Balance::AtSyncs;
    if at_syncs && strategies[strategy] != "none" && !nowait {
        assert_eq!(report.syncs.len() as u64, STEPS / PERIOD - 1);
    }
    if at_syncs && ranks > 1 && strategy < 2 {
        assert!(report.syncs.iter().all(|sync| sync.moved > 0), "random and rotate always move something");
    }
    let totals = std::mem::take(&mut *ledger.0.lock().expect("the run is over"));
    Ok((totals, report.sync_totals.moved))
}

fn seeds(usual: u64) -> Seeds {
    caribou_tests::seeds(usual, "--test simulation")
}

#[test]
fn every_seed_delivers_everything_exactly_once_and_in_order() {
    check(Balance::AtSyncs);
}

#[test]
fn every_seed_delivers_everything_exactly_once_and_in_order_in_windows() {
    assert!(check(Balance::InWindows) >= expected(101, SEEDS), "chunks move");
}

/// Checks all seeds. Returns the number of moves.
fn check(balance: Balance) -> u64 {
    let visitors = u64::from(CHUNKS) / 3 * (STEPS / 2);
    let mut all_moved = 0;
    for seed in seeds(SEEDS) {
        let (totals, moved) = simulate(seed, balance).expect("it ends");
        let all = Totals {
            halos: u64::from(CHUNKS) * STEPS * 2,
            broadcasts: u64::from(CHUNKS) * STEPS,
            reductions: u64::from(CHUNKS) * (STEPS + 1),
            visitors_done: visitors,
        };
        assert_eq!(totals, all);
        all_moved += moved;
    }
    all_moved
}

/// Chunks moved by the default strategy among chunks that declare no load.
fn moved(seed: u64) -> u64 {
    let config = simulated(seed).ranks(3).period(PERIOD);
    run_nodes(config, Ledger::default(), false, false).expect("it ends").sync_totals.moved
}

#[test]
fn chunks_that_declare_no_load_are_unequal_and_balanced() {
    let moved: Vec<u64> = (0..16).map(moved).collect();
    let balanced = moved.iter().filter(|&&moved| moved > 0).count();
    assert!(balanced >= 12, "chunks moved, seed by seed: {moved:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let report = |seed| {
        let config = simulated(seed).ranks(3).lb("random").expect("known").period(PERIOD);
        run_nodes(config, Ledger::default(), false, true).expect("it ends")
    };
    assert_eq!(report(7).messages, report(7).messages);
    assert_eq!(report(7).run.wall_ns, report(7).run.wall_ns);
    assert_ne!(report(7).run.wall_ns, report(8).run.wall_ns);
    assert_eq!(report(7).run.placement, "simulated by seed 7, in virtual time: 3 ranks x 1 worker");
    assert_eq!(report(7).run.record.lb, "random");
}

/// Decides again, without a runtime, what the syncs of `report` decided.
fn replayed(spec: &str, report: &Report) -> Vec<Decision> {
    let mut balancer = Balancer::new(ARRAYS.parse(spec).expect("listed").into());
    let reported = report.syncs.iter().map(|sync| sync.reported.as_deref().expect("it is kept"));
    reported.map(|reported| balancer.decide(reported)).collect()
}

#[test]
fn the_reports_of_a_run_lead_to_the_same_decisions_when_they_are_replayed() {
    let mut moved = 0;
    for (seed, spec) in (0..).zip(["refine,tolerance=0.01", "refine-paper", "sfc", "greedy", "rotate"]) {
        for declared in [false, true] {
            let config = simulated(seed).ranks(3).lb(spec).expect("listed").period(1).lb_reports(true);
            let report = run_nodes(config, Ledger::default(), false, declared).expect("it ends");
            let decisions = replayed(spec, &report);
            assert!(decisions.len() > 2, "{spec}: {decisions:?}");
            for (sync, again) in report.syncs.iter().zip(&decisions) {
                let figures = (sync.sync, sync.moved, sync.proposed, sync.gain_ns, sync.needed_ns);
                let replayed =
                    (again.phase, again.moves.len() as u64, again.proposed, again.gain_ns, again.needed_ns);
                assert_eq!(figures, replayed, "{spec}, seed {seed}");
                assert_eq!((&sync.before_ns, &sync.predicted_ns), (&again.before_ns, &again.predicted_ns));
                assert_eq!((&sync.share, &sync.capacity), (&again.share, &again.capacity));
                assert_eq!(sync.chunks_per_rank, again.chunks_per_rank);
            }
            // The next phase shows where chunks went.
            for (before, after) in decisions.iter().zip(&report.syncs[1..]) {
                let chunks = &after.reported.as_deref().expect("it is kept").chunks;
                let rank = |of| chunks.iter().find(|chunk| chunk.load.id == of).map(|chunk| chunk.load.rank);
                let came = before.moves.iter().filter_map(|one| Some((rank(one.chunk)?, one.to)));
                came.for_each(|(is, to)| assert_eq!(is, to, "{spec}, seed {seed}"));
            }
            moved += report.sync_totals.moved;
        }
    }
    assert!(moved > 20, "{moved}");
}

/// Runs a whole simulation in a handler.
#[derive(Serialize, Deserialize)]
struct Dreamer;

impl Chunk for Dreamer {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        simulate(7, Balance::AtSyncs).expect("the simulation in the simulation ends");
        ctx.send(ctx.index(), ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }
}

#[test]
fn a_handler_may_run_a_simulation_of_its_own() {
    for config in [Config::default().ranks(1), Config::default().ranks(2).simulate(3)] {
        run_array(config, 2, |_| Dreamer).expect("both end");
    }
}
