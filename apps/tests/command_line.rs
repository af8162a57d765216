//! Tests the programs as a person starts them: results, error messages, exit codes, busy processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const STENCIL: &str = env!("CARGO_BIN_EXE_stencil2d");
const PIC: &str = env!("CARGO_BIN_EXE_pic");
const WAVE2D: &str = env!("CARGO_BIN_EXE_wave2d");
const MOL3D: &str = env!("CARGO_BIN_EXE_mol3d");
const RING: &str = env!("CARGO_BIN_EXE_ring");
const MONTECARLO: &str = env!("CARGO_BIN_EXE_montecarlo");
const CROSSBAR: &str = env!("CARGO_BIN_EXE_crossbar");
const TASK_BENCH: &str = env!("CARGO_BIN_EXE_task_bench");
const JACOBI: &str = env!("CARGO_BIN_EXE_jacobi");
const SOR: &str = env!("CARGO_BIN_EXE_sor");

fn start(program: &str, arguments: &str) -> Output {
    // `MPIRUN` is for the tests in `mpi.rs`. The programs would take it for a misspelt variable of theirs.
    Command::new(program).env_remove("MPIRUN").args(arguments.split_whitespace()).output().unwrap()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

#[test]
fn a_bad_option_is_one_line_and_exit_code_2() {
    for (program, arguments, words) in [
        (STENCIL, "--gird 64", "'--grid'"),
        (JACOBI, "--size 0", "expected a whole number from 1"),
        (JACOBI, "--size 1e6", "--size 1000000: a process needs 8000.0 GB"),
        (JACOBI, "--dominance 1", "expected a number above 1"),
        (JACOBI, "--tolerance nan", "expected a number from 0 up to, not including, 1"),
        (JACOBI, "--compare equal,leases", "--compare: `leases` balances pools"),
        (JACOBI, "--matrix no-such-file.mtx", "--matrix: cannot read no-such-file.mtx"),
        (JACOBI, "--matrix Cargo.toml", "--matrix: Cargo.toml:1: expected `%%MatrixMarket matrix"),
        (SOR, "--grid 0", "expected a whole number from 1"),
        (SOR, "--tolerance 1", "expected a number from 0 up to, not including, 1"),
        (SOR, "--lb refine", "--lb: `refine`"),
        (STENCIL, "--grid 8 --chunk 9", "larger than --grid 8"),
        (STENCIL, "--grid 0", "expected a whole number from 1 to 2^64 - 1"),
        (STENCIL, "--grid 18446744073709551615", "makes more than 65535 chunks a side"),
        (
            STENCIL,
            "--period -1",
            "'-1' for '--period <ITERATIONS|auto|TIME>': `-1`: expected auto, a number of steps (0 for never)",
        ),
        (
            STENCIL,
            "--iterations 10 --neighbour 0:20-90",
            "on rank 0 from iteration 20 on: the run ends at iteration 10",
        ),
        (MONTECARLO, "--histories many", "expected a whole number from 1 to 2^64 - 1, as in 1000 or 1e3"),
        (
            STENCIL,
            "--grid 10000000 --chunk 10000",
            "--grid 10000000 --chunk 10000: a process needs 800000.8 GB of memory",
        ),
        (STENCIL, "--grid 60000 --chunk 1", "a process needs 2908.8 GB"),
        (STENCIL, "--lb refien", "refine"),
        (STENCIL, "--compare none,", "\"none,\": the strategy after none has no name"),
        (STENCIL, "--compare none,leases", "--compare: `leases` balances pools"),
        (STENCIL, "--ranks 100000", "--ranks, --workers: 100000 ranks x"),
        (STENCIL, "--ranks 2 --workers 2049", "at most 4096 threads"),
        (STENCIL, "--iterations 4000000000", "100000000"),
        (STENCIL, "--ranks 2 --neighbour 2", "the last one is 1"),
        (STENCIL, "--neighbour 1:9-3", "empty"),
        (STENCIL, "--neighbour 1:random:x", "`x` is not a seed"),
        (STENCIL, "--ranks 2 --neighbour 2:random:3", "the last one is 1"),
        (STENCIL, "--quota 1:0", "percentage"),
        (STENCIL, "--slow 1:0.5", "from 1 to 100"),
        (STENCIL, "--ranks 2 --slow 2:1.5", "the last one is 1"),
        (PIC, "--grid 7", "an even number of cells"),
        (PIC, "--grid 20 --tiles 21", "from 1 to --grid 20"),
        (PIC, "--speed 40 --tiles 16", "81 columns a step, and would skip tiles of 62"),
        (PIC, "--rise -70 --tiles 16", "70 rows a step"),
        (PIC, "--distribution uniform", "expected geometric:RATIO, sinusoidal"),
        (PIC, "--distribution patch:0,20,1,2 --grid 20", "whose last is 19"),
        (PIC, "--particles 3e9", "--particles 3000000000: a process needs 480.0 GB"),
        (PIC, "--sweep-speed 3,1", "expected rising speeds"),
        (PIC, "--sweep-speed 1 --speed 2", "cannot be used with"),
        (PIC, "--sweep-period 2", "--sweep-speed"),
        (PIC, "--sweep-speed 0..=900", "--sweep-speed 900: particles move 1801 columns"),
        (WAVE2D, "--speed 0.8", "faster waves grow without bound"),
        (WAVE2D, "--speed 0", "expected a number above 0"),
        (WAVE2D, "--pulses 2000", "from 0 to 1000"),
        (WAVE2D, "--grid 8 --chunk 9", "larger than --grid 8"),
        (WAVE2D, "--grid 10000000 --chunk 10000", "a process needs 1600000.8 GB of memory"),
        (WAVE2D, "--picture /nowhere/at/all.svg", "/nowhere/at/all.svg"),
        (MOL3D, "--density 2", "expected a number from 0.000001 to 1.5"),
        (MOL3D, "--particles 1e6 --density 1e-6 --cell 4", "15625000000 cells: a process needs"),
        (MOL3D, "--particles 1000 --cutoff 30", "expected a box of 33.00 or more a side, not of 10.77"),
        (MOL3D, "--cell 2", "expected a side from 3.85 to 48.66"),
        (MOL3D, "--input places.txt", "expected a name that ends in .xyz, .pdb or .ent"),
        (MOL3D, "--input /nowhere/at/all.pdb", "--input /nowhere/at/all.pdb: No such file"),
        (MOL3D, "--input places.xyz --density 0.5", "cannot be used with"),
        (RING, "--placement sideways", "sideways"),
        (RING, "--chunks 1 --ranks 2", "every rank needs a chunk"),
        (RING, "--chunks 4000000000", "10000000"),
        (RING, "--tokens 4000000000", "1000000"),
        (RING, "--payload 99999999999999", "1073741824 bytes at most"),
        (RING, "--tokens 1000000 --payload 100000", "4294967296 together"),
        (RING, "--workers 100000", "at most 4096 threads"),
        (MONTECARLO, "--slab butter:1", "water, aluminium, iron, lead, grey"),
        (MONTECARLO, "--slab iron:9000 --slab lead:9000", "at most together"),
        (MONTECARLO, "--energy 5000", "between 1 and 2000"),
        (MONTECARLO, "--lb refine", "--lb: `refine` balances arrays, but this is a pool of iterations"),
        (MONTECARLO, "--compare static,greedy", "--compare: `greedy` balances arrays"),
        (MONTECARLO, "--ranks 100000", "--ranks, --workers: 100000 ranks x"),
        (MONTECARLO, "--workers 100000", "at most 4096 threads"),
        (MONTECARLO, "--period 3", "'--period'"),
        (CROSSBAR, "--load 0.5,1.5", "up to 1"),
        (CROSSBAR, "--load 1e-300", "0.001"),
        (CROSSBAR, "--burst 1e12", "1000000"),
        (CROSSBAR, "--buffer 0", "1 packet at least"),
        (CROSSBAR, "--ports 65", "1 to 64"),
        (CROSSBAR, "--burst 0", "1 packet or more"),
        (CROSSBAR, "--tasks 3", "each needs a task"),
        (CROSSBAR, "--lb statik", "static"),
        (TASK_BENCH, "-type string", "stencil_1d"),
        (TASK_BENCH, "-type spread", "-period 3: expected 2 at most"),
        (TASK_BENCH, "-type tree -and -type fft -width 1", "-width 1"),
        (TASK_BENCH, "-and -iter x", "'x' for '--iter"),
        (TASK_BENCH, "--neighbour 1:0.5 --ranks 1", "there is no rank 1"),
        (TASK_BENCH, "--repetitions 3", "--metg"),
        (TASK_BENCH, "--metg --peak 0", "above 0"),
        (TASK_BENCH, "--metg --compare none,eigth", "eighth"),
    ] {
        let output = start(program, arguments);
        let complaint = lines(&output.stderr);
        assert_eq!((output.status.code(), complaint.len()), (Some(2), 1), "{arguments}: {complaint:?}");
        assert!(complaint[0].contains(words), "{arguments}: {complaint:?}");
        // A fault in any run of a comparison is reported before the first run.
        assert!(output.stdout.is_empty(), "{arguments}: {:?}", lines(&output.stdout));
    }
}

#[test]
fn the_port_that_the_monitor_took_is_printed() {
    let mut command = Command::new(RING);
    let output = command.args(["--hops", "100"]).env("CARIBOU_MONITOR", ":0").output().unwrap();
    let said = lines(&output.stderr);
    let (_, port) = said[0].split_once("rank 0 serves the state of the run on 127.0.0.1:").unwrap();
    assert!(said.len() == 1 && port.parse::<u16>().is_ok_and(|port| port > 0), "{said:?}");
}

#[test]
fn a_path_that_cannot_be_written_is_named_before_anything_runs() {
    let output = start(STENCIL, "--json /nowhere/at/all.json");
    let complaint = lines(&output.stderr);
    assert_eq!((output.status.code(), complaint.len()), (Some(2), 1), "{complaint:?}");
    assert!(complaint[0].contains("/nowhere/at/all.json"), "{complaint:?}");
}

#[test]
fn a_checked_comparison_writes_a_table_a_plot_and_the_numbers() {
    let folder = std::env::temp_dir().join(format!("caribou-stencil2d-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (plot, json) = (folder.join("out.svg"), folder.join("out.json"));
    let options = "--grid 64 --chunk 16 --iterations 40 --period 5 --ranks 2 --compare none,rotate --check";
    let output = start(STENCIL, &format!("{options} --plot {} --json {}", plot.display(), json.display()));
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    let said = lines(&output.stdout);
    assert!(said.iter().any(|line| line.starts_with("rotate")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("bit for bit")), "{said:?}");
    assert!(std::fs::read_to_string(plot).unwrap().starts_with("<svg"));
    let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(numbers["runs"][1]["moves"], 7 * 16);
    assert_eq!(numbers["runs"][1]["iterations_ms"].as_array().unwrap().len(), 40);
    assert!(numbers["gain"].is_number());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn particles_are_counted_and_a_sweep_writes_its_curves() {
    let folder = std::env::temp_dir().join(format!("caribou-pic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (plot, json) = (folder.join("out.svg"), folder.join("out.json"));
    let small = "--grid 20 --particles 2000 --distribution geometric:0.9 --iterations 10 --ranks 2 --check";
    let output = start(PIC, &format!("{small} --rise -2 --lb rotate --period 1"));
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    let said = lines(&output.stdout);
    for words in
        ["moving 1 column and -2 rows a step", "1994 particles, each where it has to be", "bit for bit"]
    {
        assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
    }
    let files = format!("--plot {} --json {}", plot.display(), json.display());
    let output = start(PIC, &format!("{small} --sweep-speed 0..=2 --sweep-period 1,3 --lb rotate {files}"));
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    let said = lines(&output.stdout);
    assert!(said.iter().any(|line| line.ends_with("rotate every 1  rotate every 3")), "{said:?}");
    assert!(std::fs::read_to_string(plot).unwrap().contains("rotate every 3"));
    let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(numbers["settings"]["problem"]["particles"], 1994);
    let moves = |curve: usize| numbers["points"][2]["balanced"][curve]["moves"].as_u64();
    assert_eq!((moves(0), moves(1)), (Some(9 * 16), Some(3 * 16)), "{numbers}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn waves_tell_their_energy_and_are_drawn() {
    let folder = std::env::temp_dir().join(format!("caribou-wave2d-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (picture, json) = (folder.join("out.svg"), folder.join("out.json"));
    let files = format!("--picture {} --json {}", picture.display(), json.display());
    let options = "--grid 64 --chunk 16 --iterations 40 --period 5 --ranks 2 --pulses 2 --seed 9 --speed 0.6";
    let output = start(WAVE2D, &format!("{options} --compare none,rotate --check {files}"));
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    let said = lines(&output.stdout);
    for words in ["2 pulses on 64 x 64 cells", "The waves have an energy of ", "rotate  ", "bit for bit"] {
        assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
    }
    assert!(std::fs::read_to_string(picture).unwrap().contains("<path stroke="));
    let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(numbers["runs"][1]["moves"], 7 * 16);
    assert_eq!(numbers["settings"]["problem"]["speed"], 0.6);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn particles_out_of_a_file_leave_the_energies_of_each_iteration() {
    let folder = std::env::temp_dir().join(format!("caribou-mol3d-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [input, energies] = ["places.xyz", "energies.csv"].map(|name| folder.join(name));
    let places = "3\nLattice=\"9 0 0 0 9 0 0 0 9\"\nAr 1 1 1\nAr 2.1 1 1\nAr 8 8 8\n";
    std::fs::write(&input, places).unwrap();
    let options = format!("--input {} --output {}", input.display(), energies.display());
    let balancing = "--ranks 2 --iterations 12 --exchange 3 --period 5 --compare none,rotate --check";
    let output = start(MOL3D, &format!("{options} {balancing}"));
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    let said = lines(&output.stdout);
    for words in ["3 particles in a box of 9.0 x 9.0 x 9.0", "a particle (kinetic 1.500000, ", "bit for bit"]
    {
        assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
    }
    assert_eq!(lines(&std::fs::read(&energies).unwrap()).len(), 1 + 13);
    std::fs::write(&input, places.replace("2.1 1 1", "2.1 1")).unwrap();
    let output = start(MOL3D, &options);
    let expected = "line 4: expected an element and three coordinates up to 1e6, found `Ar 2.1 1`";
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(lines(&output.stderr), [format!("error: --input {}: {expected}", input.display())]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_left_out_of_a_file_is_told_beside_the_run() {
    let file = std::env::temp_dir().join(format!("caribou-frames-{}.xyz", std::process::id()));
    std::fs::write(&file, "1\nLattice='9 9 9'\nAr 1 1 1\n2\nlattice = {8 8 8}\nAr 1 1 1 0.5\nAr 4 4 4\n")
        .unwrap();
    let run = |more: &str| {
        let output = start(MOL3D, &format!("--input {} --iterations 1 --ranks 1{more}", file.display()));
        assert!(output.status.success(), "{:?}", lines(&output.stderr));
        let notes = lines(&output.stderr).into_iter().filter(|line| line.starts_with("note: "));
        (lines(&output.stdout)[0].clone(), notes.collect::<Vec<_>>())
    };
    let (title, notes) = run("");
    assert!(title.starts_with("1 particles in a box of 9.0 x 9.0 x 9.0"), "{title}");
    let about = format!("note: --input {}: ", file.display());
    assert_eq!(notes, [format!("{about}the first of 2 frames is read; --frame N reads another")]);
    let (title, notes) = run(" --frame 2");
    assert!(title.starts_with("2 particles in a box of 8.0 x 8.0 x 8.0"), "{title}");
    assert!(notes.len() == 1 && notes[0].contains("which are not read: 1, the first in line 6"), "{notes:?}");
    let refused = start(MOL3D, "--frame 2");
    assert_eq!(refused.status.code(), Some(2));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn files_as_other_programs_write_them_are_read_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/inputs");
    if !folder.exists() {
        println!("skip: ../shared/data/inputs not found");
        return;
    }
    let run = |program, option: &str, name: &str| {
        let output = start(program, &format!("{option} {} --ranks 1", folder.join(name).display()));
        (output.status.code(), lines(&output.stdout).join("\n"), lines(&output.stderr).join("\n"))
    };
    for (name, expected) in [
        ("xyz_lattice_single.xyz", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("xyz_lattice_lower.xyz", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("xyz_lattice_space.xyz", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("xyz_props_quoted.xyz", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("xyz_noise.xyz", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("xyz_traj.xyz", "2 particles in a box of 9.0 x 7.0 x 7.0"),
        ("pdb_serial6_left.pdb", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("pdb_wrap_resseq.pdb", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("pdb_microhet.pdb", "2 particles in a box of 20.0 x 20.0 x 20.0"),
        ("pdb_altloc_blank_then_b.pdb", "1 particles in a box of 20.0 x 20.0 x 20.0"),
        ("pdb_cryst_zero.pdb", "2 particles in a box of 9.0 x 7.0 x 7.0"),
    ] {
        let (code, said, complaint) = run(MOL3D, "--iterations 1 --input", name);
        assert!(code == Some(0) && said.starts_with(expected), "{name}: {code:?}: {said}: {complaint}");
        let is_partial = ["xyz_traj.xyz", "pdb_microhet.pdb", "pdb_altloc_blank_then_b.pdb"].contains(&name);
        assert_eq!(complaint.contains("note: --input"), is_partial, "{name}: {complaint}");
    }
    for name in ["mm_latin1_comment.mtx", "mm_bom.mtx", "mm_fortran_d.mtx"] {
        let (code, said, complaint) = run(JACOBI, "--matrix", name);
        assert!(code == Some(0) && said.starts_with("3 equations"), "{name}: {code:?}: {said}: {complaint}");
    }
    let (code, _, complaint) = run(JACOBI, "--matrix", "mm_one_percent.mtx");
    let expected = "found `%MatrixMarket matrix coordinate real general`";
    assert!(code == Some(2) && complaint.ends_with(expected), "{code:?}: {complaint}");
}

#[test]
fn what_is_not_solved_is_told_with_all_that_is_known() {
    let folder = std::env::temp_dir().join(format!("caribou-not-solved-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (plot, json) = (folder.join("out.svg"), folder.join("out.json"));
    let files = format!("--plot {} --json {}", plot.display(), json.display());
    for (program, options, found, enough) in [
        (
            JACOBI,
            "--size 30 --steps 5",
            "expected at most 1e-4 as --tolerance says",
            "/runs/0/result/residual",
        ),
        (SOR, "--grid 30 --sweeps 5", "expected at most 1e-6 as --tolerance says", "/runs/0/result/change"),
    ] {
        let output = start(program, &format!("{options} --ranks 2 --check {files}"));
        let complaint = lines(&output.stderr);
        let last = complaint.last().unwrap();
        assert_eq!(output.status.code(), Some(1), "{options}: {complaint:?}");
        assert!(last.starts_with("error: not solved") && last.ends_with(found), "{complaint:?}");
        let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(numbers["runs"][0]["result"]["solved"], false);
        assert!(numbers.pointer(enough).is_some_and(serde_json::Value::is_number), "{numbers}");
        // With a tolerance of 0 all steps are requested.
        let output = start(program, &format!("{options} --tolerance 0"));
        assert!(output.status.success(), "{:?}", lines(&output.stderr));
    }
    // The plot has only the steps that were made, and a neighbour of later steps is reported as missing.
    let output = start(JACOBI, &format!("--size 30 --dominance 2 --ranks 1 --neighbour 0:5000-6000 {files}"));
    let said = lines(&output.stdout);
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    assert!(said.iter().any(|line| line.contains("did not start: no run reached step 5000")), "{said:?}");
    assert!(!std::fs::read_to_string(plot).unwrap().contains("10000"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_ring_reports_the_time_of_a_message() {
    for options in [
        "--chunks 4",
        "--chunks 4 --ranks 2 --tokens 3 --payload 100 --work 8 --placement round-robin --measure off",
    ] {
        let output = start(RING, &format!("{options} --hops 1000 --json /dev/stderr"));
        assert!(output.status.success(), "{:?}", lines(&output.stderr));
        assert!(lines(&output.stdout)[0].contains("ns per message"));
        let numbers: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert!(numbers["ns_per_message"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn the_smallest_grain_is_told_plotted_and_written() {
    let folder = std::env::temp_dir().join(format!("caribou-task-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (plot, json) = (folder.join("out.svg"), folder.join("out.json"));
    let options = "-type stencil_1d -steps 20 -width 16 -kernel compute_bound -iter 1024 --ranks 2 --metg --repetitions 2 \
        --compare none,eighth";
    let output = start(TASK_BENCH, &format!("{options} --plot {} --json {}", plot.display(), json.display()));
    assert!(output.status.success(), "{:?}", lines(&output.stderr));
    let said = lines(&output.stdout);
    for words in ["METG(50 %) of none: ", "METG(50 %) of eighth: ", "Iterations: 1024"] {
        assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
    }
    assert!(std::fs::read_to_string(plot).unwrap().contains("eighth"));
    let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(numbers["metg"]["systems"][1]["grains"].as_array().unwrap().len(), 11);
    assert!(numbers["metg"]["systems"][0]["grains"][10]["grain_ns"].as_f64().unwrap() > 0.0);
    // The default kernel does no work that is counted.
    let nothing = start(TASK_BENCH, "--metg");
    assert!(lines(&nothing.stderr)[0].contains("-kernel"), "{:?}", lines(&nothing.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_checked_pool_writes_its_results_and_the_numbers_of_its_workers() {
    let folder = std::env::temp_dir().join(format!("caribou-pools-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (program, options, words, lines_of_results) in [
        (MONTECARLO, "--histories 20000 --bins 20 --cost heterogeneous --cost-us 1", "transmitted", 21),
        (CROSSBAR, "--tasks 40 --requests 500 --ports 4 --load 0.5,1 --buffer 1,8", "longest-queue", 13),
    ] {
        let (csv, json) = (folder.join("out.csv"), folder.join("out.json"));
        let pool = "--compare static,static,chunk=0.001 --ranks 2 --workers 2 --check";
        let files = format!("--output {} --json {}", csv.display(), json.display());
        let output = start(program, &format!("{options} {pool} {files}"));
        assert!(output.status.success(), "{:?}", lines(&output.stderr));
        let said = lines(&output.stdout);
        for words in [words, "static,chunk=0.001", "bit for bit"] {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
        }
        assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), lines_of_results);
        let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        assert_eq!(numbers["runs"][1]["workers"].as_array().unwrap().len(), 4);
        assert_eq!(numbers["settings"]["problem"]["checked"], true);
        assert!(numbers["runs"][1]["wall_ns"].as_u64() >= numbers["runs"][1]["elapsed_ns"].as_u64());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// CPU time of a process, in clock ticks of 10 ms.
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_neighbour_asks_for_its_duty_and_no_more() {
    let us = std::process::id().to_string();
    let mut neighbour =
        Command::new(STENCIL).args(["--be-a-busy-neighbour", "0", "0.3", &us]).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let used = cpu_ticks(neighbour.id());
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    // A busy machine may give the neighbour less than the 30 ticks that it wants, never much more.
    assert!((10..40).contains(&used), "{used} ticks of 10 ms in a second");
}

#[test]
fn a_random_neighbour_is_quiet_and_then_busy() {
    // The first stretches of this seed: quiet for 0.52 s, then busy for 2.16 s.
    let us = std::process::id().to_string();
    let mut neighbour =
        Command::new(STENCIL).args(["--be-a-busy-neighbour", "0", "1", &us, "3"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let quiet = cpu_ticks(neighbour.id());
    let becomes_busy = soon(|| cpu_ticks(neighbour.id()) > quiet + 5);
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
    assert!(quiet < 5 && becomes_busy, "{quiet} ticks of 10 ms while quiet");
}

/// The neighbours that a process has started, by their ids, with their arguments.
fn neighbours_of(process: u32) -> Vec<(u32, Vec<String>)> {
    let read = |entry: &std::fs::DirEntry, file| std::fs::read_to_string(entry.path().join(file)).ok();
    let neighbour = |entry: std::fs::DirEntry| {
        let stat = read(&entry, "stat")?;
        let (name, rest) = stat.rsplit_once(") ")?;
        let parent: u32 = rest.split(' ').nth(1)?.parse().ok()?;
        let arguments = read(&entry, "cmdline")?.split_terminator('\0').map(str::to_owned).collect();
        let is_its = parent == process && name.ends_with("(busy-neighbour");
        is_its.then_some((name.split(' ').next()?.parse().ok()?, arguments))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(neighbour).collect()
}

#[test]
fn each_run_of_a_comparison_has_a_random_neighbour_of_its_own() {
    let folder = std::env::temp_dir().join(format!("caribou-random-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (plot, json) = (folder.join("out.svg"), folder.join("out.json"));
    let options =
        "--grid 512 --chunk 64 --iterations 1500 --period 500 --ranks 2 --workers 1 --compare none,rotate";
    let mut command = Command::new(STENCIL);
    command.env_remove("MPIRUN").args(options.split(' ')).args(["--neighbour", "1:random:3", "--plot"]);
    command.arg(&plot).arg("--json").arg(&json).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while program.try_wait().unwrap().is_none() {
        // A process that has not begun its program yet has no arguments.
        seen.extend(neighbours_of(program.id()).into_iter().filter(|(_, arguments)| !arguments.is_empty()));
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = program.wait_with_output().unwrap();
    let complaint = lines(&output.stderr);
    if complaint.iter().any(|line| line.contains("--neighbour needs a vCPU for each worker")) {
        println!("skipped: two workers have no vCPUs of their own here");
        return;
    }
    assert!(output.status.success(), "{complaint:?}");
    assert_eq!(seen.len(), 2, "one neighbour a run: {seen:?}");
    assert!(seen.iter().all(|(_, arguments)| arguments.last().is_some_and(|seed| seed == "3")), "{seen:?}");
    assert!(seen.iter().all(|(id, _)| !Path::new("/proc").join(id.to_string()).exists()), "{seen:?}");
    let said = lines(&output.stdout);
    let label = "neighbour on rank 1 at random, seed 3";
    assert!(said.contains(&format!("iterations 0-1500: {label}")), "{said:?}");
    assert!(std::fs::read_to_string(plot).unwrap().contains(label));
    let numbers: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(numbers["settings"]["disturbances"]["neighbours"][0]["seed"], 3);
    assert_eq!((&numbers["windows"][0]["label"], &numbers["windows"][1]), (&label.into(), &().into()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_neighbour_whose_parent_is_gone_ends() {
    // The parent is this test and not process 1, so the neighbour finds that its parent is gone.
    let mut orphan = Command::new(STENCIL).args(["--be-a-busy-neighbour", "0", "1", "1"]).spawn().unwrap();
    for _ in 0..100 {
        if orphan.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    orphan.kill().unwrap();
    panic!("an orphan still runs after 5 s");
}

/// The control group of a rank of that process, if the rank has one.
fn group_of_rank(rank: u32, process: u32) -> Option<PathBuf> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = |line: &str| Some(line.rsplit_once(':')?.1.trim_start_matches('/').to_owned());
    let roots = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
    let name = format!("caribou-rank-{rank}-{process}");
    let places = membership.lines().filter_map(own).collect::<Vec<_>>();
    let all =
        roots.iter().flat_map(|root| places.iter().map(|place| Path::new(root).join(place).join(&name)));
    all.into_iter().find(|group| group.exists())
}

/// Checks every 10 ms until `is_so`, for at most 5 s.
fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_so()
    })
}

#[test]
fn a_program_that_is_ended_or_killed_leaves_no_control_group() {
    for signal in ["TERM", "KILL"] {
        let mut command = Command::new(STENCIL);
        command.args("--grid 256 --iterations 4000000 --ranks 2 --lb none --quota 1:50".split(' '));
        let mut program = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let id = program.id();
        let held = soon(|| group_of_rank(1, id).is_some());
        let group = group_of_rank(1, id);
        let sent = Command::new("kill").args(["-s", signal, &id.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert!(!program.wait().unwrap().success());
        let Some(group) = group.filter(|_| held) else {
            println!("skipped: control groups are not writable here");
            return;
        };
        assert!(soon(|| !group.exists()), "{signal} leaves {}", group.display());
    }
}

#[test]
#[cfg(unix)]
fn variables_that_are_no_text_are_named_where_they_are_ours() {
    use std::os::unix::ffi::OsStrExt;
    let no_text = std::ffi::OsStr::from_bytes(b"\xff");
    let ended = Command::new(RING).args(["--hops", "10"]).env("SOMEBODY_S", no_text).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let ended = Command::new(RING).env("CARIBOU_TRACE", no_text).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert_eq!(lines(&ended.stderr), ["error: CARIBOU_TRACE: expected UTF-8"]);
}

#[test]
fn a_trace_whose_directory_cannot_be_made_is_refused_in_one_line() {
    let ended = Command::new(RING).env("CARIBOU_TRACE", "/dev/null/traces").output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let [line] = &lines(&ended.stderr)[..] else { panic!("{ended:?}") };
    let begin = "error: CARIBOU_TRACE: the directory /dev/null/traces cannot be created: ";
    assert!(line.starts_with(begin), "{line}");
}

#[test]
fn a_problem_beyond_what_the_address_space_may_grow_is_refused() {
    let script = format!("ulimit -v 2000000; exec {JACOBI} --size 20000 --ranks 1");
    let ended = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let [line] = &lines(&ended.stderr)[..] else { panic!("{ended:?}") };
    assert!(line.starts_with("error: --size 20000: a process needs 3.2 GB of memory"), "{line}");
}

#[test]
fn a_trace_that_may_not_grow_ends_where_the_limit_is_and_the_run_goes_on() {
    let dir = std::env::temp_dir().join(format!("caribou-limit-{}", std::process::id()));
    // Limits in blocks of 512 bytes.
    for blocks in [10, 20, 40] {
        let script = format!("ulimit -f {blocks}; exec {STENCIL} --grid 64 --chunk 4 --iterations 40");
        let ended = Command::new("sh").args(["-c", &script]).env("CARIBOU_TRACE", &dir).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{blocks}: {ended:?}");
        assert!(
            told.contains("a file may have") || told.contains("later records are dropped"),
            "{blocks}: {told}"
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn numbers_that_are_longer_than_a_file_may_be_are_one_line() {
    let path = std::env::temp_dir().join(format!("caribou-fsize-{}.json", std::process::id()));
    let options = "--size 20 --tolerance 0 --steps 2000 --ranks 1 --json";
    let script = format!("ulimit -f 10; exec {JACOBI} {options} {}", path.display());
    let ended = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let told = lines(&ended.stderr);
    let line = told.last().unwrap();
    assert!(line.starts_with("error: cannot write ") && line.contains("File too large"), "{line}");
    assert!(!path.exists(), "nothing came of it");
}

#[test]
fn a_filter_without_a_trace_is_told_of() {
    let ended =
        Command::new(RING).args(["--hops", "10"]).env("CARIBOU_TRACE_FILTER", "handlers").output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let told = "CARIBOU_TRACE_FILTER has no effect without CARIBOU_TRACE";
    assert_eq!(String::from_utf8_lossy(&ended.stderr).matches(told).count(), 1, "{ended:?}");
}

#[test]
fn a_simulated_run_refuses_what_acts_on_vcpus() {
    for option in ["--quota 1:50", "--neighbour 1"] {
        let mut command = Command::new(STENCIL);
        command.args(["--grid", "64", "--chunk", "32", "--iterations", "4", "--ranks", "2"]);
        let ended = command.args(option.split(' ')).env("CARIBOU_SIMULATE", "1").output().unwrap();
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(2), 0), "{ended:?}");
        let told = lines(&ended.stderr).join("\n");
        assert_eq!(
            told,
            "error: --neighbour, --quota: a simulated run (CARIBOU_SIMULATE) has no vCPUs to disturb or limit"
        );
    }
}

#[test]
fn a_process_that_runs_by_itself_though_others_were_started_says_so() {
    let mut command = Command::new(RING);
    command.env_remove("MPIRUN").args(["--hops", "10"]).env("CARIBOU_PROCESSES", "threads");
    for (variable, value) in [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")] {
        command.env(variable, value);
    }
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let line = "CARIBOU_PROCESSES=threads: process 1 of 2 runs by itself";
    assert_eq!(said.matches(line).count(), 1, "{said}");
}

#[test]
fn output_that_nobody_reads_is_no_error_and_a_full_disk_is_one() {
    for (program, arguments) in [
        (RING, "--hops 100"),
        (STENCIL, "--grid 32 --chunk 8 --iterations 4"),
        (MONTECARLO, "--histories 100"),
        (PIC, "--grid 20 --particles 500 --iterations 4 --sweep-speed 1 --sweep-period 2"),
    ] {
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace()).stderr(Stdio::piped());
        let mut unread = command.stdout(Stdio::piped()).spawn().unwrap();
        drop(unread.stdout.take());
        let ended = unread.wait_with_output().unwrap();
        assert!(ended.status.success(), "{program}: {ended:?}");

        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = command.stdout(full).output().unwrap();
        let complaint = lines(&ended.stderr).pop().unwrap_or_default();
        assert_eq!(ended.status.code(), Some(1), "{program}: {ended:?}");
        assert!(
            complaint.starts_with("error: cannot write standard output: No space"),
            "{program}: {complaint}"
        );
    }
}

#[test]
fn a_wrong_directory_of_checkpoints_is_told_by_the_option_that_has_it() {
    let file = std::env::temp_dir().join(format!("caribou-no-directory-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    for (program, arguments, complaint) in [
        (
            STENCIL,
            "--restart nowhere",
            "error: --restart: nowhere does not exist, expected a directory with checkpoints, or one of them"
                .to_owned(),
        ),
        (
            MONTECARLO,
            "--restart nowhere",
            "error: --restart: nowhere does not exist, expected a directory with checkpoints, or one of them"
                .to_owned(),
        ),
        (
            STENCIL,
            &format!("--checkpoint {file}"),
            format!("error: --checkpoint: {file} is a file, expected a directory"),
        ),
    ] {
        let ended = start(program, &format!("{arguments} --ranks 1 --workers 1"));
        assert_eq!(ended.status.code(), Some(2), "{program} {arguments}: {ended:?}");
        assert_eq!(lines(&ended.stderr).pop(), Some(complaint), "{program}");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn the_old_name_of_a_parameter_is_read_and_told_in_one_line() {
    let output = start(MONTECARLO, "--histories 1000 --ranks 1 --workers 1 --lb ruper,checkpoint=1");
    let said = lines(&output.stderr);
    assert!(output.status.success(), "{said:?}");
    let warnings: Vec<_> = said.iter().filter(|line| line.contains("WARN")).collect();
    let told =
        "strategy ruper: the parameter \"checkpoint\" is now called \"interval\"; the old name is still read";
    assert!(warnings.len() == 1 && warnings[0].ends_with(told), "{said:?}");
}
