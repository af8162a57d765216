//! The messages between chunks, as the strategy and the record of a run have them.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caribou::config::EdgeRecording;
use caribou::lb::balancer::{Balancer, EdgeReport, PhaseReport};
use caribou::lb::{Assignment, ChunkLoad, EdgeUse, Period, Rank, Snapshot, Strategy, Terms};
use caribou::{Array, Chunk, Config, Ctx, Reducer, Report, Target, Values};
use caribou_tests::{run_array, run_array_in_time, scratch, simulated, with_timeout};
use serde::{Deserialize, Serialize};
use trace_reader::Trace;

/// Chunks of a ring.
const CHUNKS: u32 = 12;
/// Syncs of a ring that comes to syncs.
const SYNCS: u64 = 5;
/// Messages from a chunk to its right neighbour in a phase.
const MESSAGES: u64 = 7;

/// Moves each chunk that may move to the next rank, and keeps what it saw.
#[derive(Clone)]
struct Rotates {
    edges: EdgeUse,
    seen: Arc<Mutex<Vec<Snapshot>>>,
}

impl Rotates {
    fn using(edges: EdgeUse) -> Rotates {
        Rotates { edges, seen: Arc::default() }
    }

    fn seen(&self) -> Vec<Snapshot> {
        self.seen.lock().expect("nobody panics with it").clone()
    }
}

impl Strategy for Rotates {
    fn name(&self) -> &'static str {
        "rotates"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        self.seen.lock().expect("nobody panics with it").push(snapshot.clone());
        let ranks = snapshot.ranks.len() as u32;
        let is_available = |rank: &Rank| snapshot.ranks[rank.index()].available;
        let next = |chunk: &ChunkLoad| {
            let after = (1..ranks).map(|apart| Rank((chunk.rank.0 + apart) % ranks)).find(is_available);
            after.filter(|_| chunk.migratable).unwrap_or(chunk.rank)
        };
        Assignment { ranks: snapshot.chunks.iter().map(next).collect() }
    }

    fn terms(&self) -> Terms {
        Terms { must_pay: false, edges: self.edges, ..Terms::default() }
    }
}

/// Sends some messages to its right neighbour in each phase, and one to itself. Comes to the sync when it has as many
/// from the left.
#[derive(Default, Serialize, Deserialize)]
struct Member {
    phase: u64,
    heard: u64,
    /// Messages that came from chunks that have already passed the sync.
    early: u64,
    works: bool,
}

impl Chunk for Member {
    type Index = u32;
    /// The phase of a neighbour; none in a message of a chunk to itself.
    type Message = Option<u64>;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.works {
            work(2_000_000);
        }
        if self.phase == SYNCS {
            return ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::Exit);
        }
        (0..MESSAGES).for_each(|_| ctx.send((ctx.index() + 1) % CHUNKS, Some(self.phase)));
        ctx.send(ctx.index(), None);
        self.heard = std::mem::take(&mut self.early);
        self.come(ctx);
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.start(ctx);
    }

    fn receive(&mut self, phase: Option<u64>, ctx: &mut Ctx<'_, Self>) {
        match phase {
            Some(phase) if phase == self.phase => self.heard += 1,
            Some(_) => self.early += 1,
            None => return,
        }
        self.come(ctx);
    }

    fn reduced(_: u32, _: Values) -> Option<u64> {
        None
    }
}

impl Member {
    fn come(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.heard == MESSAGES {
            self.phase += 1;
            self.heard = 0;
            ctx.at_sync();
        }
    }
}

/// Computes about so many additions.
fn work(additions: u64) {
    black_box((0..additions).fold(0_u64, |sum, number| black_box(sum ^ number)));
}

fn at_syncs(strategy: &Rotates) -> Config {
    Config::default().ranks(3).period(1).lb_reports(true).strategy(strategy.clone())
}

fn run_ring(config: Config, works: bool) -> Report {
    let member = move |_| Member { works, ..Member::default() };
    run_array_in_time("a ring", config, CHUNKS, member).expect("it ends")
}

/// The reports of all phases, the undecided ones too.
fn reports(report: &Report) -> Vec<&PhaseReport> {
    let kept = report.syncs.iter().map(|sync| sync.reported.as_deref().expect("reports are kept"));
    kept.flat_map(|phase| phase.undecided.iter().chain([phase])).collect()
}

/// The edges of a phase by keys: messages, and bytes.
fn edges(phase: &PhaseReport) -> BTreeMap<(u64, u64), (u64, u64)> {
    assert_eq!(phase.edges.unlisted_messages, 0);
    let edge =
        |&EdgeReport { from, to, messages, bytes }: &EdgeReport| ((from.key, to.key), (messages, bytes));
    phase.edges.list.iter().map(edge).collect()
}

/// The edges of a ring with so many messages to each right neighbour, of an `Option<u64>` each.
fn ring(messages: u64) -> BTreeMap<(u64, u64), (u64, u64)> {
    let edge = |from| ((from, (from + 1) % u64::from(CHUNKS)), (messages, 16 * messages));
    (0..u64::from(CHUNKS)).map(edge).collect()
}

#[test]
fn each_phase_reports_what_its_chunks_sent_while_all_of_them_move() {
    for (workers, wire) in [(1, false), (2, false), (1, true)] {
        let rotates = Rotates::using(EdgeUse::Always);
        let report = run_ring(at_syncs(&rotates).workers(workers).wire_always(wire), false);
        let phases = reports(&report);
        assert_eq!(phases.len() as u64, SYNCS);
        phases.iter().for_each(|phase| assert_eq!(edges(phase), ring(MESSAGES), "{workers} workers, {wire}"));
        assert_eq!(report.sync_totals.moved, SYNCS * u64::from(CHUNKS));
        for snapshot in rotates.seen() {
            let end = |position: usize| snapshot.chunks[position].id.key;
            let seen = snapshot
                .edges
                .iter()
                .map(|edge| ((end(edge.from), end(edge.to)), (edge.messages, edge.bytes)));
            assert_eq!(seen.collect::<BTreeMap<_, _>>(), ring(MESSAGES));
            assert!(snapshot.links.within_host.ns_per_message > 0.0);
        }
    }
}

#[test]
fn the_setting_records_for_the_record_alone_or_not_at_all() {
    let run = |uses, recording| {
        let rotates = Rotates::using(uses);
        let report = run_ring(at_syncs(&rotates).lb_edges(recording), false);
        let recorded = reports(&report).iter().map(|phase| phase.edges.list.len()).sum::<usize>();
        (recorded, rotates.seen().iter().map(|snapshot| snapshot.edges.len()).sum::<usize>())
    };
    let all = SYNCS as usize * CHUNKS as usize;
    assert_eq!(run(EdgeUse::Never, EdgeRecording::Auto), (0, 0));
    assert_eq!(run(EdgeUse::Never, EdgeRecording::On), (all, 0));
    assert_eq!(run(EdgeUse::Always, EdgeRecording::Off), (0, 0));
}

#[test]
fn messages_within_a_host_are_not_recorded_where_they_should_matter() {
    let rotates = Rotates::using(EdgeUse::WhereTheyMatter);
    let report = run_ring(at_syncs(&rotates), true);
    let recorded: Vec<usize> = reports(&report).iter().map(|phase| phase.edges.list.len()).collect();
    assert_eq!(recorded, [0; SYNCS as usize]);
}

#[test]
fn every_seed_reports_the_edges_of_each_phase() {
    for seed in 0..40 {
        let run = || {
            let rotates = Rotates::using(EdgeUse::Always);
            let config = simulated(seed).ranks(3).period(1).lb_reports(true).strategy(rotates.clone());
            let report = run_array(config, CHUNKS, |_| Member::default()).expect("it ends");
            let phases: Vec<PhaseReport> = reports(&report).into_iter().cloned().collect();
            let predicted_ns: Vec<Vec<u64>> =
                report.syncs.iter().map(|sync| sync.predicted_ns.clone()).collect();
            (phases, rotates.seen(), predicted_ns)
        };
        let (phases, seen, predicted_ns) = run();
        assert_eq!(phases.len() as u64, SYNCS, "seed {seed}");
        phases.iter().for_each(|phase| assert_eq!(edges(phase), ring(MESSAGES), "seed {seed}"));
        let mut balancer = Balancer::new(Arc::new(Rotates::using(EdgeUse::Always)));
        let predicted: Vec<Vec<u64>> =
            phases.iter().map(|phase| balancer.decide(phase).predicted_ns).collect();
        assert_eq!(predicted, predicted_ns, "seed {seed}");
        assert_eq!(run(), (phases, seen, predicted_ns), "seed {seed}");
    }
}

#[test]
fn a_trace_has_the_edges_of_each_phase() {
    let dir = scratch();
    let config = at_syncs(&Rotates::using(EdgeUse::Never)).trace(&dir).lb_edges(EdgeRecording::On);
    let report = run_ring(config, false);
    let trace = Trace::open(&dir).expect("it was recorded");
    assert_eq!(trace.syncs.len() as u64, SYNCS);
    for (traced, sync) in trace.syncs.iter().zip(&report.syncs) {
        assert_eq!(traced.reported, sync.reported);
        assert_eq!(edges(traced.reported.as_deref().expect("it is kept")), ring(MESSAGES));
    }
}

/// Messages of a chunk of a stream to its right neighbour.
const STREAM: u64 = 400;

/// Sends on what it receives, as long as it has sent less than a number of messages. The last chunk to end its stream
/// makes chunk 0 work for some windows.
#[derive(Serialize, Deserialize)]
struct Stream {
    sent: u64,
    rests: u32,
}

impl Stream {
    fn send(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.sent < STREAM {
            self.sent += 1;
            ctx.send((ctx.index() + 1) % CHUNKS, Letter::Goes);
            if self.sent == STREAM {
                ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::Chunk(0));
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Letter {
    Goes,
    Over,
}

impl Chunk for Stream {
    type Index = u32;
    type Message = Letter;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        (0..4).for_each(|_| self.send(ctx));
    }

    fn receive(&mut self, letter: Letter, ctx: &mut Ctx<'_, Self>) {
        match letter {
            Letter::Goes => {
                work(20_000);
                self.send(ctx);
            }
            Letter::Over if self.rests == 40 => ctx.exit(),
            Letter::Over => {
                self.rests += 1;
                work(2_000_000);
                ctx.charge(1_000_000);
                ctx.send(0, Letter::Over);
            }
        }
    }

    fn reduced(_: u32, _: Values) -> Letter {
        Letter::Over
    }
}

/// All messages that the windows of a stream reported.
fn streamed(config: Config) -> (BTreeMap<(u64, u64), u64>, usize, u64) {
    let stream = |_| Stream { sent: 0, rests: 0 };
    let report = run_array_in_time("a stream", config, CHUNKS, stream).expect("it ends");
    let windows = reports(&report);
    let mut sums = BTreeMap::new();
    for window in &windows {
        assert!(window.window);
        edges(window)
            .into_iter()
            .for_each(|(ends, (messages, _))| *sums.entry(ends).or_default() += messages);
    }
    (sums, windows.iter().filter(|window| !window.edges.is_empty()).count(), report.sync_totals.moved)
}

#[test]
fn windows_together_report_each_message_once_while_chunks_move() {
    let config = |ranks| {
        let every = Period::Every(Duration::from_millis(2));
        let rotates = Rotates::using(EdgeUse::Always);
        Config::default().ranks(ranks).balance(every).lb_reports(true).strategy(rotates)
    };
    let expected: BTreeMap<(u64, u64), u64> =
        ring(STREAM).into_iter().map(|(ends, (messages, _))| (ends, messages)).collect();
    let (sums, windows, moved) = streamed(config(2));
    assert_eq!(sums, expected);
    assert!(windows > 3 && moved > 0, "{windows} windows, {moved} moves");
    let (sums, windows, _) = streamed(config(2).workers(2));
    assert_eq!(sums, expected);
    assert!(windows > 3, "{windows} windows");
}

/// A chunk of either of two arrays that are kept together.
#[derive(Serialize, Deserialize)]
struct Half {
    other: Option<Array<Half>>,
}

impl Chunk for Half {
    type Index = u32;
    type Message = u32;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        // The second array sends within its group, and to the first chunk of the next group.
        if let Some(first) = self.other {
            (0..3).for_each(|_| ctx.send_to(first, ctx.index(), 0));
            ctx.send_to(first, (ctx.index() + 1) % CHUNKS, 0);
            ctx.send((ctx.index() + 1) % CHUNKS, 1);
        } else {
            ctx.send((ctx.index() + 1) % CHUNKS, 2);
        }
        ctx.at_sync();
    }

    fn receive(&mut self, _: u32, _: &mut Ctx<'_, Self>) {}

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(0, Reducer::Sum, vec![1_u64], Target::Exit);
    }
}

#[test]
fn edges_of_chunks_that_are_kept_together_are_edges_of_their_group() {
    let rotates = Rotates::using(EdgeUse::Always);
    let config = at_syncs(&rotates);
    with_timeout("two arrays", move || {
        caribou::run(config, |setup| {
            let first = setup.array(CHUNKS, |_| Half { other: None });
            setup.array_beside(first, CHUNKS, move |_| Half { other: Some(first) });
        })
    })
    .expect("it ends");
    let seen = rotates.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].chunks.len(), CHUNKS as usize);
    let edge = |edge: &caribou::lb::Edge| ((edge.from, edge.to), edge.messages);
    let edges: BTreeMap<_, _> = seen[0].edges.iter().map(edge).collect();
    let expected = (0..CHUNKS as usize).map(|from| ((from, (from + 1) % CHUNKS as usize), 3));
    assert_eq!(edges, expected.collect());
}
