//! Implements `caribou simulate file`: runs what a file in TOML describes, once for each combination of swept fields.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use presentation::format::plural;
use virtual_cluster::{ArrayScenario, Scenario, StepScenario};

use super::combinations::{self, Sweep};
use super::compare::{Comparable, Policy, all_complete, compare_each, write_tables};
use super::description::program::Shape;
use super::description::{Description, Source, array, pool, steps, wrong};
use super::files::Files;
use crate::Error;
use crate::toml_file::{Document, Place, option_value};

/// A file that describes everything.
const EXAMPLE: &str = include_str!("file/example.toml");

/// A file with a cluster, a program and policies.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Options {
    /// The file, in TOML. docs/scenarios.md has all fields; --example prints a file.
    #[arg(value_name = "FILE.toml", required_unless_present = "example")]
    file: Option<PathBuf>,
    /// Set a field of the file, as in program.chunks=512 or hosts[0].speed=2000. May be repeated.
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Read the file and build everything, but run nothing.
    #[arg(long, conflicts_with_all = ["json", "csv", "plot"])]
    check: bool,
    /// Print a file with comments, to begin with.
    #[arg(long, exclusive = true)]
    example: bool,
    #[command(flatten)]
    files: Files,
}

const AFTER_HELP: &str = "\
Exit code: 0 done, 1 a run is incomplete or an output is lost, as on a full disk, 2 bad options or a file that
cannot be read or written.

A file to begin with, and its simulation
  caribou simulate file --example > cloud.toml
  caribou simulate file cloud.toml
The same with another number of chunks, or with several
  caribou simulate file cloud.toml --set program.chunks=512
  caribou simulate file cloud.toml --set 'sweep.program.chunks=[64, 128, 256, 512]' --csv chunks.csv --plot chunks.svg";

/// Splits `FIELD=VALUE`.
fn assignment(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(field, _)| !field.trim().is_empty());
    let (field, value) = split.ok_or("expected FIELD=VALUE, as in program.chunks=512")?;
    Ok((field.trim().to_owned(), value.trim().to_owned()))
}

/// Runs the requested simulations and writes their results.
pub(super) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let Some(file) = options.file.as_deref().filter(|_| !options.example) else {
        return Ok(out.write_all(EXAMPLE.as_bytes())?);
    };
    let mut document = Document::open(file)?;
    for (field, value) in &options.set {
        let place = Place::Option(format!("--set {field}={value}").into());
        let set = document.set(field, option_value(value, &place));
        set.map_err(|what| Error::Usage(format!("--set {field}={value}: {what}")))?;
    }
    options.files.check()?;
    let folder = file.parent().map_or_else(PathBuf::new, PathBuf::from);
    let variants = variants(document, &folder)?;
    match shape(&variants)? {
        Shape::Array => options.simulate::<ArrayScenario>(&variants, array::scenario, out),
        Shape::Pool => options.simulate::<Scenario>(&variants, pool::scenario, out),
        Shape::Steps => options.simulate::<StepScenario>(&variants, steps::scenario, out),
    }
}

/// A file with one value of each swept field.
struct Variant {
    document: Document,
    description: Description,
    swept: Vec<(String, String)>,
}

impl Source for Document {
    fn place(&self, field: &str) -> String {
        format!("{}: ", Document::place(self, field))
    }

    fn line(&self, field: &str, value: &str, what: &str) -> String {
        let place = Document::place(self, field);
        match what.starts_with("expected") && !value.is_empty() {
            true => format!("{place}: {value}, {what}"),
            false => format!("{place}: {what}"),
        }
    }

    fn words(&self) -> [&'static str; 2] {
        ["host", "vCPU"]
    }
}

/// All combinations of swept fields.
fn variants(document: Document, folder: &std::path::Path) -> Result<Vec<Variant>, Error> {
    let sweep = Sweep::of(&document)?;
    let mut variants = Vec::new();
    for combination in sweep.combinations() {
        let mut document = document.clone();
        for (field, value) in &combination {
            let set = document.set(field, (*value).clone());
            set.map_err(|what| document.wrong_at(&value.place, field, &what))?;
        }
        let mut description: Description = document.read()?;
        folder.clone_into(&mut description.folder);
        description.name.get_or_insert_with(|| {
            let path = PathBuf::from(document.name());
            path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
        });
        let swept = combination.iter().map(|(field, value)| ((*field).to_owned(), value.value.words()));
        variants.push(Variant { swept: swept.collect(), document, description });
    }
    Ok(variants)
}

/// The shape of the program in all variants.
fn shape(variants: &[Variant]) -> Result<Shape, Error> {
    let mut shapes = Vec::new();
    for Variant { document, description, .. } in variants {
        let shape = description.program.generator(document)?.shape();
        description.check_shape(shape, document)?;
        shapes.push(shape);
    }
    let first = shapes.first().copied().unwrap_or(Shape::Array);
    match shapes.iter().position(|&shape| shape != first) {
        None => Ok(first),
        Some(place) => {
            let what = "other policies than in the first combination balance it, expected one shape of program";
            Err(wrong(&variants[place].document, "program.generator", "", what))
        }
    }
}

impl Options {
    /// Runs all variants and writes their results.
    fn simulate<S: Comparable>(
        &self,
        variants: &[Variant],
        build: fn(&Description, &dyn Source) -> Result<S, Error>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut scenarios = Vec::new();
        for Variant { document, description, .. } in variants {
            let policies = policies::<S>(description, document)?;
            scenarios.push((build(description, document)?, policies));
        }
        let runs: usize = scenarios.iter().map(|(_, policies)| policies.len()).sum();
        if self.check {
            let (file, ran) = (variants[0].document.name(), plural(runs, "run"));
            return Ok(writeln!(out, "{file}: {} of the file, {ran}", plural(variants.len(), "variant"))?);
        }
        let is_swept = variants.iter().any(|variant| !variant.swept.is_empty());
        let comparisons = if let ([(scenario, policies)], false) = (&scenarios[..], is_swept) {
            write_tables(std::slice::from_ref(scenario), policies, out)?
        } else {
            let all: Vec<_> = scenarios.iter().map(|(scenario, policies)| (scenario, &policies[..])).collect();
            let mut comparisons = compare_each(&all);
            for (comparison, variant) in comparisons.iter_mut().zip(variants) {
                comparison.swept.clone_from(&variant.swept);
            }
            combinations::write_table(&comparisons, out)?;
            comparisons
        };
        self.files.write(&comparisons)?;
        all_complete(&comparisons)
    }
}

/// The policies of a variant.
fn policies<S: Comparable>(
    description: &Description,
    document: &Document,
) -> Result<Vec<Policy<S::Policy>>, Error> {
    let list = description.balance.strategies.as_deref().or(S::COMPARED);
    Policy::list(S::table(), list).map_err(|error| {
        let mut what = String::new();
        let _ = match &error {
            Error::Policy { spec, source } => write!(what, "{spec:?}: {source}"),
            error => write!(what, "{}", error.to_string().trim_start_matches("--compare ")),
        };
        wrong(document, "balance.strategies", "", &what)
    })
}

#[cfg(test)]
mod tests;
