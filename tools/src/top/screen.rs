//! Draws the figures of `caribou top` on a terminal of any size. Where room is short it cuts lines, and leaves out the
//! least important columns and blocks. Drawing never fails for want of room.

use caribou::trace::Shape;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline};

use super::dashboard::{Dashboard, Parts, RankRow, occasion};
use super::text::{short, summary, sync_words, title};
use super::view::{KEYS, Sort, View};
use super::watch::Watch;
use crate::trace::page::duration;

/// A segment of a bar: its cell, colour and name. The cells differ, for terminals without colours.
type BarStyle = (char, Color, &'static str);
const CHUNKS: BarStyle = ('█', Color::Green, "chunks");
const SHARES: BarStyle = ('█', Color::Green, "shares");
const ITERATIONS: BarStyle = ('█', Color::Green, "iterations");
const RUNTIME: BarStyle = ('▓', Color::Yellow, "runtime");
const LOST: BarStyle = ('▒', Color::Red, "lost");
const IDLE: BarStyle = ('·', Color::DarkGray, "idle");
/// Wall time that is unaccounted for.
const REST: BarStyle = (' ', Color::Reset, "");
/// Narrowest useful bar, in cells.
const BAR_MIN: usize = 10;
/// Rows of the tables of syncs and kinds, including their heads, on a small screen.
const TABLE_ROWS: u16 = 7;
/// Rows reserved for the ranks, and fewest and most rows of the imbalance.
const RANK_ROWS: u16 = 4;
const HISTORY_ROWS: (u16, u16) = (3, 12);

/// Draws the whole screen. Returns the number of rows by which the ranks can be scrolled.
pub(super) fn draw(frame: &mut Frame<'_>, watch: &Watch, view: &View) -> usize {
    let picture = watch.picture();
    let area = frame.area();
    let problems = picture.problems.len().min(3) as u16;
    let (history, tables) = heights(area.height.saturating_sub(3 + problems), picture);
    let rows = [2, problems, RANK_ROWS, history, tables, 1].map(Constraint::Length);
    let mut rows = rows.to_vec();
    rows[2] = Constraint::Min(2);
    let blocks = Layout::vertical(rows).split(area);
    draw_head(frame, blocks[0], watch, view);
    let problem = |text: &String| Line::from(format!("! {text}")).red();
    frame.render_widget(Paragraph::new(picture.problems.iter().map(problem).collect::<Vec<_>>()), blocks[1]);
    let scrollable = draw_ranks(frame, blocks[2], picture, view);
    draw_history(frame, blocks[3], watch);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).spacing(2).areas(blocks[4]);
    draw_syncs(frame, left, picture);
    draw_kinds(frame, right, picture);
    draw_keys(frame, blocks[5], view);
    if view.help {
        draw_help(frame, area);
    }
    scrollable
}

/// Heights of the imbalance and of the tables on a screen of `rows` rows. Both appear as the terminal grows. Rows that
/// the ranks do not need go to the tables first, as far as they have entries.
fn heights(rows: u16, picture: &Dashboard) -> (u16, u16) {
    let spare = rows.saturating_sub(RANK_ROWS);
    let history = if spare >= 6 { HISTORY_ROWS.0 } else { 0 };
    let tables = if spare >= 6 + HISTORY_ROWS.0 + TABLE_ROWS { TABLE_ROWS } else { 0 };
    if tables == 0 {
        return (history, tables);
    }
    let of_ranks = 1 + picture.ranks.iter().map(|rank| rank.workers.len()).sum::<usize>();
    let of_tables = 1 + picture.syncs.len().max(picture.kinds.len());
    let small = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX);
    let free = rows.saturating_sub(small(of_ranks).max(RANK_ROWS).saturating_add(history + tables));
    let more = small(of_tables).saturating_sub(tables).min(free);
    (history + (free - more).min(HISTORY_ROWS.1 - HISTORY_ROWS.0), tables + more)
}

/// Draws the title and the figures of the whole run.
fn draw_head(frame: &mut Frame<'_>, area: Rect, watch: &Watch, view: &View) {
    let picture = watch.picture();
    let mut first = vec![Span::from(title(picture, watch.is_over())).bold()];
    if picture.failed.is_some() {
        first[0].style = Style::new().fg(Color::Red).bold();
    }
    if view.paused {
        first.push("  paused".yellow().bold());
    }
    frame.render_widget(Paragraph::new(vec![Line::from(first), Line::from(summary(picture))]), area);
}

/// A column to the right of a bar: head, width in cells, text.
type Figure = (&'static str, usize, fn(&RankRow, &Parts) -> String);

/// Columns for programs of this shape, most important first.
fn figures(shape: Shape) -> &'static [Figure] {
    match shape {
        Shape::Arrays => &FIGURES,
        Shape::Supersteps => &FIGURES_OF_STEPS,
        Shape::Pools => &FIGURES_OF_POOLS,
    }
}

const FIGURES_OF_STEPS: [Figure; 7] = [
    FIGURES[0],
    FIGURES[1],
    FIGURES[2],
    FIGURES[3],
    ("units", 7, |rank, _| rank.units.map_or("-".into(), |units| short(units as f64))),
    FIGURES[5],
    FIGURES[6],
];

const FIGURES_OF_POOLS: [Figure; 7] = [
    FIGURES[0],
    FIGURES[1],
    FIGURES[2],
    FIGURES[3],
    ("iterations", 11, |rank, _| short(rank.iterations as f64)),
    ("ranges/s", 9, |rank, _| short(rank.messages_per_s)),
    FIGURES[6],
];

const FIGURES: [Figure; 8] = [
    ("busy", 5, |_, parts| percent(parts.busy())),
    ("lost", 5, |_, parts| percent(parts.lost)),
    ("vCPU", 5, |rank, _| rank.vcpu_share.map_or("-".into(), percent)),
    ("steal", 6, |rank, _| rank.steal.map_or("-".into(), percent)),
    ("chunks", 7, |rank, _| short(rank.chunks as f64)),
    ("msgs/s", 7, |rank, _| short(rank.messages_per_s)),
    ("runtime", 8, |_, parts| percent(parts.runtime)),
    ("mail B", 7, |rank, _| short(rank.waiting_bytes as f64)),
];

fn draw_ranks(frame: &mut Frame<'_>, area: Rect, picture: &Dashboard, view: &View) -> usize {
    let ranks = view.sort.ranks(picture);
    let rows: Vec<(String, &RankRow, &Parts)> = ranks
        .iter()
        .flat_map(|rank| {
            let label = |worker: u32| match rank.workers.len() {
                1 => rank.rank.to_string(),
                _ => format!("{}.{worker}", rank.rank),
            };
            rank.workers.iter().map(move |(worker, parts)| (label(*worker), *rank, parts))
        })
        .collect();
    let visible = usize::from(area.height.saturating_sub(1));
    let scrollable = rows.len().saturating_sub(visible);
    let first = view.scroll.min(scrollable);
    let label_width = rows.iter().map(|(label, ..)| label.len()).max().unwrap_or(0).max(4);
    let (bar_width, figures) =
        columns(figures(picture.shape), usize::from(area.width).saturating_sub(label_width + 1));
    let parts = match picture.shape {
        Shape::Arrays => CHUNKS,
        Shape::Pools => ITERATIONS,
        Shape::Supersteps => SHARES,
    };
    let mut lines = vec![head_of_ranks(label_width, bar_width, parts, figures, view.sort)];
    for (label, rank, parts) in rows.iter().skip(first).take(visible) {
        let mut spans = vec![Span::from(format!("{label:>label_width$} "))];
        spans.extend(bar(parts, bar_width));
        for (_, width, text) in figures {
            spans.push(Span::from(format!("{:>width$}", text(rank, parts))));
        }
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), area);
    scrollable
}

/// Width of the bars, and the columns that fit beside them.
fn columns(figures: &'static [Figure], room: usize) -> (usize, &'static [Figure]) {
    let width = |count: usize| figures[..count].iter().map(|(_, width, _)| width).sum::<usize>();
    let count = (0..=figures.len()).rev().find(|&count| BAR_MIN + width(count) <= room).unwrap_or(0);
    (room.saturating_sub(width(count)), &figures[..count])
}

/// The line of column heads. Above the bars are the names of their segments.
fn head_of_ranks(
    label_width: usize,
    bar_width: usize,
    work: BarStyle,
    figures: &[Figure],
    sort: Sort,
) -> Line<'static> {
    let mut spans = vec![Span::from(format!("{:>label_width$} ", "rank"))];
    let mut left = bar_width;
    for (cell, colour, name) in [work, LOST, RUNTIME, IDLE] {
        let width = name.len() + 3;
        if width <= left {
            spans.push(Span::styled(format!("{cell} "), Style::new().fg(colour)));
            spans.push(Span::from(format!("{name} ")));
            left -= width;
        }
    }
    spans.push(Span::from(" ".repeat(left)));
    for (head, width, _) in figures {
        let head = Span::from(format!("{head:>width$}"));
        spans.push(if head.content.trim() == sort.name() { head.underlined() } else { head });
    }
    Line::from(spans).bold()
}

/// Cells of a bar of `width` cells.
fn bar(parts: &Parts, width: usize) -> Vec<Span<'static>> {
    let shares = [parts.chunks, parts.lost, parts.runtime, parts.idle];
    let looks = [CHUNKS, LOST, RUNTIME, IDLE, REST];
    let cells = apportion(&shares, width);
    let pieces = cells.iter().zip(looks);
    pieces.map(|(&cells, (cell, colour, _))| Span::styled(cell.to_string().repeat(cells), colour)).collect()
}

/// Numbers of cells for each share and for the rest of 1: whole cells first, then one to each largest remainder.
fn apportion(shares: &[f64; 4], width: usize) -> [usize; 5] {
    let rest = (1.0 - shares.iter().sum::<f64>()).clamp(0.0, 1.0);
    let [a, b, c, d] = shares.map(|share| share.clamp(0.0, 1.0));
    let exact = [a, b, c, d, rest].map(|share| share * width as f64);
    let mut cells = exact.map(|cells| cells as usize);
    let mut order = [0, 1, 2, 3, 4];
    order.sort_by(|&a: &usize, &b: &usize| exact[b].fract().total_cmp(&exact[a].fract()));
    let mut left = width.saturating_sub(cells.iter().sum());
    for number in order.into_iter().filter(|&number| exact[number] > 0.0).cycle().take(5) {
        cells[number] += usize::from(left > 0);
        left = left.saturating_sub(1);
    }
    cells
}

fn draw_history(frame: &mut Frame<'_>, area: Rect, watch: &Watch) {
    let [title, line] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let past = watch.imbalances.iter().copied().rev().take(usize::from(line.width));
    let (now, most) = (watch.imbalances.back().copied().unwrap_or(1.0), past.clone().fold(1.0, f64::max));
    let of = match &watch.picture().syncs[..] {
        [] => "looks".into(),
        syncs => format!("{}s", occasion(syncs)),
    };
    let text = format!("imbalance: {now:.2} now, {most:.2} at most in {} {of}", past.len());
    frame.render_widget(Paragraph::new(Line::from(text).bold()), title);
    // The excess over 1, which is perfect. The scale is at least 0.1, so that noise stays small.
    let mut above: Vec<u64> =
        past.map(|imbalance| ((imbalance - 1.0).clamp(0.0, 1e6) * 1e3) as u64).collect();
    above.reverse();
    let highest = ((most - 1.0).clamp(0.1, 1e6) * 1e3) as u64;
    frame.render_widget(Sparkline::default().data(&above).max(highest).style(Color::Cyan), line);
}

fn draw_syncs(frame: &mut Frame<'_>, area: Rect, picture: &Dashboard) {
    let heads =
        [occasion(&picture.syncs), "at", "before", "predicted", "moved", "cost", "bytes"].map(str::to_owned);
    let rows = picture.syncs.iter().rev().map(sync_words);
    table(frame, area, std::iter::once(heads).chain(rows), &[6, 8, 7, 10, 6, 10, 11]);
}

fn draw_kinds(frame: &mut Frame<'_>, area: Rect, picture: &Dashboard) {
    let heads = ["of CPU", "calls", "longest", " kind"].map(str::to_owned);
    let rows = picture.kinds.iter().map(|kind| {
        let name = format!(" {}", kind.name);
        [percent(kind.share), short(kind.calls as f64), duration(kind.longest_ns as f64), name]
    });
    table(frame, area, std::iter::once(heads).chain(rows), &[7, 6, 10, 0]);
}

/// Draws rows below a bold head. Columns are aligned right in their widths; a column of width 0 is as wide as its text.
fn table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    rows: impl Iterator<Item = [String; N]>,
    widths: &[usize; N],
) {
    let line = |cells: [String; N]| {
        let cells = cells.iter().zip(widths);
        cells.map(|(cell, &width)| format!("{cell:>width$}")).collect::<String>()
    };
    let mut lines: Vec<Line<'_>> =
        rows.take(usize::from(area.height)).map(|row| Line::from(line(row))).collect();
    if let Some(head) = lines.first_mut() {
        head.style = Style::new().bold();
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let text = format!(" q quit  arrows scroll  s sort: {}  p pause  ? help", view.sort.name());
    frame.render_widget(Paragraph::new(text).reversed(), area);
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let mut lines: Vec<Line<'_>> =
        KEYS.iter().map(|(keys, what)| Line::from(format!("{keys:<13} {what}"))).collect();
    lines.push(Line::default());
    for line in [
        "Bars: wall time of one worker since the last update.",
        "busy: in chunks and the runtime; lost: in a handler",
        "without the vCPU; vCPU: CPU time got over that wanted;",
        "steal: taken by the hypervisor. Kinds: the whole run.",
        "mail B: bytes of messages that wait for their chunks.",
        "imbalance: time of the slowest rank over that with all",
        "work divided by capacity; without syncs, largest over",
        "average time in handlers, lost included.",
    ] {
        lines.push(Line::from(line));
    }
    let (width, height) = (58.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" caribou top ")), place);
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}
