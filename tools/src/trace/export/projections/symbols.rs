//! Writes the `.sts` file of Projections, which defines the numbers in the logs.

use std::collections::BTreeMap;
use std::fmt::Write;

use caribou::trace::{ArrayId, ChunkId, NameId, Part};
use trace_reader::Trace;

use super::record::{plain, quoted};
use crate::trace::export::names::{self, ITERATIONS, MIGRATE_IN, MIGRATE_OUT, UNKNOWN};
use crate::trace::export::rows::Rows;

/// Numbers of the user events that every export has.
pub(super) const LB_STEP: u32 = 1;
pub(super) const LB_PLAN: u32 = 2;
/// User events in the order of their numbers. Names of the program follow. Contributions are left out, because nearly
/// every entry ends with one.
const EVENTS: [&str; 4] = ["***LB step***", "LB plan", "***checkpoint***", UNKNOWN];

/// Statistics of a rank at each sync, in the order of their numbers. Counters of the program follow.
const STATISTICS: [&str; 7] =
    ["imbalance", "max_load_cpu", "avg_load_cpu", "background", "steal", "vcpu_speed", "chunks"];

/// Entries of the runtime after its activities.
const OTHERS: [&str; 4] = [MIGRATE_OUT, MIGRATE_IN, "reduce", "checkpoint"];

/// All entries of the runtime, which are always the last entries.
fn of_runtime() -> impl Iterator<Item = &'static str> {
    Part::ALL.into_iter().map(Part::name).chain(OTHERS)
}

/// Numbers and their meaning.
pub(super) struct Symbols {
    /// Names of arrays, which are called chares here.
    chares: Vec<String>,
    /// Name and chare of each entry.
    entries: Vec<(String, u32)>,
    /// Entry of each message kind, by [`NameId`].
    kinds: Vec<Option<u32>>,
    /// Entries of messages of unknown kind to each array.
    messages: BTreeMap<ArrayId, u32>,
    unknown: u32,
    iterations: u32,
    runtime: u32,
    /// Index of each name that the program gave in `given_names`, by [`NameId`].
    given: Vec<Option<u32>>,
    given_names: Vec<String>,
}

impl Symbols {
    pub(super) fn new(trace: &Trace) -> Symbols {
        let used = trace.names.iter().filter_map(|name| name.array);
        let mut arrays: Vec<ArrayId> = (0..trace.arrays.len() as u32).map(ArrayId).chain(used).collect();
        arrays.sort_unstable();
        arrays.dedup();
        let mut chares: Vec<String> = arrays.iter().map(|&array| trace.array_name(array)).collect();
        let chare_of: BTreeMap<ArrayId, u32> = arrays.iter().copied().zip(0..).collect();
        let (mut entries, mut given_names) = (Vec::new(), Vec::new());
        let (mut kinds, mut given) = (Vec::new(), Vec::new());
        for (id, name) in trace.names.iter().enumerate() {
            let chare = name.array.map(|array| chare_of[&array]);
            kinds.push(chare.map(|_| entries.len() as u32));
            given.push(chare.is_none().then_some(given_names.len() as u32));
            match chare {
                Some(chare) => entries.push((trace.name(NameId(id as u32)), chare)),
                None => given_names.push(name.text.clone()),
            }
        }
        let mut messages = BTreeMap::new();
        for (&array, &chare) in &chare_of {
            messages.insert(array, entries.len() as u32);
            entries.push((format!("{}::message", trace.array_name(array)), chare));
        }
        let chare = chares.len() as u32;
        chares.push("runtime".into());
        let (unknown, iterations) = (entries.len() as u32, entries.len() as u32 + 1);
        entries.push((UNKNOWN.into(), chare));
        entries.push((ITERATIONS.into(), chare));
        let runtime = entries.len() as u32;
        entries.extend(of_runtime().map(|name| (format!("runtime::{name}"), chare)));
        Symbols { chares, entries, kinds, messages, unknown, iterations, runtime, given, given_names }
    }

    pub(super) fn kind(&self, kind: NameId) -> u32 {
        self.kinds.get(kind.0 as usize).copied().flatten().unwrap_or(self.unknown)
    }

    /// Entry of a message at its send, where its kind is unknown.
    pub(super) fn message_to(&self, chunk: ChunkId) -> u32 {
        self.messages.get(&chunk.array).copied().unwrap_or(self.unknown)
    }

    pub(super) fn iterations(&self) -> u32 {
        self.iterations
    }

    pub(super) fn part(&self, part: Part) -> u32 {
        self.runtime(part.name())
    }

    pub(super) fn runtime(&self, name: &str) -> u32 {
        let position = of_runtime().position(|other| other == name);
        self.runtime + position.expect("every part of the runtime has its entry") as u32
    }

    /// The user event of a mark or span.
    pub(super) fn event(&self, name: NameId) -> u32 {
        let given = self.given.get(name.0 as usize).copied().flatten();
        given.map_or(EVENTS.len() as u32, |given| EVENTS.len() as u32 + 1 + given)
    }

    /// The statistic of a counter, if it has a name.
    pub(super) fn statistic(&self, name: NameId) -> Option<u32> {
        let given = self.given.get(name.0 as usize).copied().flatten();
        given.map(|given| STATISTICS.len() as u32 + given)
    }

    /// Number of entries.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// The text of the file.
    pub(super) fn text(&self, trace: &Trace, rows: &Rows) -> String {
        let mut out = String::new();
        self.write(trace, rows, &mut out).expect("a String takes everything");
        out
    }

    fn write(&self, trace: &Trace, rows: &Rows, out: &mut String) -> std::fmt::Result {
        let run = &trace.run;
        writeln!(out, "PROJECTIONS_ID {}\nVERSION 7.0\nTOTAL_PHASES 1", plain(&run.run_id))?;
        writeln!(out, "MACHINE \"caribou\"\nPROCESSORS {}", rows.count)?;
        writeln!(out, "HOSTNAME \"{}\"", quoted(&names::hosts(trace)))?;
        writeln!(out, "COMMANDLINE \"{}\"", quoted(&run.arguments.join(" ")))?;
        writeln!(out, "TIMESTAMP {}", instant(run.started_unix_ns))?;
        writeln!(out, "CHARMVERSION caribou-{}", plain(&run.version).replace(' ', "_"))?;
        writeln!(out, "TOTAL_CHARES {}\nTOTAL_EPS {}", self.chares.len(), self.entries.len())?;
        let events = EVENTS.len() + self.given_names.len();
        writeln!(out, "TOTAL_MSGS 1\nTOTAL_PSEUDOS 0\nTOTAL_EVENTS {events}")?;
        for (id, name) in self.chares.iter().enumerate() {
            writeln!(out, "CHARE {id} \"{}\"", quoted(name))?;
        }
        for (id, (name, chare)) in self.entries.iter().enumerate() {
            writeln!(out, "ENTRY CHARE {id} \"{}\" {chare} 0", quoted(name))?;
        }
        let statistics = STATISTICS.len() + self.given_names.len();
        writeln!(out, "MESSAGE 0 0\nTOTAL_STATS {statistics}")?;
        let given = || self.given_names.iter().map(String::as_str);
        for (id, name) in (1..).zip(EVENTS.into_iter().chain(given())) {
            writeln!(out, "EVENT {id} {}", plain(name))?;
        }
        for (id, name) in STATISTICS.into_iter().chain(given()).enumerate() {
            writeln!(out, "STAT {id} {}", plain(name))?;
        }
        writeln!(out, "END")
    }
}

/// Formats a Unix time as Java's `Instant` reads it: 2026-11-21T08:00:00Z.
fn instant(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (day, time) = (seconds / 86_400, seconds % 86_400);
    // Counts days from 0000-03-01 in eras of 400 years (Hinnant, `civil_from_days`).
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_that_date_prints() {
        // Expected values: date -u -d @SECONDS +%FT%TZ
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_790_000_000, "2026-09-21T14:13:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(instant(seconds * 1_000_000_000), text);
        }
    }

    #[test]
    fn names_are_what_the_viewer_can_read() {
        for (name, read) in [
            ("say \"hi\"", "say 'hi'"),
            ("f(x)", "f(x)"),
            ("f(x", "f[x"),
            (")f(", "]f["),
            ("grün  \n ok", "gr?n ok"),
            ("", "unnamed"),
        ] {
            assert_eq!(quoted(name), read);
        }
        assert_eq!(quoted(&"x".repeat(300)).len(), 300);
    }
}
