//! Writes the seeds: a small trace with some of everything, as it is written, with all blocks unpacked, and cut off.
//!
//! `cargo run --bin seeds -- corpus/trace`

use std::fs;
use std::path::PathBuf;

use caribou::trace::{
    Activity, ArrayId, ChunkId, End, Event, Name, NameId, Part, Profile, RUNTIME, RunRecord, Sample, StepRecord, StepWorker, What,
    Writer,
};
use caribou::report::{ClockOffset, SyncReport};

const MAGIC: usize = 16;
const HEADER: usize = 44;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("name the directory of the seeds")?);
    fs::create_dir_all(&dir)?;
    let scratch = std::env::temp_dir().join(format!("caribou-seeds-{}", std::process::id()));
    let packed = packed(&scratch)?;
    fs::remove_dir_all(&scratch)?;
    fs::write(dir.join("packed"), &packed)?;
    fs::write(dir.join("cut"), &packed[..packed.len() * 2 / 3])?;
    fs::write(dir.join("unpacked"), unpacked(&packed)?)?;
    fs::write(dir.join("foreign"), b"caribou-trace 3\n")?;
    Ok(())
}

fn packed(scratch: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let run =
        RunRecord { run_id: "seed".into(), ranks: 1, workers: vec![2], arrows: 1, ..RunRecord::default() };
    let mut writer = Writer::create(scratch, &run)?;
    let path = writer.path().to_owned();
    writer.arrays(&["Ring".into()])?;
    writer.names(
        &["Halo", "reduced", "mark"].map(|text| Name { array: Some(ArrayId(0)), text: text.into() }),
    )?;
    writer.chunks(&[(chunk(1), "1, 2".into())])?;
    writer.events(0, &events(0))?;
    writer.events(1, &events(10))?;
    writer.events(0, &events(1000))?;
    let mut sync = SyncReport::default();
    (sync.at_ns, sync.moved, sync.before_ns, sync.share) = (280, 1, vec![90], vec![0.5]);
    writer.syncs(&[sync])?;
    writer.steps(&[StepRecord { workers: vec![StepWorker::default(); 2], ..StepRecord::default() }])?;
    writer.samples(&[Sample {
        at_ns: 280,
        sync: Some(0),
        wall_ns: 280,
        cpu_ns: 200,
        ..Sample::default()
    }])?;
    let mut profile = Profile::default();
    profile.add(Activity::Kind(NameId(0)), 0, 2_000_000, 70, 1, 70);
    profile.add(Activity::Runtime(Part::Decide), 0, 10, 10, 1, 10);
    writer.profile(0, &profile)?;
    let clocks = vec![ClockOffset { begin_ns: -5, drift_ns: 1, error_ns: 3 }];
    writer.finish(&End { elapsed_ns: 2_000_000, messages: 3, failed: None, dropped: 1, clocks })?;
    fs::read(path)
}

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

/// One of each kind.
fn events(from_ns: u64) -> Vec<Event> {
    let (me, name) = (chunk(from_ns), NameId(0));
    let slice = |begin: u64, end: u64, what| Event { begin_ns: from_ns + begin, end_ns: from_ns + end, what };
    let point = |at: u64, what| Event::point(from_ns + at, what);
    vec![
        slice(0, 100, What::Runtime { part: Part::Start, sync: 0 }),
        point(100, What::Arrive { chunk: me, bytes: 0 }),
        point(110, What::Mark { chunk: me, name }),
        slice(105, 150, What::Span { chunk: me, name }),
        slice(100, 200, What::Handler { chunk: me, kind: name, from: RUNTIME, number: 0, lost_ns: 30 }),
        point(200, What::Send { chunk: me, to: chunk(10), rank: 0, number: 1, bytes: 64 }),
        point(200, What::Contribute { chunk: me, number: 3 }),
        point(200, What::Counter { chunk: me, name, value: -0.5 }),
        slice(200, 250, What::Idle),
        slice(250, 260, What::Handler { chunk: chunk(10), kind: NameId(1), from: me, number: 1, lost_ns: 0 }),
        point(260, What::Load { chunk: me, sync: 0, load_ns: 70, bytes: 4096 }),
        slice(260, 280, What::Depart { chunk: me, rank: 1, bytes: 4096 }),
        slice(280, 300, What::Range { first: 1 << 40, count: 9, lost_ns: 20 }),
        point(300, What::PoolSend { rank: 3 }),
        point(300, What::Dropped { events: 5 }),
    ]
}

/// The same blocks as they are without compression; the mending in the target makes their checksums right.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut bytes = packed[..MAGIC].to_vec();
    let mut at = MAGIC;
    while packed.get(at..at + 4) == Some(b"cblk") {
        let mut header = packed[at..at + HEADER].to_vec();
        let four =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (raw, stored) = (four(8), four(12) as usize);
        let body = &packed[at + HEADER..at + HEADER + stored];
        let body =
            if header[5] == 1 { lz4_flex::block::decompress(body, raw as usize)? } else { body.to_vec() };
        header[5] = 0;
        header[12..16].copy_from_slice(&raw.to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&body);
        at += HEADER + stored;
    }
    Ok(bytes)
}
