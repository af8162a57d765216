//! Tests that programs continue from their last checkpoint on another number of ranks, after a kill or a signal to end.
//!
//! `KILLS=1000` makes 1000 kills; the default is 4.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rand::RngExt;

const STENCIL: &str = env!("CARGO_BIN_EXE_stencil2d");
const PIC: &str = env!("CARGO_BIN_EXE_pic");
const WAVE2D: &str = env!("CARGO_BIN_EXE_wave2d");
const MONTECARLO: &str = env!("CARGO_BIN_EXE_montecarlo");
const MOL3D: &str = env!("CARGO_BIN_EXE_mol3d");
const JACOBI: &str = env!("CARGO_BIN_EXE_jacobi");

/// Number of checks for a checkpoint, 5 ms apart, after which a run counts as hanging.
const LOOKS_MAX: u32 = 12_000;

fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("caribou-restarts-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

/// Starts a program on `ranks` ranks, with checkpoints and `--check`. It continues from the last checkpoint.
fn start(program: &str, arguments: &str, ranks: u32, checkpoints: &str) -> Child {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace());
    let lb = match program {
        MONTECARLO => "leases",
        JACOBI => "adaptive",
        _ => "refine",
    };
    command.args(["--check", "--lb", lb, "--ranks", &ranks.to_string()]);
    command.args(["--checkpoint", checkpoints, "--restart", "auto"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(name: &str, child: &Child) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until there is a checkpoint that was not there `before`. False if the program ends first.
fn has_new_checkpoint(dir: &Path, before: &[PathBuf], child: &mut Child) -> bool {
    let mut looks = 0;
    while caribou::checkpoint::list(dir).iter().all(|checkpoint| before.contains(checkpoint)) {
        looks += 1;
        assert!(looks < LOOKS_MAX, "there is no checkpoint");
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, told)
}

fn assert_right(output: &Output, told: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{told}");
    assert!(said.contains("Every run ended with the serial program's result"), "{said}{told}");
}

#[test]
fn a_signal_saves_the_state_and_the_same_command_goes_on_elsewhere() {
    saves_at_signals("signal", STENCIL, "--grid 128 --chunk 16 --iterations 5000");
    saves_at_signals("signal-supersteps", JACOBI, "--size 100 --tolerance 0 --steps 4000");
}

fn saves_at_signals(name: &str, program: &str, arguments: &str) {
    let dir = directory(name);
    let settings = format!("{},every=20ms", dir.display());
    let start = |ranks| start(program, arguments, ranks, &settings);
    let mut ranks = [2, 1, 3].into_iter();
    for name in ["TERM", "USR1"] {
        let before = caribou::checkpoint::list(&dir);
        let mut child = start(ranks.next().unwrap());
        assert!(has_new_checkpoint(&dir, &before, &mut child), "SIG{name}");
        signal(name, &child);
        let (output, told) = ended(child);
        assert_eq!(output.status.code(), Some(75), "{told}");
        assert!(
            told.contains(&format!("SIG{name} to the process of rank 0: the run has ended early")),
            "{told}"
        );
        let heard = format!("SIG{name} to the process of rank 0: the run saves its state and ends");
        assert_eq!(told.matches(&heard).count(), 1, "{told}");
        assert!(dir.join("unfinished").exists(), "launchers may lose the exit code");
    }
    let (output, told) = ended(start(ranks.next().unwrap()));
    assert!(!dir.join("unfinished").exists(), "it has its result");
    assert!(told.contains("caribou: continues from"), "{told}");
    assert_right(&output, &told);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_checkpoint_beyond_the_size_limit_of_files_is_not_made_and_the_run_goes_on() {
    for (program, arguments) in [(STENCIL, "--grid 256 --iterations 600"), (MONTECARLO, "--histories 2e5")] {
        let dir = directory("limit");
        let limited = format!(
            "ulimit -f 0; exec {program} {arguments} --check --ranks 2 --checkpoint {},every=20ms",
            dir.display()
        );
        let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("checkpoint 1 was not made: rank") && told.contains("too large"), "{told}");
        assert_right(&output, &told);
        fs::remove_dir_all(dir).unwrap();
    }
}

#[test]
fn a_run_that_begins_anew_where_another_left_checkpoints_says_so() {
    let dir = directory("anew");
    let begin = || {
        let mut command = Command::new(STENCIL);
        command.args("--grid 128 --chunk 16 --iterations 1500 --ranks 2 --check".split_whitespace());
        command.arg("--checkpoint").arg(format!("{},every=20ms", dir.display()));
        command.output().unwrap()
    };
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let (first, second) = (begin(), begin());
    assert_right(&first, &told(&first));
    assert_right(&second, &told(&second));
    let line =
        "has checkpoints of another run: this run starts from the beginning, and replaces them with its own";
    assert_eq!([first, second].map(|run| told(&run).contains(line)), [false, true]);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_stopped_run_saves_its_state_when_it_goes_on_though_two_signals_wait() {
    let dir = directory("twice");
    let mut child = start(
        STENCIL,
        "--grid 128 --chunk 16 --iterations 12000",
        2,
        &format!("{},every=20ms", dir.display()),
    );
    assert!(has_new_checkpoint(&dir, &[], &mut child));
    signal("STOP", &child);
    signal("USR1", &child);
    signal("TERM", &child);
    signal("CONT", &child);
    let (output, told) = ended(child);
    assert_eq!(output.status.code(), Some(75), "{told}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the length of the sweep is the caller's choice")]
fn a_program_that_is_killed_at_any_moment_ends_with_the_right_result() {
    let named = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let (kills, seed) = (named("KILLS").unwrap_or(4), named("SEED").unwrap_or(1));
    let mut random = caribou::random::stream(seed, 0);
    let all = [
        (STENCIL, "--grid 128 --chunk 16 --iterations 2500"),
        (MONTECARLO, "--histories 2e5"),
        (WAVE2D, "--grid 128 --chunk 16 --iterations 4000"),
        (MOL3D, "--particles 2000 --iterations 150"),
        (PIC, "--grid 100 --particles 5000 --iterations 800"),
        (JACOBI, "--size 200 --tolerance 0 --steps 4000"),
    ];
    let programs = if named("KILLS").is_some() { &all[..] } else { &all[..2] };
    let (mut killed, mut restarted, mut anew, mut finished) = (0, 0, 0, 0);
    let dir = directory("kills");
    let settings = format!("{},every=10ms,keep=2", dir.display());
    while killed < kills || finished < programs.len() {
        let (program, arguments) = programs[finished % programs.len()];
        let before = caribou::checkpoint::list(&dir);
        let mut child = start(program, arguments, random.random_range(1..=4), &settings);
        if killed < kills && random.random_ratio(4, 5) {
            // The serial program runs first. Most programs are killed when they have begun to save, some at any time.
            if random.random_ratio(4, 5) {
                has_new_checkpoint(&dir, &before, &mut child);
            }
            thread::sleep(Duration::from_millis(random.random_range(0..300)));
            let _ = child.kill();
        }
        let (output, told) = ended(child);
        restarted += u32::from(told.contains("caribou: continues from"));
        anew += u32::from(told.contains("caribou: starts from the beginning"));
        match output.status.code() {
            None => killed += 1,
            Some(_) => {
                assert_right(&output, &format!("seed {seed}, {killed} kills, {program} {arguments}: {told}"));
                finished += 1;
                fs::remove_dir_all(&dir).unwrap();
            }
        }
    }
    println!(
        "{killed} kills, {restarted} restarts from checkpoints, {anew} from the beginning, {finished} results"
    );
    assert!(restarted > 0 && killed > 0, "{restarted}, {killed}");
    let _ = fs::remove_dir_all(dir);
}
