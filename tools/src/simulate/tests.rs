//! Tests `caribou simulate` from arguments to output. Only the policy `static` is assumed to exist; the table of
//! policies may have any others.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::tests::{Scratch, caribou, caribou_says, refused};

fn pool(arguments: &[&str]) -> Result<String, String> {
    caribou(&[&["simulate", "pool"], arguments].concat())
}

/// The columns of the row of `static`: policy, makespan, excess, spread, of ranks, idle, messages, overshoot.
fn static_line(arguments: &[&str]) -> Vec<String> {
    let text = pool(&[arguments, &["--compare", "static"]].concat()).unwrap();
    line_of("static", &text)
}

/// The content of a file in JSON.
fn read_json(file: &Scratch) -> Value {
    serde_json::from_str(&file.read()).unwrap()
}

#[test]
fn a_scenario_is_a_table_with_a_line_a_policy() {
    let text = pool(&["--scenario", "L1"]).unwrap();
    assert!(text.starts_with(
        "L1: eight workers from 1000 to 2050 it/s; 1 x 8 workers, 20000000 iterations, ideal 1639.3 s\n"
    ));
    for entry in lb_strategies::POOLS.iter() {
        assert!(
            text.lines().any(|line| line.split_whitespace().next() == Some(entry.name)),
            "{}",
            entry.name
        );
    }
    assert_eq!(
        static_line(&["--scenario", "L1"]),
        ["static", "2500.0", "52.50", "1280.5", "0.0", "6152", "0", "0.00"]
    );
}

#[test]
fn several_scenarios_are_several_tables() {
    let text = pool(&["--scenario", "L7-0,L7-5", "--compare", "static,chunk=1;static"]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 11, "{text}");
    assert!(lines[9].starts_with("excess: over the ideal; spread: "), "{text}");
    assert!(lines[0].starts_with("L7-0: four workers, nothing to do; 1 x 4 workers, 0 iterations"));
    assert!(lines[2].starts_with("static,chunk=1 ") && lines[3].starts_with("static "), "{text}");
    assert_eq!(lines[7].split_whitespace().nth(1), Some("0.0020"), "{text}");
    assert!(lines[4].is_empty() && lines[5].starts_with("L7-5: "), "{text}");
}

#[test]
fn an_incomplete_run_is_told_and_fails() {
    let csv = Scratch::file("standstill", "");
    let cluster =
        "simulate pool --ranks 2 --workers 1 --iterations 1e6 --speeds 0,1000 --compare static --csv";
    let arguments: Vec<&str> = cluster.split(' ').chain([csv.text()]).collect();
    let (text, error) = caribou_says(&arguments);
    assert!(text.contains(" n/a ") && text.contains("500000 iterations missing"), "{text}");
    let error = error.expect("a run is incomplete");
    assert_eq!(error.exit_code(), 1);
    let line = error.to_string();
    assert!(line.starts_with("1 of 1 runs are incomplete, first static in "), "{line}");
    assert!(line.ends_with(": 500000 iterations missing, 1 ranks hang"), "{line}");
    let line = csv.read().lines().nth(1).unwrap().to_owned();
    assert!(line.split(',').nth(7).unwrap().is_empty(), "{line}");
}

#[test]
fn neighbours_slow_down_the_workers_beside_them() {
    let cluster = ["--ranks", "2", "--workers", "2", "--iterations", "4e5", "--speed", "1000"];
    let makespan = |more: &[&str]| static_line(&[&cluster, more].concat())[1].clone();
    assert_eq!(makespan(&[]), "100.0");
    assert_eq!(makespan(&["--neighbour", "1"]), "200.0");
    assert_eq!(makespan(&["--neighbour", "1.0:50-70"]), "110.0");
    assert_eq!(makespan(&["--neighbour", "1:0.2", "--neighbour", "0:10-11"]), "125.0");
    assert_eq!(makespan(&["--neighbour", "1:0-50:1", "--beside", "core"]), "126.5");
}

#[test]
fn a_random_neighbour_is_beside_its_workers_for_half_of_the_time() {
    let cluster = ["--ranks", "1", "--workers", "2", "--iterations", "2e6", "--speed", "1000"];
    let makespan = |neighbour: &str| {
        let line = static_line(&[&cluster[..], &["--neighbour", neighbour]].concat());
        line[1].clone()
    };
    // Half of the time at half of the speed: 1000 s become 1333 s.
    let of_seven = makespan("0:random:7");
    assert!((1290.0..1380.0).contains(&of_seven.parse::<f64>().unwrap()), "{of_seven} s");
    assert_eq!(of_seven, makespan("0:random:7"));
    assert_ne!(of_seven, makespan("0:random:8"));
    assert_eq!(of_seven, makespan("0.1:random:7"), "equal shares wait for the slower worker");
}

#[test]
fn speeds_are_of_ranks_or_of_workers_in_a_list_or_a_file() {
    let cluster = ["--ranks", "2", "--workers", "2", "--iterations", "4e5"];
    let makespan = |speeds: &str| static_line(&[&cluster[..], &["--speeds", speeds]].concat())[1].clone();
    assert_eq!(makespan("1000,500"), "200.0");
    assert_eq!(makespan("1000,500,400,2000"), "250.0");
    let file = Scratch::file("speeds", "1000 500\n400, 2000\n");
    assert_eq!(makespan(file.text()), "250.0");
}

#[test]
fn hosts_follow_their_traces() {
    let file = Scratch::file("hosts", "time_s,host,share\n0,a,1\n0,b,1\n50,b,0.5\n");
    let cluster = ["--ranks", "2", "--workers", "1", "--iterations", "2e5", "--hosts-trace", file.text()];
    assert_eq!(static_line(&cluster)[1], "150.0");
    assert_eq!(static_line(&[&cluster[..], &["--trace-step", "20"]].concat())[1], "180.0");
    let alone = ["--ranks", "1", "--workers", "1", "--iterations", "1e5", "--hosts-trace", file.text()];
    let seed = |seed| static_line(&[&alone[..], &["--seed", seed]].concat())[1].clone();
    assert_eq!([seed("0"), seed("1"), seed("2")], ["100.0", "150.0", "100.0"]);
    let other = Scratch::file("other-host", "time_s,host,share\n0,a,0.25\n");
    let both =
        ["--ranks", "3", "--workers", "1", "--iterations", "3e5", "--hosts-trace", file.text(), other.text()];
    assert_eq!(static_line(&both)[1], "400.0", "the third rank is on the host of the second file");
}

#[test]
fn costly_iterations_make_equal_shares_unequal() {
    let cluster = ["--ranks", "2", "--iterations", "1600", "--speed", "1"];
    assert_eq!(static_line(&cluster)[3], "0.0");
    let costly = [&cluster[..], &["--cost", "lognormal:1.5"]].concat();
    let spread: f64 = static_line(&costly)[3].parse().unwrap();
    assert!(spread > 20.0, "{spread}");
    assert_ne!(static_line(&costly), static_line(&[&costly[..], &["--seed", "1"]].concat()));
}

#[test]
fn files_say_the_same_as_the_table() {
    let [json, csv, svg] = ["json", "csv", "svg"].map(|kind| Scratch::new(&format!("pool.{kind}")));
    let files = ["--json", json.text(), "--csv", csv.text(), "--plot", svg.text()];
    pool(&[&["--scenario", "L1,L2", "--compare", "static,chunk=1"], &files[..]].concat()).unwrap();
    let read = read_json(&json);
    assert_eq!(read[0]["outcomes"][0]["makespan_s"], 2500.0);
    assert_eq!(read[1]["outcomes"][0]["worker_ends_s"][0].as_array().unwrap().len(), 4);
    let text = csv.read();
    assert!(text.lines().nth(1).unwrap().starts_with("L1,\"static,chunk=1\",1,8,20000000,1639.3"), "{text}");
    assert_eq!(text.lines().count(), 3);
    let columns = |line: &str| line.replace("static,chunk", "static chunk").split(',').count();
    assert!(text.lines().all(|line| columns(line) == 15), "{text}");
    let text = svg.read();
    for words in ["<svg", "worker, by rank", "end (s)", "static,chunk=1: 2500 s", "static,chunk=1: 10000 s"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn a_sweep_is_a_line_a_policy() {
    let text = pool(&["--sweep", "S2", "--compare", "static"]).unwrap();
    let line = text.lines().nth(2).unwrap();
    assert!(text.starts_with("S2: L4, a worker collapses at 2400 ... 2985 s; 40 runs\n"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let [mean, median, max]: [f64; 3] = [1, 2, 3].map(|column| words[column].parse().unwrap());
    assert!(
        (mean - 190.0).abs() < 1.0 && (median - 190.7).abs() < 1.0 && (max - 367.0).abs() < 1.0,
        "{line}"
    );
    assert!(line.ends_with("L4 at 2400 s"), "{line}");
}

#[test]
fn the_list_names_scenarios_sweeps_and_policies() {
    let text = pool(&["--list"]).unwrap();
    for words in ["F8b", "M3-late", "S6", "static ", "chunk=0.1"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn bad_options_are_one_line_that_says_what_was_expected() {
    let hosts = Scratch::file("bad-hosts", "time_s,host,share\n0,a,x\n");
    let wrong = Scratch::file("bad-speeds", "1000 500\n400, x\n");
    let empty = Scratch::file("no-hosts", "vm,value\n");
    let speeds = Scratch::file("speeds-of-hosts", "vm,value\n0,7\n");
    let again = speeds.text().replacen('/', "//", 1);
    let stopped = Scratch::file("stopped", "time_s,host,share\n0,a,1\n9,a,0\n");
    for (arguments, expected) in [
        (
            &["--scenario", "F9"][..],
            "--scenario: unknown scenario \"F9\", did you mean \"F7\"? known: F6-1, F6-2",
        ),
        (&["--sweep", "S9"], "--sweep: unknown sweep \"S9\""),
        (&["--scenario", "F7", "--ranks", "3"], "cannot be used with"),
        (&["--scenario", "F7", "--iterations", "3"], "cannot be used with"),
        (
            &["--compare", "statik"],
            "--compare \"statik\": unknown strategy \"statik\", did you mean \"static\"?",
        ),
        (
            &["--compare", "static,chunk=0"],
            "--compare \"static,chunk=0\": strategy static: chunk=\"0\" is not a number from",
        ),
        (
            &["--compare", "leases,greedy"],
            "--compare \"greedy\": `greedy` balances arrays, but this is a pool of iterations: use one of static",
        ),
        (
            &["--iterations", "1e15", "--speed", "1e-6"],
            "--iterations 1e15: even the best schedule takes 3e19 s, expected 1e8 s at most",
        ),
        (
            &["--iterations", "1e15", "--speed", "1e6"],
            "--iterations 1e15: 1e10 chunks of 0.1 s to simulate, expected 1e9 at most",
        ),
        (
            &["--iterations", "1e15", "--speed", "1e9", "--cost", "lognormal:1"],
            "--iterations 1e15: 1e15 iterations of different costs to simulate, expected 1e9 at most",
        ),
        (&["--compare", "static,,"], "--compare \"static,,\": the strategy after static has no name"),
        (&["--ranks", "0"], "expected a whole number from 1 to 1000000"),
        (
            &["--ranks", "1025"],
            "--ranks 1025: each rank has a connection to each other here, expected 1024 at most",
        ),
        (&["--iterations", "1.5"], "expected a whole number from 0 to 1000000000000000"),
        (&["--speed", "-1"], "expected a number per second, from 1e-6"),
        (&["--speed", "0"], "expected a number per second, from 1e-6"),
        (
            &["--speeds", "1,2,3"],
            "--speeds 1,2,3: 3 speeds, expected one for each of the 4 ranks or 32 workers",
        ),
        (&["--speeds", wrong.text()], ":2: \"x\" is not a speed, expected a number from 0 to 1e12"),
        (&["--speeds", "/nowhere"], "--speeds /nowhere: neither a list as in 1000,2000 nor a file: No such"),
        (&["--speeds", "0,0,0,0"], "--speeds 0,0,0,0: all speeds stay 0 from some time on"),
        (&["--neighbour", "x"], "\"x\" is not a number from 0; expected RANK[.WORKER]"),
        (&["--neighbour", "1:9-5"], "\"9-5\" is not FROM-TO, expected two ascending"),
        (&["--neighbour", "1:2"], "\"2\" is not a duty, expected a number above 0 and up to 1"),
        (&["--neighbour", "1:2-3:1:1"], "expected RANK[.WORKER][:FROM-TO][:DUTY]"),
        (&["--neighbour", "1:random"], "or RANK[.WORKER]:random:SEED"),
        (&["--neighbour", "1:random:x"], "\"x\" is not a seed, expected a whole number from 0 to 2^64 - 1"),
        (&["--neighbour", "1:random:7:0.5"], "or RANK[.WORKER]:random:SEED"),
        (&["--neighbour", "4:random:7"], "--neighbour 4: expected a rank from 0 to 3"),
        (
            &["--speeds", "0,0,0,0", "--neighbour", "1:random:7"],
            "--speeds 0,0,0,0: all speeds stay 0 from some time on",
        ),
        (&["--neighbour", "4"], "--neighbour 4: expected a rank from 0 to 3"),
        (&["--neighbour", "3.8"], "--neighbour 3.8: expected a worker from 0 to 7"),
        (&["--rtt", "5"], "expected a time with its unit, as in 0.1ms"),
        (&["--cost", "normal"], "expected constant, or lognormal:SIGMA"),
        (&["--hosts-trace", "/nowhere.csv"], "/nowhere.csv: cannot be read: "),
        (&["--hosts-trace", hosts.text()], ":2: \"x\", expected a number from 0 to 10"),
        (&["--hosts-trace", empty.text()], "has no host, expected lines in one of the formats"),
        (&["--hosts-trace", stopped.text(), speeds.text()], "has speeds of hosts, /"),
        (
            &["--hosts-trace", stopped.text()],
            &format!("--hosts-trace {}: all speeds stay 0 from some time on", stopped.text()),
        ),
        (
            &["--hosts-trace", speeds.text(), &again],
            &format!("{again}: named twice, expected each file once"),
        ),
        (&["--trace-step", "5"], "--hosts-trace <FILE>"),
        (&["--scenario", "L7-0", "--json", "/nowhere/file"], "/nowhere/file: cannot be written: No such"),
    ] {
        refused(pool(arguments), expected);
    }
    assert!(caribou(&["simulate"]).unwrap_err().lines().count() == 1);
}

fn array(arguments: &[&str]) -> Result<String, String> {
    caribou(&[&["simulate", "array"], arguments].concat())
}

/// The columns of the row of a strategy: strategy, makespan, excess, saved, idle, syncs, moves, messages.
fn line_of(strategy: &str, text: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(&format!("{strategy} "))).expect("it is compared");
    line.split_whitespace().map(str::to_owned).collect()
}

/// Two ranks and 32 chunks of 1 ms.
const TWO_RANKS: [&str; 8] = ["--ranks", "2", "--workers", "1", "--chunks", "32", "--iterations", "100"];

#[test]
fn an_array_is_a_table_with_a_line_a_strategy() {
    let text = array(&[&TWO_RANKS[..], &["--neighbour", "1"]].concat()).unwrap();
    assert!(
        text.starts_with("period 20: 2 x 1 workers, 32 chunks, 100 iterations, ideal 2.133 s\n"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "\nexcess: over the ideal; saved: part of the time of `none`, at most 33.33 % (the ideal)\n\
             messages: between ranks, those of chunks and of syncs, and the chunks that move\n"
        ),
        "{text}"
    );
    let none = line_of("none", &text);
    assert_eq!(none[3..7], ["0.00", "1.6", "4", "0"], "{none:?}");
    // Under `none`, the first fifth of the run. Then 21 of 32 chunks on rank 0, and 11 on rank 1 that take 22 ms.
    let saved: f64 = line_of("refine", &text)[3].parse().unwrap();
    assert!((24.5..25.5).contains(&saved), "{text}");
    for strategy in ["refine-paper", "greedy"] {
        assert!(line_of(strategy, &text).len() >= 8, "{strategy}");
    }
}

#[test]
fn measured_hosts_and_core_neighbours_are_slow_clocks() {
    let hosts = Scratch::file("array-hosts", "vm,value\n0,1\n1,2\n2,2\n");
    let json = Scratch::file("array-json", "");
    let share_and_capacity = |more: &[&str]| {
        let arguments = [&TWO_RANKS[..], more, &["--compare", "refine", "--json", json.text()]].concat();
        array(&arguments).unwrap();
        let sync = &read_json(&json)[0]["outcomes"][0]["syncs"][0];
        [sync["share"][0].as_f64().unwrap(), sync["capacity"][0].as_f64().unwrap()]
    };
    let near = |[share, capacity]: [f64; 2], expected: [f64; 2]| {
        assert!(
            (share - expected[0]).abs() < 1e-3 && (capacity - expected[1]).abs() < 1e-3,
            "{share} {capacity}"
        );
    };
    near(share_and_capacity(&["--hosts-trace", hosts.text()]), [1.0, 0.5]);
    near(share_and_capacity(&["--neighbour", "0", "--beside", "core"]), [1.0, 0.47]);
    near(share_and_capacity(&["--neighbour", "0"]), [0.5, 0.5]);
}

#[test]
fn files_of_an_array_say_the_same_as_the_table() {
    let [json, csv, svg] = ["json", "csv", "svg"].map(|kind| Scratch::new(&format!("array.{kind}")));
    let files = ["--json", json.text(), "--csv", csv.text(), "--plot", svg.text()];
    let more = ["--cost", "hot-spot:3", "--compare", "none,refine"];
    let text = array(&[&TWO_RANKS[..], &more, &files].concat()).unwrap();
    let read = read_json(&json);
    assert_eq!(read[0]["chunks"], 32);
    assert_eq!(read[0]["outcomes"][1]["iteration_times_s"].as_array().unwrap().len(), 100);
    let lines: Vec<String> = csv.read().lines().map(str::to_owned).collect();
    assert!(
        lines[0]
            .starts_with("scenario,policy,ranks,workers,iterations,ideal_s,makespan_s,excess_percent,saved")
    );
    assert!(lines[2].starts_with("period 20,refine,2,2,100,1.6,") && lines.len() == 3, "{lines:?}");
    assert_eq!(lines[2].split(',').nth(11), Some(line_of("refine", &text)[6].as_str()), "{lines:?}");
    let text = svg.read();
    for words in [
        "<svg",
        "iteration",
        "time (s)",
        "none: ",
        "refine: ",
        "period 20: 2 x 1 workers, 32 chunks, 100 iterations",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert!(!text.contains("described"), "{text}");
}

#[test]
fn bad_options_of_an_array_are_one_line() {
    for (arguments, expected) in [
        (&["--scenario", "R9"][..], "--scenario: unknown scenario \"R9\", did you mean \"R3\"?"),
        (&["--scenario", "R3", "--ranks", "3"], "cannot be used with"),
        (&["--scenario", "R3", "--period", "3"], "cannot be used with"),
        (&["--compare", "leases"], "`leases` balances pools, but this is an array of chunks"),
        (&["--cost", "hot-spot:x"], "expected hot-spot:K with a whole number"),
        (&["--cost", "drifts"], "expected one of constant, lognormal:SIGMA, drift:ITERATIONS"),
        (&["--cost", "drift"], "expected drift:ITERATIONS with a whole number from 1"),
        (&["--cost", "walk:0.1", "--iterations", "1e6"], "--cost walk: 5e8 costs to keep"),
        (
            &["--cost", "recorded:/nowhere/data"],
            "--cost recorded:/nowhere/data: /nowhere cannot be read: No such",
        ),
        (&["--period", "1,x"], "'x' for '--period"),
        (&["--cost", "drift:0"], "expected drift:ITERATIONS with a whole number from 1"),
        (&["--chunks", "0"], "expected a whole number from 1 to 50000000"),
        (&["--ranks", "1e6"], "--chunks: 128000000 chunks, 16 for each worker, expected 50000000 at most"),
        (&["--ranks", "1e6", "--workers", "20"], "--workers 20: 20000000 workers on 1000000 ranks, expected"),
        (
            &["--ranks", "1e6", "--workers", "1", "--chunks", "1", "--period", "1"],
            "--period 1: figures of each rank are kept at each sync, 5e8, expected 1e8 at most",
        ),
        (&["--link-bandwidth", "0"], "expected a number per second, from 1e-6"),
        (&["--host-bandwidth", "x"], "expected a number per second, from 1e-6"),
        (&["--ranks-per-host", "0"], "expected a whole number from 1 to 1000000"),
        (&["--message-bytes", "-1"], "expected a whole number from 0 to 1000000000000"),
        (&["--message-cpu", "5"], "expected a time with its unit, as in 0.1ms"),
        (&["--decision-cost", "much"], "expected measured, or a time up to 1s for each chunk, as in 50ns"),
        (&["--time-slice", "4"], "expected a time with its unit, as in 0.1ms"),
        (&["--noise", "5%"], "expected a number from 0 to 1, as in 0.05"),
        (&["--iterations", "1e9"], "iterations of chunks to simulate, expected 1e9 at most"),
        (&["--bandwidth", "1e-6"], "messages and the costs of the runtime may take"),
        (&["--costs", "x.toml", "--message-cpu", "1us"], "cannot be used with '--message-cpu"),
        (&["--costs", "x.toml", "--decision-cost", "1us"], "cannot be used with '--decision-cost"),
        (&["--speeds", "0,0,0,0"], "all speeds stay 0 from some time on"),
    ] {
        refused(array(arguments), expected);
    }
}

#[test]
fn many_ranks_and_all_overheads_can_be_simulated() {
    let text =
        array(&["--ranks", "10000", "--workers", "1", "--chunks", "20000", "--iterations", "4"]).unwrap();
    assert!(text.starts_with("period 20: 10000 x 1 workers, 20000 chunks, 4 iterations"), "{text}");
    let column = |more: &[&str], place: usize| -> f64 {
        let cluster = ["--neighbour", "1", "--compare", "refine", "--csv"];
        let csv = Scratch::new("overheads.csv");
        array(&[&TWO_RANKS[..], &cluster, &[csv.text()], more].concat()).unwrap();
        csv.read().lines().nth(1).unwrap().split(',').nth(place).unwrap().parse().unwrap()
    };
    let makespan = |more: &[&str]| column(more, 6);
    let free = makespan(&[]);
    for more in [
        &["--link-bandwidth", "1e7"][..],
        &["--host-bandwidth", "1e7", "--ranks-per-host", "2"],
        &["--link-bandwidth", "1e8", "--message-bytes", "1e6"],
        &["--message-cpu", "100us"],
        &["--decision-cost", "1ms"],
    ] {
        assert!(makespan(more) > free + 0.01, "{more:?}");
    }
    assert!((makespan(&["--time-slice", "4ms"]) / free - 1.0).abs() < 0.2, "the shares are the same");
    let messages = |seed| column(&["--noise", "0.2", "--seed", seed], 12) as u64;
    assert_eq!(messages("1"), messages("1"));
    assert_ne!(messages("1"), messages("2"), "chunks are elsewhere");
    assert!(makespan(&["--decision-cost", "measured"]) > 0.0);
}

/// A folder with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> Scratch {
    let folder = Scratch::new(&format!("recorded-{name}"));
    fs::create_dir(folder.path()).unwrap();
    files.iter().for_each(|(file, content)| fs::write(folder.join(file), content).unwrap());
    folder
}

/// Two ranks with three chunks and one. The phases take 0.3 s and 0.6 s.
const RECORDED: [(&str, &str); 2] =
    [("r.0.vom", "0,1,0.1\n0,2,0.1\n0,3,0.1\n1,1,0.3\n1,2,0.3\n"), ("r.1.vom", "0,9,0.1\n1,9,0.2\n")];

#[test]
fn recorded_loads_are_run_as_they_were_recorded() {
    let folder = folder("run", &RECORDED);
    let run = |cost: &str, more: &[&str]| {
        array(
            &[
                &["--cost", &format!("recorded:{}", folder.join(cost)), "--period", "0", "--compare", "none"],
                more,
            ]
            .concat(),
        )
        .unwrap()
    };
    let text = run("r", &[]);
    assert!(text.starts_with("period 0: 2 x 1 workers, 4 chunks, 2 iterations, ideal 0.6000 s\n"), "{text}");
    let seconds = |text: &str| line_of("none", text)[1].clone();
    assert_eq!(seconds(&run("r", &["--exchange", "none"])), "0.9000");
    assert_eq!(seconds(&run("r:10", &["--exchange", "none"])), "9.000");
    assert_eq!(seconds(&run("r", &["--exchange", "none", "--iterations", "1"])), "0.3000");
    assert_eq!(
        seconds(&run("r", &["--exchange", "none", "--iterations", "3"])),
        "1.200",
        "the first phase again"
    );
    assert_eq!(seconds(&run("r", &["--exchange", "none", "--speeds", "0.5,1"])), "1.800");
    assert_eq!(run("r", &["--ranks", "2", "--chunks", "4"]), text);
    let other = run("r", &["--ranks", "4", "--exchange", "none"]);
    assert!(other.starts_with("period 0: 4 x 1 workers, 4 chunks, 2 iterations"), "{other}");
    assert_eq!(seconds(&other), "0.4000", "each rank has one chunk: 0.1 + 0.3 s");
}

#[test]
fn recorded_sizes_are_those_of_chunks_that_move() {
    let phase = |id: u32, tasks: &[(u32, u64)]| {
        let task = |(id, bytes): &(u32, u64)| {
            let entity = format!(r#"{{"type": "object", "id": {id}, "home": 0, "migratable": true}}"#);
            let attributes = format!(r#"{{"state_bytes": {bytes}}}"#);
            format!(
                r#"{{"entity": {entity}, "node": 0, "resource": "cpu", "time": 1.0, "attributes": {attributes}}}"#
            )
        };
        let tasks: Vec<String> = tasks.iter().map(task).collect();
        format!(r#"{{"id": {id}, "tasks": [{}]}}"#, tasks.join(", "))
    };
    let file = |tasks: &[(u32, u64)]| {
        let phases: Vec<String> = (0..30).map(|id| phase(id, tasks)).collect();
        format!(r#"{{"type": "LBDatafile", "phases": [{}]}}"#, phases.join(", "))
    };
    let sized = [(1, 100_000_000), (2, 300_000_000), (3, 200_000_000)];
    let sizes = folder("sizes", &[("r.0.json", &file(&sized)), ("r.1.json", &file(&[]))]);
    let unsized_tasks = sized.map(|(id, _)| (id, 1));
    let none = folder("no-sizes", &[("r.0.json", &file(&unsized_tasks)), ("r.1.json", &file(&[]))]);
    let run = |folder: &Scratch, more: &[&str]| {
        let cost = format!("recorded:{}", folder.join("r"));
        let options = ["--compare", "greedy", "--period", "1", "--bandwidth", "5e7", "--cost", &cost];
        line_of("greedy", &array(&[&options, more].concat()).unwrap())
    };
    let mean = run(&sizes, &[]);
    assert_eq!(mean, run(&sizes, &["--state-bytes", "2e8"]));
    assert_ne!(mean, run(&sizes, &["--state-bytes", "524288"]));
    assert_eq!(run(&none, &[]), run(&none, &["--state-bytes", "524288"]));
}

#[test]
fn options_and_files_that_contradict_recorded_loads_are_one_line() {
    let good = folder("good", &RECORDED);
    let gap = folder("gap", &[("r.0.vom", "0,1,1"), ("r.2.vom", "0,2,1")]);
    let both = folder("both", &[("r.0.vom", "0,1,1"), ("r.0.json", "{}")]);
    let damaged = folder("damaged", &[("r.0.vom", "0,1,1\n0,x,1\n")]);
    let no_json = folder("no-json", &[("r.0.json", "0,1,1")]);
    let cost = |folder: &Scratch, stem| format!("recorded:{}", folder.join(stem));
    for (folder, more, expected) in [
        (&good, &["--chunks", "3"][..], "--chunks 3: the recorded loads are of 4 chunks, expected 4 or none"),
        (&good, &["--speeds", "1,2,3"], "3 speeds, expected one for each of the 2 ranks or 2 workers"),
        (&gap, &[], "/r.1.vom is missing, expected a file for each rank from 0 to 2"),
        (&both, &[], "/r.RANK.json are both there, expected one kind"),
        (&damaged, &[], "/r.0.vom:2: \"x\" is no object, expected a whole number"),
        (
            &no_json,
            &[],
            "/r.0.json: neither JSON (trailing characters at line 1 column 2) nor compressed by brotli",
        ),
    ] {
        refused(array(&[&["--cost", &cost(folder, "r")], more].concat()), expected);
    }
    let none = array(&["--cost", &cost(&good, "s")]).unwrap_err();
    assert!(none.contains("/s: no file /") && none.ends_with("/s.0.json"), "{none}");
}

#[test]
fn several_periods_end_with_a_table_of_them() {
    let more =
        ["--compare", "none,refine", "--period", "5,20,auto", "--cost", "ramp:50", "--iterations", "200"];
    let text = array(&[&TWO_RANKS[..4], &more].concat()).unwrap();
    assert!(text.starts_with("period 5: 2 x 1 workers"), "{text}");
    let heads = text.lines().filter(|line| line.split_whitespace().eq(["strategy", "5", "20", "auto"]));
    assert_eq!(heads.count(), 2, "{text}");
    for words in
        ["\nshortest at syncs: refine with period ", "\nshortest in windows: refine with period auto, "]
    {
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(text, array(&[&TWO_RANKS[..4], &more].concat()).unwrap(), "the same options, the same runs");
}

#[test]
fn the_predictor_is_told() {
    let json = Scratch::file("array-predictor.json", "");
    let more = ["--iterations", "300", "--period", "10", "--cost", "alternate:10", "--compare", "refine"];
    let text = array(&[&TWO_RANKS[..4], &more, &["--json", json.text()]].concat()).unwrap();
    assert_eq!(line_of("refine", &text).last().map(String::as_str), Some("seasonal"), "{text}");
    let outcome = &read_json(&json)[0]["outcomes"][0];
    assert_eq!([&outcome["predictor"], &outcome["syncs"][0]["predictor"]], ["seasonal", "smoothing"]);
}

#[test]
fn scenarios_of_arrays_are_listed() {
    let text = array(&["--list"]).unwrap();
    for words in ["demo ", "R6c ", "spot-20 ", "refine-paper "] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn arrays_run_on_public_host_traces() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/planetlab/20110303.csv");
    if !file.exists() {
        println!("skip: ../shared/data/planetlab/20110303.csv not found");
        return;
    }
    let cluster =
        ["--ranks", "8", "--workers", "1", "--iterations", "100", "--hosts-trace", file.to_str().unwrap()];
    let text = array(&[&cluster[..], &["--trace-step", "1", "--compare", "none,refine"]].concat()).unwrap();
    let saved: f64 = line_of("refine", &text)[3].parse().unwrap();
    assert!(saved > 5.0, "{text}");
}

#[test]
fn the_help_for_supersteps_speaks_of_units_and_knows_how_long_a_message_takes() {
    let help = caribou(&["simulate", "steps", "--help"]).unwrap();
    assert!(help.contains("Units per second of each rank's workers"), "{help}");
    assert!(!help.to_lowercase().contains("iteration"), "{help}");
    assert!(help.contains("[default: 100us]"), "{help}");
}

#[test]
fn a_program_in_supersteps_is_a_table_a_file_and_a_plot() {
    let steps = |arguments: &str| {
        let arguments: Vec<&str> =
            ["simulate", "steps"].into_iter().chain(arguments.split_whitespace()).collect();
        caribou(&arguments)
    };
    let json = Scratch::file("steps.json", "");
    let plot = Scratch::file("steps.svg", "");
    let cluster = "--ranks 2 --workers 1 --speeds 1000,3000 --steps 40";
    let text = steps(&format!("{cluster} --compare equal,des --json {} --plot {}", json.text(), plot.text()))
        .unwrap();
    assert!(text.starts_with("described: 2 x 1 workers, 2000 units, 40 steps, ideal 20.00 s"), "{text}");
    // The slow worker has half of the units: a step takes 1 s. With a quarter of the units it takes half a second.
    assert_eq!(line_of("equal", &text)[1..3], ["40.00", "100.00"]);
    let des = line_of("des", &text);
    assert_eq!(des[5..7], ["1", "500"], "one division, of half of the slow one's units");
    let outcomes = read_json(&json);
    let division = &outcomes[0]["outcomes"][1]["divisions"][0];
    assert_eq!(division["units"], serde_json::json!([500, 1500]), "{outcomes}");
    assert!(plot.read().contains("how long each step took"));
    assert!(steps("--list").unwrap().contains("adaptive"));
    for (bad, words) in [
        ("--jitter 1ms", "--jitter: programs in supersteps have none"),
        ("--steps 1e12", "messages of 32 workers to simulate"),
        ("--steps 0", "expected a whole number from 1"),
        ("--units 1e12 --speed 1e-6", "--steps 5e2: even the best schedule takes"),
        ("--json same --csv same", "--json and --csv name the same file, same"),
        ("--compare leases", "leases"),
        ("--speeds 1000,0 --ranks 2 --workers 1", "--speeds 1000,0: a worker of speed 0 never ends a step"),
        ("--seed -1", "expected a whole number from 0 to 2^64 - 1"),
        ("--compare static,,", "--compare \"static,,\": the strategy after static has no name"),
    ] {
        refused(steps(bad), words);
    }
}

#[test]
fn an_array_whose_messages_take_too_long_is_refused() {
    let small = ["--ranks", "4", "--workers", "1", "--chunks", "16", "--compare", "none"];
    for (options, takes) in [
        (&["--message-bytes", "1e9", "--link-bandwidth", "1", "--iterations", "10"][..], "3.20e11"),
        (&["--message-cpu", "1e6s", "--iterations", "5000"], "3.20e11"),
        (&["--rtt", "1e6s", "--iterations", "40000"], "4.00e10"),
    ] {
        let words = format!("messages alone may take {takes} s, expected 1e9 s at most");
        refused(array(&[&small[..], options].concat()), &words);
    }
}
