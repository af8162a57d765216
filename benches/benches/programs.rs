//! What do the programs show that a person starts?
//!
//! The programs themselves, as released, in turn, with the options that the README names:
//!
//! | question | contenders |
//! |---|---|
//! | `balance`: what does balancing save? | `stencil2d`, `none` and `refine`: undisturbed, beside a busy neighbour, under a CPU quota |
//! | `pool`: how near is a pool to the capacity left to it? | `montecarlo` beside a neighbour that comes and goes, three policies |
//! | `profile`: what does a crate get that does not copy our release profile? | `ring`, built with ours and with Cargo's |
//!
//! An argument selects one question. What is missing is named with the command that builds it. A quota needs writable
//! control groups.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use caribou_benches::figures::figure;
use caribou_benches::{Contender, Spread, all_in_turn};
use serde_json::Value;

const ROUNDS: usize = 5;
const POOL_ROUNDS: usize = 3;
const RING_ROUNDS: usize = 15;
const PLATE: &str = "--grid 4096 --chunk 256 --iterations 500 --period 20 --ranks 2 --compare none,refine";
const PHOTONS: &str = "--histories 12000000 --ranks 1 --workers 2 --compare static;ruper,checkpoint=1;leases \
     --neighbour 0:10-30 --neighbour 0:50-80";
const POLICIES: [&str; 3] = ["static", "ruper", "leases"];

/// The folder of the programs that are built as this benchmark is.
fn released() -> PathBuf {
    let me = std::env::current_exe().expect("a benchmark has a file");
    me.ancestors().nth(2).expect("it is in target/release/deps").to_owned()
}

/// `ring` as a crate gets it that leaves Cargo's own release profile alone.
fn ring_with_default_profile() -> PathBuf {
    released().join("../default-profile/release/ring")
}

/// Runs a program, and returns the numbers it writes.
fn run(program: &Path, options: &str) -> Value {
    let json = std::env::temp_dir().join(format!("caribou-bench-{}.json", std::process::id()));
    let mut command = Command::new(program);
    command.args(options.split_whitespace()).arg("--json").arg(&json);
    let output = command
        .output()
        .unwrap_or_else(|why| panic!("{}: {why}; tools/figures builds it", program.display()));
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let numbers = std::fs::read(&json).expect("it was written");
    std::fs::remove_file(json).expect("it can go");
    serde_json::from_slice(&numbers).expect("programs write JSON")
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("there is no number {name} in {of}"))
}

fn say(name: &str, unit: &str, what: &str, values: Vec<f64>) {
    let spread = Spread::of(values);
    eprintln!("  {name:<32}{spread:.2} {unit}");
    figure(name, unit, what, spread);
}

/// Seconds of both runs, and the part of the first that the second saves, in percent.
fn balance() {
    let cases = [("quiet", ""), ("neighbour", "--neighbour 1"), ("quota", "--quota 1:50")];
    let mut measured = cases.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, disturbance), measured) in cases.iter().zip(&mut measured) {
            measured.push(run(&released().join("stencil2d"), &format!("{PLATE} {disturbance}")));
        }
    }
    for ((case, disturbance), measured) in cases.iter().zip(measured) {
        let what = format!("stencil2d {} {disturbance}", PLATE.replace(',', " and "));
        let total = |run: usize| measured.iter().map(|all| number(&all["runs"][run], "total_s")).collect();
        say(&format!("balance.{case}.none"), "s", &what, total(0));
        say(&format!("balance.{case}.refine"), "s", &what, total(1));
        let gains = measured.iter().map(|all| 100.0 * number(all, "gain")).collect();
        say(&format!("balance.{case}.gain"), "%", &what, gains);
        let possible = |all: &Value| all["possible_gain"].as_f64().map(|gain| 100.0 * gain);
        if let Some(possible) = measured.iter().map(possible).collect() {
            say(&format!("balance.{case}.possible"), "%", &what, possible);
        }
    }
}

/// The time of each policy beyond the capacity bound, in percent.
fn pool() {
    let runs: Vec<Value> = (0..POOL_ROUNDS).map(|_| run(&released().join("montecarlo"), PHOTONS)).collect();
    let what = format!("montecarlo {}", PHOTONS.replace(',', " "));
    for (place, policy) in POLICIES.iter().enumerate() {
        let excess = runs.iter().map(|all| 100.0 * number(&all["runs"][place], "excess")).collect();
        say(&format!("pool.neighbour.{policy}"), "%", &what, excess);
    }
}

/// ns a message, by default and bare, with our profile and with Cargo's.
fn profile() {
    let builds = [("ours", released().join("ring")), ("cargo", ring_with_default_profile())];
    let settings = [("default", "--measure on --profile on"), ("bare", "--measure off --profile off")];
    let mut names = Vec::new();
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    for (build, ring) in &builds {
        for (setting, options) in settings {
            names.push((format!("profile.{build}.{setting}"), options));
            contenders.push(Box::new(move || number(&run(ring, options), "ns_per_message")));
        }
    }
    for ((name, options), spread) in names.iter().zip(all_in_turn(RING_ROUNDS, &mut contenders)) {
        eprintln!("  {name:<32}{spread:.1} ns a message");
        figure(name, "ns", &format!("ring {options}"), spread);
    }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    eprintln!(
        "medians [quartiles] of {ROUNDS} rounds in turn; `pool` has {POOL_ROUNDS}, `profile` {RING_ROUNDS}"
    );
    for (question, answer) in [("balance", balance as fn()), ("pool", pool), ("profile", profile)] {
        if asked.is_empty() || asked.iter().any(|asked| asked == question) {
            eprintln!("{question}");
            answer();
        }
    }
}
