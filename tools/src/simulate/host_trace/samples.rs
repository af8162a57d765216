//! Collects the timed samples of a host and converts them to a series of shares.

use std::collections::BTreeMap;

use humantime::parse_rfc3339_weak;
use virtual_cluster::Series;

use super::Hosts;
use super::record::{LineError, Record, quoted};

/// Latest time in seconds, about 300 years: a series counts ns in 64 bits.
const LATEST_S: f64 = 1e10;
/// A step longer than this multiple of the median step is a gap.
const GAP: f64 = 1.5;

/// Times in seconds and values, in ascending order of time.
#[derive(Default)]
pub(super) struct Samples(Vec<(f64, f64)>);

impl Samples {
    /// Appends a sample of this record.
    pub(super) fn push(&mut self, record: &Record, seconds: f64, value: f64) -> Result<(), LineError> {
        if seconds > LATEST_S {
            return record.wrong(format!("{seconds} s after the beginning, expected {LATEST_S:e} s at most"));
        }
        // A series rounds times to ns. Two samples in one ns are not ascending.
        let ns = |seconds: f64| (seconds * 1e9).round();
        if self.0.last().is_some_and(|&(before, _)| ns(before) >= ns(seconds)) {
            return record
                .wrong(format!("{seconds} s is not after the host's last line, expected ascending times"));
        }
        self.0.push((seconds, value));
        Ok(())
    }

    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|&(_, value)| value)
    }

    /// A series of `share(value)`; none without samples. The first sample also holds before its time.
    pub(super) fn scaled(&self, share: impl Fn(f64) -> f64) -> Option<Series> {
        let mut samples = self.0.iter().map(|&(seconds, value)| (seconds, share(value)));
        let (_, first) = samples.next()?;
        Some(samples.fold(Series::constant(first), |series, (seconds, share)| series.then(seconds, share)))
    }

    /// A note about steps that are longer than usual.
    fn gaps(&self) -> Option<String> {
        let mut steps: Vec<f64> = self.0.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        steps.sort_by(f64::total_cmp);
        let (median, longest) = (*steps.get(steps.len() / 2)?, *steps.last()?);
        let gaps = steps.iter().filter(|&&step| step > GAP * median).count();
        (gaps > 0).then(|| {
            format!(
                "{gaps} of {} steps are longer than {GAP} times the median of {median:.0} s, the longest {longest:.0} s; \
                 the sample before holds",
                steps.len()
            )
        })
    }
}

/// The samples of one host, from lines of a date and a number up to `most`, and a note about gaps.
pub(super) fn timed(
    records: &[Record],
    step_s: Option<f64>,
    most: f64,
) -> Result<(Samples, Option<String>), LineError> {
    let (mut samples, mut first) = (Samples::default(), None);
    for record in records {
        let [date, value] = record.fields()?;
        let Ok(at) = parse_rfc3339_weak(date) else {
            return record.wrong(format!("{}, expected a time as 2023-05-28 23:47:14.880", quoted(date)));
        };
        let Ok(since_first) = at.duration_since(*first.get_or_insert(at)) else {
            return record.wrong(format!("{date} is before the first line, expected ascending times"));
        };
        samples.push(record, since_first.as_secs_f64(), record.number(value, most)?)?;
    }
    match step_s {
        None => {
            let note = samples.gaps();
            Ok((samples, note))
        }
        Some(step_s) => Ok((every(step_s, records, &samples)?, None)),
    }
}

/// The same values at a fixed step in seconds.
fn every(step_s: f64, records: &[Record], samples: &Samples) -> Result<Samples, LineError> {
    let mut even = Samples::default();
    for ((at, record), value) in (0_u32..).zip(records).zip(samples.values()) {
        even.push(record, step_s * f64::from(at), value)?;
    }
    Ok(even)
}

/// The hosts of lines that contain the name of the host.
pub(super) fn named(records: &[Record], step_s: Option<f64>) -> Result<Hosts, LineError> {
    let (mut places, mut hosts) = (BTreeMap::new(), Vec::<(Samples, Samples)>::new());
    for record in records {
        let [seconds, host, share] = record.fields()?;
        let (seconds, share) = (record.number(seconds, 1e9)?, record.number(share, 10.0)?);
        let place = *places.entry(host).or_insert_with(|| {
            hosts.push(Default::default());
            hosts.len() - 1
        });
        let (written, even) = &mut hosts[place];
        written.push(record, seconds, share)?;
        if let Some(step_s) = step_s {
            even.push(record, step_s * even.0.len() as f64, share)?;
        }
    }
    let series = |(written, even): &(Samples, Samples)| {
        if step_s.is_some() { even.scaled(|share| share) } else { written.scaled(|share| share) }
    };
    Ok(Hosts { parts: hosts.iter().filter_map(series).collect(), time_sliced: true, notes: Vec::new() })
}
