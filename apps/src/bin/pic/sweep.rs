//! Measures the gain of balancing against the speed of the hot spot: a curve for each strategy and balancing period.
//!
//! At each speed one run moves nothing, and one run per curve balances; of several repetitions the median counts. The
//! runs of a speed follow each other, so that other load on the machine is about the same for all of them.

use caribou::Launch;
use caribou::config::Period;
use harness::arrays::{ArrayOptions, Syncs};
use harness::output::{Output, print};
use harness::{CommandLine, Comparison, Error, Program, Run, Summary, cli};
use presentation::Table;
use presentation::chart::{Axis, Chart, Series};
use presentation::format::decimal;
use presentation::svg::{Area, Svg};
use serde::Serialize;

use crate::options::Options;
use crate::run::Pic;

/// The strategy over which the others gain.
const UNBALANCED: &str = "none";

/// Balancing periods unless the options give some.
const PERIODS: [Period; 5] =
    [Period::Auto, Period::Steps(2), Period::Steps(5), Period::Steps(20), Period::Steps(50)];

const SIZE: (f64, f64) = (960.0, 520.0);

/// Iterations between two syncs of runs that are not balanced.
const UNBALANCED_PERIOD: u64 = 20;

/// The name of a period in the name of a curve.
fn told(period: Period) -> String {
    match period {
        Period::Auto => "auto".to_owned(),
        period => format!("every {period}"),
    }
}

/// A strategy and its period.
#[derive(Clone, Debug, Serialize)]
struct Curve {
    lb: String,
    period: Period,
}

/// The runs at one speed.
struct Runs {
    speed: u32,
    unbalanced: Comparison<Pic>,
    /// One per curve.
    balanced: Vec<Comparison<Pic>>,
}

/// All runs of a sweep, checked by [`prepare`](Self::prepare).
pub(crate) struct Sweep {
    launch: Launch,
    shared: harness::Options,
    curves: Vec<Curve>,
    /// Runs of each point.
    repetitions: u32,
    runs: Vec<Runs>,
}

/// The result of a sweep, for `--json`.
#[derive(Debug, Serialize)]
struct Gains {
    program: &'static str,
    /// The settings of the first run. Only the first runs have its speed.
    settings: harness::Settings,
    machine: harness::machine::Machine,
    placement: String,
    points: Vec<Point>,
}

/// The times at one speed.
#[derive(Debug, Serialize)]
struct Point {
    /// The hot spot moves 2k + 1 columns per step.
    k: u32,
    /// Seconds without balancing.
    unbalanced_s: f64,
    /// The largest possible gain, by the measurements without balancing.
    possible_gain: Option<f64>,
    balanced: Vec<Balanced>,
}

/// One run with balancing.
#[derive(Debug, Serialize)]
struct Balanced {
    #[serde(flatten)]
    curve: Curve,
    total_s: f64,
    gain: f64,
    imbalance: Option<f64>,
    moves: u64,
    moved_bytes: u64,
    sync_ms: f64,
}

impl Sweep {
    /// Checks a command line with `--sweep-speed`.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Runtime`], naming the option or variable that cannot be met.
    pub(crate) fn prepare(line: CommandLine<Pic>, launch: Launch) -> Result<Self, Error> {
        let CommandLine { own, of_shape, shared } = line;
        let speeds = own.sweep_speed.clone().map_or_else(|| vec![own.speed], |speeds| speeds.0);
        let fastest = Options { speed: speeds.iter().copied().max().unwrap_or(0), ..own.clone() };
        // All speeds have the same tiles, which even the fastest hot spot must not skip.
        let fastest = fastest.problem()?;
        let own = Options { tiles: Some(fastest.tiling.side()), ..own };
        let asked = own.sweep_period.clone().or_else(|| of_shape.period.map(|period| vec![period]));
        let periods = asked.unwrap_or_else(|| PERIODS.to_vec());
        let lbs = match (&shared.compare, &shared.lb) {
            (Some(list), _) => cli::strategies(list)?.into_iter().filter(|lb| lb != UNBALANCED).collect(),
            (None, Some(lb)) => vec![lb.clone()],
            (None, None) => {
                vec![harness::launch::config()?.lb_spec(caribou::lb::Shape::Arrays).to_owned()]
            }
        };
        let curve = |lb: &String, period: Period| Curve { lb: lb.clone(), period };
        let curves: Vec<Curve> =
            lbs.iter().flat_map(|lb| periods.iter().map(move |&period| curve(lb, period))).collect();
        let comparison = |speed: u32, lb: &str, period: Period| {
            let line = CommandLine {
                own: Options { speed, ..own.clone() },
                of_shape: ArrayOptions { period: Some(period), ..of_shape.clone() },
                shared: harness::Options { lb: Some(lb.to_owned()), compare: None, ..shared.clone() },
            };
            let label = format!("speed {speed}, {lb} {}", told(period));
            Ok(Comparison::prepare(line, false)?.labelled(label))
        };
        let runs = |&speed: &u32| {
            let balanced = curves.iter().map(|curve| comparison(speed, &curve.lb, curve.period));
            // The syncs of this run move nothing; they measure.
            let unbalanced = comparison(speed, UNBALANCED, Period::Steps(UNBALANCED_PERIOD))?;
            Ok(Runs { speed, unbalanced, balanced: balanced.collect::<Result<_, Error>>()? })
        };
        let runs = speeds.iter().map(runs).collect::<Result<_, Error>>()?;
        Ok(Self { launch, shared, curves, repetitions: own.sweep_runs, runs })
    }

    /// Makes the runs and reports them, on standard output and in the requested files. All processes of a job call
    /// this, and one of them reports.
    ///
    /// # Errors
    /// Those of [`Comparison::run`], or [`Error::Output`], naming a file that cannot be written.
    pub(crate) fn run_and_report(&self) -> Result<(), Error> {
        if !self.launch.speaks() {
            return self.run().map(|_| ());
        }
        let open = |path: &Option<std::path::PathBuf>| path.as_deref().map(Output::open).transpose();
        let [picture, numbers] = [open(&self.shared.plot)?, open(&self.shared.json)?];
        let Some(gains) = self.run()? else { return Ok(()) };
        let said = print(&table(&gains, &self.curves));
        let numbers = numbers.map(|numbers| numbers.write_json(&gains));
        let picture = picture.map(|picture| picture.write(&svg(&gains, &self.curves)));
        [Some(said), numbers, picture].into_iter().flatten().fold(Ok(()), Result::and)
    }

    /// Makes the runs, the slowest hot spot first. `None` without speeds.
    ///
    /// An error of one process alone is returned after all runs, because the other processes need this one in their
    /// runs.
    fn run(&self) -> Result<Option<Gains>, Error> {
        let (mut first, mut failed) = (None, None);
        let mut points = Vec::new();
        let mut make = |comparison: &Comparison<Pic>| match comparison.run() {
            Err(error) if self.launch != Launch::Alone && !matches!(error, Error::Runtime(_)) => {
                failed.get_or_insert(error);
                Ok(None)
            }
            made => made.map(|(summary, _)| Some(summary)),
        };
        for Runs { speed, unbalanced, balanced } in &self.runs {
            let (mut without, mut with) = (Vec::new(), vec![Vec::new(); balanced.len()]);
            for _ in 0..self.repetitions {
                let summary = make(unbalanced)?;
                without.extend(summary.iter().flat_map(|summary| summary.runs.iter().cloned()));
                first = first.or(summary);
                for (comparison, runs) in balanced.iter().zip(&mut with) {
                    runs.extend(make(comparison)?.into_iter().flat_map(|summary| summary.runs));
                }
            }
            let with: Option<Vec<_>> = with.into_iter().map(median).collect();
            points.extend(median(without).zip(with).map(|(one, others)| self.point(*speed, &one, others)));
        }
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(first.map(|Summary { settings, machine, placement, .. }| Gains {
            program: Pic::NAME,
            settings,
            machine,
            placement,
            points,
        }))
    }

    fn point(&self, k: u32, unbalanced: &Run<Syncs>, balanced: Vec<Run<Syncs>>) -> Point {
        let gain = |total_s: f64| 1.0 - total_s / unbalanced.total_s.max(f64::MIN_POSITIVE);
        let one = |(curve, run): (&Curve, Run<Syncs>)| Balanced {
            curve: curve.clone(),
            total_s: run.total_s,
            gain: gain(run.total_s),
            imbalance: run.facts.imbalance,
            moves: run.facts.moves,
            moved_bytes: run.facts.moved_bytes,
            sync_ms: run.facts.sync_ms,
        };
        Point {
            k,
            unbalanced_s: unbalanced.total_s,
            possible_gain: unbalanced.bound_s.map(gain),
            balanced: self.curves.iter().zip(balanced).map(one).collect(),
        }
    }
}

/// The run with the median time.
fn median(mut runs: Vec<Run<Syncs>>) -> Option<Run<Syncs>> {
    runs.sort_by(|one, other| one.total_s.total_cmp(&other.total_s));
    let middle = runs.len() / 2;
    runs.into_iter().nth(middle)
}

fn name(curve: &Curve) -> String {
    format!("{} {}", curve.lb, told(curve.period))
}

fn percent(part: f64) -> String {
    format!("{} %", decimal(100.0 * part, 1))
}

/// A table with a line per speed and a column per curve.
fn table(gains: &Gains, curves: &[Curve]) -> String {
    let heads = ["k", UNBALANCED, "possible"].map(str::to_owned).into_iter();
    let mut rows = Table::new(heads.chain(curves.iter().map(name))).text_columns([]);
    for point in &gains.points {
        let possible = point.possible_gain.map_or_else(|| "-".to_owned(), percent);
        let mut cells = vec![point.k.to_string(), format!("{:.3} s", point.unbalanced_s), possible];
        cells.extend(point.balanced.iter().map(|run| percent(run.gain)));
        rows.row(cells);
    }
    let place = if gains.placement.is_empty() { String::new() } else { format!("{}\n", gains.placement) };
    format!("{place}The gain over `{UNBALANCED}`, where the hot spot moves 2k + 1 columns a step:\n{rows}")
}

/// A plot of the gain against the speed, with a line per curve.
fn svg(gains: &Gains, curves: &[Curve]) -> String {
    let series = |name: String, line: Vec<(f64, f64)>| Series {
        name,
        dots: line.clone(),
        radius: 3.0,
        opacity: 0.8,
        line,
    };
    let at = |point: &Point, gain: f64| (f64::from(point.k), 100.0 * gain);
    let balanced = curves.iter().enumerate().map(|(curve, of)| {
        let line = gains.points.iter().filter_map(|point| Some(at(point, point.balanced.get(curve)?.gain)));
        series(name(of), line.collect())
    });
    let possible = gains.points.iter().filter_map(|point| Some(at(point, point.possible_gain?)));
    let series: Vec<Series> = balanced.chain([series("possible".to_owned(), possible.collect())]).collect();
    let all = || series.iter().flat_map(|series| series.line.iter().map(|(_, gain)| *gain));
    let caption = format!("{}: gain of balancing over `{UNBALANCED}`", gains.program);
    let chart = Chart {
        caption: caption.clone(),
        horizontal: Axis {
            title: "k: the hot spot moves 2k + 1 columns a step".to_owned(),
            from: gains.points.first().map_or(0.0, |point| point.k.into()),
            to: gains.points.last().map_or(0.0, |point| point.k.into()),
            whole: true,
        },
        vertical: Axis {
            title: "time saved (%)".to_owned(),
            from: all().map(|gain| gain - 2.0).fold(0.0, f64::min),
            to: all().map(|gain| gain + 5.0).fold(10.0, f64::max),
            whole: false,
        },
        bands: Vec::new(),
        level: Some(0.0),
        series,
    };
    let mut svg = Svg::new(SIZE.0, SIZE.1, &caption);
    chart.draw(&mut svg, Area::at((0.0, 0.0), SIZE));
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn sweep(arguments: &str) -> Result<Sweep, Error> {
        let line = format!("pic --grid 40 --particles 500 --iterations 6 --ranks 2 --workers 1 {arguments}");
        Sweep::prepare(CommandLine::try_parse_from(line.split_whitespace()).unwrap(), Launch::Alone)
    }

    #[test]
    fn every_strategy_has_a_curve_a_period_and_all_speeds_the_same_tiles() {
        let sweep =
            sweep("--sweep-speed 0..=2,5 --sweep-period 2,3 --sweep-runs 2 --compare none,rotate,refine")
                .unwrap();
        let curves: Vec<String> = sweep.curves.iter().map(name).collect();
        assert_eq!(curves, ["rotate every 2", "rotate every 3", "refine every 2", "refine every 3"]);
        let gains = sweep.run().unwrap().unwrap();
        assert_eq!(gains.points.iter().map(|point| point.k).collect::<Vec<_>>(), [0, 1, 2, 5]);
        assert_eq!(gains.settings.problem["tiles"], 3);
        let moves = |curve: usize| gains.points[3].balanced[curve].moves;
        // All nine tiles move after iterations 2 and 4, or after 3; none in the unbalanced run.
        assert_eq!((moves(0), moves(1)), (18, 9));
        let table = table(&gains, &sweep.curves);
        assert_eq!(table.lines().count(), 2 + 1 + 4, "{table}");
        let picture = svg(&gains, &sweep.curves);
        for words in ["rotate every 2", "time saved (%)", "possible", "2k + 1 columns"] {
            assert!(picture.contains(words), "{words}");
        }
        let numbers = serde_json::to_value(&gains).unwrap();
        for pointer in ["/points/0/balanced/0/gain", "/points/0/balanced/0/period", "/points/3/unbalanced_s"]
        {
            assert!(
                numbers.pointer(pointer).is_some_and(serde_json::Value::is_number),
                "{pointer}: {numbers}"
            );
        }
    }

    #[test]
    fn the_median_of_several_runs_counts() {
        let runs = &sweep("--sweep-speed 1").unwrap().runs[0];
        let run = |total_s: f64| Run { total_s, ..runs.unbalanced.run().unwrap().0.runs.remove(0) };
        let of = |all: &[f64]| median(all.iter().copied().map(run).collect()).map(|run| run.total_s);
        assert_eq!((of(&[3.0, 1.0, 2.0]), of(&[4.0]), of(&[])), (Some(2.0), Some(4.0), None));
    }

    #[test]
    fn one_period_may_be_asked_for_and_a_speed_too_high_is_refused_before_anything_runs() {
        let one = sweep("--sweep-speed 1 --period 4 --lb rotate").unwrap();
        assert_eq!(one.curves.iter().map(name).collect::<Vec<_>>(), ["rotate every 4"]);
        let both = sweep("--sweep-speed 1 --period 4 --sweep-period 3 --lb rotate").unwrap();
        assert_eq!(both.curves[0].period, Period::Steps(3));
        let skips = sweep("--sweep-speed 0..=20").map(|_| ()).unwrap_err().to_string();
        assert!(skips.contains("--sweep-speed 20"), "{skips}");
        assert!(sweep("--sweep-speed 1 --lb refien").is_err());
    }
}
