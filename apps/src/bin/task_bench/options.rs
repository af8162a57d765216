//! The options of `task_bench`: Task Bench's, also with a single dash, and some of our own.

use std::ffi::OsString;
use std::path::PathBuf;

use caribou::config::Period;
use caribou::{Config, Launch};
use clap::Parser;
use presentation::count_parser;

use super::graph::Graph;
use harness::disturbance::{Disturbances, NeighbourSpec, QuotaSpec};
use harness::error::Error;
use harness::{launch, memory};

/// Executes graphs of tasks twice, and prints the time of the second execution.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "task_bench", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    graph: GraphOptions,
    /// Another graph at the same time, with the options that follow, up to the next `-and`
    #[arg(long = "and", value_name = "OPTIONS", value_parser = another, allow_hyphen_values = true)]
    others: Vec<Graph>,
    /// The strategy and its parameters; `help` lists them [default: CARIBOU_LB, then refine]
    #[arg(long, value_name = "NAME[,KEY=VALUE]", conflicts_with = "compare")]
    pub(crate) lb: Option<String>,
    /// Strategies to run one after the other, as in none,refine,tolerance=0.1
    #[arg(long, value_name = "LIST")]
    pub(crate) compare: Option<String>,
    /// First, execute the graphs with messages alone: no sync, no profile, nothing measured
    #[arg(long)]
    pub(crate) bare: bool,
    /// Last, execute the graphs with MPI alone, as a job of as many processes
    #[arg(long)]
    pub(crate) raw: bool,
    /// When to balance points: auto (while they run, when it is likely to pay), a TIME such as 100ms (while they run,
    /// measured once in that time), or a number of timesteps between two syncs (0 for never) [default:
    /// CARIBOU_LB_PERIOD, then auto]
    #[arg(long, value_name = "STEPS|auto|TIME", value_parser = str::parse::<Period>)]
    pub(crate) sync: Option<Period>,
    /// Ranks [default: CARIBOU_RANKS, then one per vCPU; under mpirun each process is one]
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=u32::MAX))]
    pub(crate) ranks: Option<u32>,
    /// Worker threads of each rank [default: CARIBOU_WORKERS, then 1; under mpirun one per core of the rank]
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=u32::MAX))]
    pub(crate) workers: Option<u32>,
    /// Run a busy process on the vCPU of that rank's first worker, using DUTY of it (0.5 or 50%); RANK:random:SEED:
    /// busy and quiet in turns, for 0.2 to 3 seconds each, at random by seed; repeatable
    #[arg(long, value_name = "RANK[:DUTY]", value_parser = NeighbourSpec::parse)]
    pub(crate) neighbour: Vec<NeighbourSpec>,
    /// Limit that rank's workers to PERCENT of their vCPUs, where control groups are writable; repeatable
    #[arg(long, value_name = "RANK:PERCENT", value_parser = QuotaSpec::parse)]
    pub(crate) quota: Vec<QuotaSpec>,
    /// Find the smallest grain at which half of the peak rate is left: halve -iter from run to run, down to 1
    #[arg(long)]
    pub(crate) metg: bool,
    /// Times that --metg runs the whole series of grains; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 7, requires = "metg", value_parser = count_parser(1..=1000u32))]
    pub(crate) repetitions: u32,
    /// Peak rate, operations or bytes per second [default: rate of the coarsest runs, or of finer ones if they were
    /// faster]
    #[arg(long, value_name = "RATE", requires = "metg", value_parser = rate)]
    pub(crate) peak: Option<f64>,
    /// Plot the part of the peak rate against the grain
    #[arg(long, value_name = "FILE.svg", requires = "metg")]
    pub(crate) plot: Option<PathBuf>,
    /// Write the result
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Options of the graph may have one dash, as in Task Bench: task_bench -steps 1000 -type stencil_1d. Those of our own go
before the first -and. Its -field and -nodes are accepted and change nothing; compute_dgemm, memory_daxpy and io_bound
are not supported.

Every input of every task is checked. The result is in the lines that the scripts of Task Bench read.
Exit code: 0 done, 1 a run failed or its result is wrong, 2 bad options.

A stencil of tasks of 20 us:  task_bench -type stencil_1d -steps 1000 -width 2 -kernel compute_bound -iter 2048
Two graphs side by side:      task_bench -type fft -width 8 -and -type tree -width 8
Load that stays uneven:       task_bench -type stencil_1d -steps 1000 -width 32 -kernel load_imbalance -iter 8192 \\
                              -imbalance 1 -keep 0 --compare none,refine
The smallest grain:           task_bench -type stencil_1d -steps 1000 -width 2 -kernel compute_bound --metg
What balancing adds to it:    task_bench -type stencil_1d -steps 1000 -width 32 -kernel compute_bound --metg \\
                              --compare none,refine,eighth

With --metg, -iter is the first number of iterations (65536 if not given). The grain of a task is the time of the run,
times the workers, over the number of tasks. `eighth` is a strategy of this program, which shows what moves cost: at
every sync it moves every eighth point.";

/// The options of a graph.
#[derive(Clone, Debug, clap::Args)]
struct GraphOptions {
    #[command(flatten)]
    graph: Graph,
    #[arg(long, hide = true)]
    field: Option<u64>,
    #[arg(long, hide = true)]
    nodes: Option<u64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "expected a number above 0, as in 1.5e10".to_owned())
}

#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct ExtraGraph {
    #[command(flatten)]
    options: GraphOptions,
}

fn another(options: &str) -> Result<Graph, String> {
    let parsed = ExtraGraph::try_parse_from(options.split_whitespace());
    parsed.map(|another| another.options.graph).map_err(|error| {
        let text = error.render().to_string();
        text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// A command line as it is read: two dashes before every name, and all options of a further graph in one argument.
pub(crate) fn arguments(given: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut read: Vec<OsString> = Vec::new();
    let mut graphs: Vec<String> = Vec::new();
    for argument in given {
        let text = argument.to_string_lossy();
        let has_one_dash = text.strip_prefix('-').is_some_and(|name| {
            name.len() > 1 && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        });
        let text = if has_one_dash { format!("-{text}") } else { text.into_owned() };
        match graphs.last_mut() {
            _ if text == "--and" => graphs.push(String::new()),
            Some(graph) => *graph += &format!("{text} "),
            None if has_one_dash => read.push(text.into()),
            None => read.push(argument),
        }
    }
    read.extend(graphs.into_iter().flat_map(|graph| ["--and".into(), graph.into()]));
    read
}

impl Options {
    /// The graphs, numbered.
    ///
    /// # Errors
    /// [`Error::Usage`] when one is impossible.
    pub(crate) fn graphs(&self, launch: Launch) -> Result<Vec<Graph>, Error> {
        let graphs = [&self.graph.graph].into_iter().chain(&self.others).cloned();
        let mut graphs: Vec<Graph> = graphs.collect();
        graphs.iter_mut().zip(0..).for_each(|(graph, number)| graph.number = number);
        let needs = |graph: &Graph| {
            let outputs = graph.output_bytes.saturating_mul(2);
            let own = graph.kernel.scratch_bytes.saturating_add(outputs).saturating_add(graph.links_bytes());
            u64::from(graph.width).saturating_mul(own.saturating_add(memory::CHUNK_BYTES))
        };
        for graph in &graphs {
            graph.check().map_err(Error::Usage)?;
            memory::check(&format!("-width {}", graph.width), needs(graph), launch)?;
        }
        Ok(graphs)
    }

    /// Applies the options to `config`, which comes from the environment.
    #[must_use]
    pub(crate) fn configure(&self, mut config: Config) -> Config {
        if let Some(workers) = self.workers {
            config = config.workers(workers);
        }
        if let Some(ranks) = self.ranks {
            config = config.ranks(ranks);
        }
        if let Some(period) = self.sync {
            config = config.balance(period);
        }
        config
    }

    /// Disturbances of each run.
    #[must_use]
    pub(crate) fn disturbances(&self) -> Disturbances {
        let (neighbours, quotas) = (self.neighbour.clone(), self.quota.clone());
        Disturbances { neighbours, quotas, slowed: Vec::new() }
    }

    /// The ranks of each run.
    ///
    /// # Errors
    /// [`Error::Usage`] if there cannot be as many.
    pub(crate) fn rank_count(&self, config: &Config) -> Result<u32, Error> {
        launch::ranks(config.launch(), self.ranks, config.rank_count(), config.worker_count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        let given = line.split_whitespace().map(OsString::from);
        Options::try_parse_from(arguments(given)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn options_are_those_of_task_bench_with_one_dash_or_two() {
        let line = "task_bench -steps 9 --width 5 -type spread -radix 4 -period 1 -fraction 0.5 -kernel load_imbalance \
             -iter 10 -sample 4 -imbalance 0.5 -output 64 -scratch 128 -field 2 -nodes 4 --ranks 2 --lb none";
        let options = options(line);
        let graphs = options.graphs(Launch::Alone).unwrap();
        let [graph] = &graphs[..] else { panic!("one graph") };
        assert_eq!((graph.steps, graph.width, graph.radix, graph.period()), (9, 5, 4, 1));
        assert_eq!((graph.output_bytes, graph.kernel.iterations, graph.kernel.scratch_bytes), (64, 10, 128));
        assert_eq!((options.ranks, options.lb.as_deref()), (Some(2), Some("none")));
    }

    #[test]
    fn each_further_graph_has_options_and_defaults_of_its_own() {
        let options =
            options("task_bench --ranks 2 -steps 9 -type fft -and -type tree -width 7 -and -field 3");
        let graphs = options.graphs(Launch::Alone).unwrap();
        let shapes: Vec<_> = graphs.iter().map(|graph| (graph.number, graph.steps, graph.width)).collect();
        assert_eq!(shapes, [(0, 9, 4), (1, 4, 7), (2, 4, 4)]);
    }

    #[test]
    fn what_is_wrong_with_any_graph_is_said() {
        let given = ["task_bench", "-and", "-type", "string"].map(OsString::from);
        let error = Options::try_parse_from(arguments(given)).unwrap_err().to_string();
        assert!(error.contains("invalid value 'string' for '--type"), "{error}");
        let error = options("task_bench -and -type fft -width 1").graphs(Launch::Alone).unwrap_err();
        assert!(error.to_string().starts_with("-width 1"), "{error}");
        let error = options("task_bench -width 4e9 -scratch 1e9").graphs(Launch::Alone).unwrap_err();
        assert!(error.to_string().contains("-width 4000000000"), "{error}");
    }
}
