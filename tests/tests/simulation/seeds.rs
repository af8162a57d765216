//! Seeds by seed: a tree of random shape is spawned, over ranks that are idle, and each of its nodes starts exactly once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use caribou::lb::Rank;
use caribou::{Chunk, Config, Ctx, Placement, Reducer, Seed, Target, Values};
use caribou_tests::{simulated, whole_number};
use serde::{Deserialize, Serialize};

use super::seeds;

const CHILDREN_MAX: u64 = 4;
const DEPTH_MAX: u32 = 5;
const NODES: u32 = 0;

/// The rank that each node has started on; nodes are named by their way from the root.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<BTreeMap<Vec<u64>, Rank>>>);

/// What nodes do besides.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Habits {
    seed: u64,
    /// They come to a sync before they answer, and may migrate.
    syncs: bool,
    /// Those that have answered remove themselves.
    removes: bool,
}

/// A node that spawns its children and answers to its parent when all of them have answered.
#[derive(Serialize, Deserialize)]
struct Node {
    #[serde(with = "caribou::bulk")]
    way: Vec<u64>,
    parent: Option<Seed>,
    habits: Habits,
    /// Children that have not answered.
    missing: u64,
    /// Nodes below, of those that have answered, and this one.
    nodes: u64,
    /// Of the root: nodes that have contributed; and nothing is left to do.
    contributed: Option<u64>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Below(u64),
    Contributed(u64),
    NothingLeft,
}

/// Number of children of a node: its way and the seed say.
fn children(seed: u64, way: &[u64]) -> u64 {
    if way.len() >= DEPTH_MAX as usize {
        return 0;
    }
    let mixed = way
        .iter()
        .fold(seed + 1, |mixed, step| (mixed ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    (mixed >> 32) % (CHILDREN_MAX + u64::from(way.is_empty())) + u64::from(way.is_empty())
}

fn size(seed: u64, way: &[u64]) -> u64 {
    1 + (0..children(seed, way)).map(|child| size(seed, &[way, &[child]].concat())).sum::<u64>()
}

impl Node {
    fn new(way: Vec<u64>, parent: Option<Seed>, habits: Habits) -> Node {
        Node { way, parent, habits, missing: 0, nodes: 1, contributed: None }
    }

    fn answer_if_all_have(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.missing > 0 {
            return;
        }
        let Some(parent) = self.parent else { return };
        ctx.send(parent, Message::Below(self.nodes));
        if self.habits.removes {
            ctx.remove();
        }
    }
}

impl Chunk for Node {
    type Index = Seed;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let started = ctx.service::<Started>();
        let before = started.0.lock().expect("nobody panics with it").insert(self.way.clone(), ctx.rank());
        assert_eq!(before, None, "{:?} starts once", self.way);
        self.missing = children(self.habits.seed, &self.way);
        for child in 0..self.missing {
            let way = [&self.way[..], &[child]].concat();
            ctx.spawn(Node::new(way, Some(ctx.index()), self.habits));
        }
        ctx.contribute(NODES, Reducer::Sum, vec![1u64], Target::Chunk(Seed::first(0)));
        if self.parent.is_none() {
            ctx.send_at_quiescence(ctx.index(), Message::NothingLeft);
        }
        if self.habits.syncs {
            ctx.at_sync();
        } else {
            self.answer_if_all_have(ctx);
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.answer_if_all_have(ctx);
    }

    fn reduced(_: u32, values: Values) -> Message {
        Message::Contributed(whole_number(values))
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        match message {
            Message::Below(nodes) => {
                self.missing -= 1;
                self.nodes += nodes;
                self.answer_if_all_have(ctx);
            }
            Message::Contributed(nodes) => self.contributed = Some(nodes),
            Message::NothingLeft => {
                assert_eq!((self.missing, self.contributed), (0, Some(self.nodes)));
                ctx.exit_with(&self.nodes);
            }
        }
    }
}

/// The ranks that nodes have started on, by node.
fn grow(seed: u64, config: Config) -> BTreeMap<Vec<u64>, Rank> {
    let habits = Habits { seed, syncs: seed % 3 == 1, removes: seed % 4 < 2 };
    let started = Started::default();
    let service = started.clone();
    let report = caribou::run(config, move |setup| {
        setup.service(service.clone());
        setup.array_with(1, Placement::RoundRobin, move |_: Seed| Node::new(Vec::new(), None, habits));
    });
    let report = report.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(report.undelivered.messages, 0, "seed {seed}: {}", report.undelivered);
    assert_eq!(report.value::<u64>().ok(), Some(size(seed, &[])), "seed {seed}");
    let started = std::mem::take(&mut *started.0.lock().expect("the run is over"));
    assert_eq!(started.len() as u64, size(seed, &[]), "seed {seed}");
    started
}

#[test]
fn every_seed_of_a_tree_starts_once_on_some_rank() {
    let (mut nodes, mut elsewhere) = (0, 0);
    for seed in seeds(1000) {
        let config = simulated(seed)
            .ranks(1 + (seed % 5) as u32)
            .lb(["random", "rotate", "none"][(seed / 5 % 3) as usize])
            .expect("it is listed")
            .mail_limit([u64::MAX, 1, 500][(seed / 15 % 3) as usize])
            .wire_always(seed % 2 == 1);
        let started = grow(seed, config);
        nodes += started.len();
        elsewhere += started.values().filter(|rank| rank.0 > 0).count();
    }
    // Only where the whole sweep ran is it certain that some were balanced.
    assert!(nodes < 1000 || elsewhere * 10 > nodes, "{elsewhere} of {nodes}");
}

#[test]
fn threads_start_every_seed_once_too() {
    for seed in 0..40 {
        let (ranks, workers) = [(1, 1), (1, 2), (2, 1), (3, 2), (5, 1)][(seed % 5) as usize];
        grow(seed, Config::default().ranks(ranks).workers(workers).wire_always(seed / 5 % 2 == 1));
    }
}
