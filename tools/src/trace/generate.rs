//! Implements `caribou trace generate`: writes a synthetic trace of up to 10^8 events, to try and test commands.
//!
//! The program is a ring of chunks. Its ranks compute in lockstep. One rank shares its vCPU with another process for a
//! third of the run. The trace is as consistent as a recorded one: every handled message was sent, chunks are where
//! they moved to, and times are in order.

use std::io::Write;
use std::path::{Path, PathBuf};

use caribou::config::Prediction;
use caribou::report::SyncReport;
use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Event, Name, NameId, Part, Profile, RUNTIME, RunRecord, Sample, Shape,
    What, Writer,
};
use presentation::count_parser;

use super::page::bytes;
use crate::Error;

/// Options of the command.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// The directory to make, which must not have a trace
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// About how many events
    #[arg(long, default_value_t = 100_000, value_parser = count_parser(0..=u64::MAX))]
    pub(crate) events: u64,
    /// Ranks
    #[arg(long, default_value_t = 4, value_parser = count_parser(1..=10_000u32))]
    pub(crate) ranks: u32,
    /// Chunks a rank, at first
    #[arg(long, default_value_t = 8, value_parser = count_parser(1..=100_000u32))]
    pub(crate) chunks: u32,
    /// Steps between two syncs
    #[arg(long, default_value_t = 20, value_parser = count_parser(1..=u64::MAX))]
    pub(crate) period: u64,
    /// Seed of the costs
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let written = write(&options.dir, options);
    let written = written.map_err(|source| Error::Unwritable { file: options.dir.clone(), source })?;
    Ok(writeln!(
        out,
        "{}: {} events of {} ranks, {}",
        options.dir.display(),
        written.events,
        options.ranks,
        bytes(written.bytes)
    )?)
}

/// Size of the generated trace.
pub(crate) struct Written {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

const START: NameId = NameId(0);
const HALO: NameId = NameId(1);
const RESIDUAL: NameId = NameId(2);
const CHECKPOINT: NameId = NameId(3);
/// Number of events per block.
const BLOCK: usize = 20_000;
const MESSAGE_BYTES: u64 = 2048;
const STATE_BYTES: u64 = 65_536;

/// The state of one rank.
struct Rank {
    writer: Writer,
    events: Vec<Event>,
    count: u64,
    profile: Profile,
    chunks: Vec<u64>,
    now_ns: u64,
    /// Time of the last sample, and sums since then.
    sample: Sample,
    handled: u64,
}

impl Rank {
    fn push(&mut self, event: Event) -> std::io::Result<()> {
        self.now_ns = self.now_ns.max(event.end_ns);
        let (begin_ns, end_ns, long_ns) = (event.begin_ns, event.end_ns, event.duration_ns());
        match event.what {
            What::Handler { kind, lost_ns, .. } => {
                self.handled += 1;
                let cpu_ns = event.cpu_ns();
                self.profile.add(Activity::Kind(kind), begin_ns, end_ns, cpu_ns, 1, cpu_ns);
                if lost_ns > 0 {
                    self.profile.add(Activity::Lost, begin_ns, end_ns, lost_ns, 1, lost_ns);
                }
                self.sample.cpu_ns += cpu_ns;
                self.sample.chunk_ns += cpu_ns;
                self.sample.wait_ns += lost_ns;
            }
            What::Idle => {
                self.profile.add(Activity::Idle, begin_ns, end_ns, long_ns, 1, long_ns);
                self.sample.idle_ns += long_ns;
            }
            What::Runtime { .. } | What::Depart { .. } => {
                let part = if let What::Runtime { part, .. } = event.what { part } else { Part::Migrate };
                self.profile.add(Activity::Runtime(part), begin_ns, end_ns, long_ns, 1, long_ns);
                self.sample.cpu_ns += long_ns;
            }
            _ => {}
        }
        self.count += 1;
        self.events.push(event);
        if self.events.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.events(0, &self.events)?;
        self.events.clear();
        Ok(())
    }
}

/// Writes the trace to `dir`.
pub(crate) fn write(dir: &Path, options: &Options) -> std::io::Result<Written> {
    let count = u64::from(options.ranks) * u64::from(options.chunks);
    let mut ranks =
        (0..options.ranks).map(|rank| begin(dir, options, rank)).collect::<Result<Vec<_>, _>>()?;
    let steps = (options.events / (4 * count)).max(2);
    let (disturbed, neighbour) = (steps / 3..2 * steps / 3, options.ranks / 2);
    let mut ring = Ring::new(count, options);
    for step in 0..steps {
        for (number, rank) in ranks.iter_mut().enumerate() {
            let beside = number as u32 == neighbour && disturbed.contains(&step);
            compute(rank, step, &mut ring, beside)?;
        }
        let end_ns = ranks.iter().map(|rank| rank.now_ns).max().unwrap_or(0) + 2_000;
        for rank in &mut ranks {
            let begin_ns = rank.now_ns;
            rank.push(Event { begin_ns, end_ns, what: What::Idle })?;
        }
        if (step + 1).is_multiple_of(options.period) {
            sync(&mut ranks, (step + 1) / options.period - 1, &mut ring, disturbed.contains(&step))?;
        }
    }
    finish(ranks)
}

fn begin(dir: &Path, options: &Options, rank: u32) -> std::io::Result<Rank> {
    let run = RunRecord {
        run_id: format!("generated-{}", options.seed),
        arguments: vec!["ring of chunks".into(), format!("--seed={}", options.seed)],
        version: env!("CARGO_PKG_VERSION").into(),
        git_hash: "unknown".into(),
        started_unix_ns: 1_790_000_000_000_000_000,
        shape: Shape::Arrays,
        lb: "refine".into(),
        predict: Prediction::default().to_string(),
        memory_limit: None,
        ranks: options.ranks,
        workers: vec![1; options.ranks as usize],
        hosts: (0..options.ranks).map(|rank| format!("host{}", rank / 2)).collect(),
        placement: format!("{} ranks of 1 worker, made up", options.ranks),
        pinned: true,
        trace: dir.display().to_string(),
        filter: "all".into(),
        arrows: 1,
        rank,
        pid: 100 + rank,
    };
    let mut writer = Writer::create(dir, &run)?;
    writer.arrays(&["Ring".into()])?;
    let kind = |text: &str| Name { array: Some(ArrayId(0)), text: text.into() };
    let other = |text: &str| Name { array: None, text: text.into() };
    writer.names(&[kind("start"), kind("Halo"), other("residual"), other("checkpoint")])?;
    let first = u64::from(rank) * u64::from(options.chunks);
    let chunks: Vec<u64> = (first..first + u64::from(options.chunks)).collect();
    let named: Vec<(ChunkId, String)> = chunks.iter().map(|&key| (chunk(key), key.to_string())).collect();
    writer.chunks(&named)?;
    let (profile, sample) = (Profile::default(), Sample { speed: 100.0, ..Sample::default() });
    let mut made =
        Rank { writer, events: Vec::new(), count: 0, profile, chunks, now_ns: 0, sample, handled: 0 };
    let what = What::Runtime { part: Part::Start, sync: 0 };
    made.push(Event { begin_ns: 0, end_ns: 1_000_000, what })?;
    for key in made.chunks.clone() {
        made.push(Event::point(1_000_000, What::Arrive { chunk: chunk(key), bytes: 0 }))?;
    }
    Ok(made)
}

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

/// State of all chunks.
struct Ring {
    seed: u64,
    /// Cost of each chunk per step. The largest costs are twice the smallest.
    cost_ns: Vec<u64>,
    /// Load of each chunk since the last sync.
    load_ns: Vec<u64>,
    /// The rank of each chunk.
    homes: Vec<u32>,
    /// Number of messages handled since the last sync.
    deliveries: u64,
    /// The chunk that the last sync moved, its old and its new rank.
    moved: Option<(u64, usize, usize)>,
}

impl Ring {
    fn new(count: u64, options: &Options) -> Ring {
        let seed = options.seed;
        let cost_ns = (0..count).map(|key| 20_000 + scrambled(key ^ seed << 32) % 20_000).collect();
        let homes = (0..count).map(|key| (key / u64::from(options.chunks)) as u32).collect();
        Ring { seed, cost_ns, load_ns: vec![0; count as usize], homes, deliveries: 0, moved: None }
    }
}

/// A pseudo-random function of `number` (SplitMix64).
fn scrambled(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Each chunk of the rank handles the messages of its two neighbours from the previous step, and sends to both.
fn compute(rank: &mut Rank, step: u64, ring: &mut Ring, beside: bool) -> std::io::Result<()> {
    let count = ring.cost_ns.len() as u64;
    for key in rank.chunks.clone() {
        let (left, right) = ((key + count - 1) % count, (key + 1) % count);
        let me = chunk(key);
        let noise = scrambled(key << 20 ^ step ^ ring.seed) % 1_000;
        let half_ns = ring.cost_ns[key as usize] / 2 + noise;
        let heard = match step {
            0 => vec![(START, RUNTIME, 0)],
            _ => vec![(HALO, chunk(left), (2 * step) as u32), (HALO, chunk(right), (2 * step - 1) as u32)],
        };
        for (kind, from, message) in heard {
            let lost_ns = if beside { half_ns } else { 0 };
            let (begin_ns, end_ns) = (rank.now_ns, rank.now_ns + half_ns + lost_ns);
            let what = What::Handler { chunk: me, kind, from, number: message, lost_ns };
            rank.push(Event { begin_ns, end_ns, what })?;
            ring.load_ns[key as usize] += half_ns;
            ring.deliveries += u64::from(from != RUNTIME);
        }
        let at_ns = rank.now_ns;
        for (to, message) in [(left, 2 * step + 1), (right, 2 * step + 2)] {
            let rank_of = ring.homes[to as usize];
            let (to, message) = (chunk(to), message as u32);
            let what = What::Send { chunk: me, to, rank: rank_of, number: message, bytes: MESSAGE_BYTES };
            rank.push(Event::point(at_ns, what))?;
        }
        if key == 0 && step.is_multiple_of(10) {
            let value = 1.0 / (1.0 + step as f64);
            rank.push(Event::point(at_ns, What::Counter { chunk: me, name: RESIDUAL, value }))?;
        }
        if key == 0 && step > 0 && step.is_multiple_of(50) {
            rank.push(Event::point(at_ns, What::Mark { chunk: me, name: CHECKPOINT }))?;
        }
    }
    Ok(())
}

/// All ranks measure, rank 0 decides, and one chunk moves away from the slowest rank.
fn sync(ranks: &mut [Rank], sync: u64, ring: &mut Ring, disturbed: bool) -> std::io::Result<()> {
    let begin_ns = ranks.iter().map(|rank| rank.now_ns).max().unwrap_or(0);
    let Ring { load_ns: loads_ns, homes, deliveries, moved, .. } = ring;
    let deliveries = std::mem::take(deliveries);
    let neighbour = ranks.len() / 2;
    let slow = |number: usize| if disturbed && number == neighbour { 2 } else { 1 };
    let load = |number: usize, rank: &Rank| {
        slow(number) * rank.chunks.iter().map(|&key| loads_ns[key as usize]).sum::<u64>()
    };
    let before_ns: Vec<u64> = ranks.iter().enumerate().map(|(number, rank)| load(number, rank)).collect();
    let mut unmoved_ns = before_ns.clone();
    if let Some((key, from, to)) = *moved {
        unmoved_ns[from] += slow(from) * loads_ns[key as usize];
        unmoved_ns[to] -= slow(to) * loads_ns[key as usize];
    }
    let worst = (0..ranks.len()).max_by_key(|&number| before_ns[number]).unwrap_or(0);
    let best = (0..ranks.len()).min_by_key(|&number| before_ns[number]).unwrap_or(0);
    // Work over capacity is the lower bound.
    let capacity: Vec<f64> = (0..ranks.len()).map(|number| 1.0 / slow(number) as f64).collect();
    let bound_ns = loads_ns.iter().sum::<u64>() as f64 / capacity.iter().sum::<f64>();
    let imbalance_before = before_ns[worst] as f64 / bound_ns;
    let moves = ranks.len() > 1 && imbalance_before > 1.05 && ranks[worst].chunks.len() > 1;
    for rank in ranks.iter_mut() {
        rank.push(Event {
            begin_ns,
            end_ns: begin_ns + 30_000,
            what: What::Runtime { part: Part::Measure, sync },
        })?;
        let at_ns = rank.now_ns;
        for key in rank.chunks.clone() {
            let load_ns = loads_ns[key as usize];
            let what = What::Load { chunk: chunk(key), sync, load_ns, bytes: STATE_BYTES };
            rank.push(Event::point(at_ns, what))?;
        }
        let wall_ns = at_ns - rank.sample.at_ns;
        let chunks = rank.chunks.len() as u64;
        let background_ns = rank.sample.wait_ns;
        let sample = Sample { at_ns, sync: Some(sync), wall_ns, chunks, background_ns, ..rank.sample };
        rank.writer.samples(&[sample])?;
        rank.sample = Sample { at_ns, speed: 100.0, ..Sample::default() };
    }
    let decided_ns = begin_ns + 50_000;
    let what = What::Runtime { part: Part::Decide, sync };
    ranks[0].push(Event { begin_ns: begin_ns + 30_000, end_ns: decided_ns, what })?;
    *moved = None;
    if moves {
        let key = ranks[worst].chunks.pop().expect("it has several");
        let from_ns = ranks[worst].now_ns.max(decided_ns);
        let what = What::Depart { chunk: chunk(key), rank: best as u32, bytes: STATE_BYTES };
        ranks[worst].push(Event { begin_ns: from_ns, end_ns: from_ns + 10_000, what })?;
        let at_ns = ranks[best].now_ns.max(from_ns + 10_000);
        ranks[best].push(Event::point(at_ns, What::Arrive { chunk: chunk(key), bytes: STATE_BYTES }))?;
        ranks[best].chunks.push(key);
        homes[key as usize] = best as u32;
        *moved = Some((key, worst, best));
    }
    let after_ns: Vec<u64> = ranks.iter().enumerate().map(|(number, rank)| load(number, rank)).collect();
    let predicted = after_ns.iter().copied().max().unwrap_or(0);
    let mut report = SyncReport::default();
    report.sync = sync;
    report.at_ns = decided_ns;
    report.imbalance_before = imbalance_before;
    report.imbalance_predicted = predicted as f64 / bound_ns;
    report.makespan_before_ns = before_ns[worst];
    report.makespan_predicted_ns = predicted;
    report.bound_ns = bound_ns as u64;
    report.moved = u64::from(moves);
    report.proposed = u64::from(moves);
    report.moved_bytes = u64::from(moves) * STATE_BYTES;
    report.collect_ns = 30_000;
    report.decide_ns = 20_000;
    report.migrate_ns = if moves { 10_000 } else { 0 };
    report.gain_ns = before_ns[worst].saturating_sub(predicted);
    report.needed_ns = if moves { 20_000 } else { 0 };
    (report.deliveries, report.deliveries_predicted) = (deliveries, deliveries);
    report.makespan_unmoved_ns = if sync > 0 { unmoved_ns.into_iter().max().unwrap_or(0) } else { 0 };
    report.waited = Some(homes.len() as u64);
    report.chunks_per_rank = ranks.iter().map(|rank| rank.chunks.len() as u32).collect();
    (report.capacity, report.share) = (capacity.clone(), capacity);
    (report.before_ns, report.predicted_ns) = (before_ns, after_ns);
    loads_ns.fill(0);
    ranks[0].writer.syncs(&[report])
}

fn finish(ranks: Vec<Rank>) -> std::io::Result<Written> {
    let elapsed_ns = ranks.iter().map(|rank| rank.now_ns).max().unwrap_or(0);
    let mut written = Written { events: 0, bytes: 0 };
    for mut rank in ranks {
        rank.flush()?;
        rank.writer.profile(0, &rank.profile)?;
        written.events += rank.count;
        written.bytes += rank.writer.bytes();
        rank.writer.finish(&End { elapsed_ns, messages: rank.handled, ..End::default() })?;
    }
    Ok(written)
}
