//! When each worker ended, a panel a scenario and a colour a policy; a line at the ideal.

use plotters::coord::Shift;
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color, DrawingArea, IntoDrawingArea, LineSeries, RGBColor, SVGBackend,
    SeriesLabelPosition, WHITE,
};

use super::compare::Comparison;

/// Of one panel, in pixels.
const SIZE: (u32, u32) = (960, 360);

/// Colours that people who see few colours can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The plot as the text of an SVG file; what the plotting library says otherwise.
pub(super) fn svg(comparisons: &[Comparison]) -> Result<String, String> {
    let mut text = String::new();
    draw(comparisons, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn draw(comparisons: &[Comparison], text: &mut String) -> Drawn {
    let panels = comparisons.len().max(1);
    let area = SVGBackend::with_string(text, (SIZE.0, SIZE.1 * panels as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    for (comparison, panel) in comparisons.iter().zip(area.split_evenly((panels, 1))) {
        draw_panel(comparison, &panel)?;
    }
    area.present()?;
    Ok(())
}

fn draw_panel(comparison: &Comparison, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
    let workers = comparison.workers.iter().sum::<u32>();
    let ends = comparison.outcomes.iter().map(|outcome| outcome.makespan_s);
    let top = 1.08 * ends.fold(comparison.ideal_s, f64::max).max(1e-9);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(&comparison.scenario, ("sans-serif", 18))
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.5..f64::from(workers) - 0.5, 0.0..top)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc("worker, by rank")
        .y_desc("end (s)")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 14))
        .draw()?;
    let ideal = [-0.5, f64::from(workers) - 0.5].map(|x| (x, comparison.ideal_s));
    chart.draw_series(LineSeries::new(ideal, BLACK.mix(0.5)))?;
    for (outcome, colour) in comparison.outcomes.iter().zip(COLOURS.into_iter().cycle()) {
        let ends = outcome.worker_ends_s.iter().flatten();
        let dots =
            ends.zip(0..).map(|(&end, worker)| Circle::new((f64::from(worker), end), 4, colour.filled()));
        chart
            .draw_series(dots)?
            .label(format!("{}: {:.0} s", outcome.policy, outcome.makespan_s))
            .legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}
