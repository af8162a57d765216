//! Implements `caribou trace export`: converts a trace to the format of another tool, after the run. What a format
//! cannot represent is left out. The command prints the numbers of spans, points and arrows left out.

mod arrows;
mod chrome;
mod counters;
mod lbdata;
mod listing;
mod names;
mod nested_slices;
mod perfetto;
mod phases;
mod projections;
mod rows;
mod show;
mod snapshot;
mod viewer;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use caribou::trace::Shape;
use clap::ValueEnum;
use trace_reader::Trace;

use self::chrome::{Chrome, is_too_large};
use self::names::Names;
use self::nested_slices::NestedSlices;
use self::perfetto::Perfetto;
use self::rows::Rows;
use self::show::show;
use self::viewer::Flows;
use super::analysis::merge::Merge;
use super::open::{Input, warn};
use super::page::bytes;
use super::select::Selection;
use crate::Error;
use crate::output::Output;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// The tool to write for
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// The file to write, or the directory to make
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
    /// Messages that get an arrow, in Perfetto and Chrome JSON; `waits` by default
    #[arg(long, value_enum)]
    flows: Option<Flows>,
    /// The phase of a snapshot; the last one by default
    #[arg(long, value_name = "N")]
    phase: Option<u64>,
    #[command(flatten)]
    selection: Selection,
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A directory for Projections, the viewer of Charm++; a row a worker, times in us
    Projections,
    /// A file for ui.perfetto.dev, exact to the ns, of any size
    Perfetto,
    /// A JSON file for chrome://tracing and the like, up to 100 MB
    Chrome,
    /// A directory of LB data for LBAF and vt-tv: what every chunk cost and sent, phase by phase
    Lbdata,
    /// A snapshot of one phase, for caribou balance
    Snapshot,
    /// Every event as a line for people
    Text,
    /// Every event as a line of comma-separated values
    Csv,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.input.open()?;
    options.selection.check(&trace)?;
    options.check()?;
    options.check_shape(&trace)?;
    let (selection, target) = (&options.selection, options.out.as_path());
    match options.to {
        Format::Projections => whole_or_none(target, || projections::export(&trace, selection, target, out)),
        Format::Lbdata => whole_or_none(target, || lbdata::export(&trace, selection, target, out)),
        Format::Snapshot => snapshot::export(&trace, options.phase, target, out),
        Format::Text | Format::Csv => listing(&trace, options, out),
        Format::Perfetto | Format::Chrome => timeline(&trace, options, out),
    }
}

impl Options {
    /// Refuses options that the format ignores, so that nothing requested is left out silently.
    fn check(&self) -> Result<(), Error> {
        let viewer = matches!(self.to, Format::Perfetto | Format::Chrome);
        let snapshot = self.to == Format::Snapshot;
        let wrong = match self {
            _ if self.flows.is_some() && !viewer => "--flows is for --to perfetto and chrome",
            _ if self.phase.is_some() && !snapshot => "--phase is for --to snapshot",
            _ if self.selection.is_part() && snapshot => {
                "a snapshot is of all ranks at one sync: choose it with --phase, not with --time or --rank"
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(wrong.into()))
    }
}

impl Options {
    /// Refuses programs other than arrays where the format needs phases and loads of chunks.
    fn check_shape(&self, trace: &Trace) -> Result<(), Error> {
        let what = match self.to {
            Format::Lbdata => "LB data",
            Format::Snapshot => "a snapshot",
            _ => return Ok(()),
        };
        let without = match trace.run.shape {
            Shape::Arrays => return Ok(()),
            Shape::Pools => "a pool has neither",
            Shape::Supersteps => "shares of supersteps have none of these",
        };
        Err(Error::Usage(format!("{what} is of chunks and syncs, and {without}")))
    }
}

fn listing(trace: &Trace, options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let path = &options.out;
    let unwritable = |source| Error::Unwritable { file: path.clone(), source };
    let mut file = BufWriter::new(Output::create(path)?);
    let as_csv = options.to == Format::Csv;
    let written = listing::export(trace, &options.selection, as_csv, &mut file);
    let size = written.and_then(|()| file.into_inner()?.persist()).map_err(unwritable)?;
    Ok(writeln!(out, "{}: {}", path.display(), bytes(size))?)
}

/// Writes one file for a viewer of timelines.
fn timeline(trace: &Trace, options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let path = &options.out;
    let rows = Rows::new(trace, &options.selection)?.rows;
    let (names, window) = (Names::new(trace), options.selection.window(trace));
    let flows = options.flows.unwrap_or(Flows::Waits);
    let file = Output::create(path)?;
    let write = || -> io::Result<(u64, u64)> {
        let mut file = BufWriter::new(file);
        let backwards = if options.to == Format::Perfetto {
            let mut viewer = Perfetto::new(trace, &names, &rows, &mut file)?;
            show(trace, &names, &rows, window, flows, &mut viewer)?
        } else {
            let mut viewer = Chrome::new(trace, &rows, &mut file)?;
            let backwards = show(trace, &names, &rows, window, flows, &mut viewer)?;
            viewer.finish()?;
            backwards
        };
        Ok((backwards, file.into_inner()?.persist()?))
    };
    let (backwards, size) = write().map_err(|source| match source {
        source if is_too_large(&source) => Error::Usage(format!(
            "{}: would be more than 100 MB of JSON, too much for viewers; take --to perfetto, or less with --time and \
             --rank",
            path.display()
        )),
        source => Error::Unwritable { file: path.clone(), source },
    })?;
    writeln!(out, "{}: {} rows, {}", path.display(), rows.len(), bytes(size))?;
    say_backwards(backwards, out)
}

/// Exports into an empty directory. If the export fails, removes its files.
fn whole_or_none(dir: &Path, export: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    fresh_directory(dir)?;
    export().inspect_err(|_| {
        // If the files cannot be removed, the error of the export is still reported.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    })
}

/// Creates a directory, or uses an empty one, because the tool would read files of another export together with these.
fn fresh_directory(dir: &Path) -> Result<(), Error> {
    let unwritable = |source| Error::Unwritable { file: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(unwritable)?;
    match fs::read_dir(dir).map_err(unwritable)?.next() {
        None => Ok(()),
        Some(_) => Err(Error::Usage(format!(
            "{}: is not empty, expected an empty directory or a new name",
            dir.display()
        ))),
    }
}

/// Prints on standard error which events could not be read or have no place.
fn warn_left_out(merged: &Merge<NestedSlices>) {
    warn(&merged.problems());
    let left_out = merged.left_out();
    if left_out > 0 {
        // If standard error is closed, the number is lost.
        let _ = writeln!(
            io::stderr(),
            "caribou: {left_out} spans and points are left out: they lie in no handler, or were too many"
        );
    }
}

fn say_backwards(backwards: u64, out: &mut dyn Write) -> Result<(), Error> {
    if backwards > 0 {
        writeln!(out, "{backwards} arrows are left out: the slice at their end began before they did")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
