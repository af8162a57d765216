//! Implements `caribou checkpoint`: lists the checkpoints in a directory, inspects them and verifies checksums.

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use caribou::checkpoint::{Saved, is_unfinished, list};
use presentation::Table;
use presentation::format::{bytes, duration, plural};

use crate::Error;

/// What to do with the checkpoints of a directory.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List the complete checkpoints of a directory, newest first.
    List(Directory),
    /// Print the program of a checkpoint, and the ranks or workers that wrote it.
    Inspect(Directory),
    /// Read checkpoints, and compare lengths and checksums; exit code 1 if one is damaged.
    Verify(Directory),
}

/// The checkpoints that are meant.
#[derive(clap::Args)]
pub(crate) struct Directory {
    /// The directory of CARIBOU_CHECKPOINT, or one checkpoint of it, such as checkpoints/000007
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(command: &Command, out: &mut dyn Write) -> Result<(), Error> {
    let (Command::List(Directory { dir })
    | Command::Inspect(Directory { dir })
    | Command::Verify(Directory { dir })) = command;
    let all = checkpoints(dir)?;
    match command {
        Command::List(_) => {
            write!(out, "{}", table(&all))?;
            if is_unfinished(dir) {
                writeln!(out, "The run has no result yet: it is still running, or ended early.")?;
            }
        }
        Command::Inspect(_) => inspect(&all[0], out)?,
        Command::Verify(_) => verify(&all, out)?,
    }
    Ok(())
}

/// Returns the complete checkpoints in `dir`, newest first, or `dir` itself if it is one. There is at least one.
fn checkpoints(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    if dir.join("manifest").exists() {
        return Ok(vec![dir.to_owned()]);
    }
    let all = list(dir);
    if all.is_empty() {
        let what = match dir.metadata() {
            Ok(metadata) if !metadata.is_dir() => "is a file".into(),
            _ => match fs::read_dir(dir) {
                Ok(_) => "has no complete checkpoint".into(),
                Err(why) => format!("cannot be read ({why})"),
            },
        };
        let dir = dir.display();
        return Err(Error::Usage(format!(
            "{dir} {what}, expected a directory that CARIBOU_CHECKPOINT has named, or one of its checkpoints"
        )));
    }
    Ok(all)
}

/// One row per checkpoint.
fn table(all: &[PathBuf]) -> Table {
    let mut table = Table::new(["checkpoint", "files", "size", "time of the run"])
        .text_columns([true, false, false, false]);
    for path in all {
        let name = path.display().to_string();
        table.row(match Saved::open(path) {
            Ok(saved) => [name, saved.files().to_string(), bytes(saved.bytes()), time(&saved)],
            Err(_) => [name, "-".into(), "-".into(), "damaged: its manifest cannot be read".into()],
        });
    }
    table
}

fn time(saved: &Saved) -> String {
    duration(saved.elapsed().as_nanos() as f64)
}

fn inspect(path: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let saved = Saved::open(path).map_err(Error::Failed)?;
    let (writers, size, time) = (saved.writers(), bytes(saved.bytes()), time(&saved));
    writeln!(out, "{}: {size} in the files of {writers}, {time} after its run began", path.display())?;
    for line in saved.content() {
        writeln!(out, "{line}")?;
    }
    for (name, value) in saved.settings() {
        writeln!(out, "setting `{name}`: {value}")?;
    }
    Ok(())
}

fn verify(all: &[PathBuf], out: &mut dyn Write) -> Result<(), Error> {
    let mut damaged = 0;
    for path in all {
        let found = Saved::open(path).and_then(|saved| saved.verify());
        let said: &dyn Display = match &found {
            Ok(()) => &"whole",
            Err(why) => why,
        };
        writeln!(out, "{}: {said}", path.display())?;
        damaged += u32::from(found.is_err());
    }
    match damaged {
        0 => Ok(()),
        _ => Err(Error::Failed(format!("{damaged} of {} damaged", plural(all.len(), "checkpoint")))),
    }
}
