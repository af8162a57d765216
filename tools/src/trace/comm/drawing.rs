//! Draws messages over time as stacked bars: messages within a rank, and messages to other ranks.

use presentation::svg::{Anchor, Area, Svg};

use super::super::page::{bytes, duration};
use super::super::palette;
use super::super::select::Window;
use super::matrix::Volume;

const SIZE: (f64, f64) = (960.0, 320.0);

/// `stretches` has, for each span of time, all messages and the messages to other ranks.
pub(super) fn over_time(run_id: &str, window: Window, stretches: &[(Volume, Volume)]) -> Svg {
    let mut svg = Svg::new(SIZE.0, SIZE.1, "Messages over time");
    let area = Area { left: 80.0, top: 60.0, width: SIZE.0 - 100.0, height: SIZE.1 - 110.0 };
    svg.text((10.0, 18.0), Anchor::Start, &format!("{run_id}: what was sent, over time"));
    let colours = [palette::numbered(0), palette::numbered(1)];
    let names = ["within a rank", "to other ranks"].map(str::to_owned);
    svg.legend(Area { top: 30.0, ..area }, &names.into_iter().zip(colours).collect::<Vec<_>>());
    // If no message has a size, the bars show numbers of messages.
    let by_bytes = stretches.iter().any(|(all, _)| all.bytes > 0.0);
    let of = |volume: &Volume| if by_bytes { volume.bytes } else { volume.messages };
    let name = |value: f64| if by_bytes { bytes(value as u64) } else { format!("{value:.0}") };
    let most = stretches.iter().map(|(all, _)| of(all)).fold(0.0, f64::max).max(1.0) * 1.05;
    svg.left_axis(area, most, name);
    let wide = area.width / stretches.len().max(1) as f64;
    let long_ns = window.length_ns() as f64 / stretches.len().max(1) as f64;
    for (number, (all, away)) in stretches.iter().enumerate() {
        let left = area.left + wide * number as f64;
        let mut bottom = area.bottom();
        let from = duration(window.from_ns as f64 + long_ns * number as f64);
        let parts = [of(all) - of(away), of(away)];
        for ((part, colour), what) in parts.into_iter().zip(colours).zip(["within a rank", "to other ranks"])
        {
            let height = area.height * part / most;
            let bar = Area { left, top: bottom - height, width: (wide - 0.5).max(0.5), height };
            svg.rect(bar, colour, Some(&format!("from {from}: {} {what}", name(part))));
            bottom -= height;
        }
    }
    svg.bottom_axis(area, window.from_ns as f64, window.to_ns as f64, duration);
    svg
}
