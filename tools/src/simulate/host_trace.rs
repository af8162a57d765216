//! Reads measured hosts: how much of its speed each had left, and when.
//!
//! Four formats, told apart by the first line:
//!
//! | first line | what a line says | share |
//! |---|---|---|
//! | `time_s,host,share` | from this second on, this host has this share | as written |
//! | `starttime,value` | one host measured again and again (Azure VM noise, long) | value / median |
//! | `vm,value` | many hosts, each measured once (Azure VM noise, short) | value / median |
//! | no header | `name,u0,u1,...`: CPU use in percent, every 300 s (PlanetLab) | 1 - u/100, at least 0.05 |
//!
//! Others take turns with the workers in the first and last of them; the others measured how fast a vCPU was.
//!
//! In the last, what others use is taken from the host: a model, since the traces measured use and not speed. After the
//! last sample the last share holds.

use std::io;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use humantime::parse_rfc3339_weak;
use virtual_cluster::Series;

use crate::input;

/// A host never leaves less than this, however busy others keep it.
const LEAST_SHARE: f64 = 0.05;
/// Seconds between two samples of the PlanetLab traces.
const PLANETLAB_STEP_S: f64 = 300.0;
/// Characters of a field that an error shows.
const FIELD_MAX: usize = 40;

/// Reasons that a file is no trace of hosts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Name a file that can be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file named.
        file: PathBuf,
        /// Message of the system.
        source: io::Error,
    },
    /// Correct this line.
    #[error("{}:{line}: {what}", file.display())]
    Malformed {
        /// The file named.
        file: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The text that was found, and what was expected.
        what: String,
    },
    /// Name a file with a host in it.
    #[error("{}: no host in it, expected lines as `time_s,host,share`, `starttime,value`, `vm,value` or \
             `name,u0,u1,...` have them", file.display())]
    Empty {
        /// The file named.
        file: PathBuf,
    },
}

/// Measured hosts.
#[derive(Debug, PartialEq)]
pub(super) struct Hosts {
    /// The part of its speed that each has left.
    pub(super) parts: Vec<Series>,
    /// True if others take turns on its vCPUs with whoever is there, rather than make them slower.
    pub(super) turns: bool,
}

/// The hosts in `file`, in the order of their first lines. `step_s` replaces the times of samples: they then follow each
/// other in so many seconds.
pub(super) fn read(file: &Path, step_s: Option<f64>) -> Result<Hosts, Error> {
    let text =
        input::read_text(file).map_err(|source| Error::Unreadable { file: file.to_owned(), source })?;
    let malformed = |(line, what)| Error::Malformed { file: file.to_owned(), line, what };
    let hosts = parse(&text, step_s).map_err(malformed)?;
    if hosts.parts.is_empty() {
        return Err(Error::Empty { file: file.to_owned() });
    }
    Ok(hosts)
}

/// The line, counted from 1, and what is wrong with it.
type Complaint = (u64, String);

/// A line's fields.
struct Record {
    line: u64,
    fields: StringRecord,
}

fn parse(text: &str, step_s: Option<f64>) -> Result<Hosts, Complaint> {
    let records = records(text);
    let Some((first, others)) = records.split_first() else {
        return Ok(Hosts { parts: Vec::new(), turns: false });
    };
    // A benchmark that was slow says how fast the vCPU was, use by others that they had it.
    let (parts, turns) = match first.fields.iter().collect::<Vec<_>>()[..] {
        ["time_s", "host", "share"] => (shares(others, step_s)?, true),
        ["starttime", "value"] => (one_host(others, step_s)?, false),
        ["vm", "value"] => (one_sample_each(others)?, false),
        _ => (use_in_percent(&records, step_s)?, true),
    };
    Ok(Hosts { parts, turns })
}

/// All lines but empty ones.
fn records(text: &str) -> Vec<Record> {
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(text.as_bytes());
    let (mut records, mut fields) = (Vec::new(), StringRecord::new());
    while reader.read_record(&mut fields).expect("it is text, and records may have any length") {
        // By its end: what the reader says of its beginning leaves out empty lines before it.
        let end = reader.position();
        let newline = text.as_bytes()[end.byte() as usize - 1] == b'\n';
        if fields.len() > 1 || !fields[0].is_empty() {
            records.push(Record { line: end.line() - u64::from(newline), fields: fields.clone() });
        }
    }
    records
}

impl Record {
    fn wrong<T>(&self, what: String) -> Result<T, Complaint> {
        Err((self.line, what))
    }

    fn number(&self, text: &str, most: f64) -> Result<f64, Complaint> {
        match text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number)) {
            Some(number) => Ok(number),
            None => self.wrong(format!("{}, expected a number from 0 to {most}", quoted(text))),
        }
    }

    fn fields<const N: usize>(&self) -> Result<[&str; N], Complaint> {
        let fields: Vec<&str> = self.fields.iter().collect();
        let found = fields.len();
        fields.try_into().or_else(|_| self.wrong(format!("{found} fields, expected {N} separated by commas")))
    }
}

/// Text from a file in quotes, not all of it if it is long: a quote that is not closed lasts to the end of the file.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(FIELD_MAX) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Samples as a series; the first holds from the beginning.
fn series(samples: impl IntoIterator<Item = (f64, f64)>) -> Series {
    let mut samples = samples.into_iter();
    let first = samples.next().map_or(1.0, |(_, share)| share);
    samples.fold(Series::constant(first), |series, (seconds, share)| series.then(seconds, share))
}

fn shares(records: &[Record], step_s: Option<f64>) -> Result<Vec<Series>, Complaint> {
    let mut hosts: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for record in records {
        let [seconds, host, share] = record.fields()?;
        let (seconds, share) = (record.number(seconds, 1e9)?, record.number(share, 10.0)?);
        let place = hosts.iter().position(|(name, _)| *name == host).unwrap_or_else(|| {
            hosts.push((host, Vec::new()));
            hosts.len() - 1
        });
        let samples = &mut hosts[place].1;
        if samples.last().is_some_and(|&(before, _)| before >= seconds) {
            return record
                .wrong(format!("{seconds} s is not after the host's last line, expected ascending times"));
        }
        samples.push((step_s.map_or(seconds, |step| step * samples.len() as f64), share));
    }
    Ok(hosts.into_iter().map(|(_, samples)| series(samples)).collect())
}

fn one_host(records: &[Record], step_s: Option<f64>) -> Result<Vec<Series>, Complaint> {
    let mut samples: Vec<(f64, f64)> = Vec::new();
    let mut first = None;
    for record in records {
        let [start, value] = record.fields()?;
        let Ok(at) = parse_rfc3339_weak(start) else {
            return record.wrong(format!("{}, expected a time as 2023-05-28 23:47:14.880", quoted(start)));
        };
        let Ok(since_first) = at.duration_since(*first.get_or_insert(at)) else {
            return record.wrong(format!("{start} is before the first line, expected ascending times"));
        };
        let seconds = step_s.map_or(since_first.as_secs_f64(), |step| step * samples.len() as f64);
        samples.push((seconds, record.number(value, 1e15)?));
    }
    let reference = reference(samples.iter().map(|&(_, value)| value).collect());
    let scaled = samples.into_iter().map(|(seconds, value)| (seconds, value / reference));
    let scaled: Vec<(f64, f64)> = scaled.collect();
    Ok(if scaled.is_empty() { Vec::new() } else { vec![series(scaled)] })
}

fn one_sample_each(records: &[Record]) -> Result<Vec<Series>, Complaint> {
    let value = |record: &Record| record.number(record.fields::<2>()?[1], 1e15);
    let values: Vec<f64> = records.iter().map(value).collect::<Result<_, _>>()?;
    let reference = reference(values.clone());
    Ok(values.into_iter().map(|value| Series::constant(value / reference)).collect())
}

fn use_in_percent(records: &[Record], step_s: Option<f64>) -> Result<Vec<Series>, Complaint> {
    let step_s = step_s.unwrap_or(PLANETLAB_STEP_S);
    let host = |record: &Record| {
        let samples = record.fields.iter().skip(1).map(|value| record.number(value, 100.0));
        let samples: Vec<f64> = samples.collect::<Result<_, _>>()?;
        if samples.is_empty() {
            return record.wrong("no sample, expected `name,u0,u1,...` or a header".to_owned());
        }
        let shares = samples.into_iter().map(|percent| (1.0 - percent / 100.0).max(LEAST_SHARE));
        Ok(series((0..).map(|at| step_s * f64::from(at)).zip(shares)))
    };
    records.iter().map(host).collect()
}

/// Value of a share of 1: the middle value that was measured, of two the larger; 1 if there is none or it is 0.
fn reference(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().filter(|&middle| middle > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the shares are exact")]
mod tests {
    use super::*;

    fn parts(text: &str, step_s: Option<f64>) -> Vec<Series> {
        parse(text, step_s).unwrap().parts
    }

    #[test]
    fn others_take_turns_where_their_use_was_measured() {
        let turns = |text| parse(text, None).unwrap().turns;
        assert!(turns("time_s,host,share\n0,a,1\n") && turns("a,0,50\n"));
        assert!(!turns("vm,value\n0,5\n") && !turns("starttime,value\n2024-02-28 23:00:00.0,4\n"));
    }

    fn at(series: &Series, seconds: u64) -> f64 {
        series.at(seconds * 1_000_000_000).0
    }

    #[test]
    fn each_format_is_known_by_its_first_line() {
        let hosts = parts("time_s,host,share\n0,a,1\n0,b,0.8\n60,a,0.5\n", None);
        assert_eq!(hosts, [Series::constant(1.0).then(60.0, 0.5), Series::constant(0.8)]);
        let hosts = parts("starttime,value\n2024-02-28 23:00:00.0,4\n2024-03-01 01:00:00.5,2\n", None);
        assert_eq!(hosts, [Series::constant(1.0).then(93_600.5, 0.5)], "a leap day lies between");
        let hosts = parts("vm,value\n0,5\n1,10\n2,20\n", None);
        assert_eq!(hosts.iter().map(|host| at(host, 0)).collect::<Vec<_>>(), [0.5, 1.0, 2.0]);
        let hosts = parts("\u{feff}vm , value\r\n\r\n\"0,b\",5\r\n1,10", None);
        assert_eq!(
            hosts.iter().map(|host| at(host, 0)).collect::<Vec<_>>(),
            [0.5, 1.0],
            "blanks, CRLF and quotes"
        );
        let hosts = parts("a host_x,0,50,99\n", None);
        assert_eq!([0, 299, 300, 600].map(|seconds| at(&hosts[0], seconds)), [1.0, 1.0, 0.5, 0.05]);
    }

    #[test]
    fn samples_can_follow_each_other_faster_than_they_did() {
        let hosts = parts("starttime,value\n2023-05-28 23:00:00,4\n2023-05-29 23:00:00,2\n", Some(10.0));
        assert_eq!(hosts, [Series::constant(1.0).then(10.0, 0.5)]);
    }

    #[test]
    fn a_damaged_line_is_named() {
        for (text, line, words) in [
            ("time_s,host,share\n0,a\n", 2, "2 fields, expected 3"),
            ("time_s,host,share\n0,a,1\n0,a,1\n", 3, "ascending times"),
            ("time_s,host,share\n0,a,-1\n", 2, "\"-1\", expected a number from 0 to 10"),
            ("starttime,value\nyesterday,1\n", 2, "expected a time as"),
            ("vm,value\n\n1,NaN\n", 3, "\"NaN\", expected a number"),
            ("host,10,120\n", 1, "\"120\", expected a number from 0 to 100"),
            ("time,host\n", 1, "\"host\", expected a number"),
            ("vm,value\r\n\r\n  \r\n1,2\r\n2,x", 5, "\"x\", expected a number"),
            ("starttime,value\n2024-02-28 23:00:00,1\n2024-02-28 22:00:00,1\n", 3, "before the first line"),
            ("starttime,value\n2024-02-28 23:00:00,1\n2023-02-29 00:00:00,1\n", 3, "\"2023-02-29 00"),
            (
                &format!("vm,value\n1,\"{}\n", "long ".repeat(99)),
                2,
                "\"long long long long long long long long \"...",
            ),
        ] {
            let (at, what) = parse(text, None).unwrap_err();
            assert_eq!(at, line, "{text:?}");
            assert!(what.contains(words), "{text:?}: {what}");
        }
        assert_eq!(parts("", None), []);
    }

    #[test]
    fn the_public_traces_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        for (name, count) in [
            ("azure-vm-noise/sysbench-cpu_B8ms_long-vm2.csv", 1),
            ("azure-vm-noise/mlc-triad-bandwidth_D8s_v5_short.csv", 11_861),
            ("planetlab/20110303.csv", 1052),
        ] {
            let file = folder.join(name);
            if !file.exists() {
                println!("skip: ../shared/data/{name} not found");
                continue;
            }
            let hosts = read(&file, None).unwrap().parts;
            assert_eq!(hosts.len(), count, "{name}");
            let shares: Vec<f64> = hosts.iter().map(|host| at(host, 0)).collect();
            assert!(shares.iter().all(|&share| share > 0.0 && share < 10.0), "{name}");
        }
    }
}
