//! Tests how loads recorded in real runs are read, and the assignments of `refine` for them: `../shared/data/lbaf`, if
//! it is present. The expected values are those of LBAF (the load balancing analysis framework).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use lb_strategies::balancer::MOVE_COST;
use lb_strategies::metrics::{Moved, bound_ns, completion_ns, imbalance, memory_bytes};
use lb_strategies::{ARRAYS, Assignment, Background, LinkCost, LinkCosts, MoveCost, Period, Snapshot};
use virtual_cluster::{Array, ArrayScenario, ChunkCosts, LoadFormat, RecordedLoads, Traces};

/// The imbalance after an assignment by `strategy`, and the number of moved chunks.
fn outcome(strategy: &str, snapshot: &Snapshot) -> (f64, usize) {
    let assignment = ARRAYS.parse(strategy).expect("listed").assign(snapshot);
    (imbalance(snapshot, &assignment, Background::Share), Moved::of(snapshot, &assignment).chunks)
}

/// The imbalance of the placement in the files.
fn imbalance_now(snapshot: &Snapshot) -> f64 {
    imbalance(snapshot, &Assignment::current(snapshot), Background::Share)
}

/// Checks that a value rounds to the expected one, which has six digits.
#[track_caller]
fn assert_value(value: f64, expected: f64, what: &str) {
    assert!(
        (value - expected).abs() <= 1e-5 * expected.abs() + 1e-9,
        "{what}: {value} instead of {expected}"
    );
}

const COLOUR: &str = "nolb-8color-16nodes-11firstphases/data";

#[test]
fn each_set_has_the_imbalance_that_lbaf_prints() {
    let first_phases = [
        0.992946, 4.94672, 0.22433, 0.0404997, 0.0419666, 0.0430179, 0.0388724, 0.0492161, 0.0428886,
        1.45364, 0.0977061,
    ];
    for (stem, ranks, tasks, expected) in [
        (COLOUR, 32, 480, &first_phases[..]),
        ("challenging_toy_fewer_tasks/toy", 16, 274, &[1.91698]),
        ("user-defined-memory-toy-problem/toy_mem", 4, 32, &[1.17143]),
        ("user-defined-memory-toy-problem/toy_mem_README", 4, 32, &[0.0285714]),
        ("user-defined-memory-toy-problem/toy_mem_optimal", 4, 32, &[0.0]),
        ("synthetic-blocks/synthetic-dataset-blocks", 4, 9, &[1.0]),
    ] {
        let Some(loads) = recorded(stem, LoadFormat::Json, ranks) else { continue };
        assert_eq!(loads.snapshots().len(), expected.len(), "{stem}");
        for (snapshot, &expected) in loads.snapshots().iter().zip(expected) {
            assert_value(imbalance_now(snapshot), expected, stem);
            assert_eq!(snapshot.chunks.len(), tasks, "{stem}");
        }
    }
    let Some(loads) = recorded(COLOUR, LoadFormat::Json, 32) else { return };
    let sums = [
        10.5721, 0.638841, 0.52231, 0.517308, 0.518246, 0.516488, 0.516154, 0.516329, 0.516689, 0.543617,
        0.519023,
    ];
    for (snapshot, sum_s) in loads.snapshots().iter().zip(sums) {
        let ticks: u64 = snapshot.chunks.iter().map(|chunk| chunk.ticks).sum();
        assert_value(ticks as f64 / 1e9, sum_s, "sum of loads");
        assert_eq!(snapshot.chunks.iter().filter(|chunk| !chunk.migratable).count(), 224);
    }
    // The largest fixed task of phase 1, and the largest chunk of phase 9, bound what any strategy can reach.
    let least = |phase: usize| {
        let snapshot = &loads.snapshots()[phase];
        let mean_ns = snapshot.chunks.iter().map(|chunk| chunk.ticks).sum::<u64>() as f64 / 32.0;
        bound_ns(snapshot, Background::Share) as f64 / mean_ns - 1.0
    };
    assert_value(least(1), 4.2845, "phase 1");
    assert!((least(9) - 0.7313).abs() < 5e-5, "{}", least(9));
}

#[test]
fn each_of_500_phases_has_the_imbalance_that_lbaf_prints() {
    let Some(loads) = recorded("nolb-data/data", LoadFormat::Vom, 8) else { return };
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/lbaf/nolb-data/nolb-data-initial-data.txt"
    );
    let text = std::fs::read_to_string(file).expect("it is beside the loads");
    let expected: Vec<f64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    assert_eq!((expected.len(), loads.snapshots().len()), (500, 500));
    for (snapshot, expected) in loads.snapshots().iter().zip(expected) {
        assert_value(imbalance_now(snapshot), expected, &format!("phase {}", snapshot.phase));
    }
}

/// Work is the load plus 10 ns for each byte that a rank sends or receives, whichever are more.
#[test]
fn work_is_that_of_the_test_of_lbaf() {
    let Some(loads) = recorded(COLOUR, LoadFormat::Json, 32) else { return };
    let expected = [
        (10.5817, 0.992173),
        (0.642948, 4.91849),
        (0.526383, 0.221116),
        (0.521197, 0.0442304),
        (0.52225, 0.0461051),
        (0.520378, 0.0469951),
        (0.520078, 0.0430356),
        (0.520286, 0.0532831),
        (0.520617, 0.0466161),
        (0.547612, 1.44446),
        (0.522944, 0.098434),
    ];
    let link = LinkCost { ns_per_message: 0.0, ns_per_byte: 10.0 };
    for (snapshot, (sum_s, imbalance)) in loads.snapshots().iter().zip(expected) {
        let links = LinkCosts { within_host: link, between_hosts: link };
        let snapshot = Snapshot { links, ..snapshot.clone() };
        let work = completion_ns(&snapshot, &Assignment::current(&snapshot), Background::Share);
        let (sum, most) = (work.iter().sum::<u64>() as f64, work.iter().max().copied().unwrap_or(0) as f64);
        let what = format!("phase {}", snapshot.phase);
        assert_value(sum / 1e9, sum_s, &what);
        assert_value(most * work.len() as f64 / sum - 1.0, imbalance, &what);
    }
}

#[test]
fn memory_is_that_of_lbaf() {
    for (stem, ranks, blocks, most) in [
        ("user-defined-memory-toy-problem/toy_mem", 4, 12, 5.89e9),
        ("user-defined-memory-toy-problem/toy_mem_optimal", 4, 12, 7.49e9),
        ("challenging_toy_fewer_tasks/toy", 16, 64, 6.29e9),
    ] {
        let Some(mut loads) = recorded(stem, LoadFormat::Json, ranks) else { continue };
        loads.limit_memory(8_000_000_000);
        let snapshot = &loads.snapshots()[0];
        let memory = snapshot.memory.as_ref().expect("limited");
        let used = memory_bytes(snapshot, &Assignment::current(snapshot));
        let of_ranks: Vec<u64> =
            used.iter().zip(&memory.limits).map(|(used, limit)| used + 8_000_000_000 - limit).collect();
        assert_eq!(memory.blocks.len(), blocks, "{stem}");
        let fullest = of_ranks.iter().max().copied().unwrap_or(0) as f64;
        assert!((fullest - most).abs() < 0.005e9, "{stem}: {fullest}");
        let all_full = of_ranks.iter().all(|&bytes| (bytes as f64 - most).abs() < 0.005e9);
        assert!(all_full, "{stem}: {of_ranks:?}");
    }
    let Some(mut loads) = recorded("synthetic-blocks/synthetic-dataset-blocks", LoadFormat::Json, 4) else {
        return;
    };
    loads.limit_memory(36);
    let snapshot = &loads.snapshots()[0];
    assert_eq!(memory_bytes(snapshot, &Assignment::current(snapshot)), [18, 18, 9, 0]);
}

/// The smallest imbalances of eleven phases that simulated annealing found with at most 5, 10, 25 and 38 moves.
const ANNEALED: [[f64; 4]; 11] = [
    [0.664, 0.376, 0.193, 0.165],
    [4.52, 4.2845, 4.2845, 4.2845],
    [0.0459, 0.0370, 0.0187, 0.0092],
    [0.0285, 0.0226, 0.0135, 0.0067],
    [0.0346, 0.0248, 0.0114, 0.0064],
    [0.0353, 0.0256, 0.0122, 0.0053],
    [0.0313, 0.0200, 0.0094, 0.0045],
    [0.0299, 0.0233, 0.0106, 0.0050],
    [0.0298, 0.0249, 0.0099, 0.0041],
    [0.959, 0.7313, 0.7313, 0.7313],
    [0.0364, 0.0260, 0.0149, 0.0073],
];

#[test]
fn few_moves_reach_what_annealing_reaches() {
    let Some(loads) = recorded(COLOUR, LoadFormat::Json, 32) else { return };
    for (snapshot, annealed) in loads.snapshots().iter().zip(ANNEALED) {
        for (moves, annealed) in [5, 10, 25, 38].into_iter().zip(annealed) {
            let (imbalance, moved) = outcome(&format!("comm,moves={moves}"), snapshot);
            let what = format!("phase {}: {imbalance} with {moved} of {moves} moves", snapshot.phase);
            assert!(moved <= moves && imbalance <= annealed + 0.02, "{what}, annealing {annealed}");
        }
    }
}

#[test]
fn coarse_phases_end_within_the_tolerance() {
    let Some(loads) = recorded("nolb-8color-16nodes-data/data", LoadFormat::Json, 32) else { return };
    for snapshot in loads.snapshots() {
        let phase = snapshot.phase;
        let (after, moved) = outcome("refine", snapshot);
        // One pinned task takes 5.28 times the average of phase 1.
        let (bound, moved_max) = if phase == 1 { (4.2846, 8) } else { (0.0251, 44) };
        assert!(after <= bound && moved <= moved_max, "phase {phase}: {after} with {moved} moves");
    }
}

#[test]
fn first_phases_end_within_the_tolerance_of_the_possible() {
    let Some(loads) = recorded("nolb-8color-16nodes-11firstphases/data", LoadFormat::Json, 32) else {
        return;
    };
    for snapshot in loads.snapshots() {
        let phase = snapshot.phase;
        let (after, _) = outcome("refine", snapshot);
        // In phase 1 a pinned task is the bound, in phase 9 a chunk of 1.57 times the average.
        let bound = if phase == 1 {
            4.2845
        } else if phase == 9 {
            0.7313
        } else {
            0.0
        };
        assert!(1.0 + after <= 1.05 * (1.0 + bound), "phase {phase}: {after}");
    }
}

#[test]
fn a_drifting_run_is_followed_with_few_moves() {
    let Some(loads) = recorded("nolb-data/data", LoadFormat::Vom, 8) else { return };
    let refine = ARRAYS.parse("refine").expect("listed");
    let (mut placed, mut moved, mut seen) = (BTreeMap::new(), 0, 0.0);
    for mut snapshot in loads.snapshots().iter().cloned() {
        for chunk in &mut snapshot.chunks {
            chunk.rank = placed.get(&chunk.id).copied().unwrap_or(chunk.rank);
        }
        let assignment = refine.assign(&snapshot);
        seen += imbalance(&snapshot, &Assignment::current(&snapshot), Background::Share);
        moved += Moved::of(&snapshot, &assignment).chunks;
        placed.extend(snapshot.chunks.iter().map(|chunk| chunk.id).zip(assignment.ranks));
    }
    // In most phases one chunk is the bound. The mean of the bounds is 0.117.
    let mean = seen / loads.phases() as f64;
    assert!(mean < 0.14 && moved < 200, "imbalance {mean}, {moved} moves");
}

/// In windows, `refine` takes little longer than the best strategy with the best fixed period. Times are virtual.
#[test]
fn a_drifting_run_needs_no_period() {
    let Some(loads) = recorded("nolb-data/data", LoadFormat::Vom, 8) else { return };
    let homes = loads.homes();
    for state_bytes in [64 << 10, 4 << 20] {
        let array = Array {
            chunks: homes.len() as u32,
            iterations: loads.phases(),
            period: Period::Auto,
            state_bytes,
            workers: vec![1; loads.ranks() as usize],
        };
        let run = |strategy: &str, period| {
            let array = Array { period, ..array.clone() };
            let scenario = ArrayScenario {
                costs: ChunkCosts::Listed(loads.costs(1.0)),
                homes: Some(homes.clone().into()),
                move_cost: MoveCost { bytes_per_second: 1.25e9, ..MOVE_COST },
                ..ArrayScenario::new("recorded", array, || Box::new(Traces::constant(|_| 1.0)))
            };
            scenario.run(ARRAYS.parse(strategy).expect("listed").into()).makespan() as f64
        };
        let mut shortest = f64::INFINITY;
        for strategy in ["refine", "hierarchical", "greedy"] {
            for period in [1, 2, 5, 10, 20, 50] {
                shortest = shortest.min(run(strategy, Period::Steps(period)));
            }
        }
        let longer = run("refine", Period::Auto) / shortest;
        assert!(longer <= 1.025, "{state_bytes} bytes per chunk: {longer}");
    }
}

/// The loads of a recorded run. Prints a line if its files are absent.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn recorded(stem: &str, format: LoadFormat, ranks: u32) -> Option<RecordedLoads> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/lbaf"));
    let name = |rank| format!("{stem}.{rank}.{}", format.extension());
    let mut files = Vec::new();
    for rank in 0..ranks {
        let Ok(bytes) = std::fs::read(root.join(name(rank))) else {
            println!("skip: ../shared/data/lbaf/{} not found", name(rank));
            return None;
        };
        let is_plain = format == LoadFormat::Vom || bytes.first() == Some(&b'{');
        files.push((name(rank), if is_plain { bytes } else { decompressed(&bytes) }));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    Some(RecordedLoads::parse(format, &files).expect("they are sound"))
}

fn decompressed(compressed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    brotli_decompressor::Decompressor::new(compressed, 4096).read_to_end(&mut bytes).expect("brotli");
    bytes
}
