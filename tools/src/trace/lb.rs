//! Implements `caribou trace lb`: prints measurements, moves, cost and effect of each sync, and of each new division of
//! a program in supersteps. It needs only records that every trace has, except for the list of moves of a sync.

pub(crate) mod columns;
mod drawing;
pub(crate) mod one;

use std::io::Write;
use std::path::PathBuf;

use caribou::trace::{Activity, Part, Shape};
use lb_strategies::{Prediction, median};
use presentation::count_parser;
use trace_reader::Trace;

use self::columns::{VERDICTS, WORDS, table};
use self::one::did;
use super::analysis::resizes;
use super::analysis::sync_effect::{
    Cost, EVEN_MAX, SyncEffect, SyncVerdict, largest, occasion_of, sync_effects,
};
use super::open::Input;
use super::page::{Format, Page, bytes, duration, plural};
use super::{competing_processes, supersteps};
use crate::{Error, output};

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// One sync: loads of all ranks before, predicted and measured next, and the moves
    #[arg(long, value_name = "N")]
    sync: Option<u64>,
    /// Moves of --sync to list, the largest first
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "sync", value_parser = count_parser(0..=usize::MAX))]
    moves: usize,
    /// Draw the ranks of --sync, or of the sync that moved most: before, predicted, measured next
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.input.open()?;
    let outcomes = sync_effects(&trace.syncs);
    let chosen = options.sync.map(|sync| the_one(&outcomes, sync)).transpose()?;
    if let Some(file) = &options.svg {
        let drawn = chosen.or_else(|| largest(&outcomes));
        let why = || match trace.steps.is_empty() {
            false => "a program in supersteps has divisions, which are listed without --svg",
            true => why_none(&trace),
        };
        let drawn = drawn.ok_or_else(|| Error::Usage(format!("--svg draws a sync: {}", why())))?;
        output::write(file, drawing::svg(&drawn))?;
    }
    let page = match chosen {
        Some(outcome) => one::page(&trace, &outcome, &outcomes, options.moves),
        None => page(&trace, &outcomes),
    };
    Ok(page.write(options.format, out)?)
}

/// Returns the sync with this number.
pub(crate) fn the_one<'t>(outcomes: &[SyncEffect<'t>], sync: u64) -> Result<SyncEffect<'t>, Error> {
    let found = outcomes.iter().find(|outcome| outcome.report.sync == sync);
    found.copied().ok_or_else(|| match (outcomes.first(), outcomes.last()) {
        (Some(first), Some(last)) => Error::Usage(format!(
            "there is no sync {sync}: the trace has those from {} to {}",
            first.report.sync, last.report.sync
        )),
        _ => Error::Usage(format!("there is no sync {sync}: the run had none")),
    })
}

/// Syncs in the text; JSON has all.
const SYNCS_IN_TEXT: usize = 100;

/// The page of all syncs.
fn page(trace: &Trace, outcomes: &[SyncEffect<'_>]) -> Page {
    let mut page = Page::new("lb", trace);
    page.says.push(answer(trace, outcomes));
    page.says.extend(resizes::sentence(trace.run.ranks, trace.elapsed_ns(), outcomes));
    page.says.extend(competing_processes::sentences(trace));
    if !trace.steps.is_empty() {
        page.tables.push(supersteps::divisions_table(trace).text_rows(SYNCS_IN_TEXT));
        page.tables.push(supersteps::workers_table(trace));
        page.tables.push(supersteps::steps_table(trace));
        page.notes.push(supersteps::WORDS.into());
        page.notes.extend(supersteps::for_vcpus(trace));
        return page;
    }
    let table = table(trace, outcomes);
    if outcomes.is_empty() {
        page.tables.push(table.data_only());
        if trace.run.shape == Shape::Arrays {
            page.notes.push("syncs are recorded by rank 0".into());
        }
        return page;
    }
    page.tables.push(table.text_rows(SYNCS_IN_TEXT));
    page.notes.extend([WORDS, VERDICTS].map(str::to_owned));
    page
}

/// Explanation of the imbalance of a sync, for the user.
pub(crate) const IMBALANCE: &str = "Completion time of the slowest rank over the time with all work divided by the \
    measured capacities; 1 is the best";

/// The verdict on a sync in a few words.
fn verdict(trace: &Trace, outcome: &SyncEffect<'_>) -> &'static str {
    match outcome.verdict() {
        SyncVerdict::Balanced if never_moves(trace) => "never moves",
        SyncVerdict::Balanced if outcome.report.imbalance_before > EVEN_MAX => "nothing proposed",
        SyncVerdict::Balanced => "balanced already",
        SyncVerdict::Moved => "moved",
        SyncVerdict::Refused => "refused: gain < cost",
        SyncVerdict::Unasked => "not asked: gain < cost",
        SyncVerdict::Resized => "resized",
    }
}

/// Returns whether the strategy is the one that leaves all chunks where they are.
fn never_moves(trace: &Trace) -> bool {
    trace.run.lb == "none"
}

/// Describes in one sentence whether balancing happened, saved time, and was predicted well.
pub(crate) fn answer(trace: &Trace, outcomes: &[SyncEffect<'_>]) -> String {
    let with = |verdict| outcomes.iter().filter(|outcome| outcome.verdict() == verdict).count();
    let (moving, refused) = (with(SyncVerdict::Moved), with(SyncVerdict::Refused));
    let cost = cost(outcomes);
    let occasion = occasion_of(trace);
    let said = |count: usize, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
    let others = [
        (refused, "refused"),
        (with(SyncVerdict::Unasked), "not asked"),
        (with(SyncVerdict::Resized), "resized"),
    ];
    let refusals = others.map(|(count, what)| said(count, what)).concat();
    match (outcomes.len(), moving) {
        (0, _) => return supersteps::answer(trace).unwrap_or_else(|| why_none(trace).into()),
        (syncs, 0) if outcomes.iter().all(|outcome| outcome.report.moved == 0) => {
            let last = last(trace, outcomes);
            return format!("{}, none with moves{refusals}; {cost}{last}", plural(syncs, occasion));
        }
        _ => {}
    }
    let sum = |verdict| {
        let moves = outcomes.iter().filter(|outcome| outcome.verdict() == verdict);
        moves.fold((0u64, 0u64), |(moved, size), outcome| {
            (moved.saturating_add(outcome.report.moved), size.saturating_add(outcome.report.moved_bytes))
        })
    };
    let ((moved, size), (forced, forced_size)) = (sum(SyncVerdict::Moved), sum(SyncVerdict::Resized));
    let resizing = match forced {
        0 => String::new(),
        _ => format!(
            "; {} ({}) away from inactive ranks",
            plural(forced as usize, "chunk"),
            bytes(forced_size)
        ),
    };
    format!(
        "{}, {moving} with moves ({}, {}){refusals}{resizing}; {}; {cost}; {}{}",
        plural(outcomes.len(), occasion),
        plural(moved as usize, "chunk"),
        bytes(size),
        saving(outcomes, occasion),
        errors(outcomes, occasion),
        last(trace, outcomes)
    )
}

/// The reason why the last sync moved nothing; empty if it moved chunks.
fn last(trace: &Trace, outcomes: &[SyncEffect<'_>]) -> String {
    let has_moved =
        |last: &SyncEffect<'_>| matches!(last.verdict(), SyncVerdict::Moved | SyncVerdict::Resized);
    let unmoved = outcomes.last().filter(|last| !has_moved(last));
    unmoved.map_or(String::new(), |last| match last.verdict() {
        SyncVerdict::Balanced if never_moves(trace) => format!("; {}", did(trace, last)),
        _ => format!("; at last, at {}: {}", duration(last.report.at_ns as f64), did(trace, last)),
    })
}

/// Returns whether workers migrated chunks. A sync is recorded only when it is over, so it may be missing.
fn began(trace: &Trace) -> bool {
    let mut rows = trace.ranks.iter().flat_map(|rank| &rank.profiles).flat_map(|profile| &profile.rows);
    rows.any(|row| row.activity == Activity::Runtime(Part::Migrate))
}

/// Reason why there are no syncs.
pub(crate) fn why_none(trace: &Trace) -> &'static str {
    match trace.run.shape {
        Shape::Pools => "a pool: its policy balances all the time, there are no syncs",
        Shape::Supersteps => {
            "a program in supersteps: rank 0 records its steps, and the trace has no such record"
        }
        Shape::Arrays if trace.ranks.iter().all(|rank| rank.rank != 0) => {
            "syncs are recorded by rank 0, whose trace is missing"
        }
        Shape::Arrays if trace.dropped() > 0 => {
            "no syncs are in the trace, but it was full: see CARIBOU_TRACE_LIMIT"
        }
        Shape::Arrays if began(trace) => "no sync was completed, though one had begun",
        Shape::Arrays => "no syncs and no windows with a decision: nothing was balanced",
    }
}

/// Predicted and measured savings of moves.
fn saving(outcomes: &[SyncEffect<'_>], occasion: &str) -> String {
    let gain = |of: &SyncEffect<'_>| of.gain_ns();
    let known = outcomes.iter().filter_map(|outcome| Some((gain(outcome), outcome.saved_ns()?)));
    let (held, saved) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let predicted: f64 = outcomes.iter().map(gain).sum();
    let known = format!(
        "predicted to save {}, saved {} in the one phase after each move (later phases are not counted: `trace diff` \
         compares whole runs)",
        duration(held),
        duration(saved)
    );
    match predicted - held {
        _ if !outcomes.iter().any(|outcome| outcome.saved_ns().is_some()) => {
            format!("predicted to save {}, which no later {occasion} measured", duration(predicted))
        }
        open if open > 0.0 => format!(
            "{known}, and another {} was predicted of moves that no later {occasion} measured",
            duration(open)
        ),
        _ => known,
    }
}

/// Cost of syncs, by its parts; the time of the decisions if no chunk waited.
fn cost(outcomes: &[SyncEffect<'_>]) -> String {
    let Cost { collect_ns, decide_ns, migrate_ns } = outcomes.iter().map(SyncEffect::cost).sum();
    let all = duration(collect_ns + decide_ns + migrate_ns);
    if outcomes.iter().any(SyncEffect::is_blocking) {
        let [collect, decide, migrate] = [collect_ns, decide_ns, migrate_ns].map(duration);
        format!("cost {all} (collecting {collect}, the strategy {decide}, moving {migrate})")
    } else {
        let under_way = outcomes.iter().map(|outcome| outcome.report.migrate_ns as f64);
        let under_way: Vec<f64> = under_way.filter(|&ns| ns > 0.0).collect();
        let sum = duration(under_way.iter().sum());
        let moves = match &under_way[..] {
            [] => String::new(),
            [_] => format!("; moves were under way for {sum}"),
            _ => {
                let longest_ns = under_way.iter().copied().fold(0.0, f64::max);
                format!("; moves were under way for {sum}, the longest {}", duration(longest_ns))
            }
        };
        format!(
            "deciding took {all} while chunks went on (`profile` has all that workers spent on balancing){moves}"
        )
    }
}

fn errors(outcomes: &[SyncEffect<'_>], occasion: &str) -> String {
    let known = outcomes.iter().filter_map(|outcome| Some((outcome.error()?, outcome.report.sync)));
    let known: Vec<(f64, u64)> = known.collect();
    let worst = known.iter().copied().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()));
    match (median(known.iter().map(|&(error, _)| error.abs()).collect()), worst) {
        (Some(median), Some((worst, sync))) => format!(
            "{}prediction error a step median {:.1} %, worst {:.1} % (of {occasion} {sync})",
            predictors(outcomes),
            100.0 * median,
            100.0 * worst
        ),
        _ => "no prediction could be checked".into(),
    }
}

/// The predictors of loads and the number of syncs that used each; empty if it is unknown.
fn predictors(outcomes: &[SyncEffect<'_>]) -> String {
    let used = Prediction::ALL.into_iter().filter(|&one| one != Prediction::Auto).filter_map(|one| {
        let count = outcomes.iter().filter(|outcome| outcome.report.prediction == one).count();
        (count > 0).then(|| format!("{one} {count} x"))
    });
    let used: Vec<String> = used.collect();
    if used.is_empty() { String::new() } else { format!("predicted by {}; ", used.join(", ")) }
}
