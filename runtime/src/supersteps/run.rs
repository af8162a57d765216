//! Runs a program in supersteps: makes its shares, and runs them as an array of chunks.

use std::sync::{Arc, Mutex, PoisonError};

use lb_strategies::Shape;
use lb_strategies::supersteps::row::held;
use lb_strategies::supersteps::{Divider, Problem, Row, Weights};

use super::api::Supersteps;
use super::checkpoint::SavedState;
use super::measure::Stopwatch;
use super::program::Program;
use super::report::{SuperstepOutcome, SuperstepReport};
use super::root::{Figures, MakeDivider, Root, check};
use super::share::Share;
use crate::arrays::api::setup::{Placement, Setup};
use crate::arrays::run::run_layered;
use crate::config::Config;
use crate::error::Error;
use crate::launch::Launch;

/// Runs a program in supersteps until its [`combine`](Supersteps::combine) returns
/// [`Then::End`](crate::supersteps::Then::End).
///
/// `CARIBOU_LB` selects the policy that divides the units into one share per worker. Under `mpirun` every process calls
/// this with the same program and gets the same outcome.
///
/// A rank has `CARIBOU_WORKERS` shares, by default one. A simulated run has one share per rank. Idle threads of a rank
/// run the rank's other shares, so if vCPUs differ in speed, use one rank per vCPU, as by default.
///
/// ```
/// use caribou::supersteps::{Job, Parts, Supersteps, Then};
/// use caribou::Config;
///
/// /// A x = b by Jacobi's method: A has its size on the diagonal and 0.5 elsewhere, x is all ones.
/// struct Jacobi { size: usize }
///
/// impl Supersteps for Jacobi {
///     type Unit = Vec<f64>;     // a row of A
///     type Edge = ();           // no row needs another row
///     type Part = Vec<f64>;     // the new x of some rows
///     type Shared = Vec<f64>;   // all of x
///
///     fn units(&self) -> u64 { self.size as u64 }
///     fn begin(&self) -> Vec<f64> { vec![0.0; self.size] }
///     fn unit(&self, row: u64) -> Vec<f64> {
///         (0..self.size).map(|column| if column == row as usize { self.size as f64 } else { 0.5 }).collect()
///     }
///     fn changes(&self) -> bool { false }
///
///     fn compute(&self, job: Job<'_, Self>) -> Vec<f64> {
///         let b = self.size as f64 + 0.5 * (self.size - 1) as f64;
///         let solve = |(row, a): (u64, &mut Vec<f64>)| {
///             let product: f64 = a.iter().zip(job.shared).map(|(a, x)| a * x).sum();
///             job.shared[row as usize] + (b - product) / a[row as usize]
///         };
///         job.units.clone().zip(job.data).map(solve).collect()
///     }
///
///     fn combine(&self, x: &mut Vec<f64>, parts: Parts<'_, Vec<f64>>) -> Then {
///         let mut change = 0.0_f64;
///         for (row, &new) in parts.flat_map(|(rows, part)| rows.zip(part)) {
///             change = change.max((new - x[row as usize]).abs());
///             x[row as usize] = new;
///         }
///         if change < 1e-9 { Then::End } else { Then::Step }
///     }
/// }
///
/// let outcome = caribou::supersteps(&Config::default().ranks(2), Jacobi { size: 40 })?;
/// assert!(outcome.shared.iter().all(|x| (x - 1.0).abs() < 1e-8));
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// Every process takes O(units) time and memory to read the weights. All collected units are sent to every process.
///
/// # Errors
/// - The program has no units, or a weight that is not above 0.
/// - A division of the policy does not fit the units and workers. The error names the policy.
/// - The program or the policy panics, or a process is killed: see [`Error`].
pub fn supersteps<P: Supersteps>(config: &Config, program: P) -> Result<SuperstepOutcome<P>, Error> {
    let policy = config.balance_supersteps()?;
    let simulated = config.simulates()?;
    let per_rank = if simulated.is_some() { 1 } else { config.worker_count() };
    let workers = (config.rank_count() * per_rank) as usize;
    let weights = weights(&program)?;
    let row = Row::new(&weights);
    let together = matches!(config.launch(), Launch::Together { .. });
    // In a job it is not known which processes share a host. A simulated run does not depend on vCPUs.
    let vcpus = (!together && simulated.is_none()).then(|| crate::machine::vcpus().len());
    let problem = Problem { workers, vcpus, weights };
    let in_process = if together { per_rank } else { workers as u32 };
    let machine = Stopwatch::Machine { in_process, in_rank: per_rank };
    let stopwatch = simulated.map_or(machine, Stopwatch::Seeded);
    let (units, weight) = (row.units(), row.weight(0..row.units()));
    let mut divider = policy.divider(&problem);
    let first = divider.first();
    check(&first, workers, units).map_err(|why| {
        let why = format!("the policy `{}` began with {why}", policy.name());
        Error::Config { setting: "CARIBOU_LB".into(), why }
    })?;
    let config = &config.with_chosen_checkpoint()?;
    let program = Arc::new(Program::new(program, row, stopwatch));
    // Taken by the first share.
    let policy_name = policy.name();
    let make_divider = move |workers| policy.divider(&Problem { workers, ..problem.clone() });
    let dividers: (MakeDivider, Box<dyn Divider>) = (Box::new(make_divider), divider);
    let dividers = Arc::new(Mutex::new(Some(dividers)));
    let setup = |setup: &mut Setup| {
        setup.service(program.clone());
        let placement = Placement::by(move |share: u32, _| share / per_rank);
        let rank = setup.rank;
        let shares = rank.0 * per_rank..(rank.0 + 1) * per_rank;
        let held_by = |share: u32| (share, held(&first, share as usize));
        let saved = match SavedState::open(config, rank, &program, shares.map(held_by)) {
            Ok(saved) => saved,
            Err(error) => return setup.refuse(error),
        };
        let (program, dividers, first) = (program.clone(), dividers.clone(), first.clone());
        setup.array_without_sync(workers as u32, placement, move |share: u32| {
            let (share, is_first_of_rank) = (share as usize, share.is_multiple_of(per_rank));
            let beginning = saved.begin(share, &program, held(&first, share));
            let dividers = dividers.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| share == 0);
            let root = dividers.map(|dividers| {
                let (first_step, checkpoints) = (beginning.step, saved.checkpoints());
                let sizes = (workers, per_rank as usize, units);
                Box::new(Root::new(policy_name, dividers, sizes, first_step, checkpoints))
            });
            Share::new(share, beginning, first.clone(), root, saved.saver(is_first_of_rank))
        });
    };
    let text = format!("a program in supersteps of {units} units, of total weight {weight}");
    let text = config.going_on(text);
    let report = run_layered(config, Shape::Supersteps, text, setup)?;
    config.finish_checkpoints();
    let (shared, units, Figures { steps, elapsed_ns, slowest_ns, workers, divisions }) = report.value()?;
    let lb = config.lb_spec(Shape::Supersteps).to_owned();
    let run = report.run;
    let vcpus = vcpus.map(|vcpus| vcpus as u32);
    let report =
        SuperstepReport { run, lb, steps, weight, elapsed_ns, workers, slowest_ns, vcpus, divisions };
    Ok(SuperstepOutcome { shared, units, report })
}

fn weights<P: Supersteps>(program: &P) -> Result<Weights, Error> {
    let refused = |why: String| Error::Config { setting: "supersteps".into(), why };
    let units = program.units();
    if units == 0 {
        return Err(refused("the program has no units".into()));
    }
    let mut weights = Vec::new();
    let fits = usize::try_from(units).is_ok_and(|units| weights.try_reserve_exact(units).is_ok());
    if !fits {
        return Err(refused(format!("{units} units do not fit into memory")));
    }
    weights.extend((0..units).map(|unit| program.weight(unit)));
    if let Some(unit) = weights.iter().position(|weight| !(weight.is_finite() && *weight > 0.0)) {
        return Err(refused(format!("unit {unit} weighs {}, expected a number above 0", weights[unit])));
    }
    if !weights.iter().sum::<f64>().is_finite() {
        return Err(refused("the total weight of the units is infinite, expected a finite number".into()));
    }
    let all_alike = weights.iter().all(|weight| weight.to_bits() == 1.0_f64.to_bits());
    Ok(if all_alike { Weights::Equal(units) } else { Weights::Each(weights) })
}
