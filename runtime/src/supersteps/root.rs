//! The additional state of the first share: the policy, and the statistics of all shares.

use std::collections::BTreeMap;

use lb_strategies::supersteps::row::moved;
use lb_strategies::supersteps::{Divider, Division, Step};
use serde::{Deserialize, Serialize};

use super::api::{Supersteps, Then};
use super::checkpoint::Checkpoints;
use super::measure::{SLICE_NS, StepStats};
use super::messages::StepPlan;
use super::report::{DivisionReport, SuperstepWorker};
use super::share::Share;
use super::units::Units;
use crate::arrays::api::ctx::Ctx;
use crate::text::{counted, resize_line};
use crate::trace::{StepRecord, StepWorker, StepsSoFar};

/// Number of step records that are written together.
const RECORDS: usize = 64;

/// The additional state of the first share.
pub(super) struct Root<P: Supersteps> {
    policy: &'static str,
    /// Makes a divider for this number of workers, the first ones.
    make_divider: MakeDivider,
    divider: Box<dyn Divider>,
    /// Number of active workers, which are the first ones. The other workers have no units.
    active: usize,
    /// A change of this number, until the units are divided accordingly.
    resize: Option<Resize>,
    /// The division that the policy has chosen, with the reason, until a plan has it.
    chosen: Option<(Division, Option<String>)>,
    /// The division of the last plan, with the reason, until it takes effect.
    announced: Option<(Division, Option<String>)>,
    workers: usize,
    workers_per_rank: usize,
    units: u64,
    /// Steps for which the statistics of some worker are missing.
    open: BTreeMap<u64, OpenStep>,
    /// The first step of the run; 0 unless the run is a restart.
    first_step: u64,
    /// Number of steps that were reported to the policy, plus the steps before `first_step`.
    known: u64,
    figures: Figures,
    /// Weight of a slice that takes the slowest worker [`SLICE_NS`].
    slice: Option<f64>,
    /// Records for the trace, if one is written.
    records: Option<Vec<StepRecord>>,
    /// When the first step began, ns.
    first_ns: Option<u64>,
    /// Number of steps of the run, after its last step.
    end: Option<u64>,
    /// Final units, by the number of the first unit.
    collected: BTreeMap<u64, Vec<P::Unit>>,
    /// Number of units that were not collected yet.
    missing: u64,
    /// Set if checkpoints are made.
    pub(super) checkpoints: Option<Checkpoints>,
}

/// Makes a divider for the first workers of a run, of this number.
pub(super) type MakeDivider = Box<dyn Fn(usize) -> Box<dyn Divider> + Send>;

/// A change of the number of active workers. No step is reported to the divider until its division is in effect.
struct Resize {
    /// Number of active ranks before the change.
    before: usize,
    /// The first step with the new division, after a plan has that division.
    first_step: Option<u64>,
}

#[derive(Default)]
struct OpenStep {
    begun_ns: u64,
    ended_ns: u64,
    /// Number of workers that compute each job.
    copies: u32,
    /// Number of units that moved before the step.
    moved: u64,
    /// Set if a new division took effect with the step; then the reason, if the policy gave one.
    divided: Option<Option<String>>,
    worked: BTreeMap<usize, StepStats>,
}

impl OpenStep {
    fn record(&self, step: u64, restarted: bool) -> StepRecord {
        let worker = |worked: &StepStats| StepWorker {
            units: worked.units,
            computing_ns: worked.computing_ns,
            waiting_ns: worked.waiting_ns,
            moving_ns: worked.moving_ns,
            dropped: worked.dropped,
            dropped_ns: worked.dropped_ns,
        };
        StepRecord {
            step,
            begin_ns: self.begun_ns,
            end_ns: self.ended_ns,
            copies: self.copies,
            moved: self.moved,
            divided: self.divided.is_some(),
            reason: self.divided.clone().flatten(),
            restarted,
            workers: self.worked.values().map(worker).collect(),
        }
    }
}

/// The totals of a run, for its report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) steps: u64,
    pub(super) elapsed_ns: u64,
    /// Sum over all steps of the computing time of the slowest worker of the step.
    pub(super) slowest_ns: u64,
    pub(super) workers: Vec<SuperstepWorker>,
    pub(super) divisions: Vec<DivisionReport>,
}

impl<P: Supersteps> Root<P> {
    /// The root of a run that begins with `first_step`.
    pub(super) fn new(
        policy: &'static str,
        (make_divider, divider): (MakeDivider, Box<dyn Divider>),
        (workers, workers_per_rank, units): (usize, usize, u64),
        first_step: u64,
        checkpoints: Option<Checkpoints>,
    ) -> Self {
        let figures = Figures { workers: vec![SuperstepWorker::default(); workers], ..Figures::default() };
        Root {
            policy,
            make_divider,
            divider,
            active: workers,
            resize: None,
            chosen: None,
            announced: None,
            workers,
            workers_per_rank,
            units,
            open: BTreeMap::new(),
            first_step,
            known: first_step,
            figures,
            slice: None,
            records: None,
            first_ns: None,
            end: None,
            collected: BTreeMap::new(),
            missing: units,
            checkpoints,
        }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self, step: u64, copies: u32, now_ns: u64, writes: bool) {
        self.first_ns.get_or_insert(now_ns);
        if writes {
            self.records.get_or_insert_default();
        }
        let open = self.open.entry(step).or_default();
        (open.begun_ns, open.copies) = (now_ns, copies);
    }

    /// Makes the first `ranks` ranks the active ones. A new divider divides the units among their workers.
    ///
    /// # Errors
    /// The fault of the new division.
    pub(super) fn resize(&mut self, ranks: usize) -> Result<(), String> {
        let before = self.active / self.workers_per_rank;
        let ranks = ranks.clamp(1, self.workers / self.workers_per_rank);
        if ranks == before {
            return Ok(());
        }
        self.active = ranks * self.workers_per_rank;
        self.divider = (self.make_divider)(self.active);
        let division = self.divider.first();
        check(&division, self.active, self.units).map_err(|why| {
            format!("for {} workers the policy `{}` began with {why}", self.active, self.policy)
        })?;
        self.chosen = Some((self.extended(division), Some(format!("{ranks} active ranks"))));
        let before = self.resize.take().map_or(before, |resize| resize.before);
        self.resize = Some(Resize { before, first_step: None });
        Ok(())
    }

    /// Extends a division among the active workers to all workers.
    fn extended(&self, mut division: Division) -> Division {
        division.units.resize(self.workers, 0);
        division
    }

    /// Ends a resize if this reported step was the first with its division. Returns the number of active ranks, and a
    /// line about the change. Later steps are reported to the divider.
    fn end_resize(&mut self, number: u64, step: &OpenStep) -> Option<(u32, String)> {
        let in_effect = |resize: &mut Resize| resize.first_step.is_some_and(|first| number >= first);
        let Resize { before, .. } = self.resize.take_if(in_effect)?;
        let (active, all) = (self.active / self.workers_per_rank, self.workers / self.workers_per_rank);
        let units = counted(step.moved as usize, "unit", "units");
        let line = format!("{}: {units} moved", resize_line(active, all, before));
        Some((active as u32, line))
    }

    /// The plan for the end of this step. None until all shares have ended the step before the previous step.
    pub(super) fn next(&mut self, step: u64, now_ns: u64) -> Option<StepPlan> {
        if self.known + 1 < step {
            return None;
        }
        self.announced = self.chosen.take();
        if let Some(resize) = self.resize.as_mut().filter(|_| self.announced.is_some()) {
            resize.first_step.get_or_insert(step + 1);
        }
        let division = self.announced.as_ref().map(|(division, _)| division.clone());
        let save = self.checkpoints.as_mut().and_then(|checkpoints| checkpoints.begin(now_ns));
        Some(StepPlan { division, slice: self.slice, save })
    }

    /// Sets the end of a step.
    pub(super) fn ended(&mut self, step: u64, now_ns: u64) {
        self.open.entry(step).or_default().ended_ns = now_ns;
    }

    /// Records a division that takes effect with this step.
    pub(super) fn divided(&mut self, step: u64, old: &Division, new: &Division) {
        let (moved, reason) = (moved(old, new), self.announced.take().and_then(|(_, reason)| reason));
        let open = self.open.entry(step).or_default();
        (open.moved, open.divided) = (moved, Some(reason.clone()));
        let (units, copies) = (new.units.clone(), new.copies);
        self.figures.divisions.push(DivisionReport { step, units, copies, moved, reason });
    }

    /// Adds the statistics of a worker in a step. When those of all workers have arrived, the step is reported to the
    /// policy and the monitor, in the order of steps. A fault in the statistics or in the policy's answer ends the run.
    pub(super) fn add_stats(
        &mut self,
        step: u64,
        worker: usize,
        worked: StepStats,
        ctx: &mut Ctx<'_, Share<P>>,
    ) {
        self.open.entry(step).or_default().worked.insert(worker, worked);
        while let Some(first) = self.open.first_entry()
            && first.get().worked.len() == self.workers
        {
            let (number, step) = first.remove_entry();
            if let Err(fault) = self.report_step(number, &step) {
                return ctx.fail(fault);
            }
            if let Some((active, line)) = self.end_resize(number, &step) {
                ctx.resize_ended(active, &line);
            }
            ctx.stepped(|so_far| self.tell_so_far(&step, so_far));
        }
        self.write(ctx);
    }

    fn tell_so_far(&self, last: &OpenStep, so_far: &mut StepsSoFar) {
        let new = &self.figures.divisions[so_far.divisions as usize..];
        so_far.moved += new.iter().map(|division| division.moved).sum::<u64>();
        so_far.divisions = self.figures.divisions.len() as u64;
        (so_far.steps, so_far.copies) = (self.known, last.copies);
        so_far.last_ns = last.ended_ns - last.begun_ns;
        so_far.units.clear();
        so_far.units.extend(last.worked.values().map(|worked| worked.units));
    }

    /// Writes step records into the trace: at the end of the run all, before the end [`RECORDS`] at a time.
    fn write(&mut self, ctx: &mut Ctx<'_, Share<P>>) {
        let enough = if self.end == Some(self.known) { 1 } else { RECORDS };
        if let Some(records) = self.records.as_mut().filter(|records| records.len() >= enough) {
            ctx.steps(&std::mem::take(records));
        }
    }

    /// Reports a step to the policy, and adds it to the totals and to the records.
    ///
    /// # Errors
    /// The fault of the workers' statistics, or of the policy's answer.
    fn report_step(&mut self, number: u64, step: &OpenStep) -> Result<(), String> {
        agree(number, &step.worked)?;
        self.sum_up(&step.worked);
        if let Some(records) = &mut self.records {
            records.push(step.record(number, number > 0 && number == self.first_step));
        }
        let paces = step.worked.values().map(StepStats::pace_ns);
        let slowest_ns = paces.fold(0.0, f64::max);
        self.slice = Some(SLICE_NS / slowest_ns).filter(|slice| slice.is_finite()).or(self.slice);
        self.known += 1;
        if self.resize.is_some() {
            return Ok(());
        }
        let moving_ns = step.worked.values().map(|worked| worked.moving_ns).max().unwrap_or(0);
        let division = self.divider.after(&Step {
            number: number - self.first_step,
            works: step.worked.values().take(self.active).map(StepStats::work).collect(),
            seconds: (step.ended_ns - step.begun_ns) as f64 / 1e9,
            redivision_seconds: moving_ns as f64 / 1e9,
            moved: step.moved,
        });
        if let Some(division) = division {
            check(&division, self.active, self.units)
                .map_err(|why| format!("after step {number} the policy `{}` returned {why}", self.policy))?;
            self.chosen = Some((self.extended(division), self.divider.reason()));
        }
        Ok(())
    }

    fn sum_up(&mut self, worked: &BTreeMap<usize, StepStats>) {
        self.figures.slowest_ns += worked.values().map(|worked| worked.computing_ns).max().unwrap_or(0);
        for (&worker, worked) in worked {
            let sum = &mut self.figures.workers[worker];
            sum.units = worked.units;
            sum.weight += worked.weight;
            sum.dropped += worked.dropped;
            sum.dropped_ns += worked.dropped_ns;
            sum.computing_ns += worked.computing_ns;
            sum.cpu_ns += worked.cpu_ns;
            sum.lost_ns += worked.lost_ns;
            sum.waiting_ns += worked.waiting_ns;
            sum.moving_ns += worked.moving_ns;
            sum.allowed = worked.allowed;
        }
    }

    /// Ends the run after this number of steps. `units` are those of the first share, used if units are collected.
    pub(super) fn finish(
        &mut self,
        steps: u64,
        collects: bool,
        units: Units<P::Unit>,
        ctx: &mut Ctx<'_, Share<P>>,
    ) {
        self.figures.steps = steps - self.first_step;
        let now_ns = ctx.elapsed_ns();
        self.figures.elapsed_ns = now_ns - self.first_ns.unwrap_or(now_ns);
        self.end = Some(steps);
        self.write(ctx);
        if collects {
            self.collect(units);
        } else {
            self.missing = 0;
        }
    }

    /// Adds the final units of a share.
    pub(super) fn collect(&mut self, units: Units<P::Unit>) {
        self.missing -= units.data.len() as u64;
        if !units.data.is_empty() {
            self.collected.insert(units.first, units.data);
        }
    }

    /// All collected units and the totals, when nothing is missing.
    pub(super) fn conclusion(&mut self) -> Option<(Vec<P::Unit>, Figures)> {
        if self.end != Some(self.known) || self.missing > 0 {
            return None;
        }
        let units = std::mem::take(&mut self.collected).into_values().flatten().collect();
        Some((units, std::mem::take(&mut self.figures)))
    }
}

/// Checks that either all workers end the run or none does.
fn agree(step: u64, worked: &BTreeMap<usize, StepStats>) -> Result<(), String> {
    let first = |then: Then| worked.iter().find(|(_, worked)| worked.then == then).map(|(worker, _)| worker);
    let (Some(goes_on), Some(ends)) = (first(Then::Step), first(Then::End)) else { return Ok(()) };
    Err(format!(
        "after step {step} `combine` ended the run on worker {ends} but not on worker {goes_on}: its result may depend \
         on the shared data and the parts only"
    ))
}

/// Checks that a division has a share for each worker, has all units, and has at most as many copies as workers.
///
/// # Errors
/// The fault of the division, and what was expected.
pub(super) fn check(division: &Division, workers: usize, units: u64) -> Result<(), String> {
    let Division { units: shares, copies } = division;
    let all = shares.iter().map(|&share| u128::from(share)).sum::<u128>();
    if shares.len() != workers {
        return Err(format!("{} shares, expected one for each of {workers} workers", shares.len()));
    }
    if all != u128::from(units) {
        return Err(format!("shares of {all} units, expected {units} units"));
    }
    if !(1..=workers).contains(&(*copies as usize)) {
        return Err(format!("{copies} copies, expected a number from 1 to {workers}"));
    }
    Ok(())
}
