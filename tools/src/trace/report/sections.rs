//! The page: its sections in order. A section without data is one line that says what to record.

use caribou::trace::ChunkId;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Report;
use super::activities::{LOST, State};
use super::balance::{RANKS_MAX, before, error};
use super::charts::{self, legend, row_name, stretch};
use super::chunks::Chunk;
use super::figures::{COUNTERS_MAX, MARKS_MAX, Total};
use super::plots::{self, Matrix};
use super::tables::{Cell, Table, folded, percent};
use super::{data, verdict};
use crate::trace::page::{bytes, duration};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// Chunks in the table.
const CHUNKS_MAX: usize = 500;
/// Rows of tables that are about time.
const TIMES_MAX: usize = 24;

type Section = (&'static str, &'static str, fn(&Report<'_>) -> Markup);

const SECTIONS: [Section; 10] = [
    ("summary", "Summary", summary),
    ("timeline", "Timeline", timeline),
    ("utilisation", "Utilisation", utilisation),
    ("profile", "Profile", profile),
    ("balancing", "Balancing", balancing),
    ("steps", "Steps and counters", steps),
    ("ranks", "Ranks", ranks),
    ("chunks", "Chunks", chunks),
    ("communication", "Communication", communication),
    ("record", "Run record", record),
];

pub(super) fn html(report: &Report<'_>) -> Markup {
    let program = report.trace.run.arguments.first().map_or("a run", String::as_str);
    // Only scripts that carry it run: none that a name smuggles in.
    let nonce = format!("{:016x}", report.figures.elapsed_ns ^ 0x0063_6172_6962_6f75);
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Caribou: " (program) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#summary" { "Skip to the summary" }
                header {
                    nav aria-label="Sections" {
                        @for (id, title, _) in SECTIONS { a href=(format!("#{id}")) { (title) } }
                    }
                    button #theme.scripted type="button" aria-pressed="false" { "Dark" }
                }
                main {
                    h1 { (program) }
                    p.sub { (report.trace.run.run_id) " · " (duration(report.figures.elapsed_ns as f64)) " · " (report.trace.run.lb) }
                    @for (id, title, section) in SECTIONS {
                        section id=(id) aria-labelledby=(format!("{id}-title")) {
                            h2 id=(format!("{id}-title")) { (title) }
                            (section(report))
                        }
                    }
                }
                svg.defs aria-hidden="true" width="0" height="0" { defs {
                    pattern #hatch width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                        rect.hatch-ground width="5" height="5" {}
                        rect.hatch-line width="2.2" height="5" {}
                    }
                } }
                script #data type="application/json" { (PreEscaped(data::json(report))) }
                script nonce=(nonce) { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn nothing(what: &str) -> Markup {
    html! { p.nothing { (what) } }
}

fn summary(report: &Report<'_>) -> Markup {
    html! {
        @for sentence in verdict::sentences(report) {
            p.verdict.worry[sentence.worry] { @if sentence.worry { strong { "Note: " } } (sentence.text) }
        }
    }
}

fn state_legend(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let kinds = figures.heaviest_kinds();
    let kinds = kinds
        .into_iter()
        .map(|kind| (figures.activities.class(kind), figures.activities.name(kind).to_owned()));
    let states =
        [("runtime", "runtime"), ("lost", "lost (wall time that was not CPU time)"), ("idle", "idle")];
    legend(kinds.chain(states.map(|(class, name)| (class.to_owned(), name.to_owned()))))
}

fn timeline(report: &Report<'_>) -> Markup {
    let (figures, window) = (&report.figures, &report.window);
    if figures.workers.iter().all(|worker| worker.totals.is_empty()) {
        return nothing("Nothing that takes time was recorded: run with CARIBOU_TRACE set.");
    }
    let finest = figures.levels.last().map_or(0, |grid| grid.bin_ns);
    html! {
        (state_legend(report))
        div.tools.scripted role="group" aria-label="Timeline" {
            button type="button" #zoom-in { "Zoom in" }
            button type="button" #zoom-out { "Zoom out" }
            button type="button" #pan-left { "Earlier" }
            button type="button" #pan-right { "Later" }
            button type="button" #zoom-reset { "Whole run" }
            @if !window.arrows.is_empty() {
                label { input #arrows type="checkbox"; " messages" }
            }
            output #range aria-live="off" {}
        }
        div #timeline-box {
            div #timeline-static { (charts::timeline(report)) }
        }
        output #readout.scripted aria-live="polite" { "Point at the timeline, or focus it and use the keys." }
        p.note.scripted #timeline-keys {
            "Wheel or " kbd { "+" } " " kbd { "−" } " zoom, drag or " kbd { "←" } " " kbd { "→" } " pan, " kbd { "0" }
            " shows the whole run, " kbd { "↑" } " " kbd { "↓" } " choose a worker, " kbd { "n" } " " kbd { "p" }
            " its next or previous slice."
        }
        (cuts(report, finest))
        (folded("The same as a table: how each worker spent its time", &workers(report)))
    }
}

/// What was merged or left out.
fn cuts(report: &Report<'_>, finest_ns: u64) -> Markup {
    let (figures, window) = (&report.figures, &report.window);
    let slices: u64 = figures.counts.iter().sum();
    let profiles = figures.workers.iter().filter(|worker| worker.from_profile).count();
    html! {
        p.note {
            @if slices == 0 {
                "No events were recorded: this is drawn from profiles, in bins of " (duration(finest_ns as f64))
                "; the order within a bin is not known. CARIBOU_TRACE records events."
            } @else if window.whole && !window.is_empty() {
                "All " (slices) " slices are in this page, and idle time between them."
            } @else if !window.is_empty() {
                "Of " (slices) " slices, the " (window.slices.len()) " that are not idle from " (stretch(window.from_ns, window.to_ns))
                " are in this page one by one (" @if report.balance.worst.is_some() { "up to the most uneven sync" } @else { "the begin of the run" }
                "); elsewhere time is merged into bins of " (duration(finest_ns as f64)) " or more, coloured by the kind that took most."
            } @else {
                "Time is merged into bins of " (duration(finest_ns as f64)) " or more (" (slices) " slices), coloured by the kind that took most."
            }
            @if profiles > 0 && slices > 0 {
                " " (profiles) " workers are drawn from their profiles: their events tell of less."
            }
            @if figures.workers_per_row > 1 {
                " A row is " (figures.workers_per_row) " workers: heights are their average."
            }
            @if !window.arrows.is_empty() {
                " Messages: " (window.arrows.len()) " can be shown"
                @if window.one_in > 1 { ", one in " (window.one_in) " of those in that stretch" }
                @if report.trace.run.arrows > 1 { "; one in " (report.trace.run.arrows) " was recorded" }
                "."
            }
            @if figures.marks_total > 0 {
                " " (figures.marks_total) " marks, of which " (figures.marks_total.min(MARKS_MAX as u64)) " are drawn below the axis."
            }
            @if figures.activities.others > 0 { " " (figures.activities.others) " kinds are merged into one." }
            @if !figures.problems.is_empty() || !report.trace.problems.is_empty() {
                " " (figures.problems.len() + report.trace.problems.len()) " parts of the trace could not be read: `caribou trace check` lists them."
            }
        }
    }
}

fn workers(report: &Report<'_>) -> Table<'static> {
    let figures = &report.figures;
    let row = |number: usize| {
        let first = number * figures.workers_per_row;
        let workers = figures.workers.iter().skip(first).take(figures.workers_per_row);
        let all_ns = figures.elapsed_ns as f64 * figures.rows[number].workers as f64;
        let of = |state| workers.clone().map(|worker| worker.state_ns(state) as f64).sum::<f64>();
        let sums = State::ALL.map(of);
        let mut cells = vec![Cell::Text(row_name(figures, number))];
        cells.extend(sums.map(Cell::Ns));
        cells.push(Cell::Ns((all_ns - sums.iter().sum::<f64>()).max(0.0)));
        cells.push(Cell::Share(if all_ns > 0.0 { sums[0] / all_ns } else { 0.0 }));
        cells
    };
    Table {
        id: "worker-table",
        caption: "Time of each worker".into(),
        heads: &["worker", "handlers", "runtime", "lost", "idle", "not recorded", "in handlers"],
        rows: (0..figures.rows.len()).map(row).collect(),
    }
}

fn utilisation(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    if figures.stack.is_empty() {
        return nothing("Nothing that takes time was recorded: run with CARIBOU_TRACE set.");
    }
    let chosen = figures.heaviest_kinds().len();
    let kinds = figures.stack.keys().filter(|activity| State::of(**activity) == State::Chunks).count();
    html! {
        fieldset.choice {
            legend { "Handlers" }
            label { input type="radio" name="stack" #stack-kind checked; " by kind" }
            label { input type="radio" name="stack" #stack-all; " together" }
        }
        (charts::utilisation(report))
        (state_legend(report))
        p.note {
            "Shares of the time of all " (figures.workers.len()) " workers in bins of " (duration(figures.stack_grid.bin_ns as f64))
            "; thin lines are syncs." @if kinds > chosen { " " (kinds - chosen) " lighter kinds are grey." }
        }
        (folded("The same as a table", &utilisation_table(report)))
    }
}

fn utilisation_table(report: &Report<'_>) -> Table<'static> {
    let figures = &report.figures;
    let bins = figures.stack_grid.bins;
    let rows = bins.min(TIMES_MAX);
    let row = |number: usize| {
        let (from, to) = (number * bins / rows, (number + 1) * bins / rows);
        let from_ns = from as u64 * figures.stack_grid.bin_ns;
        let to_ns = (to as u64 * figures.stack_grid.bin_ns).min(figures.elapsed_ns);
        let all_ns = (to_ns.saturating_sub(from_ns) as f64 * figures.workers.len() as f64).max(1.0);
        let of = |state| {
            let bins = figures.stack.iter().filter(|(activity, _)| State::of(**activity) == state);
            bins.flat_map(|(_, ns)| &ns[from..to]).map(|&ns| ns as f64).sum::<f64>() / all_ns
        };
        let mut cells = vec![Cell::Text(stretch(from_ns, to_ns))];
        cells.extend(State::ALL.map(|state| Cell::Share(of(state).min(1.0))));
        cells
    };
    Table {
        id: "utilisation-table",
        caption: "Shares of all workers' time".into(),
        heads: &["from, to", "handlers", "runtime", "lost", "idle"],
        rows: (0..rows).map(row).collect(),
    }
}

fn profile(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let totals = figures.totals();
    let all_ns = figures.worker_time_ns().max(1.0);
    let mut order: Vec<(u8, Total)> =
        totals.iter().enumerate().map(|(activity, &total)| (activity as u8, total)).collect();
    order.retain(|(_, total)| *total != Total::default());
    if order.is_empty() {
        return nothing("Nothing that takes time was recorded: run with CARIBOU_TRACE set.");
    }
    order.sort_by_key(|&(activity, total)| (State::of(activity), std::cmp::Reverse(total.ns)));
    let row = |(activity, total): &(u8, Total)| {
        let state = State::of(*activity);
        let mean = if total.calls > 0 { Cell::Ns(total.ns as f64 / total.calls as f64) } else { Cell::Empty };
        let lost =
            if state == State::Chunks && *activity != LOST { Cell::ns(total.lost_ns) } else { Cell::Empty };
        vec![
            Cell::Text(figures.activities.name(*activity).to_owned()),
            Cell::Text(state.name().into()),
            Cell::ns(total.ns),
            Cell::Share(total.ns as f64 / all_ns),
            Cell::Count(total.calls),
            mean,
            Cell::ns(total.longest_ns),
            lost,
        ]
    };
    let table = Table {
        id: "profile-table",
        caption: "Time by kind and state, over all workers; handlers' is CPU time".into(),
        heads: &["kind", "state", "time", "of workers' time", "calls", "mean", "longest", "lost in it"],
        rows: order.iter().map(row).collect(),
    };
    html! {
        (table.html())
        @if !figures.spans.is_empty() {
            (spans(report).html())
        }
    }
}

fn spans(report: &Report<'_>) -> Table<'static> {
    let rows = report.figures.spans.iter().map(|(&name, &(count, ns))| {
        vec![Cell::Text(report.trace.name(name)), Cell::Count(count), Cell::ns(ns)]
    });
    Table {
        id: "span-table",
        caption: "Spans that the program named, inside handlers".into(),
        heads: &["span", "count", "time"],
        rows: rows.collect(),
    }
}

fn balancing(report: &Report<'_>) -> Markup {
    let (balance, figures) = (&report.balance, &report.figures);
    let Some(worst) = balance.worst else {
        return nothing("No syncs: arrays of chunks that call ctx.sync() have them.");
    };
    let line = |value: fn(&caribou::SyncReport) -> f64| {
        let every = balance.syncs.len().div_ceil(1000).max(1);
        let points = balance.syncs.iter().step_by(every).map(|sync| (sync.at_ns, value(sync)));
        points.filter(|point| point.1.is_finite()).collect::<Vec<_>>()
    };
    let lines = [("predicted", line(|sync| sync.imbalance_predicted)), ("before", line(before))];
    let bars = |class: &str, name: &str| (class.to_owned(), name.to_owned());
    let legends = [
        bars("before", "measured before"),
        bars("predicted", "predicted"),
        bars("next", "measured in the next phase"),
    ];
    html! {
        h3 { "Imbalance at each sync" }
        p.note { "Largest over average load of the ranks; 1 is even." }
        (plots::lines("Imbalance before and predicted at each sync", figures.elapsed_ns, &lines, |value| format!("{value:.2}")))
        (legend([bars("before", "found"), bars("predicted", "predicted for the next phase")]))
        h3 { "Loads of the ranks" }
        p {
            label.scripted { "Sync " select #sync-choice {
                @for &place in &balance.shown {
                    option value=(place) selected[place == worst] { (balance.syncs[place].sync) }
                }
            } }
            span #sync-shown { " Sync " (balance.syncs[worst].sync) ", the most uneven" }
        }
        (plots::rank_bars(report, worst))
        (legend(legends))
        @if report.trace.ranks.len() > RANKS_MAX { p.note { "The first " (RANKS_MAX) " ranks are shown." } }
        (folded(&format!("Sync {} as a table", balance.syncs[worst].sync), &rank_loads(report, worst)))
        h3 { "Syncs" }
        @if balance.shown.len() < balance.syncs.len() {
            p.note { "The " (balance.shown.len()) " most uneven of " (balance.syncs.len()) " syncs; `caribou trace lb` lists all." }
        }
        (sync_table(report).html())
    }
}

fn rank_loads(report: &Report<'_>, place: usize) -> Table<'static> {
    let sync = &report.balance.syncs[place];
    let next = report.balance.next(place);
    let ranks = sync.before_ns.len().max(sync.predicted_ns.len()).min(RANKS_MAX);
    let at = |ns: &[u64], rank: usize| ns.get(rank).map_or(Cell::Empty, |&ns| Cell::ns(ns));
    let number =
        |values: &[f64], rank: usize| values.get(rank).map_or(Cell::Empty, |&value| Cell::Number(value));
    let row = |rank: usize| {
        let next = next.map_or(Cell::Empty, |next| at(&next.before_ns, rank));
        let (before, predicted) = (at(&sync.before_ns, rank), at(&sync.predicted_ns, rank));
        let chunks = sync.chunks_per_rank.get(rank).map_or(Cell::Empty, |&count| Cell::Count(count.into()));
        let capacity = number(&sync.capacity, rank);
        vec![Cell::Count(rank as u64), before, predicted, next, chunks, capacity, number(&sync.share, rank)]
    };
    Table {
        id: "rank-load-table",
        caption: format!("Loads of the ranks at sync {}", sync.sync),
        heads: &["rank", "before", "predicted", "measured next", "chunks after", "capacity", "share of vCPU"],
        rows: (0..ranks).map(row).collect(),
    }
}

fn sync_table(report: &Report<'_>) -> Table<'static> {
    let balance = &report.balance;
    let row = |&place: &usize| {
        let sync = &balance.syncs[place];
        let next = balance.next(place);
        vec![
            Cell::Count(sync.sync),
            Cell::ns(sync.at_ns),
            Cell::Number(before(sync)),
            Cell::Number(sync.imbalance_predicted),
            next.map_or(Cell::Empty, |next| Cell::Number(before(next))),
            next.and_then(|next| error(sync, next)).map_or(Cell::Empty, Cell::Share),
            Cell::Count(sync.moved),
            Cell::Count(sync.proposed),
            Cell::Bytes(sync.moved_bytes),
            Cell::ns(sync.gain_ns),
            Cell::ns(sync.cost_ns),
            Cell::ns(sync.collect_ns),
            Cell::ns(sync.decide_ns),
            Cell::ns(sync.migrate_ns),
        ]
    };
    Table {
        id: "sync-table",
        caption: "What each sync found, did and took".into(),
        heads: &[
            "sync",
            "at",
            "imbalance",
            "predicted",
            "measured next",
            "off by",
            "moved",
            "proposed",
            "bytes",
            "gain expected",
            "cost expected",
            "collect",
            "decide",
            "migrate",
        ],
        rows: balance.shown.iter().map(row).collect(),
    }
}

fn steps(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let (what, times): (String, Vec<u64>) = match (report.balance.syncs.len(), figures.resumes_of) {
        (2.., _) => ("two syncs".into(), report.balance.syncs.iter().map(|sync| sync.at_ns).collect()),
        (_, Some(chunk)) => {
            (format!("two resumes of {}", report.trace.chunk_name(chunk)), figures.resumes_ns.clone())
        }
        _ => (String::new(), Vec::new()),
    };
    let every = times.len().div_ceil(1500).max(1);
    let gaps: Vec<(u64, f64)> = times
        .windows(2)
        .step_by(every)
        .map(|pair| (pair[1], pair[1].saturating_sub(pair[0]) as f64))
        .collect();
    if gaps.is_empty() && figures.counters.is_empty() {
        return nothing(
            "No steps are known: they are the time between syncs, and counters that the program sets.",
        );
    }
    html! {
        @if !gaps.is_empty() {
            h3 { "Time between " (what) }
            (plots::lines("Time of each step over time", figures.elapsed_ns, &[("before", gaps.clone())], charts::tick))
            @if every > 1 { p.note { "One in " (every) " of " (times.len() - 1) " is drawn." } }
            (folded("Shortest, longest and mean", &gap_table(&times)))
        }
        @for counter in &figures.counters {
            @let points: Vec<(u64, f64)> = counter.points.values().copied().collect();
            @let name = report.trace.name(counter.name);
            h3 { "Counter " (name) }
            (plots::lines(&format!("Counter {name} over time"), figures.elapsed_ns, &[("predicted", points.clone())], number))
            p.note {
                (counter.values) " values"
                @if (points.len() as u64) < counter.values { ", of which the last in each of " (points.len()) " bins is drawn" }
                @if let Some(last) = points.last() { "; the last is " (number(last.1)) }
                "."
            }
        }
        @if figures.counters.len() == COUNTERS_MAX { p.note { "At most " (COUNTERS_MAX) " counters are shown." } }
    }
}

fn gap_table(times: &[u64]) -> Table<'static> {
    let gaps = || times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let mean = gaps().map(|ns| ns as f64).sum::<f64>() / gaps().count().max(1) as f64;
    let ns = |ns: Option<u64>| ns.map_or(Cell::Empty, Cell::ns);
    Table {
        id: "step-table",
        caption: "Time of steps".into(),
        heads: &["steps", "shortest", "mean", "longest"],
        rows: vec![vec![
            Cell::Count(gaps().count() as u64),
            ns(gaps().min()),
            Cell::Ns(mean),
            ns(gaps().max()),
        ]],
    }
}

/// A number without more digits than it needs.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        format!("{}", (value * 1e4).round() / 1e4)
    } else {
        format!("{value:.2e}")
    }
}

fn ranks(report: &Report<'_>) -> Markup {
    let figures = &report.figures;
    let row = |rank: &caribou::trace::RankTrace| {
        let workers = figures.workers.iter().filter(|worker| worker.rank == rank.rank);
        let of = |state| workers.clone().fold(0u64, |sum, worker| sum.saturating_add(worker.state_ns(state)));
        let sum = |value: fn(&caribou::trace::Sample) -> u64| {
            if rank.samples.is_empty() {
                return Cell::Empty;
            }
            Cell::Ns(rank.samples.iter().map(|sample| value(sample) as f64).sum())
        };
        let speed = rank.samples.iter().map(|sample| sample.speed).sum::<f64>() / rank.samples.len() as f64;
        let end = match &rank.end {
            None => "cut off",
            Some(end) if end.failed.is_some() => "failed",
            Some(_) => "ended",
        };
        vec![
            Cell::Count(rank.rank.into()),
            Cell::Text(rank.host.clone()),
            Cell::Count(rank.workers.into()),
            Cell::ns(of(State::Chunks)),
            Cell::ns(of(State::Runtime)),
            Cell::ns(of(State::Lost)),
            Cell::ns(of(State::Idle)),
            sum(|sample| sample.wait_ns),
            sum(|sample| sample.steal_ns),
            sum(|sample| sample.throttled_ns),
            if speed.is_finite() { Cell::Number(speed) } else { Cell::Empty },
            rank.samples.last().map_or(Cell::Empty, |sample| Cell::Count(sample.chunks)),
            Cell::Text(end.into()),
        ]
    };
    let table = Table {
        id: "rank-table",
        caption: "Ranks: how their workers spent their time, and what samples say of their vCPUs".into(),
        heads: &[
            "rank",
            "host",
            "workers",
            "handlers",
            "runtime",
            "lost",
            "idle",
            "waited for vCPU",
            "stolen",
            "throttled",
            "speed",
            "chunks",
            "end",
        ],
        rows: report.trace.ranks.iter().map(row).collect(),
    };
    table.html()
}

fn chunks(report: &Report<'_>) -> Markup {
    let chunks = report.figures.chunks.sorted();
    if chunks.is_empty() {
        return nothing(match &report.trace.run.shape[..] {
            "pool" => "A pool has iterations, no chunks.",
            _ => "Chunks are known from events: run with CARIBOU_TRACE set.",
        });
    }
    let all_ns = chunks.iter().map(|(_, chunk)| chunk.cpu_ns as f64).sum::<f64>().max(1.0);
    let rest_ns = chunks.iter().skip(CHUNKS_MAX).map(|(_, chunk)| chunk.cpu_ns as f64).sum::<f64>();
    let row = |(id, chunk): &(ChunkId, Chunk)| {
        let mean = chunk.cpu_ns as f64 / chunk.executions.max(1) as f64;
        vec![
            Cell::Text(report.trace.chunk_name(*id)),
            Cell::Count(chunk.rank.into()),
            Cell::ns(chunk.cpu_ns),
            Cell::Share(chunk.cpu_ns as f64 / all_ns),
            Cell::Count(chunk.executions),
            Cell::Ns(mean),
            Cell::ns(chunk.longest_ns),
            Cell::ns(chunk.lost_ns),
            chunk.load_ns.map_or(Cell::Empty, Cell::ns),
            Cell::Bytes(chunk.state_bytes),
            Cell::Count(chunk.moves),
        ]
    };
    let table = Table {
        id: "chunk-table",
        caption: "Chunks, by the CPU time of their handlers".into(),
        heads: &[
            "chunk",
            "last rank",
            "CPU time",
            "of all",
            "executions",
            "mean",
            "longest",
            "lost",
            "last load",
            "state",
            "moves",
        ],
        rows: chunks.iter().take(CHUNKS_MAX).map(row).collect(),
    };
    html! {
        p.scripted {
            label { "Search " input #chunk-search type="search" autocomplete="off"; }
            output #chunk-count aria-live="polite" { (table.rows.len()) " of " (table.rows.len()) }
        }
        @if chunks.len() > CHUNKS_MAX {
            p.note {
                "The " (CHUNKS_MAX) " heaviest of " (chunks.len()) " chunks; the others have " (percent(rest_ns / all_ns))
                " of the CPU time. `caribou trace chunks` lists all."
            }
        }
        (table.html())
    }
}

fn communication(report: &Report<'_>) -> Markup {
    let (trace, figures) = (report.trace, &report.figures);
    if figures.sent.is_empty() {
        return nothing("No sends were recorded: CARIBOU_TRACE with arrows records them.");
    }
    let matrix = Matrix::of(figures, trace.ranks.len());
    let rank_at = |place: usize| trace.ranks[place.min(trace.ranks.len() - 1)].rank;
    let messages: u64 = figures.sent.values().map(|sent| sent.0).sum();
    let local: u64 = figures.sent.iter().filter(|((from, to), _)| from == to).map(|(_, sent)| sent.0).sum();
    let size = figures.sent.values().fold(0u64, |sum, sent| sum.saturating_add(sent.1));
    let mut cells: Vec<_> = matrix.cells.iter().enumerate().filter(|(_, cell)| cell.0 > 0).collect();
    cells.sort_by_key(|(place, cell)| (std::cmp::Reverse(cell.0), *place));
    let row = |&(place, &(messages, bytes)): &(usize, &(u64, u64))| {
        let (from, to) = (place / matrix.side, place % matrix.side);
        let name = |number| Cell::Text(matrix.name(number, rank_at));
        vec![name(from), name(to), Cell::Count(messages), Cell::Bytes(bytes)]
    };
    let table = Table {
        id: "comm-table",
        caption: "Messages between ranks, most first".into(),
        heads: &["from rank", "to rank", "messages", "bytes"],
        rows: cells.iter().take(CHUNKS_MAX).map(row).collect(),
    };
    html! {
        p {
            (messages) " messages of " (bytes(size)) " recorded, " (percent(local as f64 / messages.max(1) as f64))
            " of them within a rank."
            @if trace.run.arrows > 1 { " One in " (trace.run.arrows) " was recorded." }
            @if figures.sent_elsewhere > 0 { " " (figures.sent_elsewhere) " went to ranks that left no trace." }
            @if matrix.ranks_per_cell > 1 { " A cell is " (matrix.ranks_per_cell) " by " (matrix.ranks_per_cell) " ranks." }
        }
        (matrix.html(rank_at, |messages, size| format!("{messages} messages, {}", bytes(size))))
        @if cells.len() > CHUNKS_MAX { p.note { "The table has the " (CHUNKS_MAX) " largest of " (cells.len()) " cells." } }
        (folded("The same as a table", &table))
    }
}

fn record(report: &Report<'_>) -> Markup {
    let run = &report.trace.run;
    let rows: [(&str, String); 13] = [
        ("Run", run.run_id.clone()),
        ("Command line", run.arguments.join(" ")),
        ("Caribou", format!("{} ({})", run.version, run.git_hash)),
        ("Began", format!("{} s since 1970", run.started_unix_ns / 1_000_000_000)),
        ("Elapsed", duration(report.figures.elapsed_ns as f64)),
        ("Shape", run.shape.clone()),
        ("Balancing", run.lb.clone()),
        ("Placement", run.placement.clone()),
        ("Pinned", if run.pinned { "every worker has a vCPU".into() } else { "no".into() }),
        ("Ranks", format!("{} of {} left a trace", report.trace.ranks.len(), run.ranks)),
        ("Recorded", format!("{}; sends: {}", run.filter, run.arrows)),
        ("Events", format!("{}, and {} that were not kept", report.trace.events(), report.trace.dropped())),
        ("Trace", format!("{} names, {} arrays", report.trace.names.len(), report.trace.arrays.len())),
    ];
    html! {
        dl { @for (term, text) in rows { dt { (term) } dd { (text) } } }
        @let problems = || report.trace.problems.iter().chain(&report.figures.problems);
        @if problems().next().is_some() {
            h3 { "What could not be read" }
            ul { @for problem in problems().take(20) { li { (problem.to_string()) } } }
            @if problems().count() > 20 { p.note { "And " (problems().count() - 20) " more." } }
        }
    }
}
