//! Any bytes are a snapshot or a line that says why not, and every strategy places each chunk of one.
#![no_main]

mod line;

use lb_strategies::metrics::{Crossing, completion_ns, memory_bytes};
use lb_strategies::{ARRAYS, Snapshot};
use libfuzzer_sys::fuzz_target;
use line::assert_line;

/// Chunks, ranks, edges and blocks of a snapshot that strategies are asked about.
const SIZE_MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let snapshot = match caribou_tools::snapshot(bytes) {
        Ok(snapshot) => snapshot,
        Err(why) => return assert_line(&why),
    };
    let json = serde_json::to_vec(&snapshot).expect("a snapshot is numbers, and those are finite");
    assert_eq!(caribou_tools::snapshot(&json).as_ref(), Ok(&snapshot));
    let Snapshot { ranks, chunks, edges, memory, .. } = &snapshot;
    let blocks = memory.as_ref().map_or(0, |memory| memory.blocks.len());
    if [ranks.len(), chunks.len(), edges.len(), blocks].into_iter().any(|size| size > SIZE_MAX) {
        return;
    }
    for entry in ARRAYS.iter() {
        let strategy = ARRAYS.parse(entry.name).expect("it is listed");
        let assignment = strategy.assign(&snapshot);
        assert_eq!(assignment.ranks.len(), chunks.len(), "{}", entry.name);
        assert!(assignment.ranks.iter().all(|rank| rank.index() < ranks.len()), "{}", entry.name);
        let used = memory_bytes(&snapshot, &assignment);
        assert!(used.is_empty() || used.len() == ranks.len(), "{}", entry.name);
        assert_eq!(completion_ns(&snapshot, &assignment, strategy.terms().background).len(), ranks.len());
        Crossing::of(&snapshot, &assignment);
    }
});
