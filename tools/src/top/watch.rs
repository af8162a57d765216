//! Keeps the last two answers of each polled program, and the imbalance over time, for `caribou top`.

use std::collections::VecDeque;

use caribou::monitor::Status;

use super::dashboard::{Dashboard, Pair, SyncRow};

/// Number of imbalances kept; no screen is wider.
const HISTORY_MAX: usize = 1000;

/// A run under observation.
pub(super) struct Watch {
    programs: Vec<Program>,
    picture: Dashboard,
    /// Imbalances that syncs found; before the first sync, those of the intervals between answers. Oldest first.
    pub(super) imbalances: VecDeque<f64>,
    /// Number of the latest sync received.
    last_sync: Option<u64>,
}

struct Program {
    address: String,
    before: Option<Status>,
    now: Option<Status>,
    /// Error of the last poll; none if the program answered.
    silent: Option<String>,
}

impl Watch {
    pub(super) fn new(addresses: impl Iterator<Item = String>) -> Watch {
        let programs = addresses.map(|address| Program { address, before: None, now: None, silent: None });
        Watch {
            programs: programs.collect(),
            picture: Dashboard::default(),
            imbalances: VecDeque::new(),
            last_sync: None,
        }
    }

    /// Processes the answer of program `number`.
    pub(super) fn update(&mut self, number: usize, answer: Result<Status, String>) {
        // Only the first program that answers adds an imbalance per interval. Otherwise each program would add one.
        let leads = self.programs.iter().position(|program| program.silent.is_none()) == Some(number);
        let Some(program) = self.programs.get_mut(number) else { return };
        let heard = program.update(answer);
        if heard == Update::AnotherRun {
            self.imbalances.clear();
            self.last_sync = None;
        }
        self.picture = self.draw();
        self.remember(heard == Update::Advanced && leads);
    }

    /// Keeps the imbalances of new syncs. Without syncs, keeps the imbalance of the last interval if time has advanced.
    fn remember(&mut self, advanced: bool) {
        let syncs = &self.picture.syncs;
        let is_new = |sync: &&SyncRow| self.last_sync.is_none_or(|last| sync.sync > last);
        let new: Vec<f64> = syncs.iter().filter(is_new).map(|sync| sync.imbalance_before).collect();
        if self.last_sync.is_none() && !new.is_empty() {
            self.imbalances.clear();
        }
        self.last_sync = syncs.last().map(|sync| sync.sync).or(self.last_sync);
        match self.last_sync {
            Some(_) => self.imbalances.extend(new),
            None if advanced => self.imbalances.extend(self.picture.imbalance),
            None => {}
        }
        let surplus = self.imbalances.len().saturating_sub(HISTORY_MAX);
        self.imbalances.drain(..surplus);
    }

    pub(super) fn picture(&self) -> &Dashboard {
        &self.picture
    }

    /// Returns whether nothing new can come: every program has ended or does not answer.
    pub(super) fn is_over(&self) -> bool {
        self.programs.iter().all(Program::is_over)
    }

    fn draw(&self) -> Dashboard {
        let heard = self.programs.iter().filter_map(|program| Some((program, program.now.as_ref()?)));
        let (programs, answers): (Vec<&Program>, Vec<&Status>) = heard.unzip();
        // If programs of two runs answer, because a port was free again, this is the run of a program that answers now.
        let run_id = programs.iter().zip(&answers).find(|(program, _)| program.silent.is_none());
        let run_id =
            run_id.map(|(_, status)| status).or(answers.first()).map(|status| status.run_id.as_str());
        let of_run = |status: &Status| Some(status.run_id.as_str()) == run_id;
        let pairs = programs.iter().zip(&answers).filter(|(_, now)| of_run(now));
        let pairs: Vec<Pair<'_>> = pairs.map(|(program, now)| (program.before.as_ref(), *now)).collect();
        let mut picture = Dashboard::new(&pairs);
        for program in &self.programs {
            let address = &program.address;
            let over = program.now.as_ref().is_some_and(|now| now.finished || now.failed.is_some());
            match (&program.silent, &program.now) {
                (Some(why), _) if !over => picture.problems.push(format!("{address}: {why}")),
                (None, Some(now)) if !of_run(now) => {
                    picture.problems.push(format!("{address}: another run, {}; not shown", now.run_id));
                }
                _ => {}
            }
        }
        picture
    }
}

/// What an answer changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Update {
    Nothing,
    Advanced,
    AnotherRun,
}

impl Program {
    fn update(&mut self, answer: Result<Status, String>) -> Update {
        let status = match answer {
            Ok(status) => status,
            Err(why) => {
                self.silent = Some(why);
                return Update::Nothing;
            }
        };
        self.silent = None;
        match &self.now {
            None => {
                self.now = Some(status);
                Update::Nothing
            }
            Some(now) if now.run_id != status.run_id || now.elapsed_ns > status.elapsed_ns => {
                (self.before, self.now) = (None, Some(status));
                Update::AnotherRun
            }
            // The same answer again: keep the interval before it.
            Some(now) if now.elapsed_ns == status.elapsed_ns => {
                self.now = Some(status);
                Update::Nothing
            }
            Some(_) => {
                self.before = self.now.replace(status);
                Update::Advanced
            }
        }
    }

    fn is_over(&self) -> bool {
        self.silent.is_some() || self.now.as_ref().is_some_and(|now| now.finished || now.failed.is_some())
    }
}
