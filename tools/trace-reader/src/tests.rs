//! Tests complete, truncated, damaged, foreign and hostile traces. None may cause panics, wrong data or much memory.

mod damaged;
mod hostile;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};

use caribou::trace::block::{Block, Kind, MAGIC};
use caribou::trace::{
    Activity, ArrayId, ChunkId, ClockOffset, End, Event, Look, Name, NameId, Part, Profile, RUNTIME,
    RunRecord, Sample, Shape, StepRecord, StepWorker, SyncReport, Taker, What, Writer, file_name,
};

use super::{Problem, Trace, TraceError};

/// A directory for one test. Dropping it removes the directory.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("caribou-reader-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    /// Writes a file in the directory.
    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Opens a trace with these bytes as its only file.
    fn open(&self, bytes: &[u8]) -> Result<Trace, TraceError> {
        Trace::open(&self.file("rank-00000.trace", bytes))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

fn run_record(rank: u32, ranks: u32, workers: u32) -> RunRecord {
    RunRecord {
        run_id: "run of the tests".into(),
        shape: Shape::Arrays,
        hosts: (0..ranks).map(|rank| format!("host{rank}")).collect(),
        workers: vec![workers; ranks as usize],
        arrows: 1,
        ranks,
        rank,
        ..RunRecord::default()
    }
}

/// One event of each kind, on one worker.
fn one_of_each(from_ns: u64, name: NameId) -> Vec<Event> {
    let me = chunk(7);
    let slice = |begin: u64, end: u64, what| Event { begin_ns: from_ns + begin, end_ns: from_ns + end, what };
    let point = |at: u64, what| Event::point(from_ns + at, what);
    vec![
        slice(0, 100, What::Runtime { part: Part::Start, sync: 0 }),
        point(100, What::Arrive { chunk: me, bytes: 0 }),
        point(110, What::Mark { chunk: me, name }),
        slice(105, 150, What::Span { chunk: me, name }),
        slice(100, 200, What::Handler { chunk: me, kind: name, from: RUNTIME, number: 0, lost_ns: 30 }),
        point(200, What::Send { chunk: me, to: chunk(8), rank: 1, number: u32::MAX, bytes: 64 }),
        point(200, What::Contribute { chunk: me, number: 3 }),
        point(200, What::Counter { chunk: me, name, value: -0.5 }),
        slice(200, 260, What::Idle),
        point(260, What::Load { chunk: me, sync: 0, load_ns: 70, bytes: 4096 }),
        slice(260, 280, What::Depart { chunk: me, rank: 1, bytes: 4096 }),
        slice(280, 300, What::Range { first: 1 << 40, count: 9, lost_ns: 20 }),
        point(300, What::PoolSend { rank: 3 }),
        point(300, What::Dropped { events: 5 }),
    ]
}

fn sync_report(sync: u64) -> SyncReport {
    let mut report = SyncReport::default();
    (report.sync, report.at_ns, report.imbalance_before) = (sync, 250, 1.25);
    report.before_ns = vec![50, 30];
    report
}

fn step_record(step: u64) -> StepRecord {
    let worker =
        StepWorker { units: 5, computing_ns: 70, dropped: 1, dropped_ns: 20, ..StepWorker::default() };
    let reason = Some("it pays".to_owned());
    StepRecord {
        step,
        begin_ns: 100,
        end_ns: 180,
        copies: 2,
        moved: 3,
        divided: true,
        reason,
        restarted: step % 2 == 1,
        workers: vec![worker; 2],
    }
}

fn look() -> Look {
    let taker = Taker { pid: 77, command: "stress".into(), cpu_ns: 120 };
    Look { at_ns: 250, over_ns: 200, takers: vec![taker] }
}

fn end_record() -> End {
    let clocks = vec![ClockOffset::default(), ClockOffset { begin_ns: -7, drift_ns: 2, error_ns: 40 }];
    End { elapsed_ns: 900, messages: 2, failed: None, dropped: 5, clocks }
}

/// Writes a small file of one rank with records of all kinds.
fn small(dir: &Path, rank: u32, ranks: u32) -> PathBuf {
    let mut writer = Writer::create(dir, &run_record(rank, ranks, 2)).unwrap();
    writer.arrays(&["Ring".into()]).unwrap();
    writer.names(&[Name { array: Some(ArrayId(0)), text: format!("only on {rank}") }]).unwrap();
    writer.names(&[Name { array: Some(ArrayId(0)), text: "Halo".into() }]).unwrap();
    writer.chunks(&[(chunk(u64::from(rank)), format!("{rank}, 0"))]).unwrap();
    writer.events(0, &one_of_each(0, NameId(1))).unwrap();
    writer.events(1, &[Event { begin_ns: 10, end_ns: 20, what: What::Idle }]).unwrap();
    writer.events(0, &one_of_each(400, NameId(0))).unwrap();
    writer.syncs(&[sync_report(u64::from(rank))]).unwrap();
    writer.looks(&[look()]).unwrap();
    writer.steps(&[step_record(u64::from(rank))]).unwrap();
    writer.samples(&[Sample { at_ns: 250, sync: Some(0), wall_ns: 250, ..Sample::default() }]).unwrap();
    let mut profile = Profile::default();
    profile.add(Activity::Kind(NameId(1)), 100, 200, 70, 1, 70);
    writer.profile(1, &profile).unwrap();
    let path = writer.path().to_owned();
    writer.finish(&end_record()).unwrap();
    path
}

/// All events of all workers, and what could not be read.
fn events(trace: &Trace) -> (Vec<(u32, u32, Event)>, Vec<Problem>) {
    let mut events = Vec::new();
    let problems = trace.for_each(|rank, worker, event| events.push((rank.rank, worker, *event)));
    (events, problems)
}

/// The bytes of a file with these blocks and no index.
fn bytes_of(blocks: &[Block]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for block in blocks {
        bytes.extend_from_slice(&block.header.to_bytes());
        bytes.extend_from_slice(&block.bytes);
    }
    bytes
}

fn run_block() -> Block {
    Block::new(Kind::Run, 0, 1, (0, 0), &serde_json::to_vec(&run_record(0, 1, 1)).unwrap())
}

/// The error of opening, which must be one line.
fn refused(opened: Result<Trace, TraceError>) -> String {
    let line = opened.expect_err("it should be refused").to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

#[test]
fn blocks_of_a_worker_that_there_is_not_are_left_out() {
    let dir = Scratch::new("strange-worker");
    let mut writer = Writer::create(&dir.0, &run_record(0, 1, 2)).unwrap();
    let idle = [Event { begin_ns: 10, end_ns: 20, what: What::Idle }];
    [0, 1, 65_535].into_iter().for_each(|worker| writer.events(worker, &idle).unwrap());
    writer.finish(&end_record()).unwrap();
    let trace = Trace::open(&dir.0).unwrap();
    assert_eq!((trace.ranks[0].workers, trace.events()), (2, 2));
    let problems: Vec<&str> = trace.problems.iter().map(|problem| &problem.what[..]).collect();
    assert_eq!(problems, ["a block of worker 65535 is left out: rank 0 has 2"]);
}
