//! Plots when each worker ended, a panel a scenario and a colour a policy; a line at the ideal.

use presentation::chart::{Axis, Chart, Series};
use presentation::svg::{Area, Svg};

use super::compare::Comparison;
use super::outcome::Outcome;

/// Of one panel, in pixels.
const SIZE: (f64, f64) = (960.0, 360.0);

/// The plot as the text of an SVG file.
pub(super) fn svg(comparisons: &[Comparison]) -> String {
    let panels = comparisons.len().max(1) as f64;
    let mut svg = Svg::new(SIZE.0, SIZE.1 * panels, "when each worker ended");
    for (number, comparison) in comparisons.iter().enumerate() {
        chart(comparison).draw(&mut svg, Area::at((0.0, SIZE.1 * number as f64), SIZE));
    }
    svg.finish()
}

fn chart(comparison: &Comparison) -> Chart {
    let workers = f64::from(comparison.workers.iter().sum::<u32>());
    let ends = comparison.outcomes.iter().map(|outcome| outcome.makespan_s);
    let top = 1.08 * ends.fold(comparison.ideal_s, f64::max).max(1e-9);
    Chart {
        caption: comparison.scenario.clone(),
        horizontal: Axis { title: "worker, by rank".into(), from: -0.5, to: workers - 0.5, whole: true },
        vertical: Axis { title: "end (s)".into(), from: 0.0, to: top, whole: false },
        bands: Vec::new(),
        level: Some(comparison.ideal_s),
        series: comparison.outcomes.iter().map(series).collect(),
    }
}

fn series(outcome: &Outcome) -> Series {
    let ends = outcome.worker_ends_s.iter().flatten();
    Series {
        name: format!("{}: {:.0} s", outcome.policy, outcome.makespan_s),
        dots: (0..).map(f64::from).zip(ends.copied()).collect(),
        radius: 4.0,
        opacity: 1.0,
        line: Vec::new(),
    }
}
