//! Combines the values of swept fields, and writes the results of all combinations: a table with a row for each
//! combination and policy. `picture` draws the time by the swept field.

mod picture;

use std::io::{self, Write};

use presentation::Table;
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) use self::picture::sweep_picture;
use super::compare::{Comparison, Metrics, Outcome};
use super::table::{Rows, excess, percent, seconds, write_legend};
use crate::Error;
use crate::statistics::mean;
use crate::toml_file::{Document, Node, Value};

/// The field that `seeds` sets. Tables show the mean over seeds.
const SEED: &str = "seed";
/// Fields that say what is swept, and how results are named.
const UNSWEPT: [&str; 3] = ["seeds", "sweep", "name"];
/// Largest number of combinations, because the figures of all are in memory.
const COMBINATIONS_MOST: usize = 10_000;
/// Fields and the values that they take in turn.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    fields: Vec<(String, Vec<Node>)>,
}

impl Sweep {
    /// The sweep of a file: its `[sweep]` and its `seeds`.
    pub(super) fn of(document: &Document) -> Result<Self, Error> {
        let mut sweep = Self::default();
        if let Some(node) = document.field("sweep") {
            let Value::Fields(_) = &node.value else {
                let what = format!(
                    "{}, expected a table of fields and lists, as in \"program.chunks\" = [64, 256]",
                    node.value.kind()
                );
                return Err(document.wrong("sweep", &what));
            };
            sweep.add("", node, document)?;
        }
        if let Some(node) = document.field("seeds") {
            if let Some((_, seeds)) = sweep.fields.iter().find(|(field, _)| field == SEED) {
                let what = "the file has `seeds` too, expected one of them";
                return Err(document.wrong_at(&seeds[0].place, "sweep.seed", what));
            }
            let Value::List(seeds) = &node.value else {
                let what = format!("{}, expected a list, as in [1, 2, 3]", node.value.kind());
                return Err(document.wrong("seeds", &what));
            };
            for (place, seed) in seeds.iter().enumerate() {
                if let Err(expected) = presentation::count_parser(0..=u64::MAX)(&seed.value.words()) {
                    let what = format!("{}, {expected}", seed.value.found());
                    return Err(document.wrong(&format!("seeds[{place}]"), &what));
                }
            }
            check_once("seeds", seeds, document)?;
            sweep.add(SEED, node, document)?;
        }
        let runs = sweep.fields.iter().map(|(_, values)| values.len()).try_fold(1_usize, usize::checked_mul);
        match runs {
            Some(0..=COMBINATIONS_MOST) => Ok(sweep),
            _ => {
                let runs = runs.map_or_else(|| "too many".to_owned(), |runs| runs.to_string());
                let what = format!("{runs} combinations, expected {COMBINATIONS_MOST} at most");
                Err(document.wrong("sweep", &what))
            }
        }
    }

    /// Adds a field. Keys with dots may be quoted, `"program.chunks"`, or not, which makes them tables in TOML.
    fn add(&mut self, field: &str, node: &Node, document: &Document) -> Result<(), Error> {
        match &node.value {
            Value::Fields(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                // The first line varies slowest.
                fields.sort_by_key(|(_, node)| node.place.line());
                let join =
                    |key: &str| if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") };
                fields.into_iter().try_for_each(|(key, node)| self.add(&join(key), node, document))
            }
            Value::List(values) if values.is_empty() => {
                Err(document.wrong_at(&node.place, field, "an empty list, expected the values to try"))
            }
            Value::List(values) => {
                // Steps of a path may have blanks around them.
                let field: Vec<&str> = field.split('.').map(str::trim).collect();
                if UNSWEPT.contains(&field[0]) {
                    let what = "it cannot be swept, expected a field as in program.chunks";
                    return Err(document.wrong_at(&node.place, &format!("sweep.{}", field.join(".")), what));
                }
                let field = field.join(".");
                check_once(&format!("sweep.{field}"), values, document)?;
                self.push(field, values, document)
            }
            value => {
                let what = format!("{}, expected a list of the values to try, as in [64, 256]", value.kind());
                Err(document.wrong_at(&node.place, field, &what))
            }
        }
    }

    /// Adds the values of a field. Those of `--set` replace those of the file.
    fn push(&mut self, field: String, values: &[Node], document: &Document) -> Result<(), Error> {
        let by_option = |values: &[Node]| values.iter().all(|value| value.place.line().is_none());
        match self.fields.iter_mut().find(|(other, _)| *other == field) {
            None => self.fields.push((field, values.to_vec())),
            Some((_, before)) if by_option(before) && !by_option(values) => {}
            Some((_, before)) if by_option(values) && !by_option(before) => *before = values.to_vec(),
            Some(_) => {
                let what = "swept twice, expected one list of values";
                return Err(document.wrong_at(&values[0].place, &format!("sweep.{field}"), what));
            }
        }
        Ok(())
    }

    /// True if a field is swept.
    pub(super) fn has(&self, field: &str) -> bool {
        let field: Vec<&str> = field.split('.').map(str::trim).collect();
        self.fields.iter().any(|(swept, _)| *swept == field.join("."))
    }

    /// All combinations of values, one value of each field, the last field first. One empty combination without fields.
    pub(super) fn combinations(&self) -> Vec<Vec<(&str, &Node)>> {
        let mut all: Vec<Vec<(&str, &Node)>> = vec![Vec::new()];
        for (field, values) in &self.fields {
            let mut longer = Vec::new();
            for one in &all {
                longer.extend(values.iter().map(|value| [&one[..], &[(field.as_str(), value)]].concat()));
            }
            all = longer;
        }
        all
    }
}

/// Refuses a value that is in a list twice, also if it is written in two ways as `64` and `64.0`.
fn check_once(field: &str, values: &[Node], document: &Document) -> Result<(), Error> {
    let value = |node: &Node| {
        let words = node.value.words();
        words.parse::<f64>().map_or(words, |number| number.to_string())
    };
    let mut seen = FxHashSet::default();
    match values.iter().find(|node| !seen.insert(value(node))) {
        None => Ok(()),
        Some(twice) => {
            let what = format!("{} is there twice, expected each value once", twice.value.found());
            Err(document.wrong_at(&twice.place, field, &what))
        }
    }
}

/// The outcomes of a policy in a combination, one for each seed.
struct Row<'c, M> {
    /// The first of the comparisons, without its seed.
    comparison: &'c Comparison<M>,
    /// The ideal time for each seed, s.
    ideals_s: Vec<f64>,
    outcomes: Vec<&'c Outcome<M>>,
}

/// The swept fields without the seed.
fn fields<M>(comparison: &Comparison<M>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = comparison.swept.iter().map(|(field, value)| (field.as_str(), value.as_str()));
    pairs.filter(|(field, _)| *field != SEED)
}

/// A row for each combination and policy, in the order of the first of its outcomes.
fn rows<M>(comparisons: &[Comparison<M>]) -> Vec<Row<'_, M>> {
    let mut rows: Vec<Row<'_, M>> = Vec::new();
    let mut places = FxHashMap::default();
    for comparison in comparisons {
        for outcome in &comparison.outcomes {
            let values: Vec<&str> = fields(comparison).map(|(_, value)| value).collect();
            let place = *places.entry((values, outcome.policy.as_str())).or_insert_with(|| {
                rows.push(Row { comparison, ideals_s: Vec::new(), outcomes: Vec::new() });
                rows.len() - 1
            });
            rows[place].ideals_s.push(comparison.ideal_s);
            rows[place].outcomes.push(outcome);
        }
    }
    rows
}

/// Writes the table of all combinations. With several seeds the figures are means.
pub(super) fn write_table<M: Metrics>(comparisons: &[Comparison<M>], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = comparisons.first() else { return Ok(()) };
    let swept: Vec<&str> = first.swept.iter().map(|(field, _)| field.as_str()).collect();
    writeln!(out, "{}: {} combinations of {}", first.scenario, comparisons.len(), swept.join(", "))?;
    let seeds = first.swept.iter().any(|(field, _)| field == SEED);
    if seeds {
        write!(out, "{}", means(comparisons))?;
        return writeln!(out, "means over seeds; \u{b1}: standard deviation; excess: over the ideal");
    }
    let heads: Vec<&str> = fields(first).map(|(field, _)| field).collect();
    let mut table = Rows::new::<M>(&heads);
    for comparison in comparisons {
        comparison.outcomes.iter().for_each(|outcome| table.row(comparison, outcome));
    }
    write!(out, "{}", table.table)?;
    if let Some(baseline) = M::BASELINE {
        writeln!(out, "excess: over the ideal; saved: part of the time of `{baseline}`")?;
    }
    write_legend::<M>(out)
}

fn means<M: Metrics>(comparisons: &[Comparison<M>]) -> Table {
    let heads: Vec<&str> = fields(&comparisons[0]).map(|(field, _)| field).collect();
    let saved: &[&str] = if M::BASELINE.is_some() { &["saved %"] } else { &[] };
    let words = heads.len();
    let heads =
        [&heads, &[M::POLICY, "makespan s", "\u{b1} s", "excess %"][..], saved, &["seeds", ""]].concat();
    let columns = heads.len();
    let mut table =
        Table::new(heads).text_columns((0..columns).map(|column| column == words || column + 1 == columns));
    for Row { comparison, outcomes, .. } in rows(comparisons) {
        let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.makespan_s).collect();
        let mean = mean(&times);
        let variance =
            times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (times.len().max(2) - 1) as f64;
        let all = |value: fn(&Outcome<M>) -> Option<f64>| -> Option<Vec<f64>> {
            outcomes.iter().map(|outcome| value(outcome)).collect()
        };
        let of = |value: fn(&Outcome<M>) -> Option<f64>| all(value).map(|values| self::mean(&values));
        let mut cells: Vec<String> = fields(comparison).map(|(_, value)| value.to_owned()).collect();
        cells.extend([outcomes[0].policy.clone(), seconds(mean), seconds(variance.sqrt())]);
        cells.push(excess(of(|outcome| outcome.excess_percent)));
        cells.extend(M::BASELINE.map(|_| percent(of(|outcome| outcome.saved_percent))));
        cells.push(outcomes.len().to_string());
        cells.push(outcomes.iter().find_map(|outcome| outcome.metrics.complaint()).unwrap_or_default());
        table.row(cells);
    }
    table
}
