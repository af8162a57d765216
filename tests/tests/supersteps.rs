//! Programs in supersteps: the same result under every division, with copies or without, on any ranks and by any seed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use caribou::lb::supersteps::{Divider, Division, Problem, Row, Step, SuperstepStrategy, Weights};
use caribou::supersteps::{Exchange, Job, Parts, SuperstepOutcome, Supersteps, Then};
use caribou::trace::{StepRecord, StepWorker};
use caribou::{Config, Error};
use caribou_tests::{expected, scratch, seeds, simulated};
use lb_strategies::virtual_time::SplitMix64;
use lb_strategies::{Listing, SUPERSTEPS};
use trace_reader::Trace;

/// A bar of cells, each of which takes on what its neighbours have, in whole numbers; and all know the sum of all by
/// cell.
#[derive(Clone, Copy)]
struct Bar {
    cells: u64,
    steps: u64,
    heavy: bool,
    exchange: Exchange,
}

/// Of a usual sweep.
const SEEDS: u64 = 1000;
const WAYS: [Exchange; 3] = [Exchange::Direct, Exchange::Ring, Exchange::Gather];

impl Bar {
    fn serial(self) -> (Vec<u64>, Vec<u64>) {
        let mut cells: Vec<u64> = (0..self.cells).map(|cell| self.unit(cell)).collect();
        let mut known = self.begin().1;
        for step in 0..self.steps {
            let old = cells.clone();
            for (at, cell) in cells.iter_mut().enumerate() {
                let neighbour = |at: Option<usize>| at.and_then(|at| old.get(at)).copied().unwrap_or(7);
                *cell = next(step, old[at], neighbour(at.checked_sub(1)), neighbour(Some(at + 1)), known[at]);
            }
            known.clone_from(&cells);
        }
        (cells, known)
    }
}

fn next(step: u64, old: u64, before: u64, after: u64, known: u64) -> u64 {
    let mixed = old.wrapping_mul(3).wrapping_add(before).wrapping_add(after.rotate_left(7));
    mixed ^ known.wrapping_add(step)
}

impl Supersteps for Bar {
    type Unit = u64;
    type Edge = u64;
    type Part = Vec<u64>;
    /// Steps so far, and all cells.
    type Shared = (u64, Vec<u64>);

    fn units(&self) -> u64 {
        self.cells
    }

    fn weight(&self, unit: u64) -> f64 {
        if self.heavy { 1.0 + (unit % 5) as f64 } else { 1.0 }
    }

    fn begin(&self) -> (u64, Vec<u64>) {
        (0, vec![1; self.cells as usize])
    }

    fn unit(&self, number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn edge(&self, cell: &u64) -> Option<u64> {
        Some(*cell)
    }

    fn compute(&self, job: Job<'_, Self>) -> Vec<u64> {
        let mut before = job.before.copied().unwrap_or(7);
        for at in 0..job.data.len() {
            let after = job.data.get(at + 1).or(job.after).copied().unwrap_or(7);
            let old = job.data[at];
            let known = job.shared.1[job.units.start as usize + at];
            job.data[at] = next(job.step, old, before, after, known);
            before = old;
        }
        job.data.to_vec()
    }

    fn combine(&self, (steps, shared): &mut (u64, Vec<u64>), parts: Parts<'_, Vec<u64>>) -> Then {
        let mut covered = 0;
        shared.clear();
        for (units, part) in parts {
            assert_eq!(
                (units.start, units.end - units.start),
                (covered, part.len() as u64),
                "in order, each once"
            );
            covered = units.end;
            shared.extend(part);
        }
        assert_eq!(covered, self.cells);
        *steps += 1;
        if *steps == self.steps { Then::End } else { Then::Step }
    }

    fn exchange(&self) -> Exchange {
        self.exchange
    }

    fn collects(&self) -> bool {
        true
    }
}

/// Divides at nearly every step, at random, with copies at times.
struct Restless {
    seed: u64,
    copies: bool,
}

struct Jumps {
    random: SplitMix64,
    row: Row,
    workers: usize,
    copies: bool,
}

impl SuperstepStrategy for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        let row = Row::new(&problem.weights);
        let random = SplitMix64::new(self.seed);
        Box::new(Jumps { random, row, workers: problem.workers, copies: self.copies })
    }
}

impl Jumps {
    fn jump(&mut self) -> Division {
        // Some shares are empty.
        let speeds: Vec<f64> = (0..self.workers).map(|_| (self.random.uniform() - 0.2).max(0.0)).collect();
        let copies = if self.copies { 1 + self.random.number() % self.workers as u64 } else { 1 };
        Division { units: self.row.in_proportion(&speeds, 0), copies: copies as u32 }
    }
}

impl Divider for Jumps {
    fn first(&mut self) -> Division {
        self.jump()
    }

    fn after(&mut self, _: &Step) -> Option<Division> {
        (self.random.uniform() < 0.7).then(|| self.jump())
    }
}

fn check(bar: Bar, config: &Config) -> SuperstepOutcome<Bar> {
    let outcome = caribou::supersteps(config, bar).unwrap_or_else(|error| panic!("{error}"));
    let (cells, known) = bar.serial();
    assert!(outcome.units == cells && outcome.shared.1 == known, "{config:?}");
    assert_eq!(outcome.report.steps, bar.steps);
    outcome
}

/// The error that ends a run.
fn error_of(config: &Config, program: impl Supersteps) -> String {
    caribou::supersteps(config, program).map(|_| ()).expect_err("it is refused").to_string()
}

#[test]
fn any_division_at_any_step_gives_the_same_result_by_any_seed() {
    let (mut moved, mut dropped) = (0, 0);
    for seed in seeds(SEEDS, "--test supersteps") {
        let (ranks, copies) = (1 + seed as u32 % 4, seed % 3 > 0);
        let bar = Bar {
            cells: 1 + seed % 29,
            steps: 1 + seed % 12,
            heavy: seed % 2 == 0,
            exchange: WAYS[seed as usize / 3 % 3],
        };
        let config = simulated(seed).ranks(ranks).superstep_strategy(Restless { seed, copies });
        let report = check(bar, &config).report;
        moved += report.divisions.iter().map(|division| division.moved).sum::<u64>();
        dropped += report.workers.iter().map(|worker| worker.dropped).sum::<u64>();
    }
    let enough = moved >= expected(SEEDS + 1, SEEDS) && dropped >= expected(SEEDS / 10 + 1, SEEDS);
    assert!(enough, "{moved} units moved, {dropped} jobs were dropped");
}

#[test]
fn every_policy_gives_the_same_result_on_ranks_workers_and_wire() {
    let specs = SUPERSTEPS.names().into_iter().map(str::to_owned).chain(["replicate,copies=4".to_owned()]);
    for spec in specs {
        for (ranks, workers, wire) in
            [(1, 1, false), (2, 1, false), (2, 2, true), (3, 1, true), (1, 4, false)]
        {
            let config = Config::default().ranks(ranks).workers(workers).wire_always(wire);
            let config = config.lb(&spec).unwrap_or_else(|error| panic!("{error}"));
            for exchange in WAYS {
                let outcome = check(Bar { cells: 50, steps: 40, heavy: true, exchange }, &config);
                assert_eq!(outcome.report.lb, spec);
            }
        }
    }
}

#[test]
fn workers_of_inactive_ranks_have_no_units_under_any_policy() {
    for spec in SUPERSTEPS.names().into_iter().map(str::to_owned).chain(["replicate,copies=2".to_owned()]) {
        let mut shrunk = 0;
        for seed in (1..80).step_by(4) {
            let ranks = 2 + seed as u32 % 3;
            let config = simulated(seed).ranks(ranks).lb(&spec).expect("listed");
            let bar = Bar { cells: 20, steps: 40, heavy: seed % 2 == 0, exchange: WAYS[seed as usize % 3] };
            let mut active = ranks as usize;
            for division in check(bar, &config).report.divisions {
                let resized = division.reason.as_deref().and_then(|why| why.strip_suffix(" active ranks"));
                if let Some(ranks) = resized {
                    active = ranks.parse().expect("a number");
                }
                assert!(
                    division.units[active..].iter().all(|&units| units == 0),
                    "{spec} {seed} {division:?}"
                );
                shrunk += usize::from(resized.is_some() && active < ranks as usize);
            }
        }
        assert!(shrunk > 20, "{spec}: {shrunk}");
    }
}

#[test]
fn units_that_jump_arrive_on_threads_too() {
    for seed in 0..20 {
        let (copies, wire) = (seed % 2 == 0, seed % 4 < 2);
        let config = Config::default().ranks(2).workers(2).wire_always(wire);
        let outcome = check(
            Bar { cells: 40, steps: 60, heavy: false, exchange: WAYS[seed as usize % 3] },
            &config.superstep_strategy(Restless { seed, copies }),
        );
        let divisions = &outcome.report.divisions;
        assert!(divisions.len() > 10 && divisions.iter().any(|one| one.moved > 0), "{divisions:?}");
    }
}

#[test]
fn a_trace_has_a_record_of_each_step_with_what_the_report_says_of_all() {
    for (seed, copies) in [(0, false), (1, true)] {
        let dir = scratch();
        let bar = Bar { cells: 50, steps: 200, heavy: false, exchange: Exchange::Direct };
        let policy = Restless { seed, copies };
        let config = Config::default().ranks(3).superstep_strategy(policy).trace(&dir);
        let report = check(bar, &config).report;
        let trace = Trace::open(&dir).unwrap_or_else(|error| panic!("{error}"));
        assert!(trace.steps.iter().map(|step| step.step).eq(0..bar.steps), "one of each, in order");
        let units = |step: &StepRecord| step.workers.iter().map(|worker| worker.units).sum::<u64>();
        assert!(trace.steps.iter().all(|step| units(step) == bar.cells && step.end_ns >= step.begin_ns));
        let divided = trace.steps.iter().filter(|step| step.divided);
        assert!(divided.clone().map(|step| step.moved).any(|moved| moved > 0));
        let divided = divided.map(|step| (step.step, step.copies, step.moved));
        assert!(divided.eq(report.divisions.iter().map(|one| (one.step, one.copies, one.moved))));
        for (worker, told) in report.workers.iter().enumerate() {
            let sum =
                |of: fn(&StepWorker) -> u64| trace.steps.iter().map(|step| of(&step.workers[worker])).sum();
            let sums: [u64; 3] =
                [sum(|did| did.computing_ns), sum(|did| did.dropped), sum(|did| did.dropped_ns)];
            assert_eq!(sums, [told.computing_ns, told.dropped, told.dropped_ns]);
            assert!(told.dropped_ns <= told.computing_ns);
        }
        let dropped = report.workers.iter().map(|worker| worker.dropped).sum::<u64>();
        assert_eq!(dropped > 0, copies, "{dropped}");
    }
}

/// Combines by part, so that what is known depends on where parts end; and every part says what its worker knew.
struct ByPart;

impl Supersteps for ByPart {
    type Unit = ();
    type Edge = ();
    type Part = (f64, f64);
    type Shared = (u64, f64);

    fn units(&self) -> u64 {
        64
    }

    fn begin(&self) -> (u64, f64) {
        (0, 1.0)
    }

    fn unit(&self, _: u64) {}

    fn compute(&self, job: Job<'_, Self>) -> (f64, f64) {
        (job.units.map(|unit| 0.1 * unit as f64).sum(), job.shared.1)
    }

    fn combine(&self, (steps, known): &mut (u64, f64), parts: Parts<'_, (f64, f64)>) -> Then {
        let mut new = 0.0;
        for (_, (sum, knew)) in parts {
            assert!(knew.to_bits() == known.to_bits(), "a worker knows {knew}, and another {known}");
            new = 0.5 * new + sum;
        }
        (*steps, *known) = (*steps + 1, new);
        if *steps == 20 { Then::End } else { Then::Step }
    }
}

#[test]
fn all_workers_combine_the_same_parts_whichever_finished_a_job_first() {
    let check = |config: Config| {
        caribou::supersteps(&config, ByPart).unwrap_or_else(|error| panic!("{config:?}: {error}"));
    };
    for seed in seeds(SEEDS, "--test supersteps") {
        check(simulated(seed).ranks(3).superstep_strategy(Restless { seed, copies: true }));
    }
    for seed in 0..20 {
        check(Config::default().ranks(3).superstep_strategy(Restless { seed, copies: true }));
    }
}

/// A step in which every worker waits until all compute it.
struct Together {
    workers: usize,
    computing: Mutex<u64>,
    all: Condvar,
}

impl Supersteps for Together {
    type Unit = ();
    type Edge = ();
    type Part = bool;
    type Shared = u64;

    fn units(&self) -> u64 {
        9
    }

    fn begin(&self) -> u64 {
        0
    }

    fn unit(&self, _: u64) {}

    fn compute(&self, job: Job<'_, Self>) -> bool {
        let mut computing = self.computing.lock().expect("nobody panics");
        *computing += 1;
        self.all.notify_all();
        let wanted = (job.step + 1) * self.workers as u64;
        let met = self.all.wait_timeout_while(computing, Duration::from_secs(20), |so_far| *so_far < wanted);
        !met.expect("nobody panics").1.timed_out()
    }

    fn combine(&self, steps: &mut u64, parts: Parts<'_, bool>) -> Then {
        for (units, met) in parts {
            assert!(met, "in step {steps} the worker of units {units:?} computed, and others did not begin");
        }
        *steps += 1;
        if *steps == 12 { Then::End } else { Then::Step }
    }
}

/// Divides anew after every step that it hears of.
struct Swing;

impl SuperstepStrategy for Swing {
    fn name(&self) -> &'static str {
        "swing"
    }

    fn divider(&self, _: &Problem) -> Box<dyn Divider> {
        Box::new(Swing)
    }
}

impl Divider for Swing {
    fn first(&mut self) -> Division {
        Division { units: vec![3, 3, 3], copies: 1 }
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        let units = if step.number.is_multiple_of(2) { vec![4, 1, 4] } else { vec![2, 5, 2] };
        Some(Division { units, copies: 1 })
    }
}

#[test]
fn what_others_wait_for_leaves_before_a_worker_computes() {
    let program = Together { workers: 3, computing: Mutex::new(0), all: Condvar::new() };
    let config = Config::default().ranks(3).superstep_strategy(Swing);
    let outcome = caribou::supersteps(&config, program).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.report.divisions.len() > 4, "{:?}", outcome.report.divisions);
}

/// Units of which only the odd ones have an edge.
struct Ragged(u64);

impl Supersteps for Ragged {
    type Unit = u64;
    type Edge = u64;
    type Part = ();
    type Shared = ();

    fn units(&self) -> u64 {
        self.0
    }

    fn begin(&self) {}

    fn unit(&self, number: u64) -> u64 {
        number
    }

    fn edge(&self, unit: &u64) -> Option<u64> {
        Some(*unit).filter(|unit| !unit.is_multiple_of(2))
    }

    fn compute(&self, _: Job<'_, Self>) {}

    fn combine(&self, (): &mut (), _: Parts<'_, ()>) -> Then {
        Then::End
    }
}

/// Panics in one of the calls, or ends at worker 0 alone.
struct Faulty(&'static str);

impl Supersteps for Faulty {
    type Unit = u64;
    type Edge = ();
    type Part = bool;
    type Shared = u64;

    fn units(&self) -> u64 {
        10
    }

    fn begin(&self) -> u64 {
        assert!(self.0 != "begin", "on purpose");
        0
    }

    fn unit(&self, number: u64) -> u64 {
        assert!(self.0 != "unit" || number < 7, "on purpose");
        number
    }

    fn edge(&self, _: &u64) -> Option<()> {
        assert!(self.0 != "edge", "on purpose");
        None
    }

    fn compute(&self, job: Job<'_, Self>) -> bool {
        assert!(self.0 != "compute" || job.step < 3 || job.units.start == 0, "on purpose");
        job.units.start == 0
    }

    fn combine(&self, steps: &mut u64, _: Parts<'_, bool>) -> Then {
        *steps += 1;
        assert!(self.0 != "combine" || *steps < 5, "on purpose");
        // What a program must not do: its process knows how often it was asked.
        let alone = ASKED.fetch_add(u64::from(self.0 == "ends"), Ordering::Relaxed) == 8;
        if alone || *steps == 30 { Then::End } else { Then::Step }
    }
}

static ASKED: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_fault_of_the_program_is_told_by_what_it_was_called_for() {
    for (fault, expected) in [
        ("begin", "creating the shared data"),
        ("unit", "creating unit 7"),
        ("edge", "returning the edge of a unit"),
        ("compute", "rank 1 panicked while computing units 5 to 9 in step 3: on purpose"),
        ("combine", "combining the parts of step 4: on purpose"),
        ("ends", "after step 4 `combine` ended the run on worker"),
    ] {
        for config in [Config::default().simulate(1), Config::default()] {
            ASKED.store(0, Ordering::Relaxed);
            let error = error_of(&config.ranks(2).lb("equal").expect("ours"), Faulty(fault));
            assert!(error.contains(expected), "{fault}: {error}");
        }
    }
}

#[test]
fn edges_of_some_units_and_units_beyond_memory_are_refused() {
    let refused = |units| error_of(&Config::default().ranks(2), Ragged(units));
    let error = refused(12);
    assert!(error.contains("expected all units or no unit to have one"), "{error}");
    let error = refused(u64::MAX);
    assert!(error.contains("18446744073709551615 units do not fit into memory"), "{error}");
}

/// Begins with another division whenever it is asked.
struct Fickle(AtomicU64);

impl SuperstepStrategy for Fickle {
    fn name(&self) -> &'static str {
        "fickle"
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        let mut units = vec![0; problem.workers];
        units[asked as usize % problem.workers] = Row::new(&problem.weights).units();
        let division = Division { units, copies: 1 };
        Box::new(WrongDivider { first: division.clone(), then: division })
    }
}

#[test]
fn all_begin_with_the_division_that_the_policy_said_once() {
    let bar = Bar { cells: 10, steps: 20, heavy: false, exchange: Exchange::Direct };
    check(bar, &Config::default().ranks(3).superstep_strategy(Fickle(AtomicU64::new(0))));
}

#[test]
fn a_wrong_answer_ends_a_run_of_one_worker_too() {
    let bar = Bar { cells: 10, steps: 100, heavy: false, exchange: Exchange::Direct };
    let wrong = Wrong(Division { units: vec![3], copies: 1 });
    let error = error_of(&Config::default().ranks(1).superstep_strategy(wrong), bar);
    assert!(error.contains("the policy `wrong` returned shares of 3 units, expected 10 units"), "{error}");
}

/// What a policy must not answer.
struct Wrong(Division);

impl SuperstepStrategy for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn divider(&self, problem: &Problem) -> Box<dyn Divider> {
        let units = Row::new(&problem.weights).in_proportion(&vec![1.0; problem.workers], 1);
        Box::new(WrongDivider { first: Division { units, copies: 1 }, then: self.0.clone() })
    }
}

struct WrongDivider {
    first: Division,
    then: Division,
}

impl Divider for WrongDivider {
    fn first(&mut self) -> Division {
        self.first.clone()
    }

    fn after(&mut self, step: &Step) -> Option<Division> {
        (step.number == 3).then(|| self.then.clone())
    }
}

#[test]
fn a_policy_that_loses_units_ends_the_run_with_what_was_wrong() {
    let bar = Bar { cells: 10, steps: 100, heavy: false, exchange: Exchange::Direct };
    for (units, copies, why) in [
        (vec![5, 4], 1, "after step 3 the policy `wrong` returned shares of 9 units, expected 10 units"),
        (
            vec![10],
            1,
            "after step 3 the policy `wrong` returned 1 shares, expected one for each of 2 workers",
        ),
        (vec![5, 5], 3, "after step 3 the policy `wrong` returned 3 copies, expected a number from 1 to 2"),
    ] {
        let config = Config::default().ranks(2).superstep_strategy(Wrong(Division { units, copies }));
        let error = error_of(&config, bar);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_program_without_units_and_a_policy_of_another_shape_are_refused() {
    let refused = |config: &Config, cells| {
        let bar = Bar { cells, steps: 1, heavy: false, exchange: Exchange::Direct };
        caribou::supersteps(config, bar).map(|_| ()).expect_err("it is refused")
    };
    assert!(matches!(refused(&Config::default(), 0), Error::Config { .. }));
    let config = Config::default().lb("greedy").unwrap_or_else(|error| panic!("{error}"));
    let error = refused(&config, 5).to_string();
    assert!(
        error.contains("`greedy` balances arrays, but this is a program in supersteps: use one of equal, "),
        "{error}"
    );
    let weights = Weights::Each(vec![1.0, f64::NAN]);
    assert_eq!(Row::new(&weights).units(), 2);
}
