//! Draws the parts of time stacked over time, and maps of ranks over time for busy, idle and lost time.

use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use super::super::analysis::time_breakdown::Parts;
use super::super::page::duration;
use super::super::palette::{self, CHUNKS, IDLE, LOST, MARK, RUNTIME, STEAL, UNKNOWN};
use super::super::supersteps::moments;
use super::map::{Cut, Map, Row};

const WIDTH: f64 = 960.0;
const STACKED: f64 = 180.0;
/// Largest number of rows of a map. More ranks are drawn as averages of several ranks.
const ROWS_MAX: usize = 64;
/// Number of shades in a map. Adjacent cells of one shade are one rectangle.
const SHADES: f64 = 20.0;

pub(super) fn svg(trace: &Trace, map: &Map) -> String {
    let rows = rows(&map.rows);
    let row = (160.0 / rows.len() as f64).clamp(3.0, 18.0);
    let high = row * rows.len() as f64;
    let height = 60.0 + STACKED + 3.0 * (high + 34.0) + 40.0;
    let mut svg = palette::picture(WIDTH, height, "utilisation over time");
    let stacked = Area { left: 70.0, top: 60.0, width: WIDTH - 90.0, height: STACKED };
    svg.sized_text((WIDTH / 2.0, 20.0), 15, Anchor::Middle, "what workers did over time");
    let names = ["chunks", "runtime", "lost, without steal", "steal", "unaccounted", "idle", "sync"];
    let fills = [CHUNKS, RUNTIME, LOST, STEAL, UNKNOWN, IDLE, MARK];
    let legend: Vec<_> = names.map(str::to_owned).into_iter().zip(fills.map(str::to_owned)).collect();
    svg.legend(Area { top: 32.0, ..stacked }, &legend);
    svg.left_axis(stacked, 1.0, |share| format!("{:.0} %", 100.0 * share));
    stack(&mut svg, stacked, map);
    let window = map.bins.window;
    syncs(&mut svg, stacked, trace, map);
    type Map3 = [(&'static str, [f64; 3], fn(&Parts) -> f64); 3];
    let maps: Map3 = [
        ("busy with chunks", [0.0, 114.0, 178.0], |parts| parts.chunks_ns),
        ("idle", [60.0, 60.0, 60.0], |parts| parts.idle_ns),
        ("lost to others", [213.0, 94.0, 0.0], |parts| parts.lost_ns),
    ];
    let mut top = stacked.bottom() + 34.0;
    for (name, colour, of) in maps {
        let area = Area { top, height: high, ..stacked };
        let title = format!("{name}, by rank: the darker the more");
        svg.sized_text((area.left, top - 6.0), 12, Anchor::Start, &title);
        heat(&mut svg, area, &rows, colour, of);
        syncs(&mut svg, area, trace, map);
        top += high + 34.0;
    }
    let last = Area { top: top - 34.0 - high, height: high, ..stacked };
    svg.bottom_axis(last, window.from_ns as f64, window.to_ns.max(window.from_ns + 1) as f64, duration);
    svg.finish()
}

fn stack(svg: &mut Svg, area: Area, map: &Map) {
    let width = area.width / map.bins.count as f64;
    for (bin, Cut { parts, steal_ns }) in map.all.iter().enumerate() {
        let layers = [
            ("chunks", CHUNKS, parts.chunks_ns),
            ("runtime", RUNTIME, parts.runtime_ns),
            ("lost, without steal", LOST, parts.lost_ns - steal_ns),
            ("steal", STEAL, *steal_ns),
            ("unaccounted", UNKNOWN, parts.rest_ns),
            ("idle", IDLE, parts.idle_ns),
        ];
        let mut bottom = area.bottom();
        for (name, fill, ns) in layers {
            let height = (parts.share(ns) * area.height).min(bottom - area.top);
            bottom -= height;
            let from = duration(map.bins.edge_ns(bin) as f64);
            let says = format!("from {from}, {name}: {:.1} %", 100.0 * parts.share(ns));
            let left = area.left + width * bin as f64;
            svg.rect(Area { left, top: bottom, width, height }, fill, Some(&says));
        }
    }
}

/// Draws a line at each sync or division, at most one per pixel.
fn syncs(svg: &mut Svg, area: Area, trace: &Trace, map: &Map) {
    let window = map.bins.window;
    let mut last = f64::NEG_INFINITY;
    for at_ns in moments(trace) {
        let inside = (window.from_ns..=window.to_ns).contains(&at_ns);
        let into = at_ns.saturating_sub(window.from_ns) as f64 / window.length_ns().max(1) as f64;
        let x = area.left + area.width * into;
        if inside && (x - last).abs() >= 1.0 {
            svg.line((x, area.top), (x, area.bottom()), MARK, 0.5);
            last = x;
        }
    }
}

/// A row of the map: its name and its bins.
type Line = (String, Vec<Parts>);

/// The rows, each for a rank or a group of ranks.
fn rows(ranks: &[Row]) -> Vec<Line> {
    let each = ranks.len().div_ceil(ROWS_MAX).max(1);
    let row = |ranks: &[Row]| {
        let name = match ranks {
            [one] => one.rank.to_string(),
            [first, .., last] => format!("{}..{}", first.rank, last.rank),
            [] => String::new(),
        };
        let mut bins = vec![Parts::default(); ranks.first().map_or(0, |rank| rank.bins.len())];
        for rank in ranks {
            bins.iter_mut().zip(&rank.bins).for_each(|(sum, cut)| *sum += cut.parts);
        }
        (name, bins)
    };
    ranks.chunks(each).map(row).collect()
}

fn heat(svg: &mut Svg, area: Area, rows: &[Line], colour: [f64; 3], of: fn(&Parts) -> f64) {
    let height = area.height / rows.len().max(1) as f64;
    for (number, (name, bins)) in rows.iter().enumerate() {
        let top = area.top + height * number as f64;
        // Labels only as many rows as have space.
        if number % (11.0 / height).ceil() as usize == 0 {
            svg.sized_text((area.left - 6.0, top + height / 2.0 + 4.0), 10, Anchor::End, name);
        }
        let width = area.width / bins.len() as f64;
        let shade = |parts: &Parts| (parts.share(of(parts)).clamp(0.0, 1.0) * SHADES).round();
        let mut from = 0;
        while let Some(first) = bins.get(from) {
            let shade_of_it = shade(first);
            let same =
                bins[from..].iter().take_while(|parts| (shade(parts) - shade_of_it).abs() < 0.5).count();
            let left = area.left + width * from as f64;
            let share = shade_of_it / SHADES;
            let says = format!("rank {name}: {:.0} %", 100.0 * share);
            let place = Area { left, top, width: width * same as f64, height };
            svg.rect(place, &mixed(colour, share), Some(&says));
            from += same;
        }
    }
}

/// Mixes white with a colour.
fn mixed(colour: [f64; 3], share: f64) -> String {
    let [red, green, blue] = colour.map(|full| (255.0 + (full - 255.0) * share).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}
