//! Builds the page from its sections. A section without data is a line that explains how to record the data.

mod pages;
mod places;
mod supersteps;
mod syncs;
mod time;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::maps::SHADES;
use super::tables::{Table, prose};
use super::{Report, data, verdict};
use crate::trace::analysis::efficiency::{Efficiency, FACTORS};
use crate::trace::page::{duration, moment};
use crate::trace::palette;
use crate::trace::supersteps::whole_run_text;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

type Section = (&'static str, &'static str, fn(&Report<'_>) -> Markup);

const SECTIONS: [Section; 13] = [
    ("summary", "Summary", summary),
    ("timeline", "Timeline", time::timeline),
    ("utilisation", "Utilisation", time::utilisation),
    ("profile", "Profile", time::profile),
    ("durations", "Durations", pages::durations),
    ("balancing", "Balancing", syncs::balancing),
    ("phases", "Phases and counters", syncs::phases),
    ("path", "Critical path", pages::path),
    ("ranks", "Ranks", places::ranks),
    ("chunks", "Chunks", places::chunks),
    ("outliers", "Outliers", pages::outliers),
    ("communication", "Communication", places::communication),
    ("record", "Run record", record),
];

pub(super) fn html(report: &Report<'_>) -> Markup {
    let program = report.trace.run.arguments.first().map_or("a run", String::as_str);
    // Only scripts with this nonce run, so a name in the trace cannot add a script.
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
                style { (PreEscaped(STYLE)) (PreEscaped(colours())) }
            }
            body {
                a.skip href="#summary" { "Skip to the summary" }
                header {
                    nav aria-label="Sections" {
                        @for (id, title, _) in SECTIONS { a href=(format!("#{id}")) { (title) } }
                    }
                    button #theme.scripted type="button" { "Dark colours" }
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

/// The palette as a style sheet, lighter in dark mode, and the shades of heat maps.
fn colours() -> String {
    let both = |colour: &str| format!("light-dark({colour},{})", palette::lighter(colour, 0.25));
    let kinds = palette::KINDS.iter().enumerate();
    let mut style: String = kinds
        .map(|(number, colour)| {
            format!(".k{number}{{fill:{0}}}.line.k{number}{{fill:none;stroke:{0}}}", both(colour))
        })
        .collect();
    let named = [
        ("chunks", palette::CHUNKS),
        ("lost", palette::LOST_LINE),
        ("before", palette::BEFORE),
        ("predicted", palette::PREDICTED),
        ("next", palette::MEASURED),
    ];
    let named: String = named.iter().map(|(name, colour)| format!("--{name}:{};", both(colour))).collect();
    style += &format!(":root{{{named}--runtime:light-dark({},#c3ccd4)}}", palette::RUNTIME);
    let shades =
        (1..=SHADES).map(|shade| format!(".h{shade}{{fill-opacity:{:.3}}}", shade as f64 / SHADES as f64));
    style.extend(shades);
    style
}

fn nothing(what: &str) -> Markup {
    html! { p.nothing { (prose(what)) } }
}

fn summary(report: &Report<'_>) -> Markup {
    html! {
        @for sentence in verdict::sentences(report) {
            p.verdict.worry[sentence.worry] { @if sentence.worry { strong { "Note: " } } (prose(&sentence.text)) }
        }
        @if let Some(efficiency) = &report.facts.efficiency.as_ref().map(Efficiency::table) {
            (Table::of("efficiency-table", "Efficiency: what the time of the workers was lost to", efficiency, usize::MAX, &report.figures).html())
            p { (FACTORS) }
            @if !report.trace.steps.is_empty() {
                p.note { (verdict::capital(&whole_run_text("load balance", "communication"))) "." }
            }
        }
    }
}

fn record(report: &Report<'_>) -> Markup {
    let run = &report.trace.run;
    let rows: [(&str, String); 13] = [
        ("Run", run.run_id.clone()),
        ("Command line", run.arguments.join(" ")),
        ("Caribou", format!("{} ({})", run.version, run.git_hash)),
        ("Began", moment(run.started_unix_ns)),
        ("Elapsed", duration(report.figures.elapsed_ns as f64)),
        ("Shape", run.shape.recorded().to_owned()),
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
        @let problems = || report.trace.problems.iter().chain(&report.facts.problems);
        @if problems().next().is_some() {
            h3 { "What could not be read" }
            ul { @for problem in problems().take(20) { li { (problem.to_string()) } } }
            @if problems().count() > 20 { p.note { "And " (problems().count() - 20) " more." } }
        }
    }
}
