//! Draws the time by a swept field, as a picture for analysts: a line for each policy, and the ideal.

use presentation::chart::{Axis, Chart, Series};
use presentation::svg::{Area, Svg};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::compare::{Comparison, Metrics};
use super::super::values;
use super::{Row, fields, rows};
use crate::statistics::mean;

/// The name of the ideal in the legend.
const IDEAL: &str = "ideal";
/// A field whose largest value is this many times its smallest has a logarithmic axis.
const LOGARITHMIC: f64 = 8.0;
/// Largest number of labels of the horizontal axis.
const LABELS_MOST: usize = 12;
/// Panels have one vertical axis, unless the times of one are so many times as long as those of another.
const APART: f64 = 3.0;
/// Size in pixels of one panel of the picture.
const SIZE: (f64, f64) = (720.0, 360.0);

/// The fields of a panel and their values, and its rows.
type Panel<'r, 'c, M> = (Vec<(&'c str, &'c str)>, Vec<&'r Row<'c, M>>);

/// A picture of the time by the last swept field, with a line for each policy and a panel for each combination of the
/// other fields; none without a sweep.
pub(in super::super) fn sweep_picture<M: Metrics>(comparisons: &[Comparison<M>]) -> Option<String> {
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
    let tops: Vec<f64> = panels.iter().map(|(_, rows)| top(rows)).collect();
    let [lowest, highest] = extent(&tops);
    let is_shared = highest <= APART * lowest;
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
            vertical: Axis {
                title: time_title(rows),
                from: 0.0,
                to: if is_shared { highest } else { tops[place] },
                whole: false,
            },
            bands: Vec::new(),
            level: None,
            series: lines_of(rows, &scale),
        };
        let at = (SIZE.0 * (place % columns) as f64, SIZE.1 * (place / columns) as f64);
        chart.draw_labelled(&mut svg, Area::at(at, SIZE), &scale.labels);
    }
    Some(svg.finish())
}

/// The mean time over seeds, s.
fn time_s<M>(row: &Row<'_, M>) -> f64 {
    mean(&row.outcomes.iter().map(|outcome| outcome.makespan_s).collect::<Vec<_>>())
}

/// The upper end of the vertical axis, s.
fn top<M>(rows: &[&Row<'_, M>]) -> f64 {
    1.08 * rows.iter().map(|row| time_s(row)).filter(|time| time.is_finite()).fold(1e-9, f64::max)
}

/// The title of the vertical axis.
fn time_title<M>(rows: &[&Row<'_, M>]) -> String {
    match rows.iter().map(|row| row.outcomes.len()).max() {
        Some(seeds @ 2..) => format!("time (s), mean of {seeds} seeds"),
        _ => "time (s)".to_owned(),
    }
}

/// A line for each policy, and the ideal.
fn lines_of<M>(rows: &[&Row<'_, M>], scale: &Scale) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let mut ideal: Vec<(f64, f64)> = Vec::new();
    for row in rows {
        let name = &row.outcomes[0].policy;
        let place = series.iter().position(|series| series.name == *name).unwrap_or_else(|| {
            let (dots, line) = (Vec::new(), Vec::new());
            series.push(Series { name: name.clone(), dots, radius: 3.5, opacity: 1.0, line });
            series.len() - 1
        });
        let value = fields(row.comparison).last().map_or("", |(_, value)| value);
        let at = scale.at(value);
        let point = (at, time_s(row));
        if point.1.is_finite() {
            series[place].dots.push(point);
            series[place].line.push(point);
        }
        let ideal_s = mean(&row.ideals_s);
        if ideal_s.is_finite() && !ideal.iter().any(|other| other.0.to_bits() == at.to_bits()) {
            ideal.push((at, ideal_s));
        }
    }
    series.push(Series { name: IDEAL.to_owned(), dots: Vec::new(), radius: 0.0, opacity: 1.0, line: ideal });
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
        let mut title = match unit(field).filter(|_| values.iter().all(|value| value.parse::<f64>().is_ok()))
        {
            Some(unit) => format!("{field} ({unit})"),
            None => field.to_owned(),
        };
        let numbers: Option<Vec<f64>> = values.iter().map(|value| number(value)).collect();
        let numbers = match numbers {
            None => (0..values.len()).map(|place| place as f64).collect(),
            Some(numbers) => {
                let [least, most] = extent(&numbers);
                if least > 0.0 && most / least >= LOGARITHMIC {
                    title += ", logarithmic";
                    numbers.into_iter().map(f64::ln).collect()
                } else {
                    numbers
                }
            }
        };
        let every = values.len().div_ceil(LABELS_MOST);
        let labels = numbers.iter().copied().zip(values.iter().cloned()).step_by(every.max(1)).collect();
        Self { title, values: values.into_iter().zip(numbers).collect(), labels }
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

/// The unit of a field whose values are numbers; none if it is a count.
fn unit(field: &str) -> Option<&'static str> {
    let name = field.rsplit('.').next().unwrap_or(field);
    match name {
        "work" => Some("units of work"),
        "period" => Some("iterations"),
        _ if name.ends_with("_bytes") => Some("bytes"),
        _ if name.contains("bandwidth") => Some("bytes/s"),
        _ => None,
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
