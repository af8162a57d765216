//! Tests the assignments of `refine` for loads recorded in real runs: `../shared/data/lbaf`, if it is present.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use lb_strategies::balancer::MOVE_COST;
use lb_strategies::metrics::{Moved, imbalance};
use lb_strategies::{ARRAYS, Assignment, Background, MoveCost, Period, Snapshot};
use virtual_cluster::{Array, ArrayScenario, ChunkCosts, LoadFormat, RecordedLoads, Traces};

/// The imbalance after an assignment by `strategy`, and the number of moved chunks.
fn outcome(strategy: &str, snapshot: &Snapshot) -> (f64, usize) {
    let assignment = ARRAYS.parse(strategy).expect("listed").assign(snapshot);
    (imbalance(snapshot, &assignment, Background::Share), Moved::of(snapshot, &assignment).chunks)
}

#[test]
fn coarse_phases_end_within_the_tolerance() {
    let Some(loads) = recorded("nolb-8color-16nodes-data/data", LoadFormat::Json, 32) else { return };
    for snapshot in loads.snapshots() {
        let phase = snapshot.phase;
        let (after, moved) = outcome("refine", &snapshot);
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
        let (after, _) = outcome("refine", &snapshot);
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
    for mut snapshot in loads.snapshots() {
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
        files.push((name(rank), if format == LoadFormat::Json { decompressed(&bytes) } else { bytes }));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    Some(RecordedLoads::parse(format, &files).expect("they are sound"))
}

fn decompressed(compressed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    brotli_decompressor::Decompressor::new(compressed, 4096).read_to_end(&mut bytes).expect("brotli");
    bytes
}
