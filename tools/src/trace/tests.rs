//! Tests `caribou trace` from arguments to output, on synthetic traces.

mod overview;
mod pictures_and_counts;
mod supersteps;

use std::path::PathBuf;

use caribou::trace::{ArrayId, ChunkId, Event, NameId, RUNTIME, What};
use trace_reader::Trace;

use crate::tests::caribou;

/// A directory for one test. Dropping it removes the directory.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("caribou-trace-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Scratch(dir)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.0
    }

    pub(super) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A chunk of the first array.
pub(super) fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

/// A handler of the first kind. Without a sender, the runtime sent its message.
pub(super) fn handler(begin_ns: u64, end_ns: u64, key: u64, from: Option<u64>, number: u32) -> Event {
    let from = from.map_or(RUNTIME, chunk);
    let what = What::Handler { chunk: chunk(key), kind: NameId(0), from, number, lost_ns: 0 };
    Event { begin_ns, end_ns, what }
}

/// A message to rank 1.
pub(super) fn send(at_ns: u64, from: u64, to: u64, number: u32) -> Event {
    Event::point(at_ns, What::Send { chunk: chunk(from), to: chunk(to), rank: 1, number, bytes: 8 })
}

/// A synthetic trace of 4 ranks of 8 chunks, with about `events` events.
pub(super) fn generated(name: &str, events: u64) -> Scratch {
    let dir = Scratch::new(name);
    caribou(&["trace", "generate", dir.text(), "--events", &events.to_string()]).unwrap();
    dir
}

#[test]
fn a_made_up_trace_can_be_read_and_nothing_is_wrong_with_it() {
    let dir = generated("generate", 50_000);
    let trace = Trace::open(dir.path()).unwrap();
    let mut count = 0u64;
    let problems = trace.for_each(|_, _, _| count += 1);
    assert_eq!((problems, &trace.problems), (vec![], &vec![]));
    assert_eq!(count, trace.events());
    assert!((45_000..60_000).contains(&count), "{count}");
    assert!(trace.syncs.iter().any(|sync| sync.moved > 0));
}
