//! Makes checkpoints of a program in supersteps between two steps, and restarts from them. No share waits for one.
//!
//! | part of the run | when | does |
//! |---|---|---|
//! | first share | a checkpoint is due | announces it in the plan of a step |
//! | each share | at the end of that step | copies the units of its job, which a thread writes while the next steps run |
//! | each share | at the end of a later step | sends [`Written`](ShareMessage::Written), when its file is written |
//! | first share | all files are written | completes the checkpoint |
//!
//! After a notice to end, each share writes at the end of the step, without a thread. The run ends when the checkpoint
//! is complete.
//!
//! # Why the files fit together
//!
//! 1. A step is over for a share when it has the parts of all jobs, and has computed or received the units of its
//!    group. So between two steps, the jobs of all shares together hold each unit once, as the step left it.
//! 2. `combine` gives all shares the same shared data, and the first share writes it.
//! 3. The manifest has the division of that step. A restart divides the units anew, for its number of workers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::api::Supersteps;
use super::messages::ShareMessage;
use super::program::Program;
use super::redistribution::common;
use super::share::{Share, State, program};
use super::units::Units;
use crate::arrays::api::ctx::Ctx;
use crate::checkpoint::background::{Background, IoOutcome, Started};
use crate::checkpoint::{
    Content, Manifest, Saved, Schedule, Store, SuperstepsState, Written, offering_older,
};
use crate::config::{Config, wrong};
use crate::error::Error;
use crate::ids::{ROOT, Rank};
use crate::notice::Listener;
use crate::warn::{print_line, warn};
use crate::wire;

/// The file of a share: the shared data in the file of the first share, and the units of its job if steps change units.
type ShareFile<S, U> = (Option<S>, Vec<U>);

/// The order to save that all shares carry out at the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Save {
    number: u64,
    /// The run ends with this checkpoint: each share writes its file at once, and begins no further step.
    pub(super) is_last: bool,
}

/// Writes the checkpoints of a share.
pub(super) struct Saver {
    store: Arc<Store>,
    /// Only on the first share of a process.
    listener: Option<Listener>,
    is_virtual: bool,
    io: Option<Background>,
}

impl Saver {
    /// Starts `io` on a thread, or runs it on this thread if `at_once`. Returns the outcome if `io` has ended.
    fn start<T: 'static>(
        &mut self,
        at_once: bool,
        io: impl FnOnce() -> Result<T, String> + Send + 'static,
        outcome: fn(Result<T, String>) -> IoOutcome,
    ) -> Option<IoOutcome> {
        match Background::start(self.is_virtual || at_once, io, outcome, || ()) {
            Started::Runs(background) => {
                self.io = Some(background);
                None
            }
            Started::Ended(outcome) => Some(outcome),
        }
    }

    /// Takes the outcome of the started write, if it has ended.
    fn take_outcome(&mut self) -> Option<IoOutcome> {
        let outcome = self.io.as_ref()?.outcome()?;
        self.io = None;
        Some(outcome)
    }
}

/// Waits for the write in progress, because the run has ended.
impl Drop for Saver {
    fn drop(&mut self) {
        self.io.take().into_iter().for_each(Background::join);
    }
}

/// The checkpoints of a run, on the first share.
pub(super) struct Checkpoints {
    schedule: Schedule,
    /// The state that the current checkpoint saves.
    state: SuperstepsState,
    /// The files of the current checkpoint.
    written: Vec<(Rank, Result<Written, String>)>,
}

impl Checkpoints {
    /// Begins a checkpoint if one is due.
    pub(super) fn begin(&mut self, now_ns: u64) -> Option<Save> {
        if !self.schedule.is_due(now_ns) {
            return None;
        }
        self.schedule.begin();
        self.written.clear();
        Some(Save { number: self.schedule.number, is_last: self.schedule.notice.is_some() })
    }
}

impl<P: Supersteps> Share<P> {
    /// The checkpoints; none on other shares than the first, and if none are made.
    fn checkpoints(&mut self) -> Option<&mut Checkpoints> {
        self.root.as_mut()?.checkpoints.as_mut()
    }

    /// Writes the units of this share, between the end of a step and the begin of the next.
    pub(super) fn save(&mut self, Save { number, is_last }: Save, ctx: &mut Ctx<'_, Self>) {
        let (program, me) = (program(ctx), self.me);
        let units = if program.changes() { self.units.slice(&self.units_of(me)) } else { &[] };
        let bytes = wire::encode(&((me == 0).then_some(&self.shared), units));
        let (step, shares) = (self.step, self.division.units.clone());
        if let Some(checkpoints) = self.checkpoints() {
            checkpoints.state = SuperstepsState { step, shares, ..program.state() };
        }
        let Some(saver) = &mut self.saver else { return };
        let store = saver.store.clone();
        let write = move || {
            let bytes = bytes.map_err(|why| why.to_string())?;
            store.write_rank(number, Rank(me as u32), |out| out.write_all(&bytes))
        };
        if let Some(outcome) = saver.start(is_last, write, IoOutcome::Written) {
            self.io_ended(outcome, ctx);
        }
    }

    /// Handles a notice, and files that were written meanwhile.
    pub(super) fn follow_checkpoints(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(saver) = &mut self.saver else { return };
        let notice = saver.listener.as_ref().and_then(Listener::take);
        let is_advised = saver.listener.as_ref().is_some_and(Listener::take_advice);
        let outcome = saver.take_outcome();
        if let Some(by) = notice {
            match self.root.as_deref_mut().map(|root| &mut root.checkpoints) {
                Some(Some(checkpoints)) => checkpoints.schedule.give_notice(by),
                Some(None) => {}
                None => self.send(0, ShareMessage::Notice(by), ctx),
            }
        }
        if is_advised {
            match self.root {
                Some(_) => self.asked(),
                None => self.send(0, ShareMessage::Ask, ctx),
            }
        }
        if let Some(outcome) = outcome {
            self.io_ended(outcome, ctx);
        }
    }

    /// On the first share: makes a checkpoint due.
    pub(super) fn asked(&mut self) {
        self.checkpoints().into_iter().for_each(|checkpoints| checkpoints.schedule.ask());
    }

    /// On the first share: handles a notice to end from another process. The next checkpoint is due, and is the last.
    pub(super) fn noticed(&mut self, by: String) {
        let line = self.checkpoints().and_then(|checkpoints| checkpoints.schedule.pass_on_notice(by));
        line.into_iter().for_each(|line| warn(&line));
    }

    fn io_ended(&mut self, outcome: IoOutcome, ctx: &mut Ctx<'_, Self>) {
        match outcome {
            IoOutcome::Written(written) => self.written(self.me, written, ctx),
            IoOutcome::Committed(committed) => self.committed(committed, ctx),
        }
    }

    /// Adds the file of a share, or its failure. After the last share, the first share completes the checkpoint.
    pub(super) fn written(
        &mut self,
        worker: usize,
        written: Result<Written, String>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        let workers = self.workers();
        let Some(root) = &mut self.root else {
            return self.send(0, ShareMessage::Written { worker, written }, ctx);
        };
        let (Some(checkpoints), Some(saver)) = (&mut root.checkpoints, &mut self.saver) else { return };
        checkpoints.written.push((Rank(worker as u32), written));
        if checkpoints.written.len() < workers {
            return;
        }
        let (number, is_last) = (checkpoints.schedule.number, checkpoints.schedule.notice.is_some());
        let (written, store) = (std::mem::take(&mut checkpoints.written), saver.store.clone());
        let content = Content::Supersteps(std::mem::take(&mut checkpoints.state));
        let manifest = Manifest { content, elapsed_ns: ctx.elapsed_ns(), ..Manifest::default() };
        let commit = move || store.complete(number, manifest, written);
        if let Some(outcome) = saver.start(is_last, commit, IoOutcome::Committed) {
            self.io_ended(outcome, ctx);
        }
    }

    fn committed(&mut self, committed: Result<String, String>, ctx: &mut Ctx<'_, Self>) {
        let Some(checkpoints) = self.checkpoints() else { return };
        match checkpoints.schedule.committed(committed, ctx.elapsed_ns()) {
            Ok(line) => line.into_iter().for_each(|line| warn(&line)),
            Err(interrupted) => {
                self.state = State::Over;
                ctx.fail_with(interrupted);
            }
        }
    }
}

/// The state from which a share begins.
pub(super) struct Beginning<P: Supersteps> {
    pub(super) step: u64,
    pub(super) shared: P::Shared,
    pub(super) units: Units<P::Unit>,
}

impl<P: Supersteps> Beginning<P> {
    /// The beginning of a run without a checkpoint, with these units.
    fn anew(program: &Program<P>, units: Range<u64>) -> Beginning<P> {
        let units = Units { first: units.start, data: program.units(units) };
        Beginning { step: 0, shared: program.begin(), units }
    }
}

/// The states from which the shares of a rank restart, and the store for checkpoints.
pub(super) struct SavedState<P: Supersteps> {
    /// The states by share; empty if the run begins anew.
    beginnings: Mutex<BTreeMap<usize, Beginning<P>>>,
    store: Option<Arc<Store>>,
    config: Config,
    rank: Rank,
}

impl<P: Supersteps> SavedState<P> {
    /// Opens the store, and reads the checkpoint to restart from, for shares with these units.
    ///
    /// # Errors
    /// The fault of the directory or of the checkpoint.
    pub(super) fn open(
        config: &Config,
        rank: Rank,
        program: &Program<P>,
        shares: impl Iterator<Item = (u32, Range<u64>)>,
    ) -> Result<SavedState<P>, Error> {
        let store = config.checkpoint.as_ref().map(|settings| Store::new(settings, rank).map(Arc::new));
        let store = store.transpose().map_err(|why| wrong("CARIBOU_CHECKPOINT", why))?;
        let speaks = rank == ROOT && config.launch().speaks();
        let restarted = config.restart.as_ref().map(|path| restart(path, config, program, shares, speaks));
        let restarted = restarted.transpose().map_err(|why| wrong("CARIBOU_RESTART", why))?;
        let beginnings = Mutex::new(restarted.unwrap_or_default());
        Ok(SavedState { beginnings, store, config: config.clone(), rank })
    }

    /// The state from which this share begins, with these units.
    pub(super) fn begin(&self, share: usize, program: &Program<P>, units: Range<u64>) -> Beginning<P> {
        if self.config.restart.is_none() {
            return Beginning::anew(program, units);
        }
        let restarted = self.beginnings.lock().unwrap_or_else(PoisonError::into_inner).remove(&share);
        restarted.expect("all shares of the rank were read")
    }

    /// The checkpoints for the first share, if any are made.
    pub(super) fn checkpoints(&self) -> Option<Checkpoints> {
        let (settings, store) = self.config.checkpoint.as_ref().zip(self.store.as_ref())?;
        let schedule = Schedule::new(settings.every.as_nanos() as u64, store.first_number());
        Some(Checkpoints { schedule, state: SuperstepsState::default(), written: Vec::new() })
    }

    /// The saver of a share, if checkpoints are made. One share per rank listens for notices.
    pub(super) fn saver(&self, listens: bool) -> Option<Saver> {
        let store = self.store.clone()?;
        // Notices are handled at the end of a step, so nothing has to be woken.
        let listener = listens.then(|| Listener::of_rank(self.rank, &self.config, || ())).flatten();
        Some(Saver { store, listener, is_virtual: self.config.simulate.is_some(), io: None })
    }
}

/// Reads the initial states of shares with these units from a checkpoint. The error names the file.
fn restart<P: Supersteps>(
    path: &Path,
    config: &Config,
    program: &Program<P>,
    shares: impl Iterator<Item = (u32, Range<u64>)>,
    speaks: bool,
) -> Result<BTreeMap<usize, Beginning<P>>, String> {
    let saved = Saved::open(path).map_err(|why| offering_older(path, why))?;
    let (name, expected) = (path.display(), program.state());
    let state = match &saved.manifest.content {
        Content::Supersteps(state) if state.is_of_same(&expected) => state,
        _ => return Err(saved.of_another(&expected.text())),
    };
    saved.check_program(config.program_settings())?;
    let damaged = |writer: usize, why: &str| format!("{name}/rank-{writer}: {why}");
    let read = |writer: usize| -> Result<ShareFile<P::Shared, P::Unit>, String> {
        let bytes = saved.file(writer).map_err(|why| offering_older(path, why))?;
        wire::decode(&bytes).map_err(|why| damaged(writer, &why.to_string()))
    };
    let (Some(shared), first_units) = read(0)? else { return Err(damaged(0, "it has no shared data")) };
    let shared = wire::encode(&shared).map_err(|why| damaged(0, &why.to_string()))?;
    let shares: Vec<(u32, Range<u64>)> = shares.collect();
    let units = match program.changes() {
        true => saved_units(&shares, &state.files(), first_units, |writer| Ok(read(writer)?.1), damaged)?,
        false => shares.iter().map(|(_, held)| program.units(held.clone())).collect(),
    };
    let begin = |((share, held), data): (&(u32, Range<u64>), Vec<P::Unit>)| {
        let shared = wire::decode(&shared).map_err(|why| damaged(0, &why.to_string()))?;
        let units = Units { first: held.start, data };
        Ok((*share as usize, Beginning { step: state.step, shared, units }))
    };
    let all = shares.iter().zip(units).map(begin).collect::<Result<_, String>>()?;
    if speaks {
        print_line(&saved.announcement());
    }
    Ok(all)
}

/// The units of these shares, from all files that have any of them. `first_units` are the units of the first file.
fn saved_units<U: Clone>(
    shares: &[(u32, Range<u64>)],
    files: &[Range<u64>],
    first_units: Vec<U>,
    read: impl Fn(usize) -> Result<Vec<U>, String>,
    damaged: impl Fn(usize, &str) -> String,
) -> Result<Vec<Vec<U>>, String> {
    let mut first_units = Some(first_units);
    let mut found: Vec<Vec<U>> = shares.iter().map(|_| Vec::new()).collect();
    for (writer, numbers) in files.iter().enumerate() {
        if shares.iter().all(|(_, held)| common(held, numbers).is_empty()) {
            continue;
        }
        let first_units = first_units.take_if(|_| writer == 0);
        let data = first_units.map_or_else(|| read(writer), Ok)?;
        let expected = numbers.end - numbers.start;
        if data.len() as u64 != expected {
            return Err(damaged(writer, &format!("{} units, expected {expected}", data.len())));
        }
        let units = Units { first: numbers.start, data };
        for ((_, held), found) in shares.iter().zip(&mut found) {
            let common = common(held, numbers);
            if !common.is_empty() {
                found.extend_from_slice(units.slice(&common));
            }
        }
    }
    Ok(found)
}
