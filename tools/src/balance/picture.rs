//! Draws the front of strategies: imbalance against chunks moved, and predicted time against bytes between ranks.

use presentation::chart::{Axis, Chart, Series};
use presentation::svg::{Area, Svg};

use super::front::without_budget;
use crate::Error;
use crate::report::{Report, Row};

/// Size in pixels of one panel.
const SIZE: (f64, f64) = (960.0, 420.0);

/// Largest number of phases, each of which has its panels.
const PHASES_MAX: usize = 20;

/// One or two panels per phase.
pub(super) fn svg(reports: &[Report]) -> Result<String, Error> {
    if reports.len() > PHASES_MAX {
        let phases = reports.len();
        return Err(Error::Usage(format!("--svg: panels of {phases} phases, expected {PHASES_MAX} at most")));
    }
    let charts: Vec<Chart> = reports.iter().flat_map(charts).collect();
    let mut svg =
        Svg::new(SIZE.0, SIZE.1 * charts.len() as f64, "Strategies: what they reach, and what they move");
    for (number, chart) in charts.iter().enumerate() {
        chart.draw(&mut svg, Area::at((0.0, SIZE.1 * number as f64), SIZE));
    }
    Ok(svg.finish())
}

fn charts(report: &Report) -> Vec<Chart> {
    let phase = report.phase;
    let least = report.rows.first().map(|row| row.max_over_avg_least);
    let moved = |row: &Row| (row.moved_chunks as f64, row.max_over_avg_after);
    let mut imbalance = chart(
        format!("Phase {phase}: imbalance by chunks moved; grey: no placement is below"),
        ["chunks moved", "imbalance after the moves"],
        (least, 1.0),
        series(report, moved),
    );
    let mut front: Vec<(f64, f64)> = report.rows.iter().filter(|row| row.on_front).map(moved).collect();
    front.sort_by(|one, other| one.0.total_cmp(&other.0));
    // The front is drawn first, under the strategies.
    let front =
        Series { name: "front".to_owned(), dots: front.clone(), radius: 7.0, opacity: 0.4, line: front };
    imbalance.series.insert(0, front);
    let mut charts = vec![imbalance];
    if report.has_messages() {
        let time =
            |row: &Row| (row.bytes_between_ranks as f64 / f64::from(1 << 20), row.predicted_ns as f64 / 1e6);
        charts.push(chart(
            format!("Phase {phase}: predicted time by bytes between ranks"),
            ["MiB between ranks", "predicted time of the phase (ms)"],
            (None, 0.0),
            series(report, time),
        ));
    }
    charts
}

/// A chart whose vertical axis begins at `from`.
fn chart(
    caption: String,
    [across, up]: [&str; 2],
    (level, from): (Option<f64>, f64),
    series: Vec<Series>,
) -> Chart {
    let dots = || series.iter().flat_map(|series| &series.dots);
    let most = |value: fn(&(f64, f64)) -> f64| dots().map(value).fold(0.0, f64::max);
    let axis = |title: &str, from: f64, most: f64| Axis {
        title: title.to_owned(),
        from,
        to: from + 1.05 * (most - from).max(f64::EPSILON),
        whole: false,
    };
    Chart {
        caption,
        horizontal: axis(across, 0.0, most(|dot| dot.0)),
        vertical: axis(up, from, most(|dot| dot.1)),
        bands: Vec::new(),
        level,
        series,
    }
}

/// A series per strategy: a dot per row, and a line through the rows that differ in their budget alone.
fn series(report: &Report, place: impl Fn(&Row) -> (f64, f64)) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in &report.rows {
        let (name, has_budget) = without_budget(&row.strategy);
        let dot = place(row);
        let line = if has_budget { vec![dot] } else { Vec::new() };
        match all.iter_mut().find(|series| series.name == name) {
            Some(series) => {
                series.dots.push(dot);
                series.line.extend(line);
            }
            None => all.push(Series { name, dots: vec![dot], radius: 4.0, opacity: 0.9, line }),
        }
    }
    for series in &mut all {
        series.line.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    all
}
