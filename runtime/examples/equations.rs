//! Solves linear equations in steps on data that the runtime divides among ranks: the README's third program.
#![expect(clippy::print_stdout, reason = "it is a program")]

use caribou::{
    Config,
    supersteps::{Job, Parts, Supersteps, Then},
};
const ROWS: usize = 4000;
/// Equations by Jacobi's method: in each step every row is solved for its own unknown.
struct Jacobi;

impl Supersteps for Jacobi {
    type Unit = Vec<f64>; // a row of coefficients
    type Edge = (); // what the rows beside see of it
    type Part = Vec<f64>; // what some rows give in a step: their unknowns
    type Shared = Vec<f64>; // what every worker knows: all unknowns

    fn units(&self) -> u64 {
        ROWS as u64
    }
    fn begin(&self) -> Vec<f64> {
        vec![0.0; ROWS]
    }
    fn unit(&self, row: u64) -> Vec<f64> {
        (0..ROWS).map(|column| if column == row as usize { ROWS as f64 } else { 0.5 }).collect()
    }
    fn compute(&self, job: Job<'_, Self>) -> Vec<f64> {
        let solve = |(row, a): (usize, &mut Vec<f64>)| {
            let product: f64 = a.iter().zip(job.shared).map(|(a, x)| a * x).sum();
            job.shared[row] + (1.0 - product) / a[row]
        };
        (job.units.start as usize..).zip(job.data).map(solve).collect()
    }
    fn combine(&self, x: &mut Vec<f64>, parts: Parts<'_, Vec<f64>>) -> Then {
        let new = parts.flat_map(|(_, part)| part).copied();
        let change = x.iter_mut().zip(new).map(|(x, new)| (new - std::mem::replace(x, new)).abs());
        if change.fold(0.0, f64::max) < 1e-9 { Then::End } else { Then::Step }
    }
}

fn main() -> Result<(), caribou::Error> {
    let outcome = caribou::supersteps(&Config::from_env()?, Jacobi)?;
    println!("x = {} after {} steps", outcome.shared[0], outcome.report.steps);
    Ok(())
}
