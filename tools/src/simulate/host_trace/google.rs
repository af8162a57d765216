//! Reads the use of machines in traces of Google's clusters.
//!
//! - The table `task_usage` of 2011 has no header and 19 or 20 columns. Of these count start and end of a measurement in us,
//!   the machine (column 5), and the mean CPU rate of a task (column 6) in units of the largest machine.
//! - Tables with a header have the columns `start_time`, `end_time`, `machine_id`, and `cpu_rate` or
//!   `average_usage.cpus` (2019), in any order among others.
//!
//! The use of a machine is the sum of its tasks in windows of 300 s, each task for the part of the window in which it was
//! measured. A machine is as large as half of the largest one, as 92 % of the machines of 2011 are; it is as large as the
//! largest if its tasks ever used more. The share that is left is 1 - use / size, at least 0.05.

use std::collections::BTreeMap;

use super::record::{LineError, Record};
use super::samples::Samples;
use super::{Hosts, left};

/// Length of a window, us.
const WINDOW_US: f64 = 300e6;
/// Latest time, us: about 30 years. All windows up to there are in memory only where there are measurements.
const LATEST_US: f64 = 1e15;
/// The most windows of one measurement, and of all machines together, so that a damaged file does not fill the memory.
const LENGTH_MOST: f64 = 100.0;
const WINDOWS_MOST: usize = 20_000_000;
/// The columns of the table without a header: start, end, machine, rate.
const COLUMNS_2011: [usize; 4] = [0, 1, 4, 5];
/// The columns by name. Each may have several names.
const NAMES: [&[&str]; 4] = [
    &["start_time"],
    &["end_time"],
    &["machine_id"],
    &["cpu_rate", "mean_cpu_usage_rate", "average_usage.cpus", "average_usage_cpus"],
];

/// The places of the four columns in a header; none if the fields are not such a header.
fn columns(header: &[&str]) -> Option<[usize; 4]> {
    let place = |names: &[&str]| header.iter().position(|field| names.contains(field));
    let [start, end, machine, rate] = NAMES.map(place);
    Some([start?, end?, machine?, rate?])
}

/// Whether the first line of a file says that it is of this format.
pub(super) fn begins(fields: &[&str]) -> bool {
    let numbers = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    // Times in us are far above 100, the largest number of other files without a header.
    let times = matches!((numbers(0), numbers(1)), (Some(start), Some(end)) if start < end && end > 1e6);
    columns(fields).is_some() || (times && matches!(fields.len(), 19 | 20))
}

/// The machines of a file, in the order of their first lines.
pub(super) fn machines(records: &[Record], step_s: Option<f64>) -> Result<Hosts, LineError> {
    let header = records.first().and_then(|first| columns(&first.fields.iter().collect::<Vec<_>>()));
    let places = header.unwrap_or(COLUMNS_2011);
    let records = &records[usize::from(header.is_some())..];
    let (mut numbers, mut machines) = (BTreeMap::new(), Vec::<BTreeMap<u64, f64>>::new());
    let mut windows = 0;
    for record in records {
        let fields: Vec<&str> = record.fields.iter().collect();
        let Some([start, end, machine, rate]) = at(&fields, places) else {
            let (found, most) = (fields.len(), places.into_iter().max().unwrap_or(0) + 1);
            return record.wrong(format!("{found} fields, expected {most} at least, separated by commas"));
        };
        let (start, end) = (record.number(start, LATEST_US)?, record.number(end, LATEST_US)?);
        if end <= start || (end - start) / WINDOW_US > LENGTH_MOST {
            return record.wrong(format!(
                "a measurement from {start} to {end} us, expected ascending times of one window"
            ));
        }
        if windows > WINDOWS_MOST {
            return record
                .wrong(format!("more than {WINDOWS_MOST} windows up to here, expected so many at most"));
        }
        // A rate may be missing in the tables.
        let rate = if rate.is_empty() { 0.0 } else { record.number(rate, 1e3)? };
        let number = *numbers.entry(machine).or_insert_with(|| {
            machines.push(BTreeMap::new());
            machines.len() - 1
        });
        let before = machines[number].len();
        add(&mut machines[number], (start, end), rate);
        windows += machines[number].len() - before;
    }
    let first = machines.iter().filter_map(|windows| windows.keys().next()).min().copied().unwrap_or(0);
    let step_s = step_s.unwrap_or(WINDOW_US / 1e6);
    let mut parts = Vec::new();
    for windows in &machines {
        // Times that are too late are a fault of no line in particular.
        parts.extend(shares(&records[0], windows, first, step_s)?.scaled(left));
    }
    Ok(Hosts { parts, time_sliced: true, notes: Vec::new() })
}

/// The use of a machine in percent of its size, from the number of the first window on.
fn shares(
    record: &Record,
    windows: &BTreeMap<u64, f64>,
    first: u64,
    step_s: f64,
) -> Result<Samples, LineError> {
    let most = windows.values().copied().fold(0.0, f64::max);
    let size = if most > 0.5 { 1.0 } else { 0.5 };
    let (mut samples, mut next) = (Samples::default(), first);
    for (&window, &used) in windows {
        // No task was measured since the last window: the machine was idle.
        if window > next {
            samples.push(record, step_s * (next - first) as f64, 0.0)?;
        }
        samples.push(record, step_s * (window - first) as f64, 100.0 * (used / size).min(1.0))?;
        next = window + 1;
    }
    Ok(samples)
}

fn at<'f>(fields: &[&'f str], places: [usize; 4]) -> Option<[&'f str; 4]> {
    let [start, end, machine, rate] = places.map(|place| fields.get(place).copied());
    Some([start?, end?, machine?, rate?])
}

/// Adds the use by a task to the windows in which it was measured.
fn add(windows: &mut BTreeMap<u64, f64>, (start, end): (f64, f64), rate: f64) {
    let last = ((end / WINDOW_US).ceil() as u64).max(1) - 1;
    for window in (start / WINDOW_US) as u64..=last {
        let begin = window as f64 * WINDOW_US;
        let part = (end.min(begin + WINDOW_US) - start.max(begin)).max(0.0) / WINDOW_US;
        *windows.entry(window).or_default() += rate * part;
    }
}
