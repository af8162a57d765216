//! Combines the values of swept fields, and writes the results of all combinations: a table with a row for each
//! combination and policy, and a picture of the time by the swept field.

use std::io::{self, Write};

use presentation::Table;
use presentation::chart::{Axis, Chart, Series};
use presentation::svg::{Area, Svg};
use rustc_hash::{FxHashMap, FxHashSet};

use super::compare::{Comparison, Metrics, Outcome};
use super::table::{Rows, excess, percent, seconds, write_legend};
use super::values;
use crate::Error;
use crate::toml_file::{Document, Node, Value};

/// The field that `seeds` sets. Tables show the mean over seeds.
const SEED: &str = "seed";
/// Fields that say what is swept, and how results are named.
const UNSWEPT: [&str; 3] = ["seeds", "sweep", "name"];
/// Largest number of combinations, because the figures of all are in memory.
const COMBINATIONS_MOST: usize = 10_000;
/// A field whose largest value is this many times its smallest has a logarithmic axis.
const LOGARITHMIC: f64 = 8.0;
/// Largest number of labels of the horizontal axis.
const LABELS_MOST: usize = 12;
/// Size in pixels of one panel of the picture.
const SIZE: (f64, f64) = (720.0, 360.0);

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
            if !matches!(node.value, Value::List(_)) {
                let what = format!("{}, expected a list, as in [1, 2, 3]", node.value.kind());
                return Err(document.wrong("seeds", &what));
            }
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
                self.push(field.join("."), values, document)
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

/// The outcomes of a policy in a combination, one for each seed.
struct Row<'c, M> {
    /// The first of the comparisons, without its seed.
    comparison: &'c Comparison<M>,
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
                rows.push(Row { comparison, outcomes: Vec::new() });
                rows.len() - 1
            });
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
    for Row { comparison, outcomes } in rows(comparisons) {
        let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.makespan_s).collect();
        let mean = mean(times.iter().copied());
        let variance =
            times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (times.len().max(2) - 1) as f64;
        let all = |value: fn(&Outcome<M>) -> Option<f64>| -> Option<Vec<f64>> {
            outcomes.iter().map(|outcome| value(outcome)).collect()
        };
        let of =
            |value: fn(&Outcome<M>) -> Option<f64>| all(value).map(|values| self::mean(values.into_iter()));
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

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

/// The fields of a panel and their values, and its rows.
type Panel<'r, 'c, M> = (Vec<(&'c str, &'c str)>, Vec<&'r Row<'c, M>>);

/// A picture of the time by the last swept field, with a line for each policy and a panel for each combination of the
/// other fields; none without a sweep.
pub(super) fn sweep_picture<M: Metrics>(comparisons: &[Comparison<M>]) -> Option<String> {
    let (field, _) = fields(comparisons.first()?).last()?;
    let rows = rows(comparisons);
    let scale = Scale::of(field, &rows);
    let mut panels: Vec<Panel<'_, '_, M>> = Vec::new();
    for row in &rows {
        let mut others: Vec<_> = fields(row.comparison).collect();
        others.pop();
        match panels.iter_mut().find(|(panel, _)| *panel == others) {
            Some((_, rows)) => rows.push(row),
            None => panels.push((others, vec![row])),
        }
    }
    let time = |row: &&Row<'_, M>| mean(row.outcomes.iter().map(|outcome| outcome.makespan_s));
    let top = 1.08 * rows.iter().map(|row| time(&row)).filter(|time| time.is_finite()).fold(1e-9, f64::max);
    let columns = (panels.len() as f64).sqrt().ceil().max(1.0) as usize;
    let lines = panels.len().div_ceil(columns);
    let title = format!("time by {field}");
    let mut svg = Svg::new(SIZE.0 * columns as f64, SIZE.1 * lines as f64, &title);
    for (place, (others, rows)) in panels.iter().enumerate() {
        let others: Vec<String> = others.iter().map(|(field, value)| format!("{field} {value}")).collect();
        let caption = if others.is_empty() { comparisons[0].scenario.clone() } else { others.join(", ") };
        let chart = Chart {
            caption,
            horizontal: scale.axis(),
            vertical: Axis { title: "time (s)".into(), from: 0.0, to: top, whole: false },
            bands: Vec::new(),
            level: None,
            series: lines_of(rows, &scale, time),
        };
        let at = (SIZE.0 * (place % columns) as f64, SIZE.1 * (place / columns) as f64);
        chart.draw_labelled(&mut svg, Area::at(at, SIZE), &scale.labels);
    }
    Some(svg.finish())
}

/// A line for each policy.
fn lines_of<M>(rows: &[&Row<'_, M>], scale: &Scale, time: impl Fn(&&Row<'_, M>) -> f64) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let name = &row.outcomes[0].policy;
        let place = series.iter().position(|series| series.name == *name).unwrap_or_else(|| {
            let (dots, line) = (Vec::new(), Vec::new());
            series.push(Series { name: name.clone(), dots, radius: 3.5, opacity: 1.0, line });
            series.len() - 1
        });
        let value = fields(row.comparison).last().map_or("", |(_, value)| value);
        let point = (scale.at(value), time(row));
        if point.1.is_finite() {
            series[place].dots.push(point);
            series[place].line.push(point);
        }
    }
    series
}

/// The horizontal axis of a swept field. Its labels are the values. A value is at its number, at the logarithm if the
/// numbers differ much, or at its place in the sweep if not all values are numbers or times.
struct Scale {
    title: String,
    values: FxHashMap<String, f64>,
    labels: Vec<(f64, String)>,
}

impl Scale {
    fn of<M>(field: &str, rows: &[Row<'_, M>]) -> Self {
        let mut values: Vec<String> = Vec::new();
        let mut seen = FxHashSet::default();
        for (_, value) in rows.iter().filter_map(|row| fields(row.comparison).last()) {
            if seen.insert(value) {
                values.push(value.to_owned());
            }
        }
        let numbers: Option<Vec<f64>> = values.iter().map(|value| number(value)).collect();
        let numbers = match numbers {
            None => (0..values.len()).map(|place| place as f64).collect(),
            Some(numbers) => {
                let [least, most] = extent(&numbers);
                let logarithmic = least > 0.0 && most / least >= LOGARITHMIC;
                if logarithmic { numbers.into_iter().map(f64::ln).collect() } else { numbers }
            }
        };
        let every = values.len().div_ceil(LABELS_MOST);
        let labels = numbers.iter().copied().zip(values.iter().cloned()).step_by(every.max(1)).collect();
        Self { title: field.to_owned(), values: values.into_iter().zip(numbers).collect(), labels }
    }

    fn at(&self, value: &str) -> f64 {
        self.values.get(value).copied().unwrap_or(0.0)
    }

    fn axis(&self) -> Axis {
        let [least, most] = extent(&self.values.values().copied().collect::<Vec<_>>());
        let margin = if most > least { 0.04 * (most - least) } else { 0.5 };
        Axis { title: self.title.clone(), from: least - margin, to: most + margin, whole: false }
    }
}

/// The number in a value, or the seconds of a time.
fn number(value: &str) -> Option<f64> {
    let time = || values::time(value).ok().map(|ns| ns as f64 / 1e9);
    value.parse::<f64>().ok().filter(|number| number.is_finite()).or_else(time)
}

/// The smallest and the largest number.
fn extent(numbers: &[f64]) -> [f64; 2] {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    [least, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}
