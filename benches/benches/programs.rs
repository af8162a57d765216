//! Measures what a user gets from the released programs.
//!
//! The programs run in turn, with the options that the README names:
//!
//! | question | contenders |
//! |---|---|
//! | `balance`: what does balancing save? | `stencil2d`, `none` and `refine`: undisturbed, beside a neighbour that comes and goes or stays, under a CPU quota |
//! | `pool`: how near is a pool to the capacity that is left? | `montecarlo` beside a neighbour that comes and goes, three policies |
//! | `profile`: how fast is a crate without our release profile? | `ring`, built with our profile and with Cargo's |
//!
//! An argument selects one question. A quota needs writable control groups.

#![expect(clippy::print_stderr, reason = "a benchmark reports to the person who started it")]

use caribou_benches::figures::figure;
use caribou_benches::programs::{build, ns_per_message, number, numbers, program};
use caribou_benches::{Contender, Quartiles, Setting, all_in_turn};
use serde_json::Value;

const ROUNDS: usize = 5;
const POOL_ROUNDS: usize = 3;
const RING_ROUNDS: usize = 15;
/// `none` runs before and after, so that a machine that slows down meanwhile does not count as a loss.
const PLATE: &str = "--grid 4096 --chunk 256 --ranks 2 --compare none,refine,none";
/// Disturbances, each with the iterations of a run. `demonstration` is what `stencil2d` runs without options.
const PLATES: [(&str, &str); 4] = [
    ("quiet", "--iterations 800"),
    ("demonstration", "--iterations 800 --neighbour 1:160-640"),
    ("quota", "--iterations 800 --quota 1:50"),
    ("neighbour", "--iterations 500 --period 20 --neighbour 1"),
];
const PHOTONS: &str = "--histories 12000000 --ranks 1 --workers 2 --compare static,ruper,interval=1,leases \
     --neighbour 0:10-30 --neighbour 0:50-80";
const POLICIES: [&str; 3] = ["static", "ruper", "leases"];

/// `ring` in a crate with Cargo's own release profile; `tools/figures` builds it.
const RING_WITH_DEFAULT_PROFILE: &str = "../default-profile/release/ring";

fn say(name: &str, unit: &str, what: &str, values: Vec<f64>) {
    let spread = Quartiles::of(values);
    eprintln!("  {name:<32}{spread:.2} {unit}");
    figure(name, unit, what, spread);
}

/// Seconds without balancing (the mean of a run before and one after), seconds with balancing, and the part that
/// balancing saves, in percent.
fn balance() {
    let mut measured = PLATES.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, disturbance), measured) in PLATES.iter().zip(&mut measured) {
            measured.push(numbers(&mut program("stencil2d", &format!("{PLATE} {disturbance}"))));
        }
    }
    for ((case, disturbance), measured) in PLATES.iter().zip(measured) {
        let what = format!("stencil2d {} {disturbance}", PLATE.replace(',', " and "));
        let total = |all: &Value, run: usize| number(&all["runs"][run], "total_s");
        let none = |all: &Value| (total(all, 0) + total(all, 2)) / 2.0;
        say(&format!("balance.{case}.none"), "s", &what, measured.iter().map(none).collect());
        let refine = |all: &Value| total(all, 1);
        say(&format!("balance.{case}.refine"), "s", &what, measured.iter().map(refine).collect());
        let gains = measured.iter().map(|all| 100.0 * (1.0 - refine(all) / none(all))).collect();
        say(&format!("balance.{case}.gain"), "%", &what, gains);
        let bound = |all: &Value| all["runs"][1]["bound_s"].as_f64();
        let possible = |all: &Value| Some(100.0 * (1.0 - bound(all)? / none(all)).max(0.0));
        if let Some(possible) = measured.iter().map(possible).collect() {
            say(&format!("balance.{case}.possible"), "%", &what, possible);
        }
    }
}

/// The time of each policy beyond the capacity bound, in percent.
fn pool() {
    let runs: Vec<Value> = (0..POOL_ROUNDS).map(|_| numbers(&mut program("montecarlo", PHOTONS))).collect();
    let what = format!("montecarlo {}", PHOTONS.replace(',', " "));
    for (place, policy) in POLICIES.iter().enumerate() {
        let excess = runs.iter().map(|all| 100.0 * number(&all["runs"][place], "excess")).collect();
        say(&format!("pool.neighbour.{policy}"), "%", &what, excess);
    }
}

/// ns per message, by default and bare, with our profile and with Cargo's.
fn profile() {
    let builds = [("ours", "ring"), ("cargo", RING_WITH_DEFAULT_PROFILE)];
    let mut names = Vec::new();
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    for (build, ring) in builds {
        for setting in [Setting::DEFAULT, Setting::BARE] {
            names.push((format!("profile.{build}.{}", setting.name()), setting.options()));
            contenders.push(Box::new(move || ns_per_message(&mut program(ring, &setting.options()))));
        }
    }
    for ((name, options), spread) in names.iter().zip(all_in_turn(RING_ROUNDS, &mut contenders)) {
        eprintln!("  {name:<32}{spread:.1} ns a message");
        figure(name, "ns", &format!("ring {options}"), spread);
    }
}

fn main() {
    build(&["stencil2d", "montecarlo", "ring"]);
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
