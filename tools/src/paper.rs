//! Implements `caribou paper`: repeats the experiments of the papers that the policies come from, in virtual time, and
//! writes a page per paper with its figures, the paper's numbers beside those of this run, and verdicts.
//!
//! | module | purpose |
//! |---|---|
//! | `page` | a page before it is text: sections, claims with verdicts, tables, pictures |
//! | `markdown`, `picture` | write the page, draw its pictures |
//! | `caa`, `cloud_refine`, `dlb_jr`, `jacobi_factor`, `ruper_lb` | one paper each: its experiments, claims and conditions |
//!
//! A new paper is a module with a function from a [`Context`] to a [`Page`](page::Page), and a line in [`PAPERS`].

mod caa;
mod cloud_refine;
mod dlb_jr;
mod jacobi_factor;
mod markdown;
mod page;
mod picture;
mod ruper_lb;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lb_strategies::Choice;
use presentation::format::decimal;
use rustix::time::{ClockId, clock_gettime};
use virtual_cluster::Series;

use self::page::Page;
use crate::{Error, output, simulate};

/// Papers, and where their pages go.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Papers to repeat, or `all`; --list lists them.
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,
    /// Write NAME.md with its pictures, and an index README.md, into this folder; if not given, print the page without
    /// pictures.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also repeat dlb-jr on job times of measured hosts: files as `simulate steps --hosts-trace` takes them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    hosts_trace: Vec<PathBuf>,
    /// List the papers.
    #[arg(long, exclusive = true)]
    list: bool,
}

const AFTER_HELP: &str = "\
A verdict follows from conditions on the numbers of the run: reproduced if all hold, in part, or different if none does.
All runs are in virtual time, so a repetition gives the same page.
Exit code: 0 done, 1 an output is lost, as on a full disk, 2 bad options or a file that cannot be used.

One paper, on the terminal
  caribou paper jacobi-factor
The pages of this repository
  caribou paper all --out docs/papers
Balancing and copies also on the hosts of a trace
  caribou paper dlb-jr --hosts-trace 20110303.csv --out pages";

/// A paper.
struct Paper {
    name: &'static str,
    /// The paper in one line.
    about: &'static str,
    page: fn(&Context) -> Page,
}

/// All papers, in the order of the index.
const PAPERS: &[Paper] = &[
    Paper {
        name: "cloud-refine",
        about: "arrays of chunks: refinement with background load and unequal vCPUs, every 20 iterations",
        page: cloud_refine::page,
    },
    Paper {
        name: "ruper-lb",
        about: "pools balanced by reports of speed, on two levels",
        page: ruper_lb::page,
    },
    Paper {
        name: "caa",
        about: "pools of whole tasks: equal shares, then a choice between shares and a master",
        page: caa::page,
    },
    Paper {
        name: "dlb-jr",
        about: "supersteps: balancing, copies of jobs, and the choice between both",
        page: dlb_jr::page,
    },
    Paper {
        name: "jacobi-factor",
        about: "supersteps: shares by load factors, once after the first step",
        page: jacobi_factor::page,
    },
];

/// What a paper needs to know about its run.
#[derive(Default)]
pub(crate) struct Context {
    /// Share of the vCPU that is left on measured hosts, over time; empty without a trace.
    hosts: Vec<Series>,
    /// Whether repetitions are reduced to what shows the verdicts, for tests.
    quick: bool,
}

impl Context {
    /// A number of repetitions: `full` for pages, `quick` for tests.
    fn repetitions(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// Calls `run` for `0..runs` in parallel, and returns the results in order. A progress bar says `what` is run.
    fn each<R: Send>(&self, what: &str, runs: usize, run: impl Fn(usize) -> R + Sync) -> Vec<R> {
        simulate::in_parallel(what, runs, run)
    }
}

/// Numbers with so many decimals, in a list.
fn text(values: impl IntoIterator<Item = f64>, decimals: usize) -> String {
    values.into_iter().map(|value| decimal(value, decimals)).collect::<Vec<_>>().join(", ")
}

/// Repeats the papers and writes their pages.
pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    if options.list {
        for paper in PAPERS {
            writeln!(out, "{:<15}{}", paper.name, paper.about)?;
        }
        return Ok(());
    }
    let papers = chosen(&options.names)?;
    let out = &mut output::UntilClosed::new(out, options.out.is_some());
    let context = Context { hosts: simulate::measured_hosts(&options.hosts_trace)?, quick: false };
    if let Some(folder) = &options.out {
        fs::create_dir_all(folder).map_err(|source| Error::Unwritable { file: folder.clone(), source })?;
        // Before minutes of simulation.
        papers.iter().try_for_each(|paper| output::check(&folder.join(format!("{}.md", paper.name))))?;
    }
    // Without folders, so that the page does not depend on where the traces are.
    let name = |file: &PathBuf| format!(" {}", file.file_name().unwrap_or_default().to_string_lossy());
    let traces: String = options.hosts_trace.iter().map(name).collect();
    for paper in papers {
        let began_s = cpu_s();
        let page = (paper.page)(&context);
        let place = markdown::Place {
            name: paper.name,
            pictures: options.out.is_some(),
            options: if traces.is_empty() { String::new() } else { format!(" --hosts-trace{traces}") },
            duration: rounded(cpu_s() - began_s),
        };
        let text = markdown::page(&page, &place);
        match &options.out {
            None => out.write_all(text.as_bytes())?,
            Some(folder) => {
                write_page(&page, &text, paper.name, folder)?;
                writeln!(out, "{}: {}", folder.join(paper.name).display(), markdown::result(&page))?;
                out.flush()?;
            }
        }
    }
    options.out.as_deref().map_or(Ok(()), write_index)
}

/// The papers with these names, each once, in the order of the names.
fn chosen(names: &[String]) -> Result<Vec<&'static Paper>, Error> {
    let mut papers: Vec<&Paper> = Vec::new();
    for name in names {
        let found: Vec<&Paper> = PAPERS.iter().filter(|paper| name == "all" || paper.name == name).collect();
        if found.is_empty() {
            let choice = Choice::new(name.as_str(), PAPERS.iter().map(|paper| paper.name));
            return Err(Error::Usage(format!("unknown paper {choice}, or all")));
        }
        papers.extend(
            found
                .into_iter()
                .filter(|paper| !papers.iter().any(|had| had.name == paper.name))
                .collect::<Vec<_>>(),
        );
    }
    Ok(papers)
}

fn write_page(page: &Page, text: &str, name: &str, folder: &Path) -> Result<(), Error> {
    for picture in page.sections.iter().flat_map(|section| &section.pictures) {
        output::write(&folder.join(markdown::file(name, picture)), picture::svg(picture))?;
    }
    output::write(&folder.join(format!("{name}.md")), text)
}

/// Writes the index of all pages in the folder, with the results that the pages state.
fn write_index(folder: &Path) -> Result<(), Error> {
    let mut text = String::from(
        "# The papers, repeated\n\nThe policies of Caribou come from five papers. Each page repeats the experiments of one paper in \
         virtual time, with the\npolicies of production. It has the figures of the paper redrawn, the paper's numbers beside those of \
         the run, and a verdict for\neach statement of the paper. `caribou paper all --out docs/papers` writes the pages.\n\n\
         | paper | about | result |\n|---|---|---|\n",
    );
    for paper in PAPERS {
        let page = fs::read_to_string(folder.join(format!("{}.md", paper.name)));
        let result = page.ok().and_then(|page| {
            page.lines().find_map(|line| line.strip_prefix(markdown::RESULT)).map(str::to_owned)
        });
        let Some(result) = result else { continue };
        text += &format!("| [{0}]({0}.md) | {1} | {result} |\n", paper.name, paper.about);
    }
    output::write(&folder.join("README.md"), text)
}

/// CPU time of this process, s. Unlike the time on the wall, it hardly depends on what else the machine does.
fn cpu_s() -> u64 {
    clock_gettime(ClockId::ProcessCPUTime).tv_sec.max(0) as u64
}

/// A time in words, so coarse that it seldom differs between two runs.
fn rounded(seconds: u64) -> &'static str {
    let limits = [
        (5, "less than five seconds"),
        (20, "less than twenty seconds"),
        (120, "less than two minutes"),
        (360, "less than six minutes"),
        (1200, "less than twenty minutes"),
    ];
    let found = limits.iter().find(|(limit, _)| seconds < *limit);
    found.map_or("less than an hour", |(_, words)| words)
}

#[cfg(test)]
mod tests;
