//! Draws the timeline and the utilisation as SVG without a script.

use std::collections::BTreeMap;
use std::fmt::Write;

use maud::{Markup, html};
use presentation::svg::ticks;
use trace_reader::Trace;

use super::Report;
use super::activities::{NOTHING, State};
use super::figures::Figures;
use super::lanes::{Bin, is_idle};
use crate::trace::page::duration;
use crate::trace::supersteps::moments;

/// Width of the coordinates of shapes, also known to the script. The page stretches shapes to its width, but not text.
pub(super) const PLOT: usize = 1056;
/// Space for text below shapes.
const BELOW: usize = 24;
/// Largest number of rectangles in the static timeline.
const CELLS_MAX: usize = 60_000;
/// Height of the utilisation.
const STACK_HEIGHT: usize = 200;

/// A picture as wide as the page, with shapes of height `high`, and text beside and below them.
pub(super) fn picture(id: &str, label: &str, high: usize, shapes: &Markup, words: &Markup) -> Markup {
    html! {
        svg.picture id=[(!id.is_empty()).then_some(id)] height=(high + BELOW) role="img" aria-label=(label) {
            svg viewBox=(format!("0 0 {PLOT} {high}")) preserveAspectRatio="none" width="100%" height=(high)
                overflow="visible" { (shapes) }
            (words)
        }
    }
}

/// A picture with the time of the run as its width, and lines at syncs. A click shows that time in the timeline.
pub(super) fn over_time(
    id: &str,
    label: &str,
    high: usize,
    report: &Report<'_>,
    (shapes, words): (&Markup, &Markup),
) -> Markup {
    let elapsed_ns = report.figures.elapsed_ns;
    let (ticks, times) = time_axis(elapsed_ns, high);
    let shapes = html! { (shapes) (sync_lines(report.trace, elapsed_ns, high)) (ticks) };
    html! { div.over-time { (picture(id, label, high, &shapes, &html! { (words) (times) })) } }
}

/// Text to the left of the shapes.
pub(super) fn left_word(y: f64, word: &str) -> Markup {
    html! { text.end x="-8" y=(format!("{:.1}", y + 4.0)) { (word) } }
}

/// Text below or among the shapes, centred at `x` from 0 to [`PLOT`].
pub(super) fn word_at(x: f64, y: usize, word: &str) -> Markup {
    html! { text.middle x=(format!("{:.2}%", 100.0 * x / PLOT as f64)) y=(y) { (word) } }
}

/// Name of a row of the timeline.
pub(super) fn row_name(figures: &Figures, row: usize) -> String {
    let first = row * figures.workers_per_row;
    let of = |number: usize| figures.workers.get(number).copied().unwrap_or_default();
    let last = (first + figures.workers_per_row).min(figures.workers.len()).saturating_sub(1);
    match (of(first), of(last)) {
        (a, b) if a == b && figures.workers.iter().any(|worker| worker.worker > 0) => {
            format!("rank {a}")
        }
        (a, b) if a == b => format!("rank {}", a.rank),
        (a, b) => format!("{a}–{b}"),
    }
}

/// Height of a row of the timeline, in pixels.
pub(super) fn row_height(rows: usize) -> usize {
    match rows {
        0..=8 => 32,
        9..=16 => 24,
        17..=40 => 16,
        41..=100 => 10,
        _ => 6,
    }
}

/// Returns whether this row has space for its name.
pub(super) fn named(row: usize, height: usize) -> bool {
    height >= 10 || row.is_multiple_of(12usize.div_ceil(height))
}

/// Rectangles by class, each class as one path.
#[derive(Default)]
pub(super) struct Paths(BTreeMap<String, String>);

impl Paths {
    pub(super) fn rectangle(&mut self, class: &str, x: usize, y: f64, width: usize, height: f64) {
        let path = self.0.entry(class.to_owned()).or_default();
        // Writing to a string cannot fail.
        let _ = write!(path, "M{x} {y:.1}h{width}v{height:.1}h-{width}z");
    }

    pub(super) fn html(&self) -> Markup {
        html! { @for (class, path) in &self.0 { path class=(class) d=(path) {} } }
    }
}

pub(super) fn timeline(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let rows = figures.rows.len();
    let height = row_height(rows);
    let bins = (CELLS_MAX / rows.max(1)).clamp(64, PLOT / 2);
    let mut paths = Paths::default();
    for (number, row) in figures.rows.iter().enumerate() {
        let (top, high) = (number * height, height as f64 - 2.0);
        paths.rectangle("ground", 0, top as f64 + 1.0, PLOT, high);
        for (x, width, bin) in merged(&row.level(0).collect::<Vec<_>>(), bins) {
            let mut below = top as f64 + 1.0 + high;
            let [chunks, runtime, lost, _] = bin.shares.map(|share| f64::from(share) / 255.0 * high);
            let kind = figures.activities.class(bin.kind);
            for (class, part) in [(&kind[..], chunks), ("runtime", runtime), ("lost", lost)] {
                if part >= 0.25 {
                    below -= part;
                    paths.rectangle(class, x, below, width, part);
                }
            }
        }
    }
    let names = html! {
        @for row in (0..rows).filter(|&row| named(row, height)) {
            (left_word((row * height + height / 2) as f64, &row_name(figures, row)))
        }
    };
    let label = "What each worker did over time; the table below has the figures.";
    over_time("", label, rows * height, report, (&paths.html(), &names))
}

/// Merges a level into at most `bins` bins: place, width, contents. Equal neighbours are one; bins without work go.
fn merged(level: &[Bin], bins: usize) -> Vec<(usize, usize, Bin)> {
    let mut merged: Vec<(usize, usize, Bin)> = Vec::new();
    let bins = bins.min(level.len()).max(1);
    for number in 0..bins {
        let (from, to) = (number * level.len() / bins, (number + 1) * level.len() / bins);
        let part = &level[from..to];
        let sums: [u32; 4] =
            std::array::from_fn(|state| part.iter().map(|bin| u32::from(bin.shares[state])).sum());
        // Rounds to a sixteenth, so that neighbours are often equal.
        let shares = sums.map(|sum| ((sum / part.len().max(1) as u32 + 7) / 16 * 16).min(255) as u8);
        let busiest = part.iter().filter(|bin| !is_idle(bin)).max_by_key(|bin| bin.shares[0]);
        let bin = Bin { kind: busiest.map_or(NOTHING, |bin| bin.kind), shares };
        let (x, end) = (number * PLOT / bins, (number + 1) * PLOT / bins);
        match merged.last_mut() {
            Some((begin, width, last)) if *last == bin && *begin + *width == x => *width += end - x,
            _ if shares[..3].iter().all(|&share| share == 0) => {}
            _ => merged.push((x, end - x, bin)),
        }
    }
    merged
}

/// Horizontal coordinate of a time.
pub(super) fn x_of(at_ns: u64, elapsed_ns: u64) -> f64 {
    PLOT as f64 * at_ns.min(elapsed_ns) as f64 / elapsed_ns.max(1) as f64
}

fn sync_lines(trace: &Trace, elapsed_ns: u64, bottom: usize) -> Markup {
    let mut path = String::new();
    let mut last = -10.0;
    for at_ns in moments(trace) {
        let x = x_of(at_ns, elapsed_ns);
        if x - last >= 8.0 {
            let _ = write!(path, "M{x:.1} 0V{bottom}");
            last = x;
        }
    }
    html! { @if !path.is_empty() { path.sync d=(path) {} } }
}

/// A few round numbers from 0 on, for a low picture.
pub(super) fn few_ticks(most: f64) -> Vec<f64> {
    let all = ticks(0.0, most);
    let every = all.len().div_ceil(6);
    all.into_iter().step_by(every).collect()
}

/// A time at a tick, without trailing zeros.
pub(super) fn tick(ns: f64) -> String {
    let (number, unit) = match ns {
        _ if ns <= 0.0 => return "0".into(),
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "us"),
        _ if ns < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", (number * 1000.0).round() / 1000.0)
}

/// The line of the time axis with ticks, and the text at the ticks.
fn time_axis(elapsed_ns: u64, bottom: usize) -> (Markup, Markup) {
    let places =
        || ticks(0.0, elapsed_ns as f64).into_iter().map(|at_ns| (at_ns, x_of(at_ns as u64, elapsed_ns)));
    let lines = html! {
        path.axis d=(format!("M0 {bottom}h{PLOT}")) {}
        @for (_, x) in places() { path.axis d=(format!("M{x:.1} {bottom}v4")) {} }
    };
    (lines, html! { @for (at_ns, x) in places() { (word_at(x, bottom + 18, &tick(at_ns))) } })
}

/// Draws the shares of all workers' time over time, with all chunks together and by kind.
pub(super) fn utilisation(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let kinds = figures.heaviest_kinds();
    let y_of = |percent: usize| STACK_HEIGHT - percent * STACK_HEIGHT / 100;
    let shapes = html! {
        path.ground d=(format!("M0 0h{PLOT}v{STACK_HEIGHT}h-{PLOT}z")) {}
        g.together { (stacked(figures, &[])) }
        g.by-kind { (stacked(figures, &kinds)) }
        @for percent in [0, 50, 100] { path.grid d=(format!("M0 {}h{PLOT}", y_of(percent))) {} }
    };
    let words = html! {
        @for percent in [0, 50, 100] { (left_word(y_of(percent) as f64, &format!("{percent} %"))) }
    };
    let label = "Shares of all workers' time over time; the table below has the figures.";
    over_time("stack", label, STACK_HEIGHT, report, (&shapes, &words))
}

fn stacked(figures: &Figures, kinds: &[u8]) -> Markup {
    let (grid, workers) = (figures.stack_grid, figures.workers.len().max(1));
    let class = |activity: u8| match State::of(activity) {
        State::Chunks if kinds.contains(&activity) => figures.activities.class(activity),
        State::Chunks if kinds.is_empty() => "chunks".to_owned(),
        State::Chunks => "other".to_owned(),
        state => state.name().to_owned(),
    };
    // Kinds come first, at the bottom.
    let mut layers: Vec<(String, Vec<u64>)> = Vec::new();
    let mut order: Vec<u8> = figures.stack.keys().copied().collect();
    order.sort_by_key(|activity| {
        (State::of(*activity), kinds.iter().position(|kind| kind == activity).unwrap_or(usize::MAX))
    });
    for activity in order {
        let (class, bins) = (class(activity), &figures.stack[&activity]);
        match layers.last_mut().filter(|(last, _)| *last == class) {
            Some((_, sums)) => sums.iter_mut().zip(bins).for_each(|(sum, ns)| *sum += ns),
            None => layers.push((class, bins.clone())),
        }
    }
    let mut below = vec![STACK_HEIGHT as f64; grid.bins];
    let mut paths = Vec::new();
    for (class, bins) in layers {
        let mut path = String::new();
        for (bin, ns) in bins.into_iter().enumerate() {
            let begin_ns = bin as u64 * grid.bin_ns;
            let wide_ns = grid.bin_ns.min(figures.elapsed_ns.saturating_sub(begin_ns)).max(1);
            let high = STACK_HEIGHT as f64 * ns as f64 / (wide_ns as f64 * workers as f64);
            let high = high.min(below[bin]);
            // Rounds before subtracting, so that neighbours meet.
            let tenths = |at_ns| (x_of(at_ns, figures.elapsed_ns) * 10.0).round() / 10.0;
            let (x, end) = (tenths(begin_ns), tenths(begin_ns + grid.bin_ns));
            if high >= 0.05 && end > x {
                below[bin] -= high;
                let width = end - x;
                let _ = write!(path, "M{x:.1} {:.1}h{width:.1}v{high:.1}h-{width:.1}z", below[bin]);
            }
        }
        paths.push((class, path));
    }
    html! { @for (class, path) in paths { path class=(class) d=(path) {} } }
}

/// Colours and their meaning.
pub(super) fn legend(entries: impl IntoIterator<Item = (String, String)>) -> Markup {
    html! {
        ul.legend { @for (class, name) in entries {
            li { svg.swatch viewBox="0 0 14 14" aria-hidden="true" { rect class=(class) width="14" height="14" {} } (name) }
        } }
    }
}

/// A span of time in words.
pub(super) fn stretch(from_ns: u64, to_ns: u64) -> String {
    format!("{} to {}", duration(from_ns as f64), duration(to_ns as f64))
}
