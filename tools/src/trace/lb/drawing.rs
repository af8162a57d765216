//! Draws the completion times of ranks at one sync as bars: measured before, predicted, and measured by the next sync.

use presentation::svg::{Anchor, Area, Svg};

use super::super::page::duration;
use super::super::page::plural;
use super::super::palette::{BEFORE, IDLE, MEASURED, PREDICTED};
use crate::trace::analysis::sync_effect::{PerRank, SyncEffect};

const SIZE: (f64, f64) = (960.0, 420.0);

pub(super) fn svg(outcome: &SyncEffect<'_>) -> String {
    let report = outcome.report;
    let moved = format!("sync {}, {} moved", report.sync, plural(report.moved as usize, "chunk"));
    let mut svg = Svg::new(SIZE.0, SIZE.1, &moved);
    let area = Area { left: 80.0, top: 70.0, width: SIZE.0 - 100.0, height: SIZE.1 - 120.0 };
    let series: Vec<(&str, &str, PerRank)> = [
        ("before", BEFORE, report.before_ns.clone()),
        ("predicted", PREDICTED, outcome.predicted_ns()),
        ("measured next", MEASURED, outcome.measured_ns().unwrap_or_default()),
    ]
    .into_iter()
    .filter(|(_, _, times)| !times.is_empty())
    .collect();
    let all = || series.iter().flat_map(|(_, _, times)| times.iter().copied());
    let most = all().max().unwrap_or(0).max(1) as f64 * 1.05;
    svg.sized_text(
        (SIZE.0 / 2.0, 22.0),
        15,
        Anchor::Middle,
        &format!("completion time of ranks, of equally many steps: {moved}"),
    );
    let named = |(name, colour, times): &(&str, &str, PerRank)| {
        (format!("{name}, average {}", duration(average(times))), (*colour).to_owned())
    };
    let legend: Vec<_> = series.iter().map(named).collect();
    svg.legend(Area { top: 36.0, ..area }, &legend);
    svg.rect(area, IDLE, None);
    svg.left_axis(area, most, duration);
    let ranks = series.iter().map(|(_, _, times)| times.len()).max().unwrap_or(0);
    bars(&mut svg, area, &series, ranks, most);
    if let Some(first) = series.first() {
        let y = area.bottom() - area.height * average(&first.2) / most;
        svg.line((area.left, y), (area.right(), y), "#000000", 1.0);
    }
    let centre = area.width / ranks.max(1) as f64 / 2.0;
    let numbers = Area { left: area.left + centre, width: area.width - 2.0 * centre, ..area };
    if ranks > 1 {
        svg.bottom_axis(numbers, 0.0, ranks as f64 - 1.0, |rank| {
            if rank.fract() == 0.0 { format!("{rank:.0}") } else { String::new() }
        });
    }
    svg.sized_text((area.left + area.width / 2.0, SIZE.1 - 12.0), 12, Anchor::Middle, "rank");
    svg.finish()
}

fn bars(svg: &mut Svg, area: Area, series: &[(&str, &str, PerRank)], ranks: usize, most: f64) {
    let place = area.width / ranks.max(1) as f64;
    let width = 0.8 * place / series.len().max(1) as f64;
    for (number, (name, colour, times)) in series.iter().enumerate() {
        for (rank, &ns) in times.iter().enumerate() {
            let height = area.height * ns as f64 / most;
            let left = area.left + place * (rank as f64 + 0.1) + width * number as f64;
            let says = format!("rank {rank}, {name}: {}", duration(ns as f64));
            svg.rect(Area { left, top: area.bottom() - height, width, height }, colour, Some(&says));
        }
    }
}

fn average(times: &[u64]) -> f64 {
    times.iter().map(|&ns| ns as f64).sum::<f64>() / times.len().max(1) as f64
}
