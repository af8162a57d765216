//! Measures the smallest grain at which half of the peak rate is left, METG(50 %), by the procedure of Task Bench's
//! repository.
//!
//! - The kernel's iterations are halved from run to run, down to one.
//! - The grain of a run is its time, times its workers, over its tasks. So it includes the time of the runtime.
//! - Strategies take turns at each number of iterations. The whole series is repeated, and the median counts.
//! - A repetition is left out if its coarsest run took over 10 % longer than the fastest repetition's, because the
//!   machine was slower then.
//! - All strategies have one peak, so that none gains by a slow coarsest run: the upper quartile of the rates of the
//!   coarsest runs. If the machine was slower in these, a greater median of finer runs is the peak.

use std::fmt::{self, Display};

use lb_strategies::median;
use presentation::Table;
use presentation::chart::{Axis, Chart, Series};
use presentation::format::duration;
use presentation::svg::{Area, Svg};
use serde::Serialize;

use super::run::{Backend, Bench};
use harness::progress::Progress;
use harness::{Error, Total};

/// The sweep to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Iterations of the coarsest run.
    pub(crate) coarsest: u64,
    /// Repetitions.
    pub(crate) repetitions: u32,
    /// The peak rate; `None` for the rate of the coarsest runs, or of finer runs that were faster.
    pub(crate) peak: Option<f64>,
}

/// The result of a sweep.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sweep {
    /// The peak rate, operations or bytes per second.
    pub(crate) peak_per_s: f64,
    /// By strategy.
    pub(crate) systems: Vec<System>,
}

/// A strategy's runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct System {
    /// The strategy.
    pub(crate) lb: String,
    /// The smallest grain at half of the peak; none if no run reached that.
    pub(crate) metg_ns: Option<f64>,
    /// Repetitions that began too slowly to count.
    pub(crate) left_out: usize,
    /// By iterations, the coarsest first.
    pub(crate) grains: Vec<Grain>,
}

/// The runs with one number of iterations.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Grain {
    /// Iterations of the kernel.
    pub(crate) iterations: u64,
    /// Nanoseconds of a worker per task.
    pub(crate) grain_ns: f64,
    /// The part of the peak rate.
    pub(crate) efficiency: f64,
    /// Each repetition that counts, in seconds.
    pub(crate) elapsed_s: Vec<f64>,
}

/// The time of a run, its tasks per worker, and its operations or bytes.
#[derive(Clone, Copy, Debug)]
struct Measured {
    elapsed_s: f64,
    tasks_of_worker: f64,
    work: f64,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.work / self.elapsed_s
    }
}

fn median_rate(runs: &[Measured]) -> f64 {
    median(runs.iter().map(Measured::rate).collect()).unwrap_or_default()
}

/// Makes the runs.
///
/// # Errors
/// [`Error::Usage`] if neither operations nor bytes of the kernel are counted; the errors of the runs.
pub(crate) fn sweep(bench: &Bench, systems: &[Backend], plan: Plan, speaks: bool) -> Result<Sweep, Error> {
    let levels: Vec<u64> = std::iter::successors(Some(plan.coarsest), |iterations| Some(iterations / 2))
        .take_while(|&iterations| iterations > 0)
        .collect();
    let benches: Vec<Bench> = levels.iter().map(|&iterations| bench.with_iterations(iterations)).collect();
    if benches.first().is_none_or(|coarsest| coarsest.work() == 0) {
        return Err(Error::Usage(
            "--metg: expected a -kernel whose operations or bytes are counted".to_owned(),
        ));
    }
    let mut runs = vec![vec![Vec::new(); levels.len()]; systems.len()];
    let count = systems.len() * levels.len() * plan.repetitions as usize;
    let mut progress = Progress::new("metg", Total { count: count as u64, unit: "runs" }, speaks);
    let mut done = 0;
    for repetition in 0..plan.repetitions as usize {
        for (level, bench) in benches.iter().enumerate() {
            for turn in 0..systems.len() {
                let system = (turn + level + repetition) % systems.len();
                let outcome = bench.run(&systems[system])?;
                let tasks_of_worker = outcome.totals.tasks as f64 / f64::from(outcome.workers.max(1));
                let work = bench.work() as f64;
                runs[system][level].push(Measured { elapsed_s: outcome.elapsed_s, tasks_of_worker, work });
                done += 1;
                progress.show(done);
            }
        }
    }
    let names = systems.iter().map(|system| system.name().to_owned());
    Ok(Sweep::new(plan.peak, &levels, names.zip(runs).collect()))
}

impl Sweep {
    fn new(peak: Option<f64>, levels: &[u64], runs: Vec<(String, Vec<Vec<Measured>>)>) -> Self {
        let counted: Vec<(String, usize, Vec<Vec<Measured>>)> = runs.into_iter().map(without_slow).collect();
        let mut coarse: Vec<f64> =
            counted.iter().flat_map(|(_, _, runs)| &runs[0]).map(Measured::rate).collect();
        coarse.sort_by(|a, b| b.total_cmp(a));
        let medians = counted.iter().flat_map(|(_, _, runs)| runs).map(|runs| median_rate(runs));
        let peak_per_s = peak.unwrap_or_else(|| medians.fold(coarse[coarse.len() / 4], f64::max));
        let system = |(lb, left_out, runs): (String, usize, Vec<Vec<Measured>>)| {
            let grains = levels.iter().zip(&runs).map(|(&level, runs)| Grain::new(level, runs, peak_per_s));
            let grains: Vec<Grain> = grains.collect();
            System { lb, metg_ns: smallest(&grains), left_out, grains }
        };
        Self { peak_per_s, systems: counted.into_iter().map(system).collect() }
    }

    /// The plot of efficiency against grain.
    #[must_use]
    pub(crate) fn svg(&self, caption: &str) -> String {
        let line = |system: &System| system.grains.iter().map(Grain::place).collect::<Vec<_>>();
        let series = |system: &System| Series {
            name: format!("METG(50 %) of {system}"),
            dots: line(system),
            radius: 3.0,
            opacity: 1.0,
            line: line(system),
        };
        let places = || self.systems.iter().flat_map(line);
        let from = places().map(|(at, _)| at).fold(f64::INFINITY, f64::min).floor();
        let to = places().map(|(at, _)| at).fold(f64::NEG_INFINITY, f64::max).ceil();
        let most = places().map(|(_, efficiency)| efficiency).fold(1.0, f64::max);
        let chart = Chart {
            caption: caption.to_owned(),
            horizontal: Axis {
                title: "time of a worker for a task: log10 of us".to_owned(),
                from,
                to,
                whole: true,
            },
            vertical: Axis {
                title: "part of the peak rate".to_owned(),
                from: 0.0,
                to: 1.1 * most,
                whole: false,
            },
            bands: Vec::new(),
            level: Some(0.5),
            series: self.systems.iter().map(series).collect(),
        };
        let size = (960.0, 520.0);
        let mut svg = Svg::new(size.0, size.1, caption);
        chart.draw(&mut svg, Area::at((0.0, 0.0), size));
        svg.finish()
    }
}

/// The repetitions with a coarsest run at most a tenth slower than the fastest, and the number of the others.
fn without_slow((lb, mut runs): (String, Vec<Vec<Measured>>)) -> (String, usize, Vec<Vec<Measured>>) {
    let coarse: Vec<f64> = runs[0].iter().map(|run| run.elapsed_s).collect();
    let fastest = coarse.iter().copied().fold(f64::INFINITY, f64::min);
    let counts = |repetition: usize| coarse[repetition] <= 1.1 * fastest;
    for level in &mut runs {
        *level = (0..coarse.len()).filter(|&repetition| counts(repetition)).map(|at| level[at]).collect();
    }
    (lb, coarse.len() - runs[0].len(), runs)
}

impl Grain {
    fn new(iterations: u64, runs: &[Measured], peak_per_s: f64) -> Self {
        let elapsed_s: Vec<f64> = runs.iter().map(|run| run.elapsed_s).collect();
        let median_s = median(elapsed_s.clone()).unwrap_or_default();
        let Measured { tasks_of_worker, work, .. } = runs[0];
        let efficiency = work / median_s / peak_per_s;
        Self { iterations, grain_ns: 1e9 * median_s / tasks_of_worker, efficiency, elapsed_s }
    }

    /// Its point in the plot: the logarithm of its microseconds, and its efficiency.
    fn place(&self) -> (f64, f64) {
        ((self.grain_ns / 1e3).log10(), self.efficiency)
    }
}

impl System {
    /// How often the curve crosses half of the peak: once on a quiet machine.
    fn crossings(&self) -> usize {
        let reaches = |grain: &Grain| grain.efficiency >= 0.5;
        self.grains.windows(2).filter(|pair| reaches(&pair[0]) != reaches(&pair[1])).count()
    }
}

/// The smallest grain at half of the peak, interpolated between two runs if it lies there.
fn smallest(grains: &[Grain]) -> Option<f64> {
    let reaches = |&at: &usize| grains[at].efficiency >= 0.5;
    let at = (0..grains.len())
        .filter(reaches)
        .min_by(|&a, &b| grains[a].grain_ns.total_cmp(&grains[b].grain_ns))?;
    let here = &grains[at];
    let finer = grains.get(at + 1).filter(|finer| finer.grain_ns < here.grain_ns && finer.efficiency < 0.5);
    Some(finer.map_or(here.grain_ns, |finer| {
        let part = (0.5 - finer.efficiency) / (here.efficiency - finer.efficiency);
        finer.grain_ns + part * (here.grain_ns - finer.grain_ns)
    }))
}

impl Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metg = self.metg_ns.map_or_else(|| "did not reach 50 %".to_owned(), duration);
        write!(f, "{}: {metg}", self.lb)
    }
}

impl Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = self.systems.iter().flat_map(|system| [system.lb.clone(), "of peak".to_owned()]);
        let mut table = Table::new(["iterations".to_owned()].into_iter().chain(heads)).text_columns([]);
        for level in 0..self.systems.first().map_or(0, |system| system.grains.len()) {
            let grains = || self.systems.iter().map(|system| &system.grains[level]);
            let iterations = grains().next().map_or(0, |grain| grain.iterations).to_string();
            let cells = grains()
                .flat_map(|grain| [duration(grain.grain_ns), format!("{:.1} %", 100.0 * grain.efficiency)]);
            table.row([iterations].into_iter().chain(cells));
        }
        write!(f, "{table}")?;
        for system in &self.systems {
            let floor = system.grains.last().map_or(0.0, |grain| grain.grain_ns);
            let counted = system.grains.first().map_or(0, |grain| grain.elapsed_s.len());
            let left_out = match system.left_out {
                0 => String::new(),
                slow => format!("; {slow} of {} repetitions were slow and left out", slow + counted),
            };
            let crossings = system.crossings();
            let doubt = match crossings {
                0 | 1 => String::new(),
                several => format!("; the curve crosses half {several} times: the machine was not quiet"),
            };
            writeln!(f, "METG(50 %) of {system}; {} at the finest{left_out}{doubt}", duration(floor))?;
        }
        writeln!(f, "Peak {:.3e} operations or bytes a second", self.peak_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 1000 tasks on one worker that take 1 ns per iteration and 100 ns more per task, `slow` times as long.
    fn runs(levels: &[u64], slow: f64) -> Vec<Measured> {
        let run = |&iterations: &u64| Measured {
            elapsed_s: slow * (iterations as f64 + 100.0) * 1e-6,
            tasks_of_worker: 1000.0,
            work: iterations as f64 * 1000.0,
        };
        levels.iter().map(run).collect()
    }

    fn repeated(levels: &[u64], slow: &[f64]) -> Vec<Vec<Measured>> {
        let all: Vec<Vec<Measured>> = slow.iter().map(|&slow| runs(levels, slow)).collect();
        (0..levels.len()).map(|level| all.iter().map(|runs| runs[level]).collect()).collect()
    }

    fn swept(levels: &[u64], slow: &[f64], peak: Option<f64>) -> Sweep {
        Sweep::new(peak, levels, vec![("none".to_owned(), repeated(levels, slow))])
    }

    #[test]
    fn half_of_the_peak_is_about_where_overhead_is_as_long_as_the_work() {
        let levels: Vec<u64> = (0..15).map(|level| 1 << (14 - level)).collect();
        let sweep = swept(&levels, &[1.0], Some(1e9));
        let metg_ns = sweep.systems[0].metg_ns.unwrap();
        // Between the runs of 128 and of 64 iterations, in a straight line.
        assert!((metg_ns - 205.04).abs() < 0.01, "{metg_ns}");
        assert!((sweep.systems[0].grains[14].grain_ns - 101.0).abs() < 1e-6);
    }

    #[test]
    fn the_coarsest_run_is_the_peak_unless_one_is_given() {
        assert!((swept(&[900, 100], &[1.0], None).peak_per_s - 9e8).abs() < 1.0);
        let grains = &swept(&[900, 100], &[1.0], None).systems[0].grains;
        assert!((grains[0].efficiency - 1.0).abs() < 1e-9 && (grains[1].efficiency - 5.0 / 9.0).abs() < 1e-9);
        // Nothing finer was run: the finest is the answer.
        assert!((smallest(grains).unwrap() - 200.0).abs() < 1e-9);
        assert_eq!(swept(&[900, 100], &[1.0], Some(1e12)).systems[0].metg_ns, None);
    }

    #[test]
    fn what_is_faster_than_the_coarsest_run_is_the_peak() {
        let mut runs = repeated(&[900, 100], &[1.0, 1.0, 1.0]);
        // Ten times as slow, each: a neighbour came and went.
        runs[0].iter_mut().for_each(|run| run.elapsed_s *= 10.0);
        // A single fast run does not change the median.
        runs[1][0].elapsed_s /= 10.0;
        let sweep = Sweep::new(None, &[900, 100], vec![("none".to_owned(), runs)]);
        assert!((sweep.peak_per_s - 5e8).abs() < 1.0, "{}", sweep.peak_per_s);
        assert!(sweep.systems[0].grains.iter().all(|grain| grain.efficiency <= 1.0 + 1e-9), "{sweep}");
    }

    #[test]
    fn the_median_counts_and_a_repetition_on_a_slow_machine_does_not() {
        let system = &swept(&[900, 100], &[1.0, 1.3, 1.09, 1.05], None).systems[0];
        assert_eq!(system.left_out, 1);
        assert_eq!(system.grains[1].elapsed_s.len(), 3);
        assert!((system.grains[1].grain_ns - 1.05 * 200.0).abs() < 1e-6);
    }

    #[test]
    fn the_table_has_a_line_a_grain_and_says_the_smallest() {
        let text = swept(&[900, 100, 25], &[1.0], Some(1e9)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "iterations     none  of peak");
        assert_eq!(lines[1], "       900  1.00 us   90.0 %");
        assert_eq!(lines[4], "METG(50 %) of none: 200 ns; 125 ns at the finest");
        let never = swept(&[9], &[1.0], Some(1e12)).to_string();
        assert!(never.contains("none: did not reach 50 %"), "{never}");
    }

    #[test]
    fn a_curve_that_crosses_half_more_than_once_says_so() {
        let mut sweep = swept(&[900, 300, 100, 25], &[1.0], Some(1e9));
        assert!(!sweep.to_string().contains("crosses"), "{sweep}");
        sweep.systems[0].grains[1].efficiency = 0.1;
        let text = sweep.to_string();
        assert!(text.contains("at the finest; the curve crosses half 3 times"), "{text}");
    }

    #[test]
    fn the_plot_has_a_line_a_strategy() {
        let svg = swept(&[900, 100], &[1.0], None).svg("a stencil");
        for words in ["a stencil", "none: 200 ns", "part of the peak rate"] {
            assert!(svg.contains(words), "{words}");
        }
    }
}
