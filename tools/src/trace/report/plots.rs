//! Draws lines, bars and a matrix as SVG without a script.

use std::fmt::Write;

use maud::{Markup, html};

use super::Report;
use super::balance::RANKS_MAX;
use super::charts::{PLOT, few_ticks, left_word, over_time, picture, tick, word_at, x_of};
use super::figures::Figures;

const HEIGHT: usize = 150;
/// Largest number of rows and columns in the matrix. More ranks share rows and columns.
const MATRIX_MAX: usize = 64;
/// Largest number of ranks for which bars are labelled `rank N` instead of `N`.
const LABELLED_MAX: usize = 8;

/// The class of a line, and its points.
pub(super) type Line = (&'static str, Vec<(u64, f64)>);

/// Values over time. `name` formats a value at a tick. The axis begins at 0, or below if there are negative values.
pub(super) fn lines(
    label: &str,
    report: &Report<'_>,
    lines: &[Line],
    name: impl Fn(f64) -> String,
) -> Markup {
    let elapsed_ns = report.figures.elapsed_ns;
    // Keeps differences of values finite.
    let bounded = |value: f64| value.clamp(-1e300, 1e300);
    let values = || lines.iter().flat_map(|(_, points)| points.iter().map(|point| bounded(point.1)));
    let most = values().fold(0.0, f64::max);
    let least = values().fold(0.0, f64::min);
    let span = if most > least { most - least } else { 1.0 };
    let y_of = |value: f64| HEIGHT as f64 * (1.0 - (bounded(value) - least) / (span * 1.05));
    let path = |points: &[(u64, f64)]| {
        let mut path = String::new();
        for (number, &(at_ns, value)) in points.iter().enumerate() {
            let to = if number == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{to}{:.1} {:.1}", x_of(at_ns, elapsed_ns), y_of(value));
        }
        path
    };
    let values = || few_ticks(most).into_iter().chain((least < 0.0).then_some(least));
    let shapes = html! {
        @for value in values() { path.grid d=(format!("M0 {:.1}h{PLOT}", y_of(value))) {} }
        @for (class, points) in lines {
            path class=(format!("line {class}")) d=(path(points)) {}
            // A line of length 0 is drawn as a dot.
            @if points.len() <= 60 { @for &(at_ns, value) in points {
                path class=(format!("line dot {class}"))
                    d=(format!("M{:.1} {:.1}h0", x_of(at_ns, elapsed_ns), y_of(value))) {}
            } }
        }
    };
    let words = html! { @for value in values() { (left_word(y_of(value), &name(value))) } };
    over_time("", label, HEIGHT, report, (&shapes, &words))
}

/// Bars of the loads of ranks at one sync: measured before it, predicted, and measured in the phase after it.
pub(super) fn rank_bars(report: &Report<'_>, place: usize) -> Markup {
    let outcome = &report.balance.syncs[place];
    let (sync, predicted) = (outcome.report, outcome.predicted_ns());
    let next = outcome.measured_ns().unwrap_or_default();
    let series = [("before", &sync.before_ns[..]), ("predicted", &predicted[..]), ("next", &next[..])];
    let ranks = series.iter().map(|(_, ns)| ns.len()).max().unwrap_or(0).min(RANKS_MAX);
    let most = series.iter().flat_map(|(_, ns)| ns.iter().take(RANKS_MAX)).copied().max().unwrap_or(0);
    let wide = PLOT as f64 / ranks.max(1) as f64;
    let bar = (wide * 0.8 / 3.0).min(40.0);
    let high = |ns: u64| HEIGHT as f64 * ns as f64 / (most.max(1) as f64 * 1.1);
    let y_of = |ns: u64| HEIGHT as f64 - high(ns);
    let shapes = html! {
        @for value in few_ticks(most as f64) { path.grid d=(format!("M0 {:.1}h{PLOT}", y_of(value as u64))) {} }
        @for (number, (class, ns)) in series.iter().enumerate() {
            @for (rank, &ns) in ns.iter().take(RANKS_MAX).enumerate() {
                @let x = wide * (rank as f64 + 0.5) + bar * (number as f64 - 1.5);
                rect class=(class) x=(format!("{x:.1}")) y=(format!("{:.1}", y_of(ns)))
                    width=(format!("{:.1}", (bar - 0.5).max(0.5))) height=(format!("{:.1}", high(ns))) {}
            }
        }
        path.axis d=(format!("M0 {HEIGHT}h{PLOT}")) {}
    };
    let name = |rank: usize| if ranks <= LABELLED_MAX { format!("rank {rank}") } else { rank.to_string() };
    let words = html! {
        @for value in few_ticks(most as f64) { (left_word(y_of(value as u64), &tick(value))) }
        @for rank in (0..ranks).step_by(ranks.div_ceil(32).max(1)) {
            (word_at(wide * (rank as f64 + 0.5), HEIGHT + 18, &name(rank)))
        }
    };
    let label = "Loads of the ranks before and after a sync; the table below has the figures.";
    picture("rank-bars", label, HEIGHT, &shapes, &words)
}

/// Messages and bytes between ranks, or between groups of ranks.
pub(super) struct Matrix {
    pub(super) ranks_per_cell: usize,
    pub(super) side: usize,
    /// Messages and bytes, row by row.
    pub(super) cells: Vec<(u64, u64)>,
}

impl Matrix {
    pub(super) fn of(figures: &Figures, ranks: usize) -> Matrix {
        let ranks_per_cell = ranks.div_ceil(MATRIX_MAX).max(1);
        let side = ranks.div_ceil(ranks_per_cell);
        let mut cells = vec![(0, 0); side * side];
        for (&(from, to), &(messages, bytes)) in &figures.sent {
            let cell: &mut (u64, u64) = &mut cells[from / ranks_per_cell * side + to / ranks_per_cell];
            *cell = (cell.0 + messages, cell.1.saturating_add(bytes));
        }
        Matrix { ranks_per_cell, side, cells }
    }

    pub(super) fn name(&self, number: usize, rank_at: impl Fn(usize) -> u32) -> String {
        let first = number * self.ranks_per_cell;
        match self.ranks_per_cell {
            1 => rank_at(first).to_string(),
            many => format!("{}–{}", rank_at(first), rank_at(first + many - 1)),
        }
    }

    /// Draws the matrix, which is darker for more messages. Hovering over a cell shows the text of `words`.
    pub(super) fn html(&self, rank_at: impl Fn(usize) -> u32, words: impl Fn(u64, u64) -> String) -> Markup {
        let cell = (420 / self.side.max(1)).clamp(6, 48);
        let most = self.cells.iter().map(|cell| cell.0).max().unwrap_or(0).max(1) as f64;
        let size = cell * self.side;
        let every = 14usize.div_ceil(cell);
        html! {
            svg.matrix viewBox=(format!("0 0 {} {}", size + 90, size + 44)) width=(size + 90) role="img"
                aria-label="Messages between ranks; the table below has the figures." {
                text.middle x=(80 + size / 2) y="12" { "to rank" }
                text.middle transform=(format!("translate(12 {}) rotate(-90)", 38 + size / 2)) { "from rank" }
                @for number in (0..self.side).step_by(every) {
                    text.end x="72" y=(38 + number * cell + cell / 2 + 4) { (self.name(number, &rank_at)) }
                    text.middle x=(80 + number * cell + cell / 2) y="30" { (self.name(number, &rank_at)) }
                }
                @for (place, &(messages, bytes)) in self.cells.iter().enumerate() {
                    @let (row, column) = (place / self.side, place % self.side);
                    @let shade = if messages == 0 { 0.0 } else { 0.12 + 0.88 * (messages as f64 / most).sqrt() };
                    rect.cell x=(80 + column * cell) y=(38 + row * cell) width=(cell - 1) height=(cell - 1) {
                        title { "from " (self.name(row, &rank_at)) " to " (self.name(column, &rank_at)) ": " (words(messages, bytes)) }
                    }
                    @if messages > 0 {
                        rect.heat x=(80 + column * cell) y=(38 + row * cell) width=(cell - 1) height=(cell - 1)
                            fill-opacity=(format!("{shade:.2}")) {}
                    }
                }
            }
        }
    }
}
