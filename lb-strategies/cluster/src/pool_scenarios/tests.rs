//! Tests the times of equal shares and of the ideal in each scenario, which are known without any policy.

use super::*;
use lb_strategies::POOLS;
use lb_strategies::pools::machine::SECOND;

/// Ideal time, and time of each rank under `static`, s, from exact integrals.
const EXPECTED: &[(&str, f64, &[f64])] = &[
    ("F6-1", 3257.7, &[2898.2, 3866.1]),
    ("F6-2", 3552.0, &[2898.2, 4790.5]),
    ("F6-3", 3457.7, &[2898.2, 4429.5]),
    ("F6-4", 3576.2, &[2898.2, 4971.6]),
    ("F7", 14164.5, &[11502.4, 18678.8]),
    ("F8a", 2538.0, &[2931.0, 2875.0, 3013.0, 2983.0]),
    ("F8b", 1969.9, &[2029.0, 2029.0, 2155.0, 2190.0]),
    ("L1", 1639.3, &[2500.0]),
    ("L2", 2666.7, &[10000.0]),
    ("L3", 4035.2, &[24000.0]),
    ("L4", 3020.2, &[5850.0]),
    ("L5", 1746.3, &[2624.1]),
    ("L6", 1697.8, &[2500.0]),
    ("M3-late", 3108.6, &[3000.0, 5280.0]),
    ("M3-mid", 3904.8, &[3000.0, 22000.0]),
    ("M4", 3636.4, &[3000.0, 4750.0]),
    ("M5", 3673.1, &[3000.0, 4750.0]),
];

fn is_close(ours: f64, expected: f64) -> bool {
    (ours / expected - 1.0).abs() <= 1e-3
}

#[test]
fn the_ideal_is_what_the_integral_of_the_speeds_says() {
    for &(name, ideal, _) in EXPECTED {
        let ours = scenario(name).unwrap().ideal_s();
        assert!(is_close(ours, ideal), "{name}: {ours}, not {ideal}");
    }
}

#[test]
fn equal_shares_take_what_the_integral_of_the_speeds_says() {
    let policy = POOLS.parse("static").unwrap();
    for &(name, _, ranks) in EXPECTED {
        let scenario = scenario(name).unwrap();
        let run = scenario.run(&*policy);
        let ours = run.rank_ends(&scenario.pool).into_iter().map(|end| end as f64 / SECOND as f64);
        let ours: Vec<f64> = ours.collect();
        assert!(run.is_complete(scenario.pool.iterations), "{name}");
        assert_eq!(ours.len(), ranks.len(), "{name}");
        let close = ours.iter().zip(ranks).all(|(&ours, &expected)| is_close(ours, expected));
        assert!(close, "{name}: {ours:?}, not {ranks:?}");
    }
}

#[test]
fn on_a_host_of_shared_cores_the_first_end_makes_others_faster() {
    let scenario = scenario("F8b").unwrap();
    let run = scenario.run(&*POOLS.parse("static").unwrap());
    let first = run.workers.iter().map(|worker| worker.end).min().unwrap();
    assert!(is_close(first as f64 / SECOND as f64, 1661.0), "{first}");
}

#[test]
fn every_scenario_and_sweep_can_be_built_and_has_a_name_of_its_own() {
    let mut names: Vec<&str> = SCENARIOS.iter().map(|entry| entry.name).collect();
    names.extend(sweeps::SWEEPS.iter().map(|sweep| sweep.name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for entry in SCENARIOS {
        assert_eq!(entry.build().name, entry.name);
    }
    for sweep in sweeps::SWEEPS {
        let mut names: Vec<String> = sweep.scenarios().into_iter().map(|scenario| scenario.name).collect();
        let count = names.len();
        names.dedup();
        assert!(count >= 6 && names.len() == count, "{}", sweep.name);
    }
}

#[test]
fn lognormal_iterations_are_ideal_at_their_sum() {
    for (name, about) in [("L8-1ms", 2500.0), ("L8-1s", 2500.0), ("L8-1ms-4", 625.0)] {
        let ideal = scenario(name).unwrap().ideal_s();
        assert!((ideal / about - 1.0).abs() < 0.05, "{name}: {ideal}");
    }
    let run = scenario("L8-30s").unwrap().run(&*POOLS.parse("static").unwrap());
    assert!(run.is_complete(700));
}
