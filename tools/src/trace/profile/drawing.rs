//! Draws the profile as stacked kinds: one bar per rank, or areas over time.

use std::collections::BTreeMap;

use caribou::trace::Activity;
use presentation::svg::{Anchor, Area, Svg};
use trace_reader::Trace;

use super::super::analysis::time_breakdown::{Line, Parts, TimeBreakdown};
use super::super::page::duration;
use super::super::palette::{self, IDLE, LOST, RUNTIME, UNKNOWN};
use super::{in_order, ranks};

const SIZE: (f64, f64) = (960.0, 460.0);
/// Largest number of bars. More ranks are drawn as averages of several ranks.
const BARS_MAX: usize = 256;

/// Layers of a stack from the bottom: name, colour and activities of each.
pub(crate) struct Layers {
    layers: Vec<(String, &'static str, Vec<Activity>)>,
}

impl Layers {
    /// One layer per kind, then the runtime, lost time, unaccounted time and idle time, as in figure 4 of
    /// Gupta et al., 2013.
    pub(crate) fn new(trace: &Trace, total: &BTreeMap<Activity, Line>) -> Layers {
        let is_kind = |activity: &Activity| matches!(activity, Activity::Kind(_) | Activity::Iterations);
        let lines = in_order(total);
        let kinds: Vec<Activity> = lines.iter().map(|(activity, _)| *activity).filter(is_kind).collect();
        let colours = palette::kinds(trace);
        let named = |kind: Activity| (trace.activity_name(kind), vec![kind]);
        let mut layers: Vec<_> = kinds
            .into_iter()
            .map(named)
            .map(|(name, kinds)| {
                let colour = colours.get(&name).copied().unwrap_or(UNKNOWN);
                (name, colour, kinds)
            })
            .collect();
        let of_runtime = |activity: &Activity| matches!(activity, Activity::Runtime(_));
        let runtime = total.keys().copied().filter(of_runtime).collect();
        layers.push(("runtime".into(), RUNTIME, runtime));
        layers.push(("lost".into(), LOST, vec![Activity::Lost]));
        layers.push(("unaccounted".into(), UNKNOWN, Vec::new()));
        layers.push(("idle".into(), IDLE, vec![Activity::Idle]));
        Layers { layers }
    }

    pub(crate) fn legend(&self) -> Vec<(String, String)> {
        self.layers.iter().map(|(name, colour, _)| (name.clone(), (*colour).to_owned())).collect()
    }

    /// Draws one stack: the time of each layer's activities. The rest of the wall time is unaccounted.
    pub(crate) fn stack(
        &self,
        svg: &mut Svg,
        area: Area,
        name: &str,
        time_ns: impl Fn(Activity) -> f64,
        parts: &Parts,
    ) {
        let mut bottom = area.bottom();
        for (layer, colour, activities) in &self.layers {
            let known_ns: f64 = activities.iter().map(|activity| time_ns(*activity)).sum();
            let ns = if *colour == UNKNOWN { parts.rest_ns } else { known_ns };
            let share = parts.share(ns);
            let height = (share * area.height).min(bottom - area.top);
            bottom -= height;
            let says = format!("{name}, {layer}: {:.1} %", 100.0 * share);
            svg.rect(Area { top: bottom, height, ..area }, colour, Some(&says));
        }
    }
}

/// Draws one bar per rank, after the average.
pub(super) fn bars(trace: &Trace, spent: &TimeBreakdown) -> String {
    let total = spent.total();
    let layers = Layers::new(trace, &total);
    let mut ranks: Vec<_> = ranks(spent)
        .into_iter()
        .map(|(rank, (lines, parts))| (format!("rank {rank}"), lines, parts))
        .collect();
    let each = ranks.len().div_ceil(BARS_MAX).max(1);
    if each > 1 {
        ranks = ranks.chunks(each).map(together).collect();
    }
    ranks.insert(0, ("average".into(), total, spent.parts()));
    let (mut svg, area) = frame("time of ranks by kind of message", &layers);
    let place = area.width / (ranks.len() as f64 + 0.5);
    for (number, (name, lines, parts)) in ranks.iter().enumerate() {
        // A gap separates the average from the ranks.
        let left = area.left + place * (number as f64 + if number > 0 { 0.5 } else { 0.0 } + 0.1);
        let time_ns = |activity| lines.get(&activity).map_or(0.0, |line| line.total_ns);
        layers.stack(&mut svg, Area { left, width: 0.8 * place, ..area }, name, time_ns, parts);
        if number == 0 || ranks.len() <= 33 {
            let words = if number == 0 { "avg" } else { name.trim_start_matches("rank ") };
            svg.sized_text((left + 0.4 * place, area.bottom() + 16.0), 11, Anchor::Middle, words);
        }
    }
    let below = if each > 1 { format!("rank, averages of {each}") } else { "rank".into() };
    svg.sized_text((area.left + area.width / 2.0, SIZE.1 - 8.0), 12, Anchor::Middle, &below);
    svg.finish()
}

type Bar = (String, BTreeMap<Activity, Line>, Parts);

fn together(ranks: &[Bar]) -> Bar {
    let mut sum: Bar = (String::new(), BTreeMap::new(), Parts::default());
    for (_, lines, parts) in ranks {
        for (activity, line) in lines {
            sum.1.entry(*activity).or_default().merge(line);
        }
        sum.2 += *parts;
    }
    if let (Some(first), Some(last)) = (ranks.first(), ranks.last()) {
        sum.0 = format!("{} to {}", first.0, last.0);
    }
    sum
}

/// Draws all workers together over time.
pub(super) fn areas(trace: &Trace, spent: &TimeBreakdown) -> String {
    let total = spent.total();
    let layers = Layers::new(trace, &total);
    let (mut svg, area) = frame("time of all workers by kind of message", &layers);
    over_time(&mut svg, area, &layers, &total, spent);
    time_axis(&mut svg, area, spent);
    svg.finish()
}

/// Draws one stack per bin.
pub(crate) fn over_time(
    svg: &mut Svg,
    area: Area,
    layers: &Layers,
    total: &BTreeMap<Activity, Line>,
    spent: &TimeBreakdown,
) {
    let width = area.width / spent.bins.count as f64;
    for bin in 0..spent.bins.count {
        let inside = |activity| {
            let line: Option<&Line> = total.get(&activity);
            line.and_then(|line| line.bins_ns.get(bin)).copied().unwrap_or(0.0)
        };
        let name = format!("from {}", duration(spent.bins.edge_ns(bin) as f64));
        let place = Area { left: area.left + width * bin as f64, width, ..area };
        layers.stack(svg, place, &name, inside, &spent.parts_in(bin));
    }
}

pub(crate) fn time_axis(svg: &mut Svg, area: Area, spent: &TimeBreakdown) {
    let window = spent.bins.window;
    svg.bottom_axis(area, window.from_ns as f64, window.to_ns.max(window.from_ns + 1) as f64, duration);
}

fn frame(title: &str, layers: &Layers) -> (Svg, Area) {
    let mut svg = palette::picture(SIZE.0, SIZE.1, title);
    svg.sized_text((SIZE.0 / 2.0, 20.0), 15, Anchor::Middle, title);
    let legend = Area { left: 60.0, top: 30.0, width: SIZE.0 - 80.0, height: 0.0 };
    let high = svg.legend(legend, &layers.legend());
    let top = (38.0 + high).min(SIZE.1 - 150.0);
    let area = Area { left: 60.0, top, width: SIZE.0 - 80.0, height: SIZE.1 - 48.0 - top };
    svg.left_axis(area, 1.0, |share| format!("{:.0} %", 100.0 * share));
    (svg, area)
}
