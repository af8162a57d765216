//! Tests that programs that are shrunk and expanded while they run have the serial program's result.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(unreachable_pub, reason = "other tests have it as well")]
mod resizer;

use std::process::{Command, Stdio};
use std::sync::Mutex;

use resizer::{free_port, resize_in_turn};

/// Runs a program on three ranks, which become one, three and two while it runs.
fn check(program: &str, arguments: &str, period: &str) {
    let port = free_port();
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).args(["--check", "--ranks", "3"]);
    command.env("CARIBOU_MONITOR", &port).env("CARIBOU_LB_PERIOD", period);
    let child = Mutex::new(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let has_ended = || child.lock().unwrap().try_wait().unwrap().is_some();
    let is_resized = resize_in_turn(&port, &[1, 3, 2], has_ended);
    let output = child.into_inner().unwrap().wait_with_output().unwrap();
    let [said, told] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let what = format!("{program} {arguments} {period}\n{said}{told}");
    assert!(is_resized, "it ended too early: {what}");
    assert!(output.status.success(), "{what}");
    assert!(said.contains("Every run ended with the serial program's result"), "{what}");
    for (active, before) in [(1, 3), (3, 1), (2, 3)] {
        let line = format!("{active} of 3 ranks are active from now on (before: {before})");
        assert_eq!(told.matches(&line).count(), 1, "{what}");
    }
}

#[test]
fn arrays_are_resized_while_chunks_run_and_at_syncs() {
    let stencil = env!("CARGO_BIN_EXE_stencil2d");
    check(stencil, "--grid 128 --chunk 16 --iterations 4000", "auto");
    check(stencil, "--grid 128 --chunk 16 --iterations 4000", "20");
    check(env!("CARGO_BIN_EXE_pic"), "--particles 2e4 --grid 64 --iterations 400 --lb greedy", "auto");
}

#[test]
fn programs_in_supersteps_are_resized() {
    check(env!("CARGO_BIN_EXE_jacobi"), "--size 100 --tolerance 0 --steps 5000 --lb des", "auto");
    check(env!("CARGO_BIN_EXE_jacobi"), "--size 100 --tolerance 0 --steps 5000 --lb dlb-jr", "auto");
}

#[test]
fn pools_are_resized() {
    check(env!("CARGO_BIN_EXE_montecarlo"), "--histories 1.5e6 --lb leases", "auto");
}
