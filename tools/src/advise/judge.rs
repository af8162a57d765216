//! Compares changes with the recorded run by several replays of each, and says how certain their gains are.
//!
//! Each replay of a change is compared with the replay of the run under the same conditions, so what a model gets wrong
//! in both cancels. The uncertainty of a gain has two parts: half of the range over the replays, and the error with which
//! the recorded time is reproduced, as far as it applies to the time that remains.

use super::change::{Change, combined, distinct, singles};
use super::recording::Recording;
use super::replay::{Conditions, Outcome, Sharing, bound_s, replay};
use crate::Error;
use crate::simulate::compare::in_parallel;

/// Parts of the run at which replays begin.
const SHIFTS: [f64; 4] = [0.0, 0.25, 0.5, 0.75];
/// A gain below this is not worth a change.
const GAIN_MIN: f64 = 0.02;
/// Gains that differ by less are equally good.
const EQUAL: f64 = 0.01;
/// A share below this means that others took part of the vCPU.
const SHARED: f64 = 0.97;

/// A change, and what it would give.
#[derive(Clone)]
pub(super) struct Judged {
    pub(super) change: Change,
    /// The part of the time that it saves, in the median of the replays.
    pub(super) gain: f64,
    /// Half of the range of the gains.
    pub(super) spread: f64,
    /// How much larger or smaller the gain may be.
    pub(super) uncertainty: f64,
    /// The predicted time, s.
    pub(super) time_s: f64,
    /// Moves of chunks in the median of the replays.
    pub(super) moves: u64,
    pub(super) first: Outcome,
}

/// The comparison.
pub(super) struct Judgement {
    /// The recorded run first, then changes by falling gain.
    pub(super) rows: Vec<Judged>,
    /// The place of the change to make; none if nothing helps.
    pub(super) best: Option<usize>,
    /// Replayed over recorded time of the run, minus 1.
    pub(super) error: f64,
    pub(super) sharing: Sharing,
    pub(super) bound_s: f64,
}

/// Compares all changes with the run.
pub(super) fn judge(recording: &Recording) -> Result<Judgement, Error> {
    let run = Change::recorded(recording)?;
    let (sharing, error) = check(recording, &run);
    let mut rows = compare(recording, &singles(recording)?, sharing, error);
    let best = rows[1..]
        .iter()
        .filter(|row| is_free(recording, row))
        .max_by(|one, other| one.gain.total_cmp(&other.gain));
    let best = best.map_or(&run, |row| if row.gain > GAIN_MIN { &row.change } else { &run });
    let known = |change: &Change| rows.iter().any(|row| row.change.is_same(change));
    let more: Vec<Change> =
        distinct(combined(recording, best)).into_iter().filter(|change| !known(change)).collect();
    let more = [vec![run], more].concat();
    rows.extend(compare(recording, &more, sharing, error).into_iter().skip(1));
    rows[1..].sort_by(|one, other| other.gain.total_cmp(&one.gain));
    Ok(Judgement { best: best_of(recording, &rows), rows, error, sharing, bound_s: bound_s(recording) })
}

/// Whether the change keeps to the vCPUs of the run.
fn is_free(recording: &Recording, row: &Judged) -> bool {
    row.change.workers.iter().sum::<u32>() == recording.workers.iter().sum::<u32>()
}

/// The model of others on the vCPUs that reproduces the recorded time best, and its error.
fn check(recording: &Recording, run: &Change) -> (Sharing, f64) {
    let is_shared = recording.vcpus.iter().any(|vcpu| vcpu.mean_share(recording.took_s) < SHARED);
    let turns = recording.turn_ns.filter(|_| is_shared).map(Sharing::Turns);
    let models: Vec<Sharing> = [Sharing::Smooth].into_iter().chain(turns).collect();
    let errors = in_parallel(models.len(), |place| {
        let conditions = Conditions { sharing: models[place], shift: 0.0, seed: 0, records: true };
        replay(recording, run, conditions)
            .map_or(f64::INFINITY, |outcome| outcome.time_s / recording.took_s - 1.0)
    });
    let all = models.into_iter().zip(errors);
    all.min_by(|one, other| one.1.abs().total_cmp(&other.1.abs())).unwrap_or((Sharing::Smooth, f64::INFINITY))
}

/// Replays all changes, of which the first is the run. Leaves out those that cannot be replayed.
fn compare(recording: &Recording, changes: &[Change], sharing: Sharing, error: f64) -> Vec<Judged> {
    let outcomes = in_parallel(changes.len() * SHIFTS.len(), |place| {
        let which = place % SHIFTS.len();
        let conditions = Conditions { sharing, shift: SHIFTS[which], seed: which as u64, records: false };
        replay(recording, &changes[place / SHIFTS.len()], conditions)
    });
    let all: Vec<Vec<Outcome>> = outcomes
        .chunks(SHIFTS.len())
        .map(|of_change| of_change.iter().flatten().cloned().collect())
        .collect();
    let Some(base) = all.first().filter(|base| base.len() == SHIFTS.len()) else { return Vec::new() };
    let judged = |(change, outcomes): (&Change, &Vec<Outcome>)| {
        (outcomes.len() == SHIFTS.len()).then(|| one(recording, change, base, outcomes, error))
    };
    changes.iter().zip(&all).filter_map(judged).collect()
}

fn one(recording: &Recording, change: &Change, base: &[Outcome], outcomes: &[Outcome], error: f64) -> Judged {
    let mut gains: Vec<f64> =
        base.iter().zip(outcomes).map(|(base, outcome)| 1.0 - outcome.time_s / base.time_s).collect();
    gains.sort_by(f64::total_cmp);
    let mut moves: Vec<u64> = outcomes.iter().map(|outcome| outcome.moves).collect();
    moves.sort_unstable();
    let (gain, spread) = (middle(&gains), (gains[gains.len() - 1] - gains[0]) / 2.0);
    let is_change = gains.iter().any(|gain| *gain != 0.0);
    let of_model = if is_change { error.abs() * gain.abs() } else { 0.0 };
    Judged {
        change: change.clone(),
        gain,
        spread,
        uncertainty: spread + of_model,
        time_s: recording.took_s * (1.0 - gain),
        moves: moves[moves.len() / 2],
        first: outcomes[0].clone(),
    }
}

/// The middle of ascending values.
fn middle(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// The best change on the same vCPUs whose gain exceeds its uncertainty. Of equally good ones the one that changes least.
fn best_of(recording: &Recording, rows: &[Judged]) -> Option<usize> {
    let run = &rows[0].change;
    let is_good = |row: &Judged| is_free(recording, row) && row.gain > GAIN_MIN.max(row.uncertainty);
    let most =
        rows[1..].iter().filter(|row| is_good(row)).map(|row| row.gain).fold(f64::NEG_INFINITY, f64::max);
    let good = (1..rows.len()).filter(|&place| is_good(&rows[place]) && rows[place].gain > most - EQUAL);
    good.min_by_key(|&place| rows[place].change.distance(run))
}
