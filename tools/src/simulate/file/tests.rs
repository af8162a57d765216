//! Tests `caribou simulate file` from files to output.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tests::{Scratch, caribou, exit_code_unread, refused};

/// Two hosts and 32 chunks of 1 ms.
const SMALL: &str = "\
name = \"small\"
[[hosts]]
count = 2
[network]
rtt = \"0.1ms\"
[[neighbours]]
host = 1
[program]
generator = \"stencil\"
chunks = 32
iterations = 100
[balance]
strategies = [\"none\", \"refine\"]
period = 20
";

fn simulate(text: &str, more: &[&str]) -> Result<String, String> {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let file = Scratch::file(&format!("scenario-{number}.toml"), text);
    let said = caribou(&[&["simulate", "file", file.text()], more].concat());
    said.map_err(|line| line.replace(file.text(), "cloud.toml"))
}

fn words(text: &str, line: &str) -> Vec<String> {
    let found = text.lines().find(|one| one.split_whitespace().next() == Some(line));
    found.unwrap_or_else(|| panic!("{line}: {text}")).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_file_and_options_that_say_the_same_have_the_same_results() {
    let by_file = simulate(SMALL, &[]).unwrap();
    let options = "simulate array --ranks 2 --workers 1 --chunks 32 --iterations 100 --neighbour 1 --compare none,refine";
    let by_options = caribou(&options.split(' ').collect::<Vec<_>>()).unwrap();
    assert!(
        by_file.starts_with("small: 2 x 1 workers, 32 chunks, 100 iterations, ideal 2.133 s\n"),
        "{by_file}"
    );
    let rest = |text: &str| text.split_once(": ").unwrap().1.to_owned();
    assert_eq!(rest(&by_file), rest(&by_options));
    let costly = SMALL.replace("[program]", "[costs]\nmessage_cpu = \"100us\"\n[program]");
    let costly = words(&simulate(&costly, &[]).unwrap(), "refine")[1].parse::<f64>().unwrap();
    assert!(costly > words(&by_file, "refine")[1].parse::<f64>().unwrap() + 0.01);
}

#[test]
fn the_example_can_be_run() {
    let example = caribou(&["simulate", "file", "--example"]).unwrap();
    let text = simulate(&example, &[]).unwrap();
    assert!(text.starts_with("cloud: 8 x 2 workers, 256 chunks, 500 iterations"), "{text}");
    let lines: String = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(line) if line.starts_with('[') || line.contains(" = ") => format!("{line}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let all = simulate(&lines, &["--check"]).expect_err("the trace does not exist");
    assert!(all.contains("neighbours[3].trace: ") && all.contains("20110303.csv: cannot be read"), "{all}");
}

#[test]
fn files_are_written_even_if_nobody_reads_the_table() {
    let (file, csv, dir) =
        (Scratch::file("unread.toml", SMALL), Scratch::new("unread.csv"), Scratch::new("unread"));
    let files = ["simulate", "file", file.text(), "--csv", csv.text(), "--trace", dir.text()];
    assert_eq!(exit_code_unread(&files), 0);
    assert_eq!(csv.read().lines().count(), 3);
    assert!(caribou(&["trace", "check", &dir.join("refine")]).unwrap().starts_with("sound: "));
    let options = "simulate pool --iterations 1e4 --compare static --csv";
    assert_eq!(exit_code_unread(&options.split(' ').chain([csv.text()]).collect::<Vec<_>>()), 0);
    assert!(csv.read().contains(",static,"), "{}", csv.read());
}

#[test]
fn fields_are_swept_in_all_combinations() {
    let csv = Scratch::new("sweep.csv");
    let svg = Scratch::new("sweep.svg");
    let sweep = "[sweep]\n\"program.chunks\" = [16, 32]\nbalance.period = [10, 20, \"50ms\"]\n";
    let files = ["--csv", csv.text(), "--plot", svg.text()];
    let text = simulate(&format!("{SMALL}{sweep}"), &files).unwrap();
    assert!(text.contains("small: 6 combinations of program.chunks, balance.period\nprogram.chunks  balance.period  strategy"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" refine ")).count(), 6, "{text}");
    let alone = simulate(SMALL, &[]).unwrap();
    let row = text.lines().find(|line| line.contains("32              20  refine")).expect(&text);
    assert_eq!(row.split_whitespace().skip(2).collect::<Vec<_>>(), words(&alone, "refine"));
    assert!(csv.read().starts_with("scenario,program.chunks,balance.period,policy,"));
    assert_eq!(csv.read().lines().count(), 13);
    let svg = svg.read();
    assert!(svg.contains("program.chunks 16") && svg.contains("balance.period"), "{svg}");
    let counts =
        simulate(SMALL, &["--set", "sweep.hosts[0].count=[1, 2]"]).expect_err("a neighbour of host 1");
    assert!(counts.to_string().contains("neighbours[0].host: 1, expected a host from 0 to 0"), "{counts}");
    let counts = simulate(SMALL, &["--set", "sweep.\"hosts[0].count\"=[2, 3]"]).unwrap();
    assert!(counts.contains("2 combinations of hosts[0].count"), "{counts}");
    let seeds = SMALL
        .replace("[program]", "[program]\ncost = \"lognormal:1\"")
        .replace("name", "seeds = [1, 2, 3]\nname");
    let text = simulate(&seeds, &["--set", "sweep.hosts.count=[2, 4]"]).unwrap();
    assert_eq!(words(&text, "4")[1..2], ["none"], "{text}");
    assert_eq!(words(&text, "4").last().map(String::as_str), Some("3"), "{text}");
}

#[test]
fn a_picture_of_a_sweep_has_the_ideal_and_axes_that_suit_each_panel() {
    let svg = Scratch::new("panels.svg");
    let picture = |sweep: &str| {
        let text = format!("{SMALL}[sweep]\n{sweep}");
        simulate(&text, &["--plot", svg.text()]).unwrap();
        svg.read()
    };
    let own = picture("\"program.iterations\" = [10, 100]\n\"program.chunks\" = [16, 32, 256]\n");
    assert_eq!(own.matches(">ideal<").count(), 2, "{own}");
    assert_eq!(own.matches(">program.chunks, logarithmic<").count(), 2, "{own}");
    assert_eq!([own.matches(">20<").count(), own.matches(">2.0<").count()], [1, 1], "{own}");
    let shared = picture("\"network.rtt\" = [\"10us\", \"20us\"]\n\"balance.period\" = [10, 50]\n");
    assert_eq!(shared.matches(">balance.period (iterations)<").count(), 2, "{shared}");
    assert_eq!(shared.matches(">3.0<").count(), 2, "{shared}");
    let seeds = picture("seed = [1, 2]\n\"balance.period\" = [10, 50]\n");
    assert!(seeds.contains(">time (s), mean of 2 seeds<"), "{seeds}");
}

#[test]
fn a_simulated_array_writes_a_sound_trace() {
    let dir = Scratch::new("simulated-trace");
    let text = SMALL
        .replace("count = 2", "count = 2\nvcpus = 4\nranks = 2")
        .replace("host = 1", "host = 1\nto = \"0.2s\"");
    simulate(&text, &["--trace", dir.text(), "--set", "balance.period=[10, \"20ms\"]"]).expect_err("a list");
    let said =
        simulate(&text, &["--trace", dir.text(), "--set", "sweep.balance.period=[10, \"20ms\"]"]).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains(": a trace, ")).count(), 4, "{said}");
    for (run, moves) in [
        ("balance.period=10+none", false),
        ("balance.period=10+refine", true),
        ("balance.period=20ms+refine", true),
    ] {
        let trace = dir.join(run);
        let checked = caribou(&["trace", "check", &trace]).unwrap();
        assert!(checked.starts_with("sound: "), "{run}: {checked}");
        let summary = caribou(&["trace", "summary", &trace]).unwrap();
        assert!(
            summary.contains("4 ranks, 8 workers") && summary.contains("handlers lost "),
            "{run}: {summary}"
        );
        assert_eq!(summary.lines().any(|line| line.starts_with("depart")), moves, "{run}: {summary}");
    }
    refused(
        simulate(
            &text,
            &["--trace", &dir.join("balance.period=10+none"), "--set", "balance.strategies=none"],
        ),
        "balance.period=10+none has a trace already, expected another directory",
    );
    let advice = caribou(&["advise", &dir.join("balance.period=10+none")]).unwrap();
    assert!(
        advice.contains("CARIBOU_LB=refine") && !advice.contains("\n  CARIBOU_LB"),
        "no program: {advice}"
    );
    let loads =
        format!("[program]\ngenerator = \"recorded\"\nloads = \"{}\"\n", dir.join("balance.period=10+none"));
    let again = simulate(&loads, &["--set", "balance.strategies=none,refine"]).unwrap();
    assert!(again.contains("4 x 1 workers, 32 chunks, 9 iterations"), "its syncs are phases: {again}");
}

#[test]
fn traces_of_runs_with_like_values_are_apart() {
    let dir = Scratch::new("simulated-like");
    let sweep = "[sweep]\n\"neighbours[0].host\" = [\"a b\", \"a_b\"]\n[[hosts]]\nname = \"a b\"\n[[hosts]]\nname = \"a_b\"\n";
    let like = format!("{}{sweep}", SMALL.replace("iterations = 100", "iterations = 2"));
    let said = simulate(&like, &["--trace", dir.text(), "--set", "balance.strategies=none"]).unwrap();
    let traces: std::collections::BTreeSet<&str> =
        said.lines().filter_map(|line| line.split_once(": a trace, ")).map(|(dir, _)| dir).collect();
    assert_eq!(traces.len(), 2, "{said}");
    let file = Scratch::file("no-folder", "");
    // The fault is told before the table of results.
    refused(simulate(SMALL, &["--trace", file.text()]), "no-folder");
}

#[test]
fn the_costs_of_a_machine_are_read() {
    let costs = Scratch::file("costs.toml", "[costs]\niteration_ns = 1e6\n");
    let said = |text: &str| words(&simulate(text, &[]).unwrap(), "none")[1].parse::<f64>().unwrap();
    let (free, given) = (said(SMALL), format!("costs = \"{}\"\n{SMALL}", costs.text()));
    assert!(said(&given) > 1.9 * free, "an iteration costs a millisecond more");
    let long = given.replace("costs = ", "costs.calibration = ");
    assert!((said(&long) - said(&given)).abs() < 1e-9);
    let slow = Scratch::file("slow.toml", "[costs]\nreload_byte_ns = 1e6\n");
    let large = SMALL.replace("chunks = 32", "chunks = 32\nstate_bytes = 1e12");
    refused(
        simulate(&format!("costs = \"{}\"\n{large}", slow.text()), &[]),
        "program.iterations: messages and the costs of the runtime may take 6.40e10 s, expected 1e9 s at most",
    );
    let both = format!("costs.decision = \"1us\"\n{long}");
    refused(
        simulate(&both, &[]),
        "cloud.toml:1: costs.decision: the calibration has it too, expected one of them",
    );
    refused(
        simulate(&given.replace("costs.toml", "cost.toml"), &[]),
        "cost.toml: cannot be read: No such file",
    );
}

#[test]
fn ranks_may_share_too_few_vcpus() {
    let text =
        SMALL.replace("count = 2", "vcpus = 2\nranks = 4").replace("host = 1", "host = 0\nduty = 1e-9");
    let text = simulate(&text, &[]).unwrap();
    assert_eq!(words(&text, "none")[1], "1.600", "four ranks on two vCPUs take as long as two: {text}");
}

#[test]
fn pools_and_supersteps_are_described_too() {
    let cluster = "[[hosts]]\ncount = 2\nvcpus = 2\nspeed = [1000, 500]\n";
    let pool = simulate(
        &format!(
            "{cluster}[program]\ngenerator = \"pool\"\niterations = 4e5\n[balance]\nstrategies = \"static\"\n"
        ),
        &[],
    );
    assert_eq!(words(&pool.unwrap(), "static")[1], "200.0");
    let steps = format!(
        "{cluster}[program]\ngenerator = \"supersteps\"\nsteps = 40\n[balance]\nstrategies = [\"equal\", \"des\"]\n"
    );
    let text = simulate(&steps, &[]).unwrap();
    assert!(text.starts_with("caribou-test"), "the name of the file: {text}");
    assert_eq!(words(&text, "equal")[1], "80.00");
}

#[test]
fn tasks_have_a_length_and_a_pattern() {
    let text = "[[hosts]]\ncount = 2\nspeed = [1, 0.5]\n[program]\ngenerator = \"task-bench\"\npattern = \"no_comm\"\n\
                chunks = 4\niterations = 10\ntask = \"10ms\"\n[balance]\nstrategies = \"none\"\n";
    assert_eq!(words(&simulate(text, &[]).unwrap(), "none")[1], "0.4000", "two tasks of 20 ms, ten times");
    let messages = |pattern: &str| {
        let text = text.replace("no_comm", pattern);
        words(&simulate(&text, &[]).unwrap(), "none")[7].parse::<u64>().unwrap()
    };
    assert_eq!(
        [messages("stencil_1d"), messages("stencil_1d_periodic"), messages("all_to_all")],
        [18, 36, 72]
    );
}

#[test]
fn mistakes_in_a_file_are_one_line() {
    let shares = Scratch::file("shares.csv", "time_s,host,share\n0,a,1\n0,b,0.5\n");
    let planetlab = Scratch::file("planetlab.csv", "a,0,50\nb,10,20\n");
    let trace = |more: &str, file: &Scratch| format!("[[neighbours]]\ntrace = \"{}\"\n{more}\n", file.text());
    for (from, to, expected) in [
        ("chunks = 32", "chunk = 32", "cloud.toml:10: program.chunk: unknown field, did you mean chunks?".to_owned()),
        ("chunks = 32", "chunks = \"x\"", "cloud.toml:10: program.chunks: \"x\", expected a whole number from 1 to".into()),
        ("chunks = 32", "chunks = 1.5", "cloud.toml:10: program.chunks: 1.5, expected a whole number".into()),
        ("chunks = 32", "units = 32", "cloud.toml:10: program.units: a field of supersteps, but the generator is stencil, which has chunks".into()),
        ("\"stencil\"", "\"stencl\"", "cloud.toml:9: program.generator: unknown value \"stencl\", did you mean \"stencil\"?".into()),
        ("generator = \"stencil\"", "", "cloud.toml:8: program.generator: it is missing, expected one of array, stencil".into()),
        ("host = 1", "host = 9", "cloud.toml:7: neighbours[0].host: 9, expected a host from 0 to 1".into()),
        ("host = 1", "host = \"smal\"", "cloud.toml:7: neighbours[0].host: \"smal\", expected a host from 0 to 1; no [[hosts]] has a name".into()),
        ("host = 1", "host = 1\nvcpu = 1", "cloud.toml:8: neighbours[0].vcpu: 1, expected a vCPU from 0 to 0".into()),
        ("host = 1", "random = 1\nfrom = \"2s\"", "cloud.toml:8: neighbours[0].from: neighbours at random have no times".into()),
        ("host = 1", "from = \"2s\"\nto = \"1s\"", "cloud.toml:8: neighbours[0].to: 1 s, expected a time after `from`, which is 2 s".into()),
        ("host = 1", "duty = 2", "cloud.toml:7: neighbours[0].duty: 2, expected a number above 0".into()),
        ("host = 1", "step = \"1s\"", "cloud.toml:7: neighbours[0].step: it is of a trace".into()),
        ("\"0.1ms\"", "5", "cloud.toml:5: network.rtt: 5, expected a time with its unit, as in 0.1ms".into()),
        ("count = 2", "count = 2\nvcpus = 3\nranks = 2", "cloud.toml:5: hosts[0].ranks: 2 ranks on 3 vCPUs".into()),
        ("count = 2", "count = 2\nspeed = [1, 2, 3]", "cloud.toml:4: hosts[0].speed: 3 speeds, expected one for each of the 2 hosts or 2 vCPUs".into()),
        ("count = 2", "count = 2\nspeed = [0, 0]", "cloud.toml:2: hosts: all speeds stay 0 from some time on".into()),
        ("\"refine\"]", "\"refin\"]", "cloud.toml:13: balance.strategies: \"refin\": unknown strategy \"refin\", did you mean \"refine\"?".into()),
        ("\"refine\"]", "\"leases\"]", "cloud.toml:13: balance.strategies: \"leases\": `leases` balances pools".into()),
        ("period = 20", "period = \"often\"", "cloud.toml:14: balance.period: \"often\", expected auto".into()),
        ("\"stencil\"\nchunks = 32", "\"pool\"", "cloud.toml:13: balance.period: simulated pools do not have it".into()),
        ("[program]", "[costs]\ndecision = 7\n[program]", "cloud.toml:9: costs.decision: 7, expected measured, or a time".into()),
        ("[program]", "[sweep]\n\"program.chunks\" = []\n[program]", "cloud.toml:9: program.chunks: an empty list, expected the values to try".into()),
        ("[program]", "[sweep]\nprogram.chunk = [1]\n[program]", "cloud.toml:9: program.chunk: unknown field, did you mean chunks?".into()),
        ("[program]", "[sweep]\nseeds = [[1], [2]]\n[program]", "cloud.toml:9: sweep.seeds: it cannot be swept, expected a field".into()),
        ("[program]", "[sweep]\n\" name\" = [\"a\"]\n[program]", "cloud.toml:9: sweep.name: it cannot be swept".into()),
        ("[program]", "[sweep]\nsweep.program.chunks = [1]\n[program]", "cloud.toml:9: sweep.sweep.program.chunks: it cannot be swept".into()),
        ("name = \"small\"", "seeds = [1, 2]\nsweep.seed = [3, 4]", "cloud.toml:2: sweep.seed: the file has `seeds` too, expected one of them".into()),
        ("\"stencil\"\nchunks = 32\niterations = 100", "\"task-bench\"\npattern = \"all_to_all\"\nchunks = 7000\niterations = 1000", "program.iterations: 5e10 messages and iterations of chunks to simulate, expected 9e9 at most".into()),
        ("[program]", "[sweep]\nprogram.chunks = 5\n[program]", "cloud.toml:9: program.chunks: a number, expected a list".into()),
        ("[program]", &trace("format = \"cloudwatch\"", &planetlab), "planetlab.csv:1: begins with \"a,0,50\", which is planetlab, expected cloudwatch: `timestamp,value`".into()),
        ("[program]", &trace("format = \"planetlb\"", &planetlab), "neighbours[1].format: unknown value \"planetlb\", did you mean \"planetlab\"?".into()),
        ("[program]", &trace("from = \"1s\"", &shares), "neighbours[1].from: a trace has its own times".into()),
        ("name = \"small\"", "name = 5", "cloud.toml:1: name: 5, expected a text in quotes".into()),
        ("count = 2", "count = true", "cloud.toml:3: hosts[0].count: \"true\", expected a whole number from 1".into()),
        ("count = 2", "count = 2\ncount = 3", "cloud.toml:4: count: given twice, expected once".into()),
        ("count = 2", "count = 2\nspeed = [\"x\"]", "cloud.toml:4: hosts[0].speed: \"x\", expected a number from 0 to 1e12".into()),
        ("period = 20", "period = true", "cloud.toml:14: balance.period: \"true\", expected auto".into()),
        ("period = 20", "period = \"0s\"", "cloud.toml:14: balance.period: \"0s\", expected auto".into()),
        ("\"refine\"]", "\"none\"]", "cloud.toml:13: balance.strategies: \"none\" is there twice, expected each policy once".into()),
        ("name = \"small\"", "seeds = [1, 2, 1]", "cloud.toml:1: seeds: 1 is there twice, expected each value once".into()),
        ("name = \"small\"", "seeds = [1, \"x\"]", "cloud.toml:1: seeds[1]: \"x\", expected a whole number from 0".into()),
        ("[program]", "[sweep]\n\"program.chunks\" = [64, 32, 64.0]\n[program]", "cloud.toml:9: sweep.program.chunks: 64.0 is there twice, expected each value once".into()),
        ("count = 2", "name = \"a\"\n[[hosts]]\nname = \"a\"", "cloud.toml:5: hosts[1].name: \"a\" is the name of other hosts too, expected another name".into()),
        ("iterations = 100", "iterations = 100\nwork = 0", "cloud.toml:12: program.work: 0, expected a number of units from 1e-6".into()),
        ("iterations = 100", "iterations = 100\nwork = 5\ntask = \"1ms\"", "cloud.toml:12: program.work: `task` is the time of each chunk, and `work` the sum of all, expected one of them".into()),
        ("count = 2", "count = 2\nspeed = [1e-9, 1]", "cloud.toml:4: hosts[0].speed: an equal part of the work takes 2e12 s at speed 0.000000001, expected 1e8 s at most".into()),
        ("iterations = 100", "iterations = 1e9", "cloud.toml:11: program.iterations: 3e10 iterations of chunks to simulate".into()),
    ] {
        let to = if to.starts_with("[[") { format!("{to}[program]") } else { to.to_owned() };
        let text = SMALL.replacen(from, &to, 1);
        assert_ne!(text, SMALL, "{from}");
        refused(simulate(&text, &["--check"]), &expected);
    }
    refused(
        simulate(SMALL, &["--set", "program.chunk=5"]),
        "--set program.chunk=5: program.chunk: unknown field, did you mean chunks?",
    );
    refused(
        simulate(SMALL, &["--set", "hosts[3].count=5"]),
        "--set hosts[3].count=5: [3]: there are 1, counted from [0]",
    );
    let pool = "[program]\ngenerator = \"pool\"\n";
    refused(simulate(pool, &[]), "cloud.toml: hosts: there are none, expected [[hosts]] with count");
    refused(simulate(&format!("seeds = 5\n{pool}"), &[]), "cloud.toml:1: seeds: a number, expected a list");
    refused(
        simulate(&format!("[hosts]\n{pool}"), &[]),
        "cloud.toml:1: hosts: a table, expected a list or [[tables]]",
    );
    for table in ["balance", "network", "program"] {
        let text = SMALL.replace(&format!("[{table}]"), &format!("[[{table}]]"));
        refused(
            simulate(&text, &[]),
            &format!("{table}: a list of tables, expected one table, with its name in single"),
        );
    }
    let costs = format!("costs = 5\n{SMALL}");
    refused(
        simulate(&costs, &[]),
        "cloud.toml:1: costs: 5, expected a table, or a file of caribou calibrate",
    );
    refused(caribou(&["simulate", "file", "/nowhere.toml"]), "/nowhere.toml: cannot be read: No such file");
}

#[test]
fn runs_with_too_many_changes_of_speed_are_refused_before_they_begin() {
    let slow = SMALL.replace("count = 2", "count = 2\nspeed = 1");
    let sliced = format!("{slow}[costs]\ntime_slice = \"10us\"\n");
    refused(
        simulate(&sliced.replace("iterations = 100", "iterations = 10000"), &["--check"]),
        "cloud.toml:17: costs.time_slice: 3e10 turns on vCPUs to simulate, expected 1e9 at most",
    );
    simulate(&sliced, &["--check"]).expect("half of the slices of an hour");
    let short =
        sliced.replace("host = 1", "host = 1\nto = \"1s\"").replace("iterations = 100", "iterations = 1e4");
    simulate(&short, &["--check"]).expect("a neighbour of a second");
    let crowded = slow.replace("count = 2", "count = 2\nranks = 2");
    refused(
        simulate(&crowded.replace("iterations = 100", "iterations = 1e6"), &["--check"]),
        "cloud.toml:4: hosts[0].ranks: 2e10 turns on vCPUs to simulate, expected 1e9 at most: fewer ranks, more vCPUs",
    );
    simulate(&crowded, &["--check"]).expect("turns of an hour");
    let random = slow.replace("host = 1", "random = 1").replace("count = 2", "count = 100000");
    refused(
        simulate(&random.replace("chunks = 32", "chunks = 100000"), &["--check"]),
        "cloud.toml:8: neighbours[0].random: 6e11 changes of speed to simulate, expected 1e10 at most",
    );
    let rows: String =
        (0..200_000).map(|at| format!("{at},a,{}\n", 0.5 + f64::from(at % 2) / 10.0)).collect();
    let shares = Scratch::file("many-shares.csv", format!("time_s,host,share\n{rows}"));
    let traced = SMALL.replace("host = 1", &format!("trace = \"{}\"", shares.text()));
    simulate(&traced, &["--check"]).unwrap();
    refused(
        simulate(
            &traced.replace("count = 2", "count = 100000").replace("chunks = 32", "chunks = 1e6"),
            &["--check"],
        ),
        "cloud.toml:7: neighbours[0].trace: 2e10 changes of speed to simulate, 199999 for each worker",
    );
}

#[test]
fn chunks_divide_the_work_of_the_program() {
    let time = |more: &str| {
        let text =
            SMALL.replace("iterations = 100", &format!("iterations = 100\nexchange = \"none\"\n{more}"));
        words(&simulate(&text.replace("stencil", "array"), &[]).unwrap(), "none")[1].parse::<f64>().unwrap()
    };
    assert!((time("work = 64") - 2.0 * time("")).abs() < 1e-3, "two units for each chunk instead of one");
    let coarse = SMALL.replace("chunks = 32", "chunks = 8\nwork = 32");
    let said = simulate(&coarse, &[]).unwrap();
    assert!(said.starts_with("small: 2 x 1 workers, 8 chunks, 100 iterations, ideal 2.133 s\n"), "{said}");
}

#[test]
fn faults_of_other_files_name_the_line_of_the_scenario() {
    let wrong = Scratch::file("wrong.toml", "[costs]\niteration_ns = \"x\"\n");
    let json = Scratch::file("wrong.0.json", "{}");
    let stem = json.text().trim_end_matches(".0.json");
    for (text, begin, end) in [
        (
            "costs = \"/nope.toml\"\n".to_owned(),
            "cloud.toml:1: costs.calibration: /nope.toml: cannot be read",
            "",
        ),
        (
            format!("costs = \"{}\"\n", wrong.text()),
            "cloud.toml:1: costs.calibration: ",
            ":2: costs.iteration_ns: \"x\", expected a number",
        ),
        (
            "costs.calibration = \"\"\n".to_owned(),
            "cloud.toml:1: costs.calibration: \"\", expected the name",
            "",
        ),
    ] {
        let line = simulate(&format!("{text}{SMALL}"), &["--check"]).unwrap_err();
        assert!(line.starts_with(begin) && line.contains(end), "{line:?} instead of {begin:?}");
    }
    for (loads, end) in [
        ("/nope", "/nope: no file /nope.0.vom or /nope.0.json"),
        ("", "an empty name, expected a trace, or the files"),
        (wrong.text(), "it is something else: a Caribou trace begins with"),
        (stem, ".0.json:1: no LB data of vt"),
    ] {
        let text = format!("[program]\ngenerator = \"recorded\"\nloads = \"{loads}\"\n");
        let line = simulate(&text, &["--check"]).unwrap_err();
        assert!(line.starts_with("cloud.toml:3: program.loads: ") && line.contains(end), "{line:?}");
    }
    for (trace, end) in
        [("", "\"\", expected the name of a file"), ("/nope", "/nope: cannot be read: No such file")]
    {
        let text = SMALL.replace("host = 1", &format!("trace = \"{trace}\""));
        refused(simulate(&text, &["--check"]), &format!("cloud.toml:7: neighbours[0].trace: {end}"));
    }
    let step = SMALL.replace("host = 1", "trace = \"x.csv\"\nstep = \"0s\"");
    refused(simulate(&step, &[]), "cloud.toml:8: neighbours[0].step: \"0s\", expected a time above 0s");
}

/// Values that some fields refuse.
const ODD: [&str; 22] = [
    "0",
    "-1",
    "1.5",
    "1e-9",
    "1e9",
    "1e18",
    "1e400",
    "nan",
    "inf",
    "true",
    "\"x\"",
    "\"\"",
    "\"0s\"",
    "\"1ns\"",
    "\"1e6s\"",
    "[]",
    "[1, 1]",
    "[[1]]",
    "[\"none\"]",
    "{ a = 1 }",
    "1979-05-27",
    "\"a\\nb\"",
];

#[test]
fn each_field_of_the_example_refuses_an_odd_value_in_one_line_of_plain_words() {
    let example = caribou(&["simulate", "file", "--example"]).unwrap();
    // A sweep with values of its own is in the comments; so is a trace that does not exist.
    let lines: Vec<&str> = example.lines().take_while(|line| !line.starts_with("# [sweep]")).collect();
    let (mut taken, mut refused) = (0, 0);
    for (number, line) in (1..).zip(&lines) {
        let Some((field, _)) = line.trim_start_matches("# ").split_once(" = ") else { continue };
        if line.starts_with("# ") && field != "work" {
            continue;
        }
        for value in ODD {
            let with = |(at, line): (usize, &&str)| {
                if at == number { format!("{field} = {value}") } else { (*line).to_owned() }
            };
            let text: Vec<String> = (1..).zip(&lines).map(with).collect();
            match simulate(&text.join("\n"), &["--check"]) {
                Ok(_) => taken += 1,
                Err(said) => {
                    refused += 1;
                    let foreign =
                        ["u32", "u64", "i64", "f64", "struct ", "invalid type", "sequence", "a string"];
                    assert!(!foreign.iter().any(|word| said.contains(word)), "{field} = {value}: {said}");
                    assert!(
                        said.starts_with("cloud.toml:") && said.contains("expected")
                            || said.contains("known: "),
                        "{field} = {value}: {said}"
                    );
                    assert_eq!(said.lines().count(), 1, "{field} = {value}: {said}");
                }
            }
        }
    }
    assert!(refused > 400 && taken > 50, "{refused} refused, {taken} taken");
}

#[test]
fn traces_of_hosts_are_beside_their_vcpus() {
    let shares = Scratch::file("file-shares.csv", "time_s,host,share\n0,a,1\n0,b,0.5\n");
    let text = SMALL.replace("host = 1", &format!("trace = \"{}\"", shares.text()));
    assert_eq!(
        words(&simulate(&text, &[]).unwrap(), "none")[1],
        words(&simulate(SMALL, &[]).unwrap(), "none")[1]
    );
    let alone = text.replace("trace =", "host = 0\nfirst = 1\ntrace =");
    assert_eq!(
        words(&simulate(&alone, &[]).unwrap(), "none")[1],
        words(&simulate(SMALL, &[]).unwrap(), "none")[1]
    );
}

#[test]
fn hosts_follow_public_traces() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/planetlab/20110303.csv");
    if !file.exists() {
        println!("skip: ../shared/data/planetlab/20110303.csv not found");
        return;
    }
    let trace = format!("trace = \"{}\"\nformat = \"planetlab\"\nstep = \"1s\"", file.display());
    let text = SMALL.replace("host = 1", &trace).replace("count = 2", "count = 8");
    let none = |text: &str| words(&simulate(text, &[]).unwrap(), "none")[1].parse::<f64>().unwrap();
    // The busiest of the first eight hosts is half used.
    let (all, first) = (none(&text), none(&text.replace("trace", "first = 8\ntrace")));
    assert!(all > 0.5 && (all - first).abs() > 1e-3, "{all} {first}");
}

#[test]
fn values_of_an_option_replace_those_of_a_sweep_and_one_field_is_swept_once() {
    let swept = format!("{SMALL}[sweep]\n\"balance.period\" = [5, 20]\n");
    let text = simulate(&swept, &["--set", "sweep.balance.period=[10]"]).unwrap();
    assert_eq!(words(&text, "10")[1], "none");
    assert!(!text.contains("\n             5"), "{text}");
    let error = simulate(&swept, &["--set", "balance.period=10"]).unwrap_err();
    assert!(error.contains("--set balance.period=10: the file sweeps this field, expected --set"), "{error}");
    let error = simulate(&format!("{swept}balance.period = [7]\n"), &[]).unwrap_err();
    assert_eq!(error, "cloud.toml:17: sweep.balance.period: swept twice, expected one list of values");
}
