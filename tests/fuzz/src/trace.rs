//! Any bytes are a trace or a line that says why not: nothing panics, and memory is bounded.
//!
//! Each input is read twice: as it is, and with its checksums made right, or no change would get past them. Then all of it
//! is read: records, events, and what `caribou trace check` compares.
#![no_main]

mod mend;

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use trace_reader::Trace;

/// Messages that are kept.
const MESSAGES_MAX: usize = 10_000;

fuzz_target!(|bytes: &[u8]| {
    let file = scratch();
    read(&file, bytes);
    read(&file, &mend::mended(bytes));
});

/// A file of this process, in memory where there is such a place.
fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    dir.join(format!("caribou-fuzz-{}.trace", std::process::id()))
}

fn read(file: &Path, bytes: &[u8]) {
    std::fs::write(file, bytes).expect("the scratch file can be written");
    let trace = match Trace::open(file) {
        Ok(trace) => trace,
        Err(error) => return assert_line(&error.to_string()),
    };
    trace.problems.iter().for_each(|problem| assert_line(&problem.to_string()));
    assert!(trace.elapsed_ns() <= caribou::trace::TIME_MAX_NS);
    caribou_tools::check(&trace, MESSAGES_MAX).iter().for_each(|line| assert!(!line.is_empty()));
}

fn assert_line(line: &str) {
    assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
}
