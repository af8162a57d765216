//! Implements `caribou trace`, which shows what happened in a run recorded with `CARIBOU_TRACE`.
//!
//! [`analysis`] reads events and computes figures. Each subcommand is a file with its `Options` and a `run`. Most build
//! a [`Page`](page::Page), which prints the same figures as text, JSON or CSV.

mod advice;
pub(crate) mod analysis;
pub(crate) mod check;
mod chunks;
mod comm;
mod competing_processes;
mod critical_path;
mod diff;
mod export;
mod generate;
mod histogram;
pub(crate) mod lb;
pub(crate) mod open;
mod outliers;
pub(crate) mod page;
mod palette;
mod profile;
mod report;
mod select;
mod summary;
mod supersteps;
mod timeline;
mod utilisation;

use std::io::Write;

use clap::Subcommand;

use crate::Error;

/// The command.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Summary of the run: where its time went, and what to look at first.
    #[command(visible_alias = "info")]
    Summary(summary::Options),
    /// Time by message kind and state, of all ranks or of each.
    Profile(profile::Options),
    /// Activities of each worker between two moments.
    Timeline(timeline::Options),
    /// Use of each rank over time, by activity.
    Utilisation(utilisation::Options),
    /// Loads, moves and costs of each sync, and whether it helped.
    Lb(lb::Options),
    /// Heavy and unsteady chunks, and those that move often.
    Chunks(chunks::Options),
    /// Lengths of handlers, messages and idle times.
    Histogram(histogram::Options),
    /// Ranks, chunks and handlers that are unlike the others.
    Outliers(outliers::Options),
    /// Messages and bytes between ranks, or between chunks.
    Comm(comm::Options),
    /// The chain of work and messages that ends last, which limits the run.
    CriticalPath(critical_path::Options),
    /// Changes from one run to another.
    Diff(diff::Options),
    /// Verify every byte of a trace, and list each fault with its place.
    Check(check::Options),
    /// Everything in one HTML file.
    Report(report::Options),
    /// Write the trace in the format of another tool.
    Export(export::Options),
    /// Generate a synthetic trace, to try these commands.
    Generate(generate::Options),
}

pub(crate) fn run(command: &Command, out: &mut dyn Write) -> Result<(), Error> {
    match command {
        Command::Summary(options) => summary::run(options, out),
        Command::Profile(options) => profile::run(options, out),
        Command::Timeline(options) => timeline::run(options, out),
        Command::Utilisation(options) => utilisation::run(options, out),
        Command::Lb(options) => lb::run(options, out),
        Command::Chunks(options) => chunks::run(options, out),
        Command::Histogram(options) => histogram::run(options, out),
        Command::Outliers(options) => outliers::run(options, out),
        Command::Comm(options) => comm::run(options, out),
        Command::CriticalPath(options) => critical_path::run(options, out),
        Command::Diff(options) => diff::run(options, out),
        Command::Check(options) => check::run(options, out),
        Command::Report(options) => report::run(options, out),
        Command::Export(options) => export::run(options, out),
        Command::Generate(options) => generate::run(options, out),
    }
}

#[cfg(test)]
mod tests;
