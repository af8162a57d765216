//! Draws the distributions as bars.

use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use super::super::page::{bytes, duration};
use super::super::palette;
use super::Found;

/// Draws a panel for each distribution that has values.
pub(super) fn draw(trace: &Trace, found: &Found) -> Svg {
    let panels = [
        ("execution: share of wall time", &found.wall, true),
        ("message size: share of messages", &found.size, false),
        ("message latency: share of messages", &found.latency, true),
        ("idle: share of idle time", &found.idle, true),
    ];
    let panels: Vec<_> = panels.into_iter().filter(|(_, spread, _)| spread.count() > 0).collect();
    let (wide, high) = (640.0, 200.0);
    let mut svg = Svg::new(wide + 40.0, 40.0 + high * panels.len() as f64, "Durations and sizes");
    svg.text((20.0, 18.0), Anchor::Start, &format!("{}: durations and sizes", trace.run.run_id));
    for (number, (title, spread, time)) in panels.into_iter().enumerate() {
        let by_sum = title.starts_with("exec") || title.starts_with("idle");
        let (top, octaves) = (40.0 + high * number as f64, spread.octaves());
        svg.text((20.0, top + 12.0), Anchor::Start, title);
        let all = if by_sum { spread.sum() } else { spread.count() as f64 };
        let bar_wide = (wide / octaves.len().max(1) as f64).min(90.0);
        for (number, octave) in octaves.iter().enumerate() {
            let part = if by_sum { octave.sum } else { octave.count as f64 } / all.max(1.0);
            let (x, tall) = (20.0 + bar_wide * number as f64, part * (high - 60.0));
            let edge = |value: u64| if time { duration(value as f64) } else { bytes(value) };
            let hint = format!(
                "{} to {}: {} ({:.1} %)",
                edge(octave.from),
                edge(octave.to),
                octave.count,
                100.0 * part
            );
            let at = (x + 1.0, top + high - 36.0 - tall);
            svg.rect(
                Area::at(at, ((bar_wide - 2.0).max(1.0), tall.max(0.5))),
                palette::numbered(0),
                Some(&hint),
            );
            if number % (70.0 / bar_wide).ceil().max(1.0) as usize == 0 {
                svg.text((x, top + high - 22.0), Anchor::Start, &edge(octave.from));
            }
        }
    }
    svg
}
