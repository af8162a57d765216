//! The options of `sor`.

use presentation::count_parser;

/// Laplace's equation on a square by red-black over-relaxation, whose rows are divided among the workers while it runs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "sor", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Points along a side of the square
    #[arg(long, value_name = "POINTS", default_value_t = 1000, value_parser = count_parser(1..=1_000_000u32))]
    pub(crate) grid: u32,
    /// End when no point changes by more in a sweep; 0 makes all --sweeps
    #[arg(long, value_name = "CHANGE", default_value_t = 1e-6, value_parser = tolerance)]
    pub(crate) tolerance: f64,
    /// Maximum number of sweeps; each is two steps, one of the red points, one of the black
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = count_parser(1..=50_000_000u32))]
    pub(crate) sweeps: u32,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 not solved, a run failed or its result is wrong, 2 bad options.

With --check the program also prints the largest difference from the solution of the equation.

Beside a busy neighbour, under three policies:
  sor --ranks 2 --neighbour 1 --compare equal,load-factor,des";

fn tolerance(text: &str) -> Result<f64, String> {
    let change = text.parse().ok().filter(|change: &f64| *change >= 0.0 && *change < 1.0);
    change.ok_or_else(|| "expected a number from 0 up to, not including, 1".to_owned())
}
