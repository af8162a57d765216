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
    let first = report.rows.first();
    let mut charts = vec![chart(
        format!("Phase {phase}: imbalance by chunks moved; grey: no placement is below"),
        ["chunks moved", "imbalance after the moves"],
        first.map_or(1.0, |row| row.max_over_avg_least),
        series(report, |row| (row.moved_chunks as f64, row.max_over_avg_after)),
    )];
    if report.has_messages() {
        let ms = |ns: u64| ns as f64 / 1e6;
        let place = |row: &Row| (row.bytes_between_ranks as f64 / f64::from(1 << 20), ms(row.predicted_ns));
        charts.push(chart(
            format!("Phase {phase}: predicted time by bytes between ranks; grey: no placement is below"),
            ["MiB between ranks", "predicted time of the phase (ms)"],
            first.map_or(0.0, |row| ms(row.bound_ns)),
            series(report, place),
        ));
    }
    charts
}

/// A chart with a grey line at `least`. The vertical axis begins a little below it, so that the line is visible.
fn chart(caption: String, [across, up]: [&str; 2], least: f64, series: Vec<Series>) -> Chart {
    let dots = || series.iter().flat_map(|series| &series.dots);
    let most = |value: fn(&(f64, f64)) -> f64| dots().map(value).fold(0.0, f64::max);
    let axis = |title: &str, from: f64, below: f64, most: f64| {
        // Dots may all be in one place, even at zero.
        let range = Some((most - from).max(1e-3 * from)).filter(|range| *range > 0.0).unwrap_or(1.0);
        Axis { title: title.to_owned(), from: from - below * range, to: from + 1.05 * range, whole: false }
    };
    Chart {
        caption,
        horizontal: axis(across, 0.0, 0.02, most(|dot| dot.0)),
        vertical: axis(up, least, 0.06, most(|dot| dot.1)),
        bands: Vec::new(),
        level: Some(least),
        series,
    }
}

/// The front, and a series per strategy: a dot per row, and a line through the rows that differ in their budget alone.
fn series(report: &Report, place: impl Fn(&Row) -> (f64, f64)) -> Vec<Series> {
    let within_memory = report.rows.iter().filter(|row| row.result().1.is_finite());
    let line = front(within_memory.map(&place).collect());
    // The front is drawn first, under the strategies.
    let mut all =
        vec![Series { name: "front".to_owned(), dots: line.clone(), radius: 7.0, opacity: 0.4, line }];
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

/// The dots that no other dot beats in both directions, from left to right.
fn front(mut dots: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    dots.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut lowest = f64::INFINITY;
    dots.retain(|dot| {
        let is_lower = dot.1 < lowest;
        lowest = lowest.min(dot.1);
        is_lower
    });
    dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_below_which_no_placement_is_lies_above_the_axis() {
        for least in [0.0, 1.0, 250.0] {
            let chart = chart(String::new(), ["", ""], least, Vec::new());
            assert!(chart.vertical.from < least && chart.level == Some(least), "{chart:?}");
        }
    }

    #[test]
    fn the_front_falls_from_left_to_right() {
        let dots = vec![(5.0, 1.0), (0.0, 3.0), (2.0, 3.0), (2.0, 2.0), (2.0, 2.0), (7.0, 1.5)];
        assert_eq!(front(dots), [(0.0, 3.0), (2.0, 2.0), (5.0, 1.0)]);
    }
}
