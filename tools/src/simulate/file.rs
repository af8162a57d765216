//! Implements `caribou simulate file`: runs what a file in TOML describes, once for each combination of swept fields.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use lb_strategies::Strategy;
use presentation::format::plural;
use virtual_cluster::{ArrayScenario, Scenario, StepScenario};

use super::array::tell_without_messages;
use super::combinations::{self, Sweep};
use super::compare::{Comparable, Policy, all_complete, compare_each, in_parallel, write_tables};
use super::description::program::{Generator, Shape};
use super::description::{Description, Source, array, pool, steps, wrong};
use super::files;
use super::recording::{self, EVENTS_MOST};
use crate::toml_file::{Document, Node, Place, Value, one_line, option_value};
use crate::{Error, input, output, room};

/// The field whose sweep changes the work of all chunks.
const CHUNKS: &str = "program.chunks";
/// Longest name of a directory, bytes.
const NAME_MOST: usize = 200;

/// A file that describes everything.
const EXAMPLE: &str = include_str!("file/example.toml");

/// A file with a cluster, a program and policies.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(mut_arg("json", |json| json.help(files::JSON_HELP)))]
#[command(mut_arg("csv", |csv| csv.help(files::CSV_HELP)))]
#[command(mut_arg("plot", |plot| plot.help(files::PLOT_HELP)))]
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
    /// Write what each run of an array did as a trace, for `caribou trace`: into this directory, or with several runs
    /// into one for each below it.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    files: output::Files,
}

const AFTER_HELP: &str = "\
Exit code: 0 done, 1 a run is incomplete or an output is lost, as on a full disk, 2 bad options or a file that
cannot be read or written.

A file to begin with, and its simulation
  caribou simulate file --example > cloud.toml
  caribou simulate file cloud.toml
The same with another number of chunks, or with several
  caribou simulate file cloud.toml --set program.chunks=512
  caribou simulate file cloud.toml --set 'sweep.program.chunks=[64, 128, 256, 512]' --csv chunks.csv --plot chunks.svg
Where the time goes under one strategy
  caribou simulate file cloud.toml --set balance.strategies=refine --trace traces
  caribou trace timeline traces";

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
        let value_of = option_value(value, &place);
        // A swept field is one name, as in `sweep."hosts[0].count"`.
        let set = match field.strip_prefix("sweep.") {
            Some(swept) => document.set_in("sweep", swept.trim_matches('"'), value_of),
            None => document.set(field, value_of),
        };
        set.map_err(|what| Error::Usage(format!("--set {field}={value}: {what}")))?;
    }
    let sweep = Sweep::of(&document)?;
    if let Some((field, value)) = options.set.iter().find(|(field, _)| sweep.has(field)) {
        return Err(Error::Usage(format!(
            "--set {field}={value}: the file sweeps this field, expected --set 'sweep.{field}=[{value}]'"
        )));
    }
    options.files.check()?;
    let folder = file.parent().map_or_else(PathBuf::new, PathBuf::from);
    let variants = variants(&document, &folder)?;
    match (shape(&variants)?, &options.trace) {
        (Shape::Array, trace) => {
            let scenarios = build::<ArrayScenario>(&variants, array::scenario)?;
            scenarios.iter().for_each(|(_, policies)| tell_without_messages(policies));
            tell_of_total_work(&variants);
            let traces = trace.as_deref().map(|dir| traces(&variants, &scenarios, dir)).transpose()?;
            options.simulate(&variants, &scenarios, out)?;
            traces.map_or(Ok(()), |traces| record_all(&traces, out))
        }
        (_, Some(_)) => {
            let what = "only arrays write traces, expected the generator of an array with --trace";
            Err(wrong(&variants[0].document, "program.generator", &"", what))
        }
        (Shape::Pool, None) => {
            options.simulate(&variants, &build::<Scenario>(&variants, pool::scenario)?, out)
        }
        (Shape::Steps, None) => {
            options.simulate(&variants, &build::<StepScenario>(&variants, steps::scenario)?, out)
        }
    }
}

/// Prints a line about a sweep over the number of chunks that also sweeps the work of all.
fn tell_of_total_work(variants: &[Variant]) {
    let Some(Variant { document, description, swept }) = variants.first() else { return };
    if description.program.work.is_none() && swept.iter().any(|(field, _)| field == CHUNKS) {
        let place = document.wrong(
            &format!("sweep.{CHUNKS}"),
            "each chunk has the same work, so more chunks have more in all; `program.work` sets the work of all",
        );
        input::note(&place.to_string());
    }
}

/// Reads the text of a file, and returns the number of combinations that it describes. Files that it names are not read.
pub(super) fn read(text: &str) -> Result<usize, Error> {
    let variants = variants(&Document::parse("scenario", text)?, Path::new(""))?;
    shape(&variants)?;
    Ok(variants.len())
}

/// A scenario and its policies.
type Planned<S> = (S, Vec<Policy<<S as Comparable>::Policy>>);

/// Builds the scenarios of all variants.
fn build<S: Comparable>(
    variants: &[Variant],
    scenario: fn(&Description, &dyn Source) -> Result<S, Error>,
) -> Result<Vec<Planned<S>>, Error> {
    let one = |Variant { document, description, .. }: &Variant| {
        let policies = policies::<S>(description, document)?;
        Ok((scenario(description, document)?, policies))
    };
    variants.iter().map(one).collect()
}

/// Refuses runs with too many events for a trace.
fn check_events(scenarios: &[Planned<ArrayScenario>]) -> Result<(), Error> {
    let most = scenarios.iter().map(|(scenario, _)| recording::events(scenario)).fold(0.0, f64::max);
    if most <= EVENTS_MOST {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "--trace: about {most:.0e} events, expected {EVENTS_MOST:e} at most: fewer iterations, or chunks"
    )))
}

/// A run of which a trace is written, and its directory.
struct Traced<'s> {
    scenario: &'s ArrayScenario,
    policy: &'s Policy<dyn Strategy>,
    dir: PathBuf,
}

/// The traces to write, of all runs. Creates their directories, so that a fault is known before the simulation.
fn traces<'s>(
    variants: &[Variant],
    scenarios: &'s [Planned<ArrayScenario>],
    dir: &Path,
) -> Result<Vec<Traced<'s>>, Error> {
    check_events(scenarios)?;
    let runs: Vec<_> = variants
        .iter()
        .zip(scenarios)
        .flat_map(|(Variant { swept, .. }, (scenario, policies))| {
            policies.iter().map(move |policy| (trace_name(swept, &policy.spec), scenario, policy))
        })
        .collect();
    let different = runs.iter().map(|(name, ..)| name).collect::<BTreeSet<_>>().len();
    let are_clear = different == runs.len() && runs.iter().all(|(name, ..)| name.len() <= NAME_MOST);
    let mut traces = Vec::new();
    for (number, (name, scenario, policy)) in runs.iter().enumerate() {
        // Names that are too long, or that differ in other letters only, have the number of the row.
        let begin: String = name.chars().take(NAME_MOST / 4).collect();
        let name = if are_clear { name.clone() } else { format!("{}+{begin}", number + 1) };
        let dir = if runs.len() == 1 { dir.to_owned() } else { dir.join(name) };
        output::check_dir(&dir)?;
        if holds_trace(&dir) {
            let what = format!("--trace: {} has a trace already, expected another directory", dir.display());
            return Err(Error::Usage(what));
        }
        traces.push(Traced { scenario, policy, dir });
    }
    Ok(traces)
}

/// True if a directory has a file of a trace. One that cannot be read has none.
fn holds_trace(dir: &Path) -> bool {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().any(|name| name.to_string_lossy().starts_with("rank-"))
}

/// Writes a trace of each run.
fn record_all(traces: &[Traced<'_>], out: &mut dyn Write) -> Result<(), Error> {
    let written = in_parallel(&plural(traces.len(), "trace"), traces.len(), |index| {
        let Traced { scenario, policy, dir } = &traces[index];
        recording::record(scenario, policy, dir)
    });
    for (written, Traced { dir, .. }) in written.into_iter().zip(traces) {
        written.map_err(|source| Error::Unwritable { file: dir.clone(), source })?;
        writeln!(out, "{}: a trace, for caribou trace summary and others", dir.display())?;
    }
    Ok(())
}

/// The name of the directory of a run, as its row in the table begins: the values of swept fields, and the policy.
fn trace_name(swept: &[(String, String)], spec: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-=.".contains(letter);
    let plain = |text: &str| -> String {
        text.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect()
    };
    let values = swept.iter().map(|(field, value)| plain(&format!("{field}={value}")));
    values.chain([plain(spec)]).collect::<Vec<_>>().join("+")
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
        one_line(&match what.starts_with("expected") && !value.is_empty() {
            true => format!("{place}: {value}, {what}"),
            false => format!("{place}: {what}"),
        })
    }

    fn words(&self) -> [&'static str; 2] {
        ["host", "vCPU"]
    }
}

/// All combinations of swept fields.
fn variants(document: &Document, folder: &Path) -> Result<Vec<Variant>, Error> {
    let sweep = Sweep::of(document)?;
    let mut variants = Vec::new();
    for combination in sweep.combinations() {
        let mut document = document.clone();
        for (field, value) in &combination {
            let set = document.set(field, (*value).clone());
            set.map_err(|what| document.wrong_at(&value.place, field, &what))?;
        }
        // `costs = "calibration.toml"` is short for `costs.calibration`.
        if let Some(costs @ Node { value: Value::Text(_), .. }) = document.field("costs").cloned() {
            let costs = Value::Fields([("calibration".to_owned(), costs)].into());
            let place = Place::Line(1);
            // A name of one step can always be set.
            let _ = document.set("costs", Node { place, value: costs });
        } else if let Some(costs) =
            document.field("costs").filter(|costs| !matches!(costs.value, Value::Fields(_)))
        {
            let what = format!("{}, expected a table, or a file of caribou calibrate", costs.value.found());
            return Err(document.wrong("costs", &what));
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
        let generator = description.program.generator(document)?;
        if description.hosts.is_empty() && generator != Generator::Recorded {
            let what = "there are none, expected [[hosts]] with count, vcpus and speed";
            return Err(wrong(document, "hosts", &"", what));
        }
        let shape = generator.shape();
        description.check_shape(shape, document)?;
        shapes.push(shape);
    }
    let first = shapes.first().copied().unwrap_or(Shape::Array);
    match shapes.iter().position(|&shape| shape != first) {
        None => Ok(first),
        Some(place) => {
            let what =
                "other policies than in the first combination balance it, expected one shape of program";
            Err(wrong(&variants[place].document, "program.generator", &"", what))
        }
    }
}

impl Options {
    /// True if results also go to files.
    pub(super) fn has_files(&self) -> bool {
        self.files.any() || self.trace.is_some()
    }

    /// Runs all variants and writes their results.
    fn simulate<S: Comparable>(
        &self,
        variants: &[Variant],
        scenarios: &[Planned<S>],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let kept =
            |(scenario, policies): &Planned<S>| scenario.kept_bytes().saturating_mul(policies.len() as u64);
        let needed = scenarios.iter().map(kept).fold(0, u64::saturating_add);
        room::check("the figures of all runs", needed, caribou::machine::available_memory())?;
        let runs: usize = scenarios.iter().map(|(_, policies)| policies.len()).sum();
        if self.check {
            let (file, ran) = (variants[0].document.name(), plural(runs, "run"));
            return Ok(writeln!(out, "{file}: {} of the file, {ran}", plural(variants.len(), "variant"))?);
        }
        let is_swept = variants.iter().any(|variant| !variant.swept.is_empty());
        let comparisons = if let ([(scenario, policies)], false) = (scenarios, is_swept) {
            write_tables(std::slice::from_ref(scenario), policies, out)?
        } else {
            let all: Vec<_> =
                scenarios.iter().map(|(scenario, policies)| (scenario, &policies[..])).collect();
            let mut comparisons = compare_each(&all);
            for (comparison, variant) in comparisons.iter_mut().zip(variants) {
                comparison.swept.clone_from(&variant.swept);
            }
            combinations::write_table(&comparisons, out)?;
            comparisons
        };
        files::write(&self.files, &comparisons)?;
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
        wrong(document, "balance.strategies", &"", &what)
    })
}

#[cfg(test)]
mod tests;
