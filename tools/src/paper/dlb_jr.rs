//! Repeats figures 2 to 7 and 9 of the paper on balancing and copies (Dobber, van der Mei and Koole, 2008). Job times
//! are drawn from a model, or taken from traces of measured hosts, because the paper's job times are not public.
//!
//! Three results can be compared with the paper: the order of policies, the best number of copies (workers that compute
//! each job), and when copies pay. `virtual_cluster::grid_cluster` lists what is calibrated. In the paper all workers
//! begin with the same job. Here each worker begins with its own job, so copies cost nothing among equal workers.

use std::io::Write;

use lb_strategies::SUPERSTEPS;
use lb_strategies::supersteps::Line;
use presentation::Table;
use virtual_cluster::StepScenario;
use virtual_cluster::grid_cluster::{PROCESSORS, RATIOS, SETS, job_times, paper_copies_s, scenario};

use super::compare::in_parallel;
use super::host_trace::Hosts;
use crate::Error;

/// Sets of nodes over which each number is averaged. The paper has 1000.
const RUNS: u64 = 10;

/// Sets of nodes for figure 2.
const POINT_RUNS: u64 = 50;

/// Steps over which each point of figure 2 is averaged.
const PERIOD: usize = 100;

/// Balancing as in the paper: a new division at each fixed interval.
const DLB: &str = "des,by=wall,tolerance=0,ahead=0";

/// The policy that chooses between balancing and copies.
const CHOICE: &str = "dlb-jr,copies=4,by=wall";
/// The two policies between which `CHOICE` chooses.
const ITS_TWO: [&str; 2] = ["des,by=wall", "replicate,copies=4"];

/// Lower limits of the share of a measured host that is left. Only the first limit is run with all ratios.
const FLOORS: [f64; 3] = [0.05, 0.1, 0.2];

/// Seconds between two samples of a measured host.
const SAMPLE_S: u64 = 300;

/// Samples of a measured host: one day.
const SAMPLES: u64 = 288;

/// Writes all figures, also on `hosts` if there are any.
pub(super) fn write(hosts: Option<&Hosts>, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(
        out,
        "\nBalancing and copies: means of {RUNS} sets of nodes, 2000 steps each; hours of equal shares, and"
    )?;
    writeln!(
        out,
        "speedups over them. DLB, best JR: as in the paper; des, copies: as in production; best of 2, 4, ... copies;"
    )?;
    writeln!(out, "off: what dlb-jr takes longer than the better of des and 4 copies")?;
    for set in SETS {
        let nodes = Nodes { times: set.draw(1), by_step: false };
        write_set(set.name, &nodes, &RATIOS, out)?;
    }
    match hosts {
        None => writeln!(out, "\nMeasured hosts: name a trace with --hosts-trace")?,
        Some(Hosts { parts, .. }) => {
            let samples = |host: &virtual_cluster::Series| {
                (0..SAMPLES).map(|sample| host.at(sample * SAMPLE_S * 1_000_000_000).0).collect()
            };
            let left: Vec<Vec<f64>> = parts.iter().map(samples).collect();
            for floor in FLOORS {
                let name = format!("{} measured hosts, at least {floor} left", left.len());
                let nodes = Nodes { times: job_times(&left, floor), by_step: true };
                write_set(&name, &nodes, &RATIOS[..if floor < 0.1 { 3 } else { 1 }], out)?;
            }
        }
    }
    write_points(&Nodes { times: SETS[1].draw(1), by_step: false }, out)
}

/// Nodes from which a scenario draws its processors.
struct Nodes {
    times: Vec<Vec<f64>>,
    by_step: bool,
}

impl Nodes {
    fn scenario(&self, processors: usize, ratio: f64, seed: u64) -> StepScenario {
        scenario(&self.times, self.by_step, processors, ratio, seed)
    }
}

/// The mean time in seconds of each policy on `processors` nodes.
fn means(nodes: &Nodes, processors: usize, ratio: f64, policies: &[String]) -> Vec<f64> {
    let seconds = in_parallel(policies.len() * RUNS as usize, |index| {
        let (policy, run) = (index / RUNS as usize, index as u64 % RUNS);
        let policy = SUPERSTEPS.parse(&policies[policy]).expect("it is listed");
        nodes.scenario(processors, ratio, run).run(&*policy).makespan_s()
    });
    seconds.chunks(RUNS as usize).map(|runs| runs.iter().sum::<f64>() / RUNS as f64).collect()
}

fn write_set(name: &str, nodes: &Nodes, ratios: &[f64], out: &mut dyn Write) -> Result<(), Error> {
    for &ratio in ratios {
        writeln!(out, "\nfigures 3 to 7 and 9: {name}, communication over computation {ratio}")?;
        let heads = "nodes | equal h | DLB | best JR |  | des | best copies |  | 4 copies | dlb-jr | off % | adaptive";
        let mut table = Table::new(heads.split(" | "));
        for processors in PROCESSORS.into_iter().filter(|&processors| processors <= nodes.times.len()) {
            table.row(row(nodes, processors, ratio));
            out.flush()?;
        }
        write!(out, "{table}")?;
    }
    Ok(())
}

fn row(nodes: &Nodes, processors: usize, ratio: f64) -> Vec<String> {
    let copies: Vec<usize> =
        (1..).map(|power: u32| 1 << power).take_while(|&copies| copies <= processors).collect();
    let fixed = ["equal", DLB, "des", CHOICE, "adaptive", ITS_TWO[0], ITS_TWO[1]].map(str::to_owned);
    let copied = copies.iter().map(|copies| format!("replicate,copies={copies}"));
    let policies: Vec<String> = fixed.into_iter().chain(copied).collect();
    let seconds = means(nodes, processors, ratio, &policies);
    let equal = seconds[0];
    let speedup = |seconds: f64| format!("{:.2}", equal / seconds);
    let paper = |&copies: &usize| {
        let run = |run| paper_copies_s(&nodes.scenario(processors, ratio, run), copies);
        (0..RUNS).map(run).sum::<f64>() / RUNS as f64
    };
    let papers: Vec<f64> = copies.iter().map(paper).collect();
    let best = |seconds: &[f64]| {
        let best = copies.iter().zip(seconds).min_by(|one, other| one.1.total_cmp(other.1));
        best.map_or_else(Default::default, |(copies, seconds)| (speedup(*seconds), format!("R = {copies}")))
    };
    let ((paper, paper_copies), (best, best_copies)) = (best(&papers), best(&seconds[7..]));
    let off = 100.0 * (seconds[3] / seconds[5].min(seconds[6]) - 1.0);
    vec![
        processors.to_string(),
        format!("{:.1}", equal / 3600.0),
        speedup(seconds[1]),
        paper,
        paper_copies,
        speedup(seconds[2]),
        best,
        best_copies,
        speedup(seconds[6]),
        speedup(seconds[3]),
        format!("{off:.1}"),
        speedup(seconds[4]),
    ]
}

/// Figure 2: the mean time of a step against Y, which measures the capacity of the nodes (the paper's equation 3).
fn write_points(nodes: &Nodes, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(
        out,
        "\nfigure 2: mean time of {PERIOD} steps against Y, four nodes of set two, ratio {}",
        RATIOS[0]
    )?;
    writeln!(
        out,
        "the paper: 1.2779 Y + 7157 ms balanced (R2 0.96), 2.0475 Y + 1224 ms with copies (0.92), equal at Y = 7708"
    )?;
    let points = in_parallel(2 * POINT_RUNS as usize, |index| {
        let scenario = nodes.scenario(4, RATIOS[0], index as u64 % POINT_RUNS);
        points(&scenario, [DLB, "replicate,copies=4"][index / POINT_RUNS as usize])
    });
    let (balanced, copied) = points.split_at(POINT_RUNS as usize);
    let line = |points: &[Vec<(f64, f64)>]| Line::fit(&points.concat()).expect("Y is not always the same");
    let (balanced, copied) = (line(balanced), line(copied));
    for (name, line) in [("balanced", balanced), ("4 copies", copied)] {
        let Line { slope, intercept, correlation } = line;
        let square = correlation * correlation;
        writeln!(
            out,
            "{name}: {slope:.4} Y + {:.0} ms, correlation {correlation:.3}, R2 {square:.2}",
            1e3 * intercept
        )?;
    }
    let equal_at = (balanced.intercept - copied.intercept) / (copied.slope - balanced.slope);
    Ok(writeln!(out, "equal at Y = {:.0} ms", 1e3 * equal_at)?)
}

/// Y and the mean time of a step, for each period of a run.
fn points(scenario: &StepScenario, policy: &str) -> Vec<(f64, f64)> {
    let policy = SUPERSTEPS.parse(policy).expect("it is listed");
    let run = scenario.run(&*policy);
    let series = scenario.times.series();
    let units = scenario.program.weights.units() as f64 / series.len() as f64;
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let periods = run.step_seconds.chunks_exact(PERIOD).enumerate();
    periods
        .map(|(period, seconds)| {
            let jobs = period * PERIOD..(period + 1) * PERIOD;
            let speeds: f64 = series.iter().map(|times| 1.0 / (units * mean(&times[jobs.clone()]))).sum();
            (series.len() as f64 / speeds, mean(seconds))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_two() -> Nodes {
        Nodes { times: SETS[1].draw(1), by_step: false }
    }

    #[test]
    fn a_row_has_all_columns_and_copies_win_on_four_nodes_of_set_two() {
        let row = row(&set_two(), 4, RATIOS[0]);
        assert_eq!(row.len(), 12);
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        let (balanced, paper_copies, copies, choice, off) =
            (number(2), number(3), number(8), number(9), number(10));
        assert!(
            balanced > 1.8 && paper_copies > balanced && copies > balanced && choice > balanced,
            "{row:?}"
        );
        assert!(off <= 2.0, "{row:?}");
    }

    #[test]
    fn the_time_of_a_step_is_nearly_linear_in_y() {
        let nodes = SETS[1].draw(1);
        let points: Vec<(f64, f64)> = (0..10)
            .flat_map(|run| points(&scenario(&nodes, false, 4, RATIOS[0], run), "replicate,copies=4"))
            .collect();
        let line = Line::fit(&points).expect("Y is not always the same");
        assert!(line.correlation > 0.9 && line.slope > 0.5, "{line:?}");
    }
}
