//! Plots iteration times, one colour per strategy, with disturbed windows shaded, as in figure 3 of Gupta et al., 2013.
//!
//! Iterations beside a busy process on the same vCPU scatter, because the scheduler hands out slices of milliseconds.
//! So each run is drawn twice: every iteration as a pale point, and a running mean as a line.

use presentation::chart::{Axis, Band, Chart, Series};
use presentation::format::plural;
use presentation::svg::{Area, Svg};

use super::disturbance::Window;

const SIZE: (f64, f64) = (960.0, 520.0);

/// Maximum number of points per run. More could not be distinguished and would make the file large.
const POINTS: usize = 1500;

/// A plot to be drawn.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The text above the plot.
    pub caption: String,
    /// The name of a step on the horizontal axis, such as "iteration".
    pub step: &'static str,
    /// Steps of the longest run.
    pub steps: u32,
    /// The run, cut where neighbours start or end.
    pub windows: Vec<Window>,
    /// The runs: the caption of each, and the milliseconds of its steps.
    pub curves: Vec<(String, Vec<f64>)>,
}

/// The plot as the text of an SVG file.
#[must_use]
pub fn svg(picture: &Plot) -> String {
    let Plot { caption, step, steps, windows, curves } = picture;
    let top_ms = top_ms(picture);
    let disturbed = windows.iter().filter(|window| window.disturbed);
    let band = |window: &Window| Band {
        label: window.label.clone(),
        from: window.from.into(),
        to: window.to.into(),
    };
    let chart = Chart {
        caption: caption.clone(),
        horizontal: Axis { title: (*step).to_owned(), from: 0.0, to: (*steps).into(), whole: true },
        vertical: Axis {
            title: format!("time per {step} (ms): dots; their running mean: lines"),
            from: 0.0,
            to: top_ms,
            whole: false,
        },
        bands: disturbed.map(band).collect(),
        level: None,
        series: curves.iter().map(|(name, times_ms)| series(name, times_ms, top_ms)).collect(),
    };
    let mut svg = Svg::new(SIZE.0, SIZE.1, caption);
    chart.draw(&mut svg, Area::at((0.0, 0.0), SIZE));
    svg.finish()
}

/// A run. Its name counts the points above the axis, which are not drawn.
fn series(name: &str, times_ms: &[f64], top_ms: f64) -> Series {
    let above = times_ms.iter().filter(|&&ms| ms > top_ms).count();
    let name = match times_ms.iter().copied().fold(0.0, f64::max) {
        longest if above > 0 => {
            format!("{name}, {} above the axis, up to {longest:.0} ms", plural(above, "point"))
        }
        _ => name.to_owned(),
    };
    let every = times_ms.len().div_ceil(POINTS).max(1);
    let points = |times_ms: &[f64]| {
        let points = times_ms.iter().enumerate().map(|(at, &ms)| (at as f64 + 0.5, ms));
        points.step_by(every).collect()
    };
    Series { name, dots: points(times_ms), radius: 2.0, opacity: 0.22, line: points(&smooth(times_ms)) }
}

/// The upper end of the time axis, ms: above all lines and 98 % of the points. A single stray iteration is left out.
fn top_ms(picture: &Plot) -> f64 {
    let mut all: Vec<f64> =
        picture.curves.iter().flat_map(|(_, times_ms)| times_ms.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let most = all.get(all.len() * 98 / 100).copied().unwrap_or(1.0);
    let lines = picture.curves.iter().flat_map(|(_, times_ms)| smooth(times_ms)).fold(0.0, f64::max);
    // Room for the names of windows above the lines.
    1.2 * most.max(lines).max(1e-6)
}

/// A running mean over about a fiftieth of the run.
///
/// The mean and not the median: chunks run ahead of each other, so that a long iteration is followed by short ones, and
/// only their mean is the pace of the run.
fn smooth(values: &[f64]) -> Vec<f64> {
    let half = (values.len() / 100).clamp(2, 25);
    let around = |at: usize| &values[at.saturating_sub(half)..(at + half + 1).min(values.len())];
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    (0..values.len()).map(|at| mean(around(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sample;
    use crate::times::Times;

    #[test]
    fn the_plot_names_axes_runs_and_units() {
        let text = svg(&(&sample("none", &["1:10-20"])).into());
        for words in ["<svg", "time per iteration (ms)", "iteration", "none: 0.24 s", "refine: 0.21 s"] {
            assert!(text.contains(words), "{words}");
        }
    }

    #[test]
    fn the_line_shows_the_pace_where_long_and_short_iterations_take_turns() {
        let values: Vec<f64> = (0..400).map(|at| if at % 2 == 0 { 12.0 } else { 2.0 }).collect();
        assert!(smooth(&values).iter().skip(8).take(380).all(|&value| (value - 7.0).abs() < 1.0));
    }

    #[test]
    fn a_point_above_the_axis_is_told() {
        let mut times_ms = vec![2.0; 400];
        times_ms[200] = 500.0;
        let picture = Plot { curves: vec![("none".to_owned(), times_ms)], ..(&sample("none", &[])).into() };
        assert!(svg(&picture).contains("none, 1 point above the axis, up to 500 ms"));
    }

    #[test]
    fn an_empty_run_can_be_plotted() {
        let mut summary = sample("none", &[]);
        summary.runs.iter_mut().for_each(|run| run.times = Times::default());
        assert!(svg(&(&summary).into()).ends_with("</svg>\n"));
    }
}
