//! The options of `jacobi`.

use std::path::PathBuf;

use caribou::supersteps::Exchange;
use presentation::count_parser;

/// A dense system of linear equations by Jacobi's method, whose rows are divided among the workers while it runs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "jacobi", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Equations of a generated system
    #[arg(long, value_name = "COUNT", default_value_t = 4000, value_parser = count_parser(1..=1_000_000u32))]
    pub(crate) size: u32,
    /// Seed of the generated system
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = count_parser(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Diagonal of the generated system over the sum of the other coefficients of its row: the error shrinks by this
    /// factor per step
    #[arg(long, value_name = "FACTOR", default_value_t = 1.01, value_parser = dominance)]
    pub(crate) dominance: f64,
    /// A matrix to solve with, in the Matrix Market format (array or coordinate, general or symmetric, real or integer)
    #[arg(long, value_name = "FILE.mtx", conflicts_with_all = ["size", "seed", "dominance"])]
    pub(crate) matrix: Option<PathBuf>,
    /// Right-hand side of --matrix, one column [default: the one that makes all unknowns 1]
    #[arg(long, value_name = "FILE.mtx", requires = "matrix", conflicts_with_all = ["size", "seed", "dominance"])]
    pub(crate) right: Option<PathBuf>,
    /// End at this residual: the greatest of a row over the greatest number of the right-hand side; 0 makes all --steps
    #[arg(long, value_name = "RESIDUAL", default_value_t = 1e-4, value_parser = tolerance)]
    pub(crate) tolerance: f64,
    /// How the new unknowns reach all workers: from each to all (direct), from neighbour to neighbour (ring), or
    /// collected by the first (gather)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) exchange: ExchangeName,
    /// Maximum number of steps
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = count_parser(1..=100_000_000u32))]
    pub(crate) steps: u32,
}

/// The names of [`Exchange`].
#[derive(Clone, Copy, Debug, Default, PartialEq, clap::ValueEnum)]
pub(crate) enum ExchangeName {
    #[default]
    Direct,
    Ring,
    Gather,
}

impl From<ExchangeName> for Exchange {
    fn from(way: ExchangeName) -> Self {
        match way {
            ExchangeName::Direct => Self::Direct,
            ExchangeName::Ring => Self::Ring,
            ExchangeName::Gather => Self::Gather,
        }
    }
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 not solved, a run failed or its result is wrong, 2 bad options.

Beside a busy neighbour, under three policies:
  jacobi --ranks 2 --neighbour 1 --compare equal,load-factor,des";

fn dominance(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 1.0 && *factor <= 1e6);
    factor.ok_or_else(|| "expected a number above 1 and up to 1e6".to_owned())
}

fn tolerance(text: &str) -> Result<f64, String> {
    let residual = text.parse().ok().filter(|residual: &f64| *residual >= 0.0 && *residual < 1.0);
    residual.ok_or_else(|| "expected a number from 0 up to, not including, 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn impossible_values_are_refused() {
        for bad in [
            "--size 0",
            "--size 2e6",
            "--dominance 1",
            "--dominance nan",
            "--tolerance 1",
            "--tolerance -1e-9",
            "--tolerance nan",
            "--steps 0",
            "--exchange fax",
            "--right b.mtx",
            "--right b.mtx --size 3",
            "--matrix a.mtx --size 3",
        ] {
            assert!(Options::try_parse_from(format!("jacobi {bad}").split(' ')).is_err(), "{bad}");
        }
        assert!(Options::try_parse_from("jacobi --matrix a.mtx --right b.mtx".split(' ')).is_ok());
    }
}
