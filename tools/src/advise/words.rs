//! Writes the advice: a paragraph, and a table of all changes.

use std::io::{self, Write};

use lb_strategies::Period;
use presentation::Table;
use presentation::format::{decimal, duration, plural};
use presentation::table::plain;

use super::change::Change;
use super::command_line::{self, Setting};
use super::judge::{Judged, Judgement};
use super::program::Size;
use super::recording::Recording;
use crate::simulate::SIMULATED;
use crate::statistics::mean;

/// The error of the replay above which advice is weak.
const WEAK: f64 = 0.1;
/// Ranks whose idle parts differ by less are equally busy.
const EVEN: f64 = 0.05;
/// Number of rows of the table, the run included.
const ROWS: usize = 16;
/// Another change is told if it gains so much more than the advice.
const MORE: f64 = 0.02;
/// A rank got all of its vCPU if it got more.
const WHOLE: f64 = 0.9;

/// The settings that make a change of the run.
fn list(recording: &Recording, change: &Change) -> Vec<Setting> {
    let arguments = &recording.arguments;
    let mut settings = Vec::new();
    let mut set = |option, variable, value| settings.push(Setting::new(arguments, option, variable, value));
    let is_other = change.lb != recording.lb;
    if is_other {
        set("--lb", "CARIBOU_LB", change.lb.clone());
    }
    if change.moves() && (change.period != recording.period || is_other) {
        set("--period", "CARIBOU_LB_PERIOD", change.period.to_string());
    }
    if change.workers != recording.workers {
        set("--ranks", "CARIBOU_RANKS", change.workers.len().to_string());
        if change.shares_ranks(recording) {
            set("--workers", "CARIBOU_WORKERS", change.workers.first().copied().unwrap_or(1).to_string());
        }
    }
    settings.extend(Setting::size(arguments, change.size));
    settings
}

/// The settings of a change as they are typed.
pub(super) fn settings(recording: &Recording, change: &Change) -> String {
    let texts: Vec<String> = list(recording, change).iter().map(Setting::text).collect();
    if texts.is_empty() { "as recorded".into() } else { texts.join(" ") }
}

/// The command line that makes the change; none if it is not known, or the run was simulated.
pub(super) fn command(recording: &Recording, change: &Change) -> Option<String> {
    if recording.arguments.first().is_some_and(|program| program == SIMULATED) {
        return None;
    }
    command_line::command(&recording.arguments, &list(recording, change))
}

/// Writes the paragraph.
pub(super) fn paragraph(recording: &Recording, judgement: &Judgement, out: &mut dyn Write) -> io::Result<()> {
    let mut says = Vec::new();
    match judgement.best.map(|place| &judgement.rows[place]) {
        Some(best) => says.push(format!(
            "Run it with {}: {} should take {} less time ({} instead of {}).",
            settings(recording, &best.change),
            if recording.is_cut { "the replayed steps" } else { "the run" },
            points(best),
            duration(1e9 * best.time_s),
            duration(1e9 * recording.took_s)
        )),
        None => says.push(nothing(recording, judgement)),
    }
    says.extend(less_certain(recording, judgement));
    says.extend(more_vcpus(recording, judgement));
    says.push(why(recording, judgement));
    says.extend(others(recording, judgement));
    says.push(checked(judgement));
    if !recording.doubts.is_empty() {
        says.push(format!("Less certain because {}.", recording.doubts.join(", and ")));
    }
    writeln!(out, "{}", says.join(" "))?;
    let advised = judgement.best.and_then(|place| command(recording, &judgement.rows[place].change));
    advised.map_or(Ok(()), |command| writeln!(out, "\n  {}", plain(&command)))
}

fn nothing(recording: &Recording, judgement: &Judgement) -> String {
    let tried = judgement.rows.len() - 1;
    let best = judgement.rows[1..].iter().find(|row| !row.change.needs_vcpus(recording));
    let best = best.map_or_else(String::new, |best| {
        format!(" The best, {}, would save {}.", settings(recording, &best.change), points(best))
    });
    format!(
        "Nothing helps on the same vCPUs: of {} no one saves more than 2 % and more than its uncertainty.{best}",
        plural(tried, "change")
    )
}

/// A change that should gain more than the advice, but is less certain or more effort.
fn less_certain(recording: &Recording, judgement: &Judgement) -> Option<String> {
    let gain = judgement.best.map(|place| judgement.rows[place].gain)?;
    let is_more = |row: &&Judged| {
        row.gain > gain + MORE && row.gain > row.uncertainty && !row.change.needs_vcpus(recording)
    };
    let row = judgement.rows[1..].iter().find(is_more)?;
    Some(format!(
        "More, but with more effort or less certainty: {} ({}).",
        settings(recording, &row.change),
        points(row)
    ))
}

/// What other vCPUs would give, which are not free.
fn more_vcpus(recording: &Recording, judgement: &Judgement) -> Option<String> {
    let row = judgement.rows.iter().find(|row| row.change.needs_vcpus(recording))?;
    let times = row.change.workers.iter().sum::<u32>() / recording.workers.iter().sum::<u32>().max(1);
    let is_good = row.gain > row.uncertainty;
    is_good.then(|| {
        let settings = settings(recording, &row.change);
        format!("With {times} times the vCPUs ({settings}) it should take {} less.", points(row))
    })
}

/// A gain with its uncertainty.
fn points(row: &Judged) -> String {
    format!("{} +- {} %", decimal(100.0 * row.gain, 1), decimal(100.0 * row.uncertainty, 1))
}

/// Which rank waited for which, and the bound.
fn why(recording: &Recording, judgement: &Judgement) -> String {
    let bound = 100.0 * (1.0 - judgement.bound_s / recording.took_s).max(0.0);
    let bound = format!("No placement could save more than {bound:.0} % of the recorded time.");
    let idle = &judgement.rows[0].first.idle;
    let by_idle = |one: &usize, other: &usize| idle[*one].total_cmp(&idle[*other]);
    let ends = (0..idle.len()).min_by(by_idle).zip((0..idle.len()).max_by(by_idle));
    let Some((busy, waiting)) = ends.filter(|&(busy, waiting)| idle[waiting] - idle[busy] > EVEN) else {
        return format!("All ranks were about equally busy. {bound}");
    };
    let waited = 100.0 * idle[waiting];
    format!(
        "Rank {waiting} waited {waited:.0} % of the time for rank {busy}, which {}. {bound}",
        reason(recording, busy)
    )
}

/// Why a rank was later than others.
fn reason(recording: &Recording, rank: usize) -> String {
    let works: Vec<f64> = recording.ranks.iter().map(|times| times.chunks as f64).collect();
    let mean = works.iter().sum::<f64>() / works.len().max(1) as f64;
    let times = works[rank] / mean.max(1.0);
    let share = recording.vcpus[rank].mean_share(recording.took_s);
    let speed = recording.vcpus[rank].speed;
    let mut causes = Vec::new();
    if times > 1.0 + EVEN {
        causes.push(format!("had {times:.2} times the mean work"));
    }
    if share < WHOLE {
        causes.push(format!("had its vCPU for {:.0} % of the time that it wanted it", 100.0 * share));
    }
    if speed < WHOLE {
        causes.push(format!("has a vCPU with {:.0} % of the speed of the fastest", 100.0 * speed));
    }
    if causes.is_empty() { "was late by turns".into() } else { causes.join(" and ") }
}

/// What the advice assumes of others that had part of a vCPU while the run was recorded.
fn others(recording: &Recording, judgement: &Judgement) -> Option<String> {
    judgement.best?;
    let shares = recording.vcpus.iter().map(|vcpu| vcpu.mean_share(recording.took_s));
    let least = shares.fold(1.0, f64::min);
    (least < WHOLE).then(|| {
        let taken = 100.0 * (1.0 - least);
        format!("Others had up to {taken:.0} % of a vCPU during the recording, and the gain holds only if they still do.")
    })
}

fn checked(judgement: &Judgement) -> String {
    let error = 100.0 * judgement.error;
    let more = if error < 0.0 { "less" } else { "more" };
    let weak = if judgement.error.abs() > WEAK { ", so this advice is weak" } else { "" };
    format!("A replay of the run as it was takes {:.1} % {more} than it took{weak}.", error.abs())
}

/// Writes the table.
pub(super) fn table(recording: &Recording, judgement: &Judgement, out: &mut dyn Write) -> io::Result<()> {
    let heads = ["change", "time", "gain %", "+-", "moves", "idle %", ""];
    let mut table = Table::new(heads).text_columns([true, false, false, false, false, false, true]);
    for (place, row) in judgement.rows.iter().enumerate() {
        if place >= ROWS && judgement.best != Some(place) {
            continue;
        }
        let mark = if judgement.best == Some(place) { "  <- advice" } else { "" };
        table.row([
            settings(recording, &row.change),
            duration(1e9 * row.time_s),
            decimal(100.0 * row.gain, 1),
            decimal(100.0 * row.uncertainty, 1),
            row.moves.to_string(),
            decimal(100.0 * mean(&row.first.idle), 1),
            note(recording, &row.change).to_owned() + mark,
        ]);
    }
    let gain = decimal(100.0 * (1.0 - judgement.bound_s / recording.took_s), 1);
    let bound = [
        "bound: all work over all capacity".to_owned(),
        duration(1e9 * judgement.bound_s),
        gain,
        String::new(),
        String::new(),
        String::new(),
        String::new(),
    ];
    table.row(bound);
    write!(out, "{table}")?;
    if judgement.rows.len() > ROWS {
        writeln!(out, "and {} more changes, which --csv FILE lists", judgement.rows.len() - ROWS)?;
    }
    writeln!(out, "from the trace: {}", facts(recording))
}

/// The figures that the replays rest on.
fn facts(recording: &Recording) -> String {
    let cells = (recording.steps() * recording.chunks()).max(1) as f64;
    let turns = recording
        .turn_ns
        .map_or_else(String::new, |ns| format!(", others had a vCPU for {} at a time", duration(ns as f64)));
    format!(
        "{} of {}, {} of CPU time each on a step, {} for a message, {} to another rank{turns}",
        plural(recording.steps(), "step"),
        plural(recording.chunks(), "chunk"),
        duration(1e9 * recording.work_s() / cells),
        duration(recording.message_ns as f64),
        duration(recording.latency_ns as f64),
    )
}

/// Why the row is less certain than others.
pub(super) fn note(recording: &Recording, change: &Change) -> &'static str {
    if change.needs_vcpus(recording) {
        return "on more vCPUs, as good as the mean of these";
    }
    if change.workers != recording.workers && change.workers.len() < recording.workers.len() {
        return match change.workers.iter().sum::<u32>() == recording.workers.iter().sum::<u32>() {
            true => "workers of a rank share chunks; their locks are guessed",
            false => "on fewer vCPUs",
        };
    }
    match change.size {
        Size::Divided(_) => "parts of a chunk are assumed to be equal; caches are not modelled",
        Size::Joined(_) => "caches are not modelled",
        Size::Same
            if matches!(change.period, Period::Steps(_))
                && change.moves()
                && change.period != recording.period =>
        {
            "if the program asks `sync_due` once an iteration"
        }
        Size::Same => "",
    }
}
