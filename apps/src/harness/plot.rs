//! Iteration time against iteration, one colour a strategy, disturbed windows shaded: the shape of the paper's figure 3.
//!
//! Iterations beside a neighbour scatter, because the scheduler hands out slices of milliseconds. So each run is drawn
//! twice: every iteration as a pale point, and a running mean as a line. SVG needs no font and no graphics library here.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    BLACK, Cartesian2d, ChartBuilder, ChartContext, Circle, Color, IntoDrawingArea, LineSeries, PathElement,
    RGBColor, Rectangle, SVGBackend, SeriesLabelPosition, Text, WHITE,
};

use crate::harness::disturbance::Window;
use crate::harness::summary::Summary;

const SIZE: (u32, u32) = (960, 520);

/// Colours that people who see few colours can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 5] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
];

/// Behind the windows in which something disturbs the run.
const SHADE: RGBColor = RGBColor(230, 159, 0);

/// More points than this a run cannot be told apart, and make the file large.
const POINTS: usize = 1500;

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// What is to be drawn.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Above it.
    pub caption: String,
    /// What a step of the horizontal axis is, such as "iteration".
    pub step: &'static str,
    /// Steps of the longest run.
    pub steps: u32,
    /// The run between the comings and goings of neighbours.
    pub windows: Vec<Window>,
    /// The runs: what is said of each, and the milliseconds of its steps.
    pub curves: Vec<(String, Vec<f64>)>,
}

impl From<&Summary> for Picture {
    fn from(summary: &Summary) -> Self {
        let curve = |run: &crate::harness::summary::RunSummary| {
            (format!("{}: {:.2} s", run.lb, run.total_s), run.iterations_ms.clone())
        };
        Self {
            caption: caption(summary),
            step: "iteration",
            steps: summary.settings.iterations,
            windows: summary.windows(),
            curves: summary.runs.iter().map(curve).collect(),
        }
    }
}

/// The plot as the text of an SVG file.
///
/// # Errors
/// What the plotting library says; there is no input for which this is known to happen.
pub fn svg(picture: &Picture) -> Result<String, String> {
    let mut text = String::new();
    draw(picture, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(picture: &Picture, text: &mut String) -> Drawn {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let top = top_ms(picture);
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .caption(&picture.caption, ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..f64::from(picture.steps), 0.0..top)?;
    shade(picture, top, &mut chart)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(picture.step)
        .y_desc(format!("time per {} (ms)", picture.step))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| if top < 5.0 { format!("{y:.2}") } else { format!("{y:.0}") })
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    name_windows(picture, top, &mut chart)?;
    for ((label, times_ms), colour) in picture.curves.iter().zip(COLOURS.into_iter().cycle()) {
        draw_run(label, times_ms, colour, top, &mut chart)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}

fn draw_run(label: &str, times_ms: &[f64], colour: RGBColor, top: f64, chart: &mut Chart<'_>) -> Drawn {
    let points: Vec<(f64, f64)> =
        times_ms.iter().enumerate().map(|(at, &ms)| (at as f64 + 0.5, ms)).collect();
    let every = points.len().div_ceil(POINTS).max(1);
    let pale = colour.mix(0.22).filled();
    let visible = points.iter().step_by(every).filter(|(_, ms)| *ms <= top);
    chart.draw_series(visible.map(|&point| Circle::new(point, 2, pale)))?;
    let line = points.iter().map(|&(at, _)| at).zip(smooth(times_ms)).step_by(every);
    chart
        .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
        .label(label)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    Ok(())
}

/// Colours each disturbed window; before the mesh, so that its lines stay visible.
fn shade(picture: &Picture, top: f64, chart: &mut Chart<'_>) -> Drawn {
    let disturbed = picture.windows.iter().filter(|window| window.disturbed);
    chart.draw_series(disturbed.map(|window| {
        Rectangle::new([(f64::from(window.from), 0.0), (f64::from(window.to), top)], SHADE.mix(0.16).filled())
    }))?;
    Ok(())
}

/// Says in each disturbed window what disturbs.
fn name_windows(picture: &Picture, top: f64, chart: &mut Chart<'_>) -> Drawn {
    let disturbed = picture.windows.iter().filter(|window| window.disturbed);
    chart.draw_series(disturbed.map(|window| {
        let inside = f64::from(window.from) + 0.01 * f64::from(picture.steps);
        Text::new(window.label.clone(), (inside, 0.05 * top), ("sans-serif", 14))
    }))?;
    Ok(())
}

fn caption(summary: &Summary) -> String {
    let Summary { program, settings, .. } = summary;
    let problem = settings.problem.get("description").and_then(serde_json::Value::as_str).unwrap_or_default();
    format!("{program}: {problem}, {} ranks, balanced every {} iterations", settings.ranks, settings.period)
}

/// The upper end of the time axis: room above the lines and nearly all points; a single stray iteration is left out.
fn top_ms(picture: &Picture) -> f64 {
    let mut all: Vec<f64> =
        picture.curves.iter().flat_map(|(_, times_ms)| times_ms.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let most = all.get(all.len() * 98 / 100).copied().unwrap_or(1.0);
    let lines = picture.curves.iter().flat_map(|(_, times_ms)| smooth(times_ms)).fold(0.0, f64::max);
    // Room for the legend above the lines.
    1.3 * most.max(lines).max(1e-6)
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
    use crate::harness::summary::tests::sample;

    #[test]
    fn the_plot_names_axes_runs_and_units() {
        let text = svg(&(&sample("none", &["1:10-20"])).into()).unwrap();
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
    fn an_empty_run_can_be_plotted() {
        let mut summary = sample("none", &[]);
        summary.runs.iter_mut().for_each(|run| run.iterations_ms.clear());
        assert!(svg(&(&summary).into()).is_ok());
    }
}
