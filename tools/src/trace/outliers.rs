//! Implements `caribou trace outliers`: finds ranks, chunks and handlers that differ from the others.
//!
//! The score of a value is its distance from the median, divided by the median absolute deviation, which a few outliers
//! hardly change. Ranks are compared by their profiles, which every run has, and chunks by their handlers. The causes
//! of outliers are visible in `timeline` and `chunks`.

pub(crate) mod noise;
mod quantile;
mod score;

use std::collections::BTreeMap;
use std::io::Write;

use caribou::trace::{Activity, ArrayId, ChunkId, Shape};
use presentation::count_parser;
use trace_reader::{RankTrace, Trace};

use self::noise::{Baselines, Noise};
use self::score::{Scored, scored};
use super::analysis::chunk_times::ChunkTimes;
use super::analysis::events::{Observer, Scope, by_worker, no_events};
use super::open::{Input, warn};
use super::page::{Cell, Format, Page, Table, columns};
use crate::Error;

/// Score of an outlier. In a normal distribution 1 value in 1300 has at least this score.
const STRANGE: f64 = 5.0;

/// Fewest ranks that are compared: of two values, either may be the outlier.
const RANKS_MIN: usize = 3;

/// Options of the command.
#[derive(clap::Args)]
#[command(
    after_help = "Memory: some bytes a chunk; with --noise a hundred a chunk and kind, and events are read twice."
)]
pub(crate) struct Options {
    #[command(flatten)]
    input: Input,
    /// Also single executions longer than 5 times the 80th percentile of their chunk and kind: more work, or noise
    #[arg(long)]
    noise: bool,
    /// Rows of each table
    #[arg(long, value_name = "ROWS", default_value_t = ROWS, value_parser = count_parser(0..=usize::MAX))]
    top: usize,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    let trace = options.input.open()?;
    let (mut chunks, mut usual) = (ChunkTimes::default(), Baselines::default());
    let scope = Scope::all(&trace);
    let mut observers: Vec<&mut dyn Observer<'_>> = vec![&mut chunks];
    if options.noise {
        observers.push(&mut usual);
    }
    warn(&by_worker(&scope, &mut observers));
    let mut noise = Noise::new(usual, options.top);
    if options.noise {
        // Problems were printed in the first pass.
        by_worker(&scope, &mut [&mut noise]);
    }
    let noise = options.noise.then_some(noise);
    Ok(page(&trace, chunks.0, noise, options.top).write(options.format, out)?)
}

/// Explanation of the score, for the user.
const SCORE: &str = "score: distance from the median, over the median of all distances (the median absolute deviation, taken \
    as 1 % of the median at least); from 5 on it is unlike the others";

/// Default number of rows of each table.
pub(crate) const ROWS: usize = 10;

/// The page of the command: outliers among ranks and among chunks with this CPU time in ns, and long executions.
pub(crate) fn page(
    trace: &Trace,
    chunks_ns: BTreeMap<ChunkId, f64>,
    noise: Option<Noise>,
    top: usize,
) -> Page {
    let mut page = Page::new("outliers", trace);
    let judged = trace.ranks.len() >= RANKS_MIN;
    let ranks = if judged { of_ranks(trace) } else { Vec::new() };
    let chunks = of_chunks(trace, chunks_ns);
    let strange = |scores: &[Scored<String>]| scores.iter().filter(|score| score.score >= STRANGE).count();
    let (ranks_strange, chunks_strange) = (strange(&ranks), strange(&chunks));
    let of_ranks_strange = judged.then(|| format!("{ranks_strange} figures of ranks"));
    let of_chunks_strange = (trace.run.shape == Shape::Arrays).then(|| format!("{chunks_strange} chunks"));
    let judged_strange: Vec<String> = of_ranks_strange.into_iter().chain(of_chunks_strange).collect();
    if !judged_strange.is_empty() {
        page.says.push(format!(
            "{} are unlike the others: {STRANGE} or more times as far from the median as is usual",
            judged_strange.join(" and ")
        ));
    }
    let of_ranks = table("ranks", "rank", &ranks, top);
    page.tables.push(if judged { of_ranks } else { of_ranks.data_only() });
    if !judged {
        page.notes.push(format!(
            "fewer than {RANKS_MIN} ranks cannot be judged: of two that differ, either may be the outlier"
        ));
    }
    if chunks.is_empty() {
        let why = match trace.run.shape {
            _ if trace.events() == 0 => no_events(trace),
            Shape::Pools => {
                "a pool has no chunks: `caribou trace histogram` shows how long its ranges were".into()
            }
            Shape::Arrays | Shape::Supersteps => "no handlers were recorded".into(),
        };
        page.notes.push(why);
    } else {
        page.tables.push(table("chunks", "chunk", &chunks, top));
    }
    if judged || !chunks.is_empty() {
        page.notes.push(SCORE.into());
    }
    if let Some(noise) = noise.filter(|_| trace.events() > 0) {
        noise.tell(trace, &mut page);
    }
    page
}

/// The values of each figure, by the name of the figure.
type Figures = Vec<(&'static str, Vec<(String, f64)>)>;

/// The scores of all figures of all ranks, the largest first.
fn of_ranks(trace: &Trace) -> Vec<Scored<String>> {
    let mut figures: Figures = ["idle share", "lost share", "speed", "mean handler, us", "calls"]
        .map(|name| (name, Vec::new()))
        .into();
    for rank in &trace.ranks {
        for ((_, values), value) in figures.iter_mut().zip(measured(rank)) {
            values.extend(value.map(|value| (rank.rank.to_string(), value)));
        }
    }
    let mut scores: Vec<_> = figures.into_iter().flat_map(|(name, values)| scored(name, values)).collect();
    scores.sort_by(Scored::strangest_first);
    scores
}

/// The figures of a rank.
fn measured(rank: &RankTrace) -> [Option<f64>; 5] {
    let (mut all_ns, mut idle_ns, mut lost_ns, mut work_ns, mut calls) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for row in rank.profiles.iter().flat_map(|profile| &profile.rows) {
        let ns = row.total_ns() as f64;
        all_ns += ns;
        match row.activity {
            Activity::Idle => idle_ns += ns,
            Activity::Lost => lost_ns += ns,
            Activity::Kind(_) | Activity::Iterations => {
                work_ns += ns;
                calls += row.calls() as f64;
            }
            Activity::Runtime(_) => {}
        }
    }
    let speeds: Vec<f64> =
        rank.samples.iter().map(|sample| sample.speed).filter(|speed| *speed > 0.0).collect();
    let speed = (!speeds.is_empty()).then(|| speeds.iter().sum::<f64>() / speeds.len() as f64);
    let ran = all_ns > 0.0;
    [
        ran.then(|| idle_ns / all_ns),
        ran.then(|| lost_ns / all_ns),
        speed.filter(|speed| speed.is_finite()),
        (calls > 0.0).then(|| work_ns / calls / 1e3),
        ran.then_some(calls),
    ]
}

/// The scores of the CPU time of chunks, the largest first.
fn of_chunks(trace: &Trace, cpu_ns: BTreeMap<ChunkId, f64>) -> Vec<Scored<String>> {
    let mut by_array: BTreeMap<ArrayId, Vec<(ChunkId, f64)>> = BTreeMap::new();
    for (chunk, ns) in cpu_ns {
        by_array.entry(chunk.array).or_default().push((chunk, ns / 1e6));
    }
    // Compares chunks only within their array, because arrays need not be alike.
    let mut scores: Vec<Scored<ChunkId>> =
        by_array.into_values().flat_map(|values| scored("CPU time, ms", values)).collect();
    scores.sort_by(Scored::strangest_first);
    scores.into_iter().map(|score| score.named(|chunk| trace.chunk_name(chunk))).collect()
}

fn table(name: &'static str, who: &'static str, scores: &[Scored<String>], top: usize) -> Table {
    let others = "figure | value | median: median of all | score | strange:";
    let mut table = Table::new(name, "", &[who, others].map(columns).concat());
    for score in scores.iter().take(top) {
        let strange = if score.score >= STRANGE { "unlike the others" } else { "" };
        table.row([
            Cell::Text(score.who.clone()),
            Cell::text_of(score.figure),
            Cell::Number(score.value),
            Cell::Number(score.median),
            Cell::Number(score.score),
            Cell::text_of(strange),
        ]);
    }
    table
}
