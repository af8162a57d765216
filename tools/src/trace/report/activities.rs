//! Numbers the activities of workers in one byte each, because a page contains millions of them.
//!
//! States have fixed numbers. Message kinds follow, the heaviest first according to profiles. Kinds beyond
//! [`KINDS_MAX`] share one number.

use std::collections::BTreeMap;

use caribou::trace::{Activity, NameId, Part};
use trace_reader::Trace;

use crate::trace::analysis::time_breakdown::Parts;
use crate::trace::palette;

/// Largest number of kinds with a number of their own.
pub(super) const KINDS_MAX: usize = 200;

pub(super) const IDLE: u8 = 0;
pub(super) const LOST: u8 = 1 + Part::ALL.len() as u8;
const ITERATIONS: u8 = LOST + 1;
const OTHER: u8 = ITERATIONS + 1;
const FIRST_KIND: u8 = OTHER + 1;
/// Number for time without a recorded activity.
pub(super) const NOTHING: u8 = 255;

/// The four states of a worker, which divide its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Chunks,
    Runtime,
    Lost,
    Idle,
}

impl State {
    pub(super) const ALL: [State; 4] = [State::Chunks, State::Runtime, State::Lost, State::Idle];

    pub(super) fn of(activity: u8) -> State {
        match activity {
            IDLE => State::Idle,
            1..LOST => State::Runtime,
            LOST => State::Lost,
            _ => State::Chunks,
        }
    }

    pub(super) fn ns(self, parts: &Parts) -> f64 {
        match self {
            State::Chunks => parts.chunks_ns,
            State::Runtime => parts.runtime_ns,
            State::Lost => parts.lost_ns,
            State::Idle => parts.idle_ns,
        }
    }

    /// The name of the state, which is also the class of its colour.
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Chunks => "chunks",
            State::Runtime => "runtime",
            State::Lost => "lost",
            State::Idle => "idle",
        }
    }
}

/// The numbers of activities.
#[derive(Debug, Default)]
pub(super) struct Activities {
    names: Vec<String>,
    kinds: BTreeMap<NameId, u8>,
    /// Colour of each kind, by the name of the kind.
    colours: BTreeMap<String, &'static str>,
    /// Number of kinds that share the number `OTHER`.
    pub(super) others: usize,
}

impl Activities {
    pub(super) fn of(trace: &Trace) -> Activities {
        let parts = Part::ALL.map(Part::name);
        let states = ["idle"].into_iter().chain(parts).chain(["lost", palette::ITERATIONS]);
        let mut names: Vec<String> = states.map(str::to_owned).collect();
        names.push("other kinds".into());
        let (kinds, colours) = (BTreeMap::new(), palette::kinds(trace));
        let mut activities = Activities { names, kinds, colours, others: 0 };
        let mut heaviest: BTreeMap<NameId, u64> = BTreeMap::new();
        for row in trace.ranks.iter().flat_map(|rank| &rank.profiles).flat_map(|profile| &profile.rows) {
            if let Activity::Kind(kind) = row.activity {
                let sum = heaviest.entry(kind).or_default();
                *sum = sum.saturating_add(row.total_ns());
            }
        }
        let mut heaviest: Vec<_> = heaviest.into_iter().collect();
        heaviest.sort_by_key(|&(kind, ns)| (std::cmp::Reverse(ns), kind));
        for (kind, _) in heaviest {
            activities.kind(trace, kind);
        }
        activities
    }

    /// The number of a kind. A new kind gets the next number.
    pub(super) fn kind(&mut self, trace: &Trace, kind: NameId) -> u8 {
        if let Some(&number) = self.kinds.get(&kind) {
            return number;
        }
        if self.names.len() >= usize::from(FIRST_KIND) + KINDS_MAX {
            self.others += 1;
            self.kinds.insert(kind, OTHER);
            return OTHER;
        }
        let (number, name) = (self.names.len() as u8, trace.name(kind));
        self.names.push(name);
        self.kinds.insert(kind, number);
        number
    }

    pub(super) fn number(&mut self, trace: &Trace, activity: Activity) -> u8 {
        match activity {
            Activity::Kind(kind) => self.kind(trace, kind),
            state => self.known(state),
        }
    }

    /// The number of an activity that already has one.
    pub(super) fn known(&self, activity: Activity) -> u8 {
        match activity {
            Activity::Kind(kind) => self.kinds.get(&kind).copied().unwrap_or(OTHER),
            Activity::Iterations => ITERATIONS,
            Activity::Idle => IDLE,
            Activity::Runtime(part) => runtime(part),
            Activity::Lost => LOST,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, activity: u8) -> &str {
        self.names.get(usize::from(activity)).map_or("nothing recorded", String::as_str)
    }

    /// The class of its colour in the style sheet.
    pub(super) fn class(&self, activity: u8) -> String {
        let state = State::of(activity);
        let colour = self.names.get(usize::from(activity)).and_then(|name| self.colours.get(name));
        let place = colour.and_then(|colour| palette::KINDS.iter().position(|other| other == colour));
        match place {
            Some(place) if state == State::Chunks => format!("k{place}"),
            None if state == State::Chunks => "other".into(),
            _ => state.name().into(),
        }
    }
}

fn runtime(part: Part) -> u8 {
    let place = Part::ALL.iter().position(|&other| other == part);
    1 + place.expect("all parts are in the list") as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_runtime_has_the_number_of_its_name() {
        let trace = crate::trace::tests::generated("report-activities", 2_000);
        let trace = Trace::open(trace.path()).unwrap();
        let activities = Activities::of(&trace);
        for part in Part::ALL {
            assert_eq!(activities.name(runtime(part)), part.name());
            assert_eq!(State::of(runtime(part)), State::Runtime);
        }
        assert_eq!(activities.name(LOST), "lost");
        assert_eq!(activities.name(FIRST_KIND), "Ring::Halo", "it is the heaviest");
        assert_eq!((State::of(FIRST_KIND), State::of(ITERATIONS)), (State::Chunks, State::Chunks));
    }
}
