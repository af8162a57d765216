//! Writes comparisons to files: all figures as JSON, one CSV line per run, and a plot as SVG.

use std::io;

use presentation::svg::{Area, Svg};

use super::combinations::sweep_picture;
use super::compare::{Comparison, Metrics};
use crate::Error;
use crate::output::{self, Files, csv_error};

/// CSV columns common to all shapes of program.
const HEADS: [&str; 8] =
    ["scenario", "policy", "ranks", "workers", "iterations", "ideal_s", "makespan_s", "excess_percent"];

/// Size in pixels of one panel of the plot.
const SIZE: (f64, f64) = (960.0, 360.0);

/// Help of the options.
pub(super) const JSON_HELP: &str = "Write all figures, down to each worker or iteration, as JSON";
pub(super) const CSV_HELP: &str = "Write a line per scenario and policy, as CSV";
pub(super) const PLOT_HELP: &str =
    "Draw a panel per scenario: when each worker of a pool ends, how long each iteration of an array takes";

/// Writes the requested files.
pub(super) fn write<M: Metrics>(files: &Files, comparisons: &[Comparison<M>]) -> Result<(), Error> {
    if let Some(file) = &files.json {
        output::write(file, json(comparisons)?)?;
    }
    if let Some(file) = &files.csv {
        output::write(file, csv(comparisons)?)?;
    }
    if let Some(file) = &files.plot {
        let picture = sweep_picture(comparisons).unwrap_or_else(|| svg(comparisons));
        output::write(file, picture)?;
    }
    Ok(())
}

/// One JSON array with an object per scenario.
fn json<M: Metrics>(comparisons: &[Comparison<M>]) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(comparisons)? + "\n")
}

/// A header, then one line per scenario and policy. An incomplete run has no excess.
fn csv<M: Metrics>(comparisons: &[Comparison<M>]) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let swept = comparisons.first().map_or(&[][..], |comparison| &comparison.swept);
    let swept = swept.iter().map(|(field, _)| field.as_str());
    let saved = M::BASELINE.map(|_| "saved_percent");
    let heads = HEADS[..1].iter().copied().chain(swept).chain(HEADS[1..].iter().copied());
    csv.write_record(heads.chain(saved).chain(M::COLUMNS.iter().copied())).map_err(csv_error)?;
    for comparison in comparisons {
        let Comparison { scenario, iterations, workers, ideal_s, .. } = comparison;
        let (ranks, all) = (workers.len(), workers.iter().sum::<u32>());
        for outcome in &comparison.outcomes {
            let mut line = vec![scenario.clone()];
            line.extend(comparison.swept.iter().map(|(_, value)| value.clone()));
            line.extend([outcome.policy.clone(), ranks.to_string(), all.to_string(), iterations.to_string()]);
            line.extend([*ideal_s, outcome.makespan_s].map(text));
            line.push(outcome.excess_percent.map_or_else(String::new, text));
            line.extend(M::BASELINE.map(|_| outcome.saved_percent.map_or_else(String::new, text)));
            line.extend(outcome.metrics.values());
            csv.write_record(line).map_err(csv_error)?;
        }
    }
    csv.into_inner().map_err(|error| error.into_error())
}

/// A number, without decimals if it is whole.
pub(super) fn text(number: f64) -> String {
    number.to_string()
}

fn svg<M: Metrics>(comparisons: &[Comparison<M>]) -> String {
    let panels = comparisons.len().max(1) as f64;
    let mut svg = Svg::new(SIZE.0, SIZE.1 * panels, M::PLOT);
    for (number, comparison) in comparisons.iter().enumerate() {
        M::chart(comparison).draw(&mut svg, Area::at((0.0, SIZE.1 * number as f64), SIZE));
    }
    svg.finish()
}
