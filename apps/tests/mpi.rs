//! Tests the programs as processes of an MPI job: the serial program's result, printed once, and one exit code.
//!
//! `MPIRUN` names the launcher, which must belong to the MPI that the programs were built with; `mpirun` unless set.
//! Without a launcher the tests print that and pass.

#[path = "../../tests/src/job.rs"]
#[expect(dead_code, unreachable_pub, reason = "the system tests need more of it")]
mod job;

#[path = "../../tests/src/scratch.rs"]
#[expect(unreachable_pub, reason = "the system tests have it as well")]
mod scratch;

#[expect(unreachable_pub, reason = "other tests have it as well")]
mod resizer;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use caribou::trace::What;
use job::{JOB_TIMEOUT, Job, JobResult, launcher, side_by_side};
use trace_reader::Trace;

const STENCIL: &str = env!("CARGO_BIN_EXE_stencil2d");
const PIC: &str = env!("CARGO_BIN_EXE_pic");
const WAVE2D: &str = env!("CARGO_BIN_EXE_wave2d");
const MOL3D: &str = env!("CARGO_BIN_EXE_mol3d");
const TASK_BENCH: &str = env!("CARGO_BIN_EXE_task_bench");
const RING: &str = env!("CARGO_BIN_EXE_ring");
const MONTECARLO: &str = env!("CARGO_BIN_EXE_montecarlo");
const CROSSBAR: &str = env!("CARGO_BIN_EXE_crossbar");
const JACOBI: &str = env!("CARGO_BIN_EXE_jacobi");
const SOR: &str = env!("CARGO_BIN_EXE_sor");

/// Starts a program as `processes` processes and waits for the end; `None` without a launcher.
fn start(processes: u32, variables: &[(&str, &str)], program: &str, arguments: &str) -> Option<JobResult> {
    let mut command = launcher(processes)?;
    command.arg(program).args(arguments.split_whitespace()).envs(variables.iter().copied());
    Some(Job::start(command).wait())
}

impl JobResult {
    fn assert_success(&self, what: &str) {
        assert!(self.status.success(), "{what}: {:?}\n{:?}\n{}", self.status, self.stdout, self.stderr);
    }

    fn lines_with(&self, words: &str) -> usize {
        self.stdout.iter().filter(|line| line.contains(words)).count()
    }
}

#[test]
fn every_strategy_gives_the_serial_result_in_any_number_of_processes() {
    let small = "--grid 128 --chunk 16";
    // Chunks of 32 KiB, which are sent beside the encoded message.
    let large = "--grid 256 --chunk 64";
    let cases = [
        (1, "on", small),
        (2, "on", small),
        (4, "on", small),
        (4, "on", large),
        (2, "off", small),
        (4, "off", small),
        (4, "off", large),
    ];
    side_by_side(cases, |(processes, shared_memory, plate)| {
        let what = format!("{plate} on {processes} processes, shared memory {shared_memory}");
        let variables = [("CARIBOU_SHARED_MEMORY", shared_memory)];
        let options =
            format!("{plate} --iterations 40 --period 5 --check --compare none,rotate,greedy,refine,comm");
        let Some(ended) = start(processes, &variables, STENCIL, &options) else { return };
        ended.assert_success(&what);
        let ranks = if processes == 1 { "1 rank x".to_owned() } else { format!("{processes} ranks x") };
        for words in ["cells in chunks of", "Every run ended with the serial", "the best of 5 is", &ranks] {
            assert_eq!(ended.lines_with(words), 1, "{what}: {words}: {:?}", ended.stdout);
        }
        let rows = ended.stdout.iter().filter(|line| line.starts_with("comm")).count();
        assert_eq!(rows, 1, "{what}: {:?}", ended.stdout);
    });
}

#[test]
fn particles_of_every_distribution_are_verified_in_any_number_of_processes() {
    let small = "--grid 40 --particles 8000 --speed 2 --rise -3 --iterations 40 --period 1 --check";
    side_by_side([(2, "on"), (3, "on"), (2, "off")], |(processes, shared_memory)| {
        for distribution in ["geometric:0.9", "sinusoidal", "linear:1,3", "patch:0,9,4,12"] {
            let what = format!("{distribution} on {processes} processes, shared memory {shared_memory}");
            let variables = [("CARIBOU_SHARED_MEMORY", shared_memory)];
            let options = format!("{small} --distribution {distribution} --compare none,rotate,refine");
            let Some(ended) = start(processes, &variables, PIC, &options) else { return };
            ended.assert_success(&what);
            for words in ["each where it has to be", "Every run ended with the serial"] {
                assert_eq!(ended.lines_with(words), 1, "{what}: {words}: {:?}", ended.stdout);
            }
        }
    });
}

#[test]
fn waves_are_the_serial_ones_in_any_number_of_processes_and_told_once() {
    for (processes, shared_memory) in [(2, "on"), (3, "on"), (2, "off")] {
        let what = format!("{processes} processes, shared memory {shared_memory}");
        let variables = [("CARIBOU_SHARED_MEMORY", shared_memory)];
        // Chunks of 2 x 32 KiB, which are sent beside the encoded message.
        let options = "--grid 256 --chunk 64 --iterations 30 --period 4 --check --compare none,rotate,refine";
        let Some(ended) = start(processes, &variables, WAVE2D, options) else { return };
        ended.assert_success(&what);
        for words in ["The waves have an energy of", "Every run ended with the serial"] {
            assert_eq!(ended.lines_with(words), 1, "{what}: {words}: {:?}", ended.stdout);
        }
    }
}

#[test]
fn molecules_have_the_serial_bits_and_their_energy_in_any_number_of_processes() {
    let small = "--particles 400 --cutoff 1.8 --cell 2 --iterations 12 --exchange 4 --period 2 --check";
    for (processes, shared_memory) in [(2, "on"), (3, "on"), (2, "off")] {
        let what = format!("{processes} processes, shared memory {shared_memory}");
        let variables = [("CARIBOU_SHARED_MEMORY", shared_memory)];
        let options = format!("{small} --compare none,rotate,refine");
        let Some(ended) = start(processes, &variables, MOL3D, &options) else { return };
        ended.assert_success(&what);
        for words in ["a particle (kinetic 1.500000, ", "Every run ended with the serial"] {
            assert_eq!(ended.lines_with(words), 1, "{what}: {words}: {:?}", ended.stdout);
        }
    }
}

#[test]
fn tasks_are_executed_and_their_inputs_checked_in_processes_with_the_runtime_and_with_mpi_alone() {
    for graph in
        ["stencil_1d -output 64", "nearest -radix 5", "fft -and -type tree -width 8", "spread -period 2"]
    {
        let line = format!("--bare --compare rotate,none --sync 3 --raw -steps 20 -width 16 -type {graph}");
        let Some(ended) = start(3, &[], TASK_BENCH, &line) else { return };
        let runs: Vec<&String> = ended.stdout.iter().filter(|line| line.starts_with('`')).collect();
        assert!(ended.status.success() && runs.len() == 4, "{graph}: {:?}{}", ended.stdout, ended.stderr);
        assert!(runs[0].starts_with("`bare`: 0 syncs, "), "{}", runs[0]);
        assert_eq!(runs[3], "`raw MPI`: 3 processes");
    }
}

#[test]
fn a_sweep_of_processes_is_told_once() {
    let options =
        "--grid 40 --particles 500 --iterations 8 --sweep-speed 0,3 --sweep-period 2 --lb rotate --check";
    let Some(ended) = start(2, &[], PIC, options) else { return };
    ended.assert_success("a sweep");
    assert_eq!(ended.lines_with("rotate every 2"), 1, "{:?}", ended.stdout);
    assert_eq!(ended.stdout.len(), 5, "where, what, the heads and two speeds: {:?}", ended.stdout);
}

#[test]
fn every_policy_gives_a_pool_the_serial_result_in_any_number_of_processes() {
    let compare = "--check --compare static,guided,factoring,master-worker,caa,ruper,leases,auto";
    side_by_side([(1, "on"), (2, "on"), (3, "off")], |(processes, shared_memory)| {
        for (program, size) in [(MONTECARLO, "--histories 20000"), (CROSSBAR, "--tasks 384 --requests 100")] {
            let what = format!("{program} on {processes} processes, shared memory {shared_memory}");
            let variables = [("CARIBOU_SHARED_MEMORY", shared_memory)];
            let Some(ended) = start(processes, &variables, program, &format!("{size} {compare}")) else {
                return;
            };
            ended.assert_success(&what);
            for words in ["Every run ended with the serial", "master-worker  "] {
                assert_eq!(ended.lines_with(words), 1, "{what}: {words}: {:?}", ended.stdout);
            }
        }
    });
}

#[test]
fn one_process_writes_the_numbers_of_all_and_times_every_iteration() {
    let json = std::env::temp_dir().join(format!("caribou-mpi-{}.json", std::process::id()));
    let options = "--grid 64 --chunk 8 --iterations 40 --period 5 --lb rotate --json";
    let Some(ended) = start(2, &[], STENCIL, &format!("{options} {}", json.display())) else { return };
    ended.assert_success("rotate");
    let numbers: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let iterations_ms = numbers["runs"][0]["iterations_ms"].as_array().unwrap();
    assert_eq!(iterations_ms.len(), 40);
    // Chunk [0, 0] is on the other rank half of the time. Its times count from the same begin.
    let sum_ms: f64 = iterations_ms.iter().map(|ms| ms.as_f64().unwrap()).sum();
    let total_ms = 1e3 * numbers["runs"][0]["total_s"].as_f64().unwrap();
    assert!(iterations_ms.iter().all(|ms| ms.as_f64().unwrap() >= 0.0), "{iterations_ms:?}");
    assert!((sum_ms - total_ms).abs() < 1e-3 && total_ms < 1e3 * JOB_TIMEOUT.as_secs_f64());
    assert_eq!(numbers["runs"][0]["moves"], 7 * 64);
    assert_eq!(numbers["settings"]["ranks"], 2);
    assert!(numbers["placement"].as_str().unwrap().starts_with("1 host, 2 ranks x "), "{numbers}");
    fs::remove_file(json).unwrap();
}

#[test]
fn the_ranks_of_a_job_leave_one_trace() {
    let dir = std::env::temp_dir().join(format!("caribou-mpi-trace-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    let variables = [("CARIBOU_TRACE", dir.to_str().unwrap())];
    let arguments = "--grid 128 --chunk 32 --iterations 40 --period 10 --lb rotate";
    let Some(ended) = start(2, &variables, STENCIL, arguments) else { return };
    ended.assert_success("a traced job");
    let trace = Trace::open(&dir).unwrap();
    assert_eq!((trace.ranks.len(), trace.run.ranks), (2, 2), "{:?}", trace.problems);
    let (mut sent, mut handled) = (BTreeSet::new(), BTreeSet::new());
    let problems = trace.for_each(|_, _, event| match event.what {
        What::Send { chunk, number, .. } => assert!(sent.insert((chunk, number))),
        What::Handler { from, number, .. } if number > 0 => assert!(handled.insert((from, number))),
        _ => {}
    });
    assert_eq!((&problems, &trace.problems), (&vec![], &vec![]));
    assert!(handled.is_subset(&sent) && !handled.is_empty());
    assert!(trace.syncs.iter().any(|sync| sync.moved > 0));
    assert!(trace.ranks.iter().all(|rank| rank.end.as_ref().is_some_and(|end| end.failed.is_none())));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_all_processes_complain_of_is_said_once() {
    for (program, arguments, words) in [
        (STENCIL, "--gird 64", "'--grid'"),
        (STENCIL, "--ranks 3", "2 processes were started"),
        (STENCIL, "--neighbour 2", "the last one is 1"),
        (RING, "--ranks 3", "2 processes were started"),
        (RING, "--chunks 1", "every rank needs a chunk"),
    ] {
        let Some(ended) = start(2, &[], program, arguments) else { return };
        assert_eq!(ended.status.code(), Some(2), "{arguments}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches(words).count(), 1, "{arguments}: {}", ended.stderr);
    }
}

#[test]
fn a_process_that_would_list_strategies_or_options_while_others_run_ends_the_job() {
    for (variable, option) in [("CARIBOU_LB=help", ""), ("CARIBOU_LB=refine", "--help")] {
        let tells = format!("{variable} {STENCIL} {option}");
        for [first, second] in [[STENCIL, &tells], [&tells, STENCIL]] {
            let both = format!("{first} : -n 1 env {second}");
            let Some(ended) = start(1, &[], "env", &both) else { return };
            assert!(!ended.status.success() && ended.took < Duration::from_secs(30), "{both}: {ended:?}");
            assert_eq!(ended.stderr.matches("what is asked for: rank 1 has").count(), 1, "{both}: {ended:?}");
        }
    }
}

#[test]
fn a_list_that_all_processes_are_asked_for_is_told_once() {
    for (options, words) in [("--lb help", "for arrays of chunks, as NAME"), ("--help", "--grid <CELLS>")] {
        let Some(ended) = start(2, &[], STENCIL, options) else { return };
        ended.assert_success(options);
        assert_eq!(ended.lines_with(words), 1, "{options}: {:?}", ended.stdout);
    }
}

#[test]
fn a_run_that_another_process_could_not_disturb_as_asked_is_not_told() {
    let json = std::env::temp_dir().join(format!("caribou-undisturbed-{}.json", std::process::id()));
    let options = format!(
        "--grid 128 --chunk 16 --iterations 2000 --neighbour 1 --compare none,rotate --json {}",
        json.display()
    );
    let Some(ended) = start(2, &[("CARIBOU_PIN", "off")], STENCIL, &options) else { return };
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("worker 0 of rank 1 is not pinned").count(), 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("rank 1 has `--neighbour needs a vCPU"), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: --neighbour needs a vCPU"), "{}", ended.stderr);
    assert_eq!(ended.lines_with("rotate"), 0, "{:?}", ended.stdout);
    assert!(!json.exists());
}

#[test]
fn the_ring_takes_its_ranks_from_the_launcher_and_speaks_once() {
    for payload in [8, 100_000] {
        let options = format!("--chunks 4 --hops 500 --placement round-robin --payload {payload}");
        for shared_memory in ["on", "off"] {
            let variables = [("CARIBOU_SHARED_MEMORY", shared_memory)];
            let Some(ended) = start(2, &variables, RING, &options) else { return };
            ended.assert_success(&options);
            assert_eq!(ended.stdout.len(), 1, "{:?}", ended.stdout);
            assert_eq!(
                ended.lines_with("ns per message, measured, with a profile (500 messages"),
                1,
                "{:?}",
                ended.stdout
            );
            assert_eq!(ended.lines_with("2 ranks x 1 worker"), 1, "{:?}", ended.stdout);
        }
    }
}

#[test]
fn programs_in_supersteps_give_the_serial_result_in_any_number_of_processes() {
    let policies = "equal,load-factor,des,replicate,dlb-jr,adaptive";
    let cases = [
        (JACOBI, 1, "--size 100 --dominance 1.2"),
        (JACOBI, 2, "--size 100 --dominance 1.2 --exchange ring"),
        (JACOBI, 3, "--size 100 --dominance 1.2 --exchange gather"),
        (SOR, 2, "--grid 60 --sweeps 50 --tolerance 0"),
        (SOR, 3, "--grid 60 --sweeps 50 --tolerance 0"),
    ];
    side_by_side(cases, |(program, processes, options)| {
        let what = format!("{program} {options} on {processes} processes");
        let options = format!("{options} --check --compare {policies}");
        let Some(ended) = start(processes, &[], program, &options) else { return };
        ended.assert_success(&what);
        assert_eq!(ended.lines_with("bit for bit"), 1, "{what}: {:?}", ended.stdout);
    });
}

#[test]
fn a_program_goes_on_from_a_checkpoint_in_another_number_of_processes() {
    let cases = [
        (STENCIL, "--grid 128 --chunk 16 --iterations 3000 --lb refine"),
        (MONTECARLO, "--histories 2e5 --lb leases"),
        (JACOBI, "--size 100 --steps 2000 --tolerance 0 --lb des"),
    ];
    for (program, options) in cases {
        let name = program.rsplit('/').next().expect("it has a name");
        let dir = std::env::temp_dir().join(format!("caribou-mpi-restart-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let checkpoints = format!("--checkpoint {},every=20ms,keep=1 --restart auto --check", dir.display());
        // A run that has ended leaves its last checkpoint.
        for (processes, begins) in
            [(2, "starts from the beginning"), (3, "continues from"), (1, "continues from")]
        {
            let what = format!("{program} on {processes} processes");
            let Some(ended) = start(processes, &[], program, &format!("{options} {checkpoints}")) else {
                return;
            };
            ended.assert_success(&what);
            assert_eq!(ended.stderr.matches(begins).count(), 1, "{what}: {}", ended.stderr);
            assert_eq!(ended.lines_with("serial program's result"), 1, "{what}: {:?}", ended.stdout);
        }
        fs::remove_dir_all(&dir).expect("it is there");
    }
}

#[test]
fn idle_processes_join_and_leave() {
    let cases = [
        (STENCIL, "--grid 128 --chunk 16 --iterations 4000 --lb refine"),
        (MONTECARLO, "--histories 1.5e6 --lb leases"),
        (JACOBI, "--size 100 --steps 5000 --tolerance 0 --lb des"),
    ];
    for (program, options) in cases {
        let (port, has_ended) = (resizer::free_port(), AtomicBool::new(false));
        let (ended, is_resized) = thread::scope(|scope| {
            let ended = scope.spawn(|| {
                let ended = start(4, &[("CARIBOU_MONITOR", &port)], program, &format!("{options} --check"));
                has_ended.store(true, Ordering::Relaxed);
                ended
            });
            let is_resized = resizer::resize_in_turn(&port, &[2, 4, 3], || has_ended.load(Ordering::Relaxed));
            (ended.join().expect("it waits for the job"), is_resized)
        });
        let Some(ended) = ended else { return };
        ended.assert_success(program);
        assert!(is_resized, "{program} ended too early: {:?}", ended.stdout);
        assert_eq!(ended.lines_with("serial program's result"), 1, "{program}: {:?}", ended.stdout);
        for line in ["2 of 4 ranks are active", "4 of 4 ranks are active", "3 of 4 ranks are active"] {
            assert_eq!(ended.stderr.matches(line).count(), 1, "{program}: {}", ended.stderr);
        }
    }
}
