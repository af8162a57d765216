//! Reads traces of measured hosts for `--hosts-trace`: which share of its speed a host had left, and when. The first
//! line of a file determines its format:
//!
//! | first line | content of the other lines | share | measured |
//! |---|---|---|---|
//! | `time_s,host,share` | the share of one host from this second on | as written | use |
//! | `timestamp,value` | CPU use of a host in percent (AWS CloudWatch, Numenta benchmark) | 1 - value/100, >= 0.05 | use |
//! | `starttime,value` | repeated measurements of one host (Azure VM noise, long) | value / median | speed |
//! | `vm,value` | one measurement of each of many hosts (Azure VM noise, short) | value / median | speed |
//! | no header | `name,u0,u1,...`: CPU use in percent, every 300 s (PlanetLab) | 1 - u/100, >= 0.05 | use |
//! | no header | 19 or 20 columns: the task usage of the Google cluster trace of 2011 | see `google` | use |
//! | `start_time,end_time,machine_id,cpu_rate` and others, in any order | the same | see `google` | use |
//!
//! Where use was measured, other processes take turns with the workers on the vCPU. Where speed was measured, the vCPU
//! is slower. Subtracting the use from the host's speed is a model, because those traces do not measure speed.
//!
//! A series begins at its first sample, whatever its date. A sample holds until the next one, and the last one forever.
//! [`Hosts::notes`] reports samples that hold much longer than others, and rows that are shorter than others.

mod google;
mod record;
mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;
use virtual_cluster::Series;

use self::record::{LineError, Record, quoted, records};
use self::samples::{Samples, named, timed};
use crate::input;

/// Smallest share that is left of a busy host.
const LEAST_SHARE: f64 = 0.05;
/// Seconds between two samples of a PlanetLab trace.
const PLANETLAB_STEP_S: f64 = 300.0;
/// The formats, for error texts.
const HEADERS: &str = "`time_s,host,share`, `timestamp,value`, `starttime,value`, `vm,value` or, without a header, \
                       `name,u0,u1,...`";

/// The formats by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    Shares,
    Cloudwatch,
    AzureLong,
    AzureShort,
    Planetlab,
    Google,
}

impl Format {
    /// The name and the first line.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Shares => ["shares", "time_s,host,share"],
            Self::Cloudwatch => ["cloudwatch", "timestamp,value"],
            Self::AzureLong => ["azure-long", "starttime,value"],
            Self::AzureShort => ["azure-short", "vm,value"],
            Self::Planetlab => ["planetlab", "HOST,USE,USE,... in percent"],
            Self::Google => {
                ["google", "START,END,JOB,TASK,MACHINE,RATE,... or start_time,end_time,machine_id,cpu_rate"]
            }
        }
    }

    /// The format of a file with this first line; none if it is not a known one.
    fn of(first: &Record) -> Option<Self> {
        match first.fields.iter().collect::<Vec<_>>()[..] {
            ["time_s", "host", "share"] => Some(Self::Shares),
            ["timestamp", "value"] => Some(Self::Cloudwatch),
            ["starttime", "value"] => Some(Self::AzureLong),
            ["vm", "value"] => Some(Self::AzureShort),
            ref fields if google::begins(fields) => Some(Self::Google),
            [_, ref rest @ ..]
                if !rest.is_empty() && rest.iter().all(|field| field.parse::<f64>().is_err()) =>
            {
                None
            }
            _ => Some(Self::Planetlab),
        }
    }
}

/// What a file measured, in words.
fn measured(turns: bool) -> &'static str {
    if turns { "the CPU use of others" } else { "speeds of hosts" }
}

/// Measured hosts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Hosts {
    /// Share of its speed that each host has left, over time.
    pub(super) parts: Vec<Series>,
    /// Whether other processes take turns with a worker on its vCPU. If not, they slow it down.
    pub(super) time_sliced: bool,
    /// Notes about the traces, one line each.
    pub(super) notes: Vec<String>,
}

impl Hosts {
    /// A note if several ranks, or hosts of a description, share a host of the trace. `word` says which of the two, and
    /// `place` is the beginning of the line.
    pub(super) fn shared(&self, count: usize, word: &str, place: &str) -> Option<String> {
        match self.parts.len() {
            hosts if hosts >= count => None,
            1 => Some(format!(
                "{place}1 host for {count} {word}s, all of which follow its series; name more files"
            )),
            hosts => Some(format!(
                "{place}{hosts} hosts for {count} {word}s: {word} {hosts} follows the series of {word} 0, and so on"
            )),
        }
    }
}

/// Reads the hosts in `files`, in the order of files and of their first lines. `step_s` replaces the times of samples
/// by a fixed step in seconds. Files of another `format` are refused. The error names a file, its fault, and what was
/// expected.
pub(super) fn read(files: &[PathBuf], step_s: Option<f64>, format: Option<Format>) -> Result<Hosts, String> {
    let (mut all, mut named) = (Hosts::default(), BTreeSet::new());
    for file in files {
        let name = file.display();
        // Hosts of a file that is named twice would count twice. A pipe has other hosts each time. Reading reports a file
        // that does not exist.
        if file.is_file() && file.canonicalize().is_ok_and(|path| !named.insert(path)) {
            return Err(format!("{name}: named twice, expected each file once"));
        }
        let text = input::read_text(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
        let Hosts { parts, time_sliced, notes } =
            parse_as(&text, step_s, format).map_err(|(line, what)| format!("{name}:{line}: {what}"))?;
        if parts.is_empty() {
            return Err(format!("{name}: has no host, expected lines in one of the formats {HEADERS}"));
        }
        if !all.parts.is_empty() && all.time_sliced != time_sliced {
            let (this, first, others) = (measured(time_sliced), files[0].display(), measured(!time_sliced));
            return Err(format!("{name}: has {this}, {first} has {others}, expected files of one kind"));
        }
        all.time_sliced = time_sliced;
        all.parts.extend(parts);
        all.notes.extend(notes.iter().map(|note| format!("{name}: {note}")));
    }
    Ok(all)
}

/// The hosts in a text; none if the text is empty.
pub(crate) fn parse(text: &str, step_s: Option<f64>) -> Result<Hosts, LineError> {
    parse_as(text, step_s, None)
}

/// The same, if the text has this format.
fn parse_as(text: &str, step_s: Option<f64>, expected: Option<Format>) -> Result<Hosts, LineError> {
    let records = records(text);
    let Some((first, others)) = records.split_first() else { return Ok(Hosts::default()) };
    let format = Format::of(first);
    if let Some(expected) = expected.filter(|&expected| format != Some(expected)) {
        let [name, line] = expected.words();
        let found = first.fields.iter().take(6).collect::<Vec<_>>().join(",");
        let is = format.map_or_else(String::new, |format| format!(", which is {}", format.words()[0]));
        return first.wrong(format!("begins with {}{is}, expected {name}: `{line}`", quoted(&found)));
    }
    match format {
        Some(Format::Shares) => named(others, step_s),
        Some(Format::Cloudwatch) => one_host_in_use(others, step_s),
        Some(Format::AzureLong) => one_host_measured(others, step_s),
        Some(Format::AzureShort) => one_sample_each(others),
        Some(Format::Google) => google::machines(&records, step_s),
        Some(Format::Planetlab) => use_in_percent(&records, step_s),
        None => {
            let found = first.fields.iter().collect::<Vec<_>>().join(",");
            first.wrong(format!("the header {}, expected {HEADERS}", quoted(&found)))
        }
    }
}

fn one_host_in_use(records: &[Record], step_s: Option<f64>) -> Result<Hosts, LineError> {
    let (samples, note) = timed(records, step_s, 100.0)?;
    let parts = samples.scaled(left).into_iter().collect();
    Ok(Hosts { parts, time_sliced: true, notes: note.into_iter().collect() })
}

fn one_host_measured(records: &[Record], step_s: Option<f64>) -> Result<Hosts, LineError> {
    let (samples, note) = timed(records, step_s, 1e15)?;
    let reference = reference(samples.values().collect(), records)?;
    let parts = samples.scaled(|value| value / reference).into_iter().collect();
    Ok(Hosts { parts, time_sliced: false, notes: note.into_iter().collect() })
}

fn one_sample_each(records: &[Record]) -> Result<Hosts, LineError> {
    let (mut names, mut values) = (BTreeSet::new(), Vec::new());
    for record in records {
        let [name, value] = record.fields()?;
        if !names.insert(name) {
            return record.wrong(format!("the host {} is there twice, expected once", quoted(name)));
        }
        values.push(record.number(value, 1e15)?);
    }
    let reference = reference(values.clone(), records)?;
    let parts = values.into_iter().map(|value| Series::constant(value / reference)).collect();
    Ok(Hosts { parts, ..Hosts::default() })
}

fn use_in_percent(records: &[Record], step_s: Option<f64>) -> Result<Hosts, LineError> {
    let step_s = step_s.unwrap_or(PLANETLAB_STEP_S);
    let mut names = BTreeSet::new();
    let mut host = |record: &Record| {
        let name = record.fields.get(0).unwrap_or_default();
        if !names.insert(name.to_owned()) {
            return record.wrong(format!("the host {} is there twice, expected once", quoted(name)));
        }
        let mut samples = Samples::default();
        for (at, value) in (0_u32..).zip(record.fields.iter().skip(1)) {
            samples.push(record, step_s * f64::from(at), record.number(value, 100.0)?)?;
        }
        match samples.scaled(left) {
            None => record.wrong(
                "no sample, expected `HOST,USE,USE,...` in percent, or a header such as `time_s,host,share`"
                    .to_owned(),
            ),
            Some(series) => Ok(series),
        }
    };
    let parts = records.iter().map(&mut host).collect::<Result<_, _>>()?;
    Ok(Hosts { parts, time_sliced: true, notes: shorter(records).into_iter().collect() })
}

/// A note about rows that have fewer samples than others.
fn shorter(records: &[Record]) -> Option<String> {
    let most = records.iter().map(|record| record.fields.len()).max()?;
    let short: Vec<&Record> = records.iter().filter(|record| record.fields.len() < most).collect();
    let first = short.first()?.line;
    Some(format!(
        "{} of {} hosts have fewer than {} samples, the first in line {first}; their last sample holds",
        short.len(),
        records.len(),
        most - 1
    ))
}

/// The share that is left of a host of which others use `percent` percent.
fn left(percent: f64) -> f64 {
    (1.0 - percent / 100.0).max(LEAST_SHARE)
}

/// The value that counts as share 1: the median, of two middle values the larger; 1 without values.
fn reference(mut values: Vec<f64>, records: &[Record]) -> Result<f64, LineError> {
    values.sort_by(f64::total_cmp);
    match (values.get(values.len() / 2), records.first()) {
        (Some(&middle), Some(first)) if middle <= 0.0 => {
            first.wrong("the median of the values from here on is 0, expected one above 0".to_owned())
        }
        (middle, _) => Ok(middle.copied().unwrap_or(1.0)),
    }
}
