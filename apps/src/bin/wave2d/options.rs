//! The options of `wave2d`.

use std::path::PathBuf;

use caribou_apps::stencil2d::options::GridOptions;
use presentation::count_parser;

/// Waves on a square: the wave equation by finite differences, in chunks that are balanced while it runs.
///
/// Started without options it runs twice beside a busy neighbour, without and with balancing, and compares both runs.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "wave2d", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The grid and its chunks.
    #[command(flatten)]
    pub(crate) grid: GridOptions,
    /// Iterations of each run: steps in time
    #[arg(long, value_name = "COUNT", default_value_t = 500, value_parser = count_parser(1..=100_000_000u32))]
    pub(crate) iterations: u32,
    /// Cells that a wave travels per step, up to 0.7
    #[arg(long, value_name = "CELLS", default_value_t = 0.5, value_parser = speed)]
    pub(crate) speed: f64,
    /// Pulses at the start
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = count_parser(0..=1000u32))]
    pub(crate) pulses: u32,
    /// Seed of the places, widths and heights of pulses
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = count_parser(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Draw the field after the last step, of the last run
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) picture: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Options win over CARIBOU_* variables, which win over the defaults.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

The energy of the waves stays the same but for rounding; the program prints it, and the part by which it changed.
`stencil2d --help` explains the table.

How far a ring of waves has come:  wave2d --grid 1000 --pulses 3 --iterations 700 --picture waves.svg
The refinement paper's size, on as many vCPUs as you have:
  wave2d --grid 12288 --chunk 256 --iterations 500 --period 20 --neighbour 1:50-500 --compare none,refine";

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| *speed > 0.0 && *speed <= 0.7);
    speed.ok_or_else(|| "expected a number above 0 and up to 0.7: faster waves grow without bound".to_owned())
}
