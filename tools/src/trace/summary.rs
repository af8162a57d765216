//! Implements `caribou trace summary`: prints the run, the use of its time, what balancing did, and advice.
//!
//! Times come from the profile, which every run has. Events are read once, to count them; they yield times only if the
//! profile is missing. `--quick` does not read events.

mod tables;

use std::io::Write;

pub(super) use self::tables::{COMPLETE, state};
use super::advice::Symptoms;
use super::analysis::efficiency::{Efficiency, FACTORS};
use super::analysis::facts::Facts;
use super::analysis::lost_time::outside_handlers_text;
use super::analysis::resizes;
use super::lb::answer;
use super::open::{Input, warn};
use super::page::{Format, Page};
use super::{competing_processes, supersteps};
use crate::Error;

/// Options of the command.
#[derive(clap::Args)]
#[command(after_help = FACTORS)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// From the records alone, without reading events
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.input.open()?;
    let facts = match options.quick || trace.events() == 0 {
        true => Facts::of_records(&trace),
        false => Facts::read(&trace, &mut []),
    };
    warn(&facts.problems);
    Ok(page(&facts).write(options.format, out)?)
}

fn page(facts: &Facts<'_>) -> Page {
    let Facts { trace, spent, lost_time: taken, census, .. } = facts;
    let census = census.as_ref();
    let mut page = Page::new("summary", trace);
    page.says.push(tables::headline(trace));
    page.says.extend(Symptoms::of(facts).advice().says.into_iter().map(|line| format!("=> {line}")));
    page.says.push(format!("balancing: {}", answer(trace, &facts.outcomes)));
    page.says.extend(resizes::sentence(trace.run.ranks, trace.elapsed_ns(), &facts.outcomes));
    page.says.extend(competing_processes::sentences(trace));
    page.tables.push(tables::run(trace));
    page.tables.push(tables::time(trace, spent, taken).csv());
    page.tables.extend(facts.efficiency.iter().map(Efficiency::table));
    if !trace.steps.is_empty() {
        page.tables.push(supersteps::workers_table(trace));
        page.notes.extend(supersteps::dropped(trace));
        if facts.efficiency.is_some() {
            page.notes.push(supersteps::whole_run_text("load balance", "communication"));
        }
        page.notes.extend(supersteps::for_vcpus(trace));
    }
    page.tables.push(tables::traffic(trace, spent, census));
    if let Some(census) = census {
        page.tables.push(tables::events(census));
    }
    page.notes.extend(census.and_then(|census| tables::of_events(trace, census)).map(str::to_owned));
    page.notes.push(spent.note());
    page.notes.extend(outside_handlers_text(spent, taken));
    match census {
        Some(_) if trace.run.arrows > 1 => page.notes.push(format!(
            "one in {} sends is recorded: messages and bytes are those times {}",
            trace.run.arrows, trace.run.arrows
        )),
        Some(_) => {}
        None if trace.events() == 0 => page.notes.push("no events were recorded".into()),
        None => page.notes.push("events were not read: figures that need them are left out".into()),
    }
    if !["", "all"].contains(&trace.run.filter.as_str()) && census.is_some() {
        page.notes.push(format!(
            "figures from events lack what the filter of the run left out: `{}`",
            trace.run.filter
        ));
    }
    page
}
