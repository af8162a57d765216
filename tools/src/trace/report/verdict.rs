//! Writes the first sentences of a report: what happened, whether balancing helped, and advice.

use super::Report;
use super::activities::State;
use super::tables::percent;
use crate::trace::analysis::lost_time::outside_handlers_text;
use crate::trace::analysis::resizes;
use crate::trace::competing_processes;
use crate::trace::lb::answer;
use crate::trace::page::{duration, plural};

/// A sentence, and whether it reports a problem.
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) worry: bool,
}

pub(super) fn sentences(report: &Report<'_>) -> Vec<Sentence> {
    let say = |text: String| Sentence { text, worry: false };
    let worry = |text: String| Sentence { text, worry: true };
    let mut sentences: Vec<Sentence> = failures(report).into_iter().map(worry).collect();
    sentences.push(say(time(report)));
    let syncs = &report.balance.syncs;
    sentences.push(say(sentence(&answer(report.trace, syncs))));
    let resized = resizes::sentence(report.trace.run.ranks, report.trace.elapsed_ns(), syncs);
    sentences.extend(resized.iter().map(|text| say(sentence(text))));
    sentences.extend(competing_processes::sentences(report.trace).iter().map(|text| say(sentence(text))));
    let beside = outside_handlers_text(&report.facts.spent, &report.facts.lost_time);
    sentences.extend(beside.iter().map(|text| say(sentence(text))));
    let advice = report.advice.says.iter().map(|text| sentence(text));
    sentences.extend(advice.map(|text| Sentence { text, worry: report.advice.is_warning }));
    sentences
}

/// Converts a line of a command to a sentence, with a capital letter and a full stop.
pub(super) fn sentence(text: &str) -> String {
    capital(text) + "."
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn failures(report: &Report<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let failed = |rank: &trace_reader::RankTrace| {
        rank.end.as_ref().and_then(|end| end.failed.clone()).map(|why| (rank.rank, why))
    };
    let failed: Vec<_> = report.trace.ranks.iter().filter_map(failed).collect();
    if let Some((rank, why)) = failed.first() {
        let more = if failed.len() > 1 { format!(" ({} ranks failed)", failed.len()) } else { String::new() };
        said.push(format!("The run failed: rank {rank}: {why}{more}."));
    }
    let cut: Vec<u32> =
        report.trace.ranks.iter().filter(|rank| rank.end.is_none()).map(|rank| rank.rank).collect();
    if let Some(first) = cut.first() {
        let whose = if cut.len() == 1 { format!("rank {first}") } else { format!("{} ranks", cut.len()) };
        said.push(format!("The trace of {whose} was cut off: the figures end where it does."));
    }
    let there = report.trace.ranks.len();
    if report.trace.run.ranks as usize > there {
        said.push(format!("Of {} ranks only {there} left a trace.", report.trace.run.ranks));
    }
    if report.trace.dropped() > 0 {
        said.push(format!(
            "{} events were not kept: figures that need all events are too low.",
            report.trace.dropped()
        ));
    }
    said
}

fn time(report: &Report<'_>) -> String {
    let (trace, spent) = (report.trace, &report.facts.spent);
    let parts = spent.parts();
    let program = trace.run.arguments.first().map_or("The program", String::as_str);
    let shares =
        State::ALL.map(|state| format!("{} {}", percent(parts.share(state.ns(&parts))), state.name()));
    format!(
        "{program} ran {} on {} with {}; of the workers' time {}.",
        duration(report.figures.elapsed_ns as f64),
        plural(trace.ranks.len(), "rank"),
        plural(spent.workers.len(), "worker"),
        shares.join(", "),
    )
}
