//! Compares simulated runs with real runs of the same programs on this machine: time per iteration, moves, and METG.
//!
//! | module | purpose |
//! |---|---|
//! | `program` | starts a program, and reads its times |
//! | `recorded` | reads loads and messages of chunks from a trace |
//! | `simulated` | runs the same in virtual time, with the costs of a calibration |
//! | `metg` | finds the smallest grain at which half of the peak rate is left, simulated |
//!
//! A simulation gets the loads of chunks on one rank, and predicts the times on one, two and four ranks. So it knows
//! nothing of the run that it is compared with but the placement of chunks.

#![forbid(unsafe_code)]

mod metg;
mod program;
mod recorded;
mod simulated;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lb_strategies::median;
use presentation::Table;

use self::program::{PROGRAMS, Program, Shape};

/// Compare simulated runs with real ones on this machine.
#[derive(Parser)]
#[command(after_help = AFTER_HELP)]
struct Options {
    /// Costs of this machine, as `caribou calibrate` writes them.
    #[arg(long, value_name = "FILE.toml", default_value = "calibration.toml")]
    costs: PathBuf,
    /// Folder of the programs.
    #[arg(long, value_name = "DIR", default_value = "target/release")]
    programs: PathBuf,
    /// Programs to compare: stencil2d, wave2d, mol3d, pic, jacobi, montecarlo, task_bench; all if not given.
    #[arg(long, value_name = "NAME[,NAME..]", value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of ranks, threads of one process.
    #[arg(long, value_name = "COUNT[,COUNT..]", value_delimiter = ',', default_value = "1,2,4")]
    ranks: Vec<u32>,
    /// Real runs of each kind; the median counts.
    #[arg(long, value_name = "COUNT", default_value = "3")]
    runs: u32,
}

const AFTER_HELP: &str = "\
Build the programs first, and stop other programs.
  cargo build --release -p caribou-apps -p caribou-tools -p fidelity
  target/release/caribou calibrate
  target/release/fidelity";

/// The result for a program on a number of ranks, in ns per iteration.
struct Compared {
    program: &'static str,
    ranks: u32,
    lb: &'static str,
    real_ns: Vec<f64>,
    simulated_ns: f64,
    /// With the loads of a run on as many ranks.
    own_ns: Option<f64>,
    moves: Option<(f64, u64)>,
}

fn main() -> ExitCode {
    match run(&Options::parse(), &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, only the exit code reports the error.
            let _ = writeln!(std::io::stderr(), "fidelity: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, out: &mut dyn Write) -> Result<(), String> {
    let costs = caribou_tools::machine_costs(&options.costs)?;
    let known = |name: &str| name == metg::NAME || PROGRAMS.iter().any(|program| program.name == name);
    if let Some(other) = options.only.iter().find(|name| !known(name)) {
        return Err(format!("--only {other}: no such program, --help lists them"));
    }
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut all = Vec::new();
    for program in PROGRAMS.iter().filter(|program| chosen(program.name)) {
        all.extend(compare(program, options, &costs)?);
    }
    let broken = |error: std::io::Error| format!("cannot write the output: {error}");
    if !all.is_empty() {
        write!(out, "{}", table(&all)).map_err(broken)?;
    }
    if chosen(metg::NAME) {
        write!(out, "{}", metg::compare(&options.programs, &options.ranks, options.runs, &costs)?)
            .map_err(broken)?;
    }
    Ok(())
}

/// Compares a program on all numbers of ranks. Real runs take turns.
fn compare(
    program: &Program,
    options: &Options,
    costs: &caribou_tools::MachineCosts,
) -> Result<Vec<Compared>, String> {
    let mut compared = Vec::new();
    for &ranks in &options.ranks {
        for &lb in program.lbs {
            let none = Vec::new();
            compared.push(Compared {
                program: program.name,
                ranks,
                lb,
                real_ns: none,
                simulated_ns: 0.0,
                own_ns: None,
                moves: None,
            });
        }
    }
    let alone = program.base(&options.programs)?;
    let mut moves = vec![Vec::new(); compared.len()];
    for _ in 0..options.runs {
        for (one, moves) in compared.iter_mut().zip(&mut moves) {
            let real = program.run(&options.programs, one.ranks, one.lb)?;
            one.real_ns.push(real.iteration_ns);
            moves.extend(real.moves);
        }
    }
    for (one, real_moves) in compared.iter_mut().zip(moves) {
        let found = simulated::run(program, &alone, one.ranks, one.lb, costs, &options.programs)?;
        (one.simulated_ns, one.own_ns) = (found.iteration_ns, found.own_ns);
        one.moves = median(real_moves).zip(found.moves);
    }
    Ok(compared)
}

fn table(all: &[Compared]) -> Table {
    let heads = [
        "program",
        "lb",
        "ranks",
        "real us",
        "lowest to highest",
        "simulated",
        "%",
        "own loads",
        "%",
        "moves",
        "simulated",
    ];
    let mut table = Table::new(heads).text_columns([true, true]);
    for one in all {
        let real = median(one.real_ns.clone()).unwrap_or(0.0);
        let (low, high) =
            one.real_ns.iter().fold((f64::MAX, 0.0_f64), |(low, high), &ns| (low.min(ns), high.max(ns)));
        let us =
            |ns: f64| if ns < 10_000.0 { format!("{:.3}", ns / 1e3) } else { format!("{:.0}", ns / 1e3) };
        let percent = |ns: f64| format!("{:+.0}", 100.0 * (ns / real - 1.0));
        let (own, own_percent) =
            one.own_ns.map_or_else(|| ("-".into(), "-".into()), |ns| (us(ns), percent(ns)));
        let (moves, simulated) = one.moves.map_or_else(
            || ("-".into(), "-".into()),
            |(real, simulated)| (format!("{real:.0}"), simulated.to_string()),
        );
        table.row([
            one.program.to_owned(),
            one.lb.to_owned(),
            one.ranks.to_string(),
            us(real),
            format!("{} to {}", us(low), us(high)),
            us(one.simulated_ns),
            percent(one.simulated_ns),
            own,
            own_percent,
            moves,
            simulated,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_difference_to_the_median() {
        let one = Compared {
            program: "pic",
            ranks: 2,
            lb: "none",
            real_ns: vec![2e6, 1e6, 9e6],
            simulated_ns: 2.2e6,
            own_ns: None,
            moves: Some((3.0, 4)),
        };
        let text = table(&[one]).to_string();
        let row: Vec<&str> = text.lines().last().unwrap_or_default().split_whitespace().collect();
        assert_eq!(
            row,
            ["pic", "none", "2", "2000", "1000", "to", "9000", "2200", "+10", "-", "-", "3", "4"]
        );
    }

    #[test]
    fn options_are_valid() {
        use clap::CommandFactory;
        Options::command().debug_assert();
        assert!(PROGRAMS.iter().any(|program| program.shape == Shape::Pool));
    }
}
