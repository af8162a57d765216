//! Builds and runs the released programs, and reads the numbers that they write.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Builds programs as this benchmark is built, unless they are up to date.
///
/// # Panics
/// If they cannot be built.
pub fn build(names: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--locked", "--workspace", "--target-dir"]);
    cargo.arg(folder().join("..")).args(names.iter().flat_map(|name| ["--bin", name]));
    let status = cargo.status().unwrap_or_else(|why| panic!("{cargo:?}: {why}"));
    assert!(status.success(), "{cargo:?}: {status}");
}

/// The folder of released programs.
fn folder() -> PathBuf {
    let me = std::env::current_exe().expect("a benchmark has a file");
    me.ancestors().nth(2).expect("it is in target/release/deps").to_owned()
}

/// A released program by its name or its path from their folder, with options and without `CARIBOU_*` variables.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "what is set is left out, and not read")]
pub fn program(name: &str, options: &str) -> Command {
    let mut program = Command::new(folder().join(name));
    program.args(options.split_whitespace());
    let settings = std::env::vars_os().map(|(name, _)| name);
    settings
        .filter(|name| name.as_encoded_bytes().starts_with(b"CARIBOU_"))
        .for_each(|name| _ = program.env_remove(name));
    program
}

/// Runs a program and returns the numbers that it writes.
///
/// # Panics
/// If the program cannot be run, or fails.
pub fn numbers(program: &mut Command) -> Value {
    let json = std::env::temp_dir().join(format!("caribou-bench-{}.json", std::process::id()));
    let output = program.arg("--json").arg(&json).output();
    let output = output.unwrap_or_else(|why| panic!("{program:?}: {why}"));
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    let numbers = std::fs::read(&json).expect("it was written");
    std::fs::remove_file(json).expect("it can go");
    serde_json::from_slice(&numbers).expect("programs write JSON")
}

/// One number by its name.
///
/// # Panics
/// If there is none of that name.
#[must_use]
pub fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("there is no number {name} in {of}"))
}

/// Nanoseconds per message by `ring`.
#[must_use]
pub fn ns_per_message(ring: &mut Command) -> f64 {
    number(&numbers(ring), "ns_per_message")
}
