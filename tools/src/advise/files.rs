//! Writes the comparison to files: JSON, CSV, and a plot of the time of each step.

use presentation::chart::{Axis, Chart, Series};
use presentation::svg::{Area, Svg};
use serde::Serialize;

use super::judge::{Judged, Judgement};
use super::recording::Recording;
use super::words;
use crate::Error;
use crate::output::{self, Files, csv_error};

/// Size of the plot in pixels.
const SIZE: (f64, f64) = (960.0, 420.0);
/// Number of changes in the plot, beside the run.
const PLOTTED: usize = 3;
/// Number of points of a line.
const POINTS: usize = 200;

/// Help of the options.
pub(super) const JSON_HELP: &str = "Write all figures as JSON; times in s, gains as parts of 1";
pub(super) const CSV_HELP: &str = "Write a line per change as CSV, in the units of --json";
pub(super) const PLOT_HELP: &str = "Plot the time of each step, of the run and of the best changes";

/// A row of the table, for JSON and CSV.
#[derive(Serialize)]
struct Row {
    settings: String,
    /// The command line with these settings, if it is known.
    command: Option<String>,
    lb: String,
    period: String,
    chunks_factor: f64,
    ranks: usize,
    workers: u32,
    time_s: f64,
    gain: f64,
    uncertainty: f64,
    spread: f64,
    moves: u64,
    advised: bool,
    note: &'static str,
}

#[derive(Serialize)]
struct All {
    schema: &'static str,
    recorded_s: f64,
    steps: usize,
    chunks: usize,
    /// Replayed over recorded time, minus 1.
    replay_error: f64,
    bound_s: f64,
    doubts: Vec<String>,
    rows: Vec<Row>,
}

/// Writes the requested files.
pub(super) fn write(files: &Files, recording: &Recording, judgement: &Judgement) -> Result<(), Error> {
    let rows = || judgement.rows.iter().enumerate().map(|(place, row)| of(recording, judgement, place, row));
    if let Some(file) = &files.json {
        let all = All {
            schema: "caribou.advise/1",
            recorded_s: recording.took_s,
            steps: recording.steps(),
            chunks: recording.chunks(),
            replay_error: judgement.error,
            bound_s: judgement.bound_s,
            doubts: recording.doubts.clone(),
            rows: rows().collect(),
        };
        output::write(file, serde_json::to_string_pretty(&all).map_err(std::io::Error::from)? + "\n")?;
    }
    if let Some(file) = &files.csv {
        let mut csv = csv::Writer::from_writer(Vec::new());
        rows().try_for_each(|row| csv.serialize(row)).map_err(csv_error)?;
        output::write(file, csv.into_inner().map_err(|error| error.into_error())?)?;
    }
    if let Some(file) = &files.plot {
        output::write(file, plot(recording, judgement))?;
    }
    Ok(())
}

fn of(recording: &Recording, judgement: &Judgement, place: usize, row: &Judged) -> Row {
    let change = &row.change;
    Row {
        settings: words::settings(recording, change),
        command: words::command(recording, change),
        lb: change.lb.clone(),
        period: change.period.to_string(),
        chunks_factor: change.size.factor(),
        ranks: change.workers.len(),
        workers: change.workers.iter().sum(),
        time_s: row.time_s,
        gain: row.gain,
        uncertainty: row.uncertainty,
        spread: row.spread,
        moves: row.moves,
        advised: judgement.best == Some(place),
        note: words::note(recording, change),
    }
}

/// The time of steps of the run and of the best changes on the same vCPUs.
fn plot(recording: &Recording, judgement: &Judgement) -> String {
    let free = judgement.rows[1..].iter().filter(|row| !row.change.needs_vcpus(recording)).take(PLOTTED);
    let rows: Vec<&Judged> = judgement.rows[..1].iter().chain(free).collect();
    let lines: Vec<Series> = rows.iter().map(|row| line(recording, row)).collect();
    let top = lines.iter().flat_map(|series| &series.line).map(|&(_, y)| y).fold(1e-9, f64::max);
    let chart = Chart {
        caption: format!("{} steps of {} chunks, replayed", recording.steps(), recording.chunks()),
        horizontal: Axis { title: "step".into(), from: 0.0, to: recording.steps() as f64, whole: true },
        vertical: Axis { title: "time of a step (ms)".into(), from: 0.0, to: 1.08 * top, whole: false },
        bands: Vec::new(),
        level: Some(1e3 * judgement.bound_s / recording.steps().max(1) as f64),
        series: lines,
    };
    let mut svg = Svg::new(SIZE.0, SIZE.1, "Replays of a recorded run");
    chart.draw(&mut svg, Area::at((0.0, 0.0), SIZE));
    svg.finish()
}

/// Mean times over groups of steps, so that the line has few points.
fn line(recording: &Recording, row: &Judged) -> Series {
    let steps = &row.first.steps_s;
    let group = steps.len().div_ceil(POINTS).max(1);
    let mean = |(place, group_s): (usize, &[f64])| {
        let mean = group_s.iter().sum::<f64>() / group_s.len() as f64;
        ((place * group) as f64 + group_s.len() as f64 / 2.0, 1e3 * mean)
    };
    Series {
        name: words::settings(recording, &row.change),
        dots: Vec::new(),
        radius: 0.0,
        opacity: 1.0,
        line: steps.chunks(group).enumerate().map(mean).collect(),
    }
}
