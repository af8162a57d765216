//! Selects the ranks and the span of time that a subcommand of `caribou trace` analyses (`--rank`, `--time`).

use std::collections::BTreeSet;
use std::str::FromStr;

use trace_reader::{RankTrace, Trace};

use super::page::duration;
use crate::Error;

/// A span of time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Window {
    /// Length in ns of the part of a slice that lies inside.
    pub(crate) fn overlap_ns(&self, begin_ns: u64, end_ns: u64) -> u64 {
        end_ns.min(self.to_ns).saturating_sub(begin_ns.max(self.from_ns))
    }

    pub(crate) fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// Ranks and times.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Time range, such as 1.5s..2s or ..300ms; the whole run by default
    #[arg(long, value_name = "FROM..TO")]
    time: Option<Times>,
    /// Ranks, such as 0,4-7; all by default
    #[arg(long, value_name = "LIST")]
    rank: Option<Ranks>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    from_ns: Option<u64>,
    to_ns: Option<u64>,
}

#[derive(Clone, Debug)]
struct Ranks(BTreeSet<u32>);

impl Selection {
    /// The selected span of time, limited to the run.
    pub(crate) fn window(&self, trace: &Trace) -> Window {
        let elapsed_ns = trace.elapsed_ns();
        let chosen = |ns: Option<u64>, default| ns.unwrap_or(default).min(elapsed_ns);
        let from_ns = chosen(self.time.and_then(|times| times.from_ns), 0);
        let to_ns = chosen(self.time.and_then(|times| times.to_ns), elapsed_ns);
        Window { from_ns, to_ns: to_ns.max(from_ns) }
    }

    /// Returns whether the selection may be less than the whole run.
    pub(crate) fn is_part(&self) -> bool {
        self.time.is_some() || self.rank.is_some()
    }

    /// Returns an error if the trace has none of the selected ranks or times.
    pub(crate) fn check(&self, trace: &Trace) -> Result<(), Error> {
        if self.ranks(trace).next().is_none() {
            let first: Vec<String> = trace.ranks.iter().take(8).map(|rank| rank.rank.to_string()).collect();
            let ranks = first.join(", ") + if trace.ranks.len() > 8 { ", ..." } else { "" };
            return Err(Error::Usage(format!("--rank: expected ranks of the trace, which are {ranks}")));
        }
        let elapsed_ns = trace.elapsed_ns();
        match self.time.and_then(|times| times.from_ns) {
            Some(from_ns) if from_ns > elapsed_ns => {
                let elapsed = duration(elapsed_ns as f64);
                Err(Error::Usage(format!("--time begins after the run, which took {elapsed}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a span of time was selected.
    pub(crate) fn has_time(&self) -> bool {
        self.time.is_some()
    }

    /// Returns whether this rank was selected.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.rank.as_ref().is_none_or(|ranks| ranks.0.contains(&rank))
    }

    /// The selected ranks.
    pub(crate) fn ranks<'t>(&self, trace: &'t Trace) -> impl Iterator<Item = &'t RankTrace> {
        trace.ranks.iter().filter(move |rank| self.has(rank.rank)).collect::<Vec<_>>().into_iter()
    }
}

impl FromStr for Times {
    type Err = String;

    fn from_str(text: &str) -> Result<Times, String> {
        let (from, to) = text.split_once("..").ok_or("expected FROM..TO, such as 1.5s..2s or ..300ms")?;
        let time = |text: &str| if text.trim().is_empty() { Ok(None) } else { time_ns(text).map(Some) };
        let times = Times { from_ns: time(from)?, to_ns: time(to)? };
        match times {
            Times { from_ns: Some(from), to_ns: Some(to) } if to < from => {
                Err("it ends before it begins".into())
            }
            times => Ok(times),
        }
    }
}

/// Parses a time with its unit: 1.5s, 20ms, 7us, 300ns; without a unit, seconds.
pub(crate) fn time_ns(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("", 1e9)];
    let with_unit = units.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
    let (number, unit_ns) = with_unit.expect("every text ends with nothing");
    let number = number.trim().parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
    let wrong = || format!("`{text}` is not a time such as 1.5s, 20ms, 7us or 300ns");
    number.map(|number| (number * unit_ns) as u64).ok_or_else(wrong)
}

impl FromStr for Ranks {
    type Err = String;

    fn from_str(text: &str) -> Result<Ranks, String> {
        let wrong = |part: &str| format!("`{part}` is not a rank or range of ranks such as 3 or 4-7");
        let mut ranks = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
            let (Ok(first), Ok(last)) = (first, last) else { return Err(wrong(part)) };
            if last < first || last - first > 1_000_000 {
                return Err(wrong(part));
            }
            ranks.extend(first..=last);
        }
        Ok(Ranks(ranks))
    }
}
