//! Checks the promises of every policy for supersteps in the table, for any run.

use lb_strategies::SUPERSTEPS;
use lb_strategies::supersteps::{Division, Problem, Row, Step, Weights, Work};
use proptest::prelude::*;

/// The policies with their defaults, and with settings by which they divide and switch more often.
fn specs() -> impl Iterator<Item = String> {
    let often = [
        "load-factor,look=0,every=1,tolerance=0,ahead=0",
        "load-factor,by=wall,every=3",
        "des,every=1,tolerance=0,ahead=0,by=wall,window=1",
        "replicate,copies=3",
        "replicate,copies=100",
        "dlb-jr,period=1,every=1,tolerance=0,ahead=0",
        "dlb-jr,period=4,copies=4",
        "adaptive,patience=1,every=1,tolerance=0,ahead=0",
    ];
    SUPERSTEPS.iter().map(|entry| entry.name).chain(often).map(str::to_owned)
}

fn check(problem: &Problem, division: &Division) -> Result<(), TestCaseError> {
    let (units, workers) = (problem.weights.units(), problem.workers);
    prop_assert_eq!(division.units.len(), workers);
    prop_assert_eq!(division.units.iter().sum::<u64>(), units);
    prop_assert!(division.units.iter().all(|&share| share > 0 || units < workers as u64), "{:?}", division);
    prop_assert!((1..=workers as u32).contains(&division.copies));
    Ok(())
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 1e-6..10.0f64,
        1 => Just(0.0),
        1 => Just(-1.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::MIN_POSITIVE),
        1 => 1e-300..1e300f64,
    ]
}

fn weights() -> impl Strategy<Value = Weights> {
    prop_oneof![
        (0..500u64).prop_map(Weights::Equal),
        prop::collection::vec(0.01..10.0f64, 0..200).prop_map(Weights::Each)
    ]
}

prop_compose! {
    fn hostile(workers: usize)(
        works in prop::collection::vec((number(), number(), number(), number()), workers),
        (seconds, redivision_seconds, moved) in (number(), number(), 0..u64::MAX),
    ) -> Step {
        let work = |(weight, seconds, cpu_seconds, waiting_seconds)| Work { weight, seconds, cpu_seconds, waiting_seconds, allowed: Some(weight).filter(|_| weight > cpu_seconds) };
        Step { number: 0, works: works.into_iter().map(work).collect(), seconds, redivision_seconds, moved }
    }
}

fn run() -> impl Strategy<Value = (Problem, Vec<Step>)> {
    (1..9usize, weights()).prop_flat_map(|(workers, weights)| {
        let problem = Problem { workers, vcpus: None, weights };
        (Just(problem), prop::collection::vec(hostile(workers), 1..60))
    })
}

proptest! {
    #[test]
    fn every_policy_divides_all_units_whatever_it_is_told((problem, steps) in run()) {
        for spec in specs() {
            let policy = SUPERSTEPS.parse(&spec).expect("valid specification");
            let mut divider = policy.divider(&problem);
            check(&problem, &divider.first())?;
            for (number, step) in steps.iter().enumerate() {
                if let Some(division) = divider.after(&Step { number: number as u64, ..step.clone() }) {
                    check(&problem, &division)?;
                }
            }
        }
    }

    #[test]
    fn the_same_steps_give_the_same_divisions((problem, steps) in run()) {
        for spec in specs() {
            let policy = SUPERSTEPS.parse(&spec).expect("valid specification");
            let answers = || -> Vec<Option<Division>> {
                let mut divider = policy.divider(&problem);
                steps.iter().map(|step| divider.after(step)).collect()
            };
            prop_assert_eq!(answers(), answers());
        }
    }
}

#[test]
fn on_steady_workers_every_policy_that_measures_ends_with_shares_in_proportion() {
    let speeds = [4.0, 2.0, 1.0, 1.0];
    let problem = Problem { workers: 4, vcpus: None, weights: Weights::Equal(8000) };
    let row = Row::new(&problem.weights);
    for spec in ["load-factor", "des", "dlb-jr", "adaptive"] {
        let mut divider = SUPERSTEPS.parse(spec).expect("it is listed").divider(&problem);
        let mut division = divider.first();
        for number in 0..500 {
            let work = |(weight, speed): (f64, &f64)| {
                let seconds = weight / speed * 1e-5;
                Work { weight, seconds, cpu_seconds: seconds, ..Work::default() }
            };
            let works: Vec<Work> = row.weights(&division).zip(&speeds).map(work).collect();
            let seconds = works.iter().map(|work| work.seconds).fold(0.0, f64::max);
            division = divider.after(&Step { number, works, seconds, ..Step::default() }).unwrap_or(division);
        }
        assert_eq!((division.units, division.copies), (vec![4000, 2000, 1000, 1000], 1), "{spec}");
    }
}
