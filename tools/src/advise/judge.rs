//! Compares changes with the recorded run by several replays of each, and says how certain their gains are.
//!
//! Each replay of a change is compared with the replay of the run under the same conditions, so what a model gets wrong
//! in both cancels.
//!
//! Others on a vCPU are modelled in two ways: they run at any time, or in turns as long as those in the trace. The replay of
//! the run as it was is compared with the recorded time, and the two models are mixed so that it comes out right, if the
//! recorded time lies between them. The uncertainty of a gain has these parts: half of the range over replays that begin at
//! other parts of the run, a quarter of the difference between the two models, and the error with which the recorded time is
//! reproduced, as a part of the time that remains. Further parts are added where workers share ranks, or chunks are divided,
//! in another way.

use super::change::{Change, combined, singles};
use super::program::Size;
use super::recording::Recording;
use super::replay::{Conditions, Outcome, Sharing, bound_s, replay};
use crate::Error;
use crate::simulate::in_parallel;

/// Parts of the run at which replays begin.
const SHIFTS: [f64; 4] = [0.0, 0.25, 0.5, 0.75];
/// A gain below this is not worth a change.
const GAIN_MIN: f64 = 0.02;
/// Gains that differ by less are equally good, and no gain is more certain.
const EQUAL: f64 = 0.01;
/// How uncertain a gain is if ranks are divided into workers otherwise: locks and stealing are hardly modelled.
const WORKERS: f64 = 0.05;
/// How uncertain a gain is if chunks have another size: caches are not modelled, and the cost of messages is estimated.
const SIZE: f64 = 0.03;
/// The part of the gain of larger chunks that is uncertain: they save messages, but may not fit into a cache.
const JOINED: f64 = 0.5;
/// How uncertain a gain is if uneven chunks are divided, whose parts are uneven too: for costs that differ by their mean.
const UNEVEN: f64 = 0.05;
/// The part of the difference between the two models that is uncertain.
const MODEL: f64 = 0.25;
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
    pub(super) bound_s: f64,
}

/// Models of others on the vCPUs, with the weight of each, and the error of the mixture for the recorded run.
struct Mixture {
    models: Vec<(Sharing, f64)>,
    error: f64,
}

/// Compares all changes with the run.
pub(super) fn judge(recording: &Recording) -> Result<Judgement, Error> {
    let run = Change::recorded(recording)?;
    let mixture = check(recording, &run);
    let mut rows = compare(recording, &singles(recording)?, &mixture);
    if rows.is_empty() {
        return Err(Error::Usage("the recorded run cannot be replayed on its own ranks".into()));
    }
    let best = best_of(recording, &rows).map_or(&run, |place| &rows[place].change);
    let known = |change: &Change| rows.iter().any(|row| row.change.is_same(change));
    let more = combined(recording, best)?.into_iter().filter(|change| !known(change));
    let more: Vec<Change> = [run.clone()].into_iter().chain(more).collect();
    rows.extend(compare(recording, &more, &mixture).into_iter().skip(1));
    // The recorded run stays first.
    if let Some((_, changes)) = rows.split_first_mut() {
        changes.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    }
    Ok(Judgement { best: best_of(recording, &rows), rows, error: mixture.error, bound_s: bound_s(recording) })
}

/// Whether the change keeps to the vCPUs of the run.
fn is_free(recording: &Recording, row: &Judged) -> bool {
    row.change.workers.iter().sum::<u32>() == recording.workers.iter().sum::<u32>()
}

/// Mixes the models so that they reproduce the recorded time.
fn check(recording: &Recording, run: &Change) -> Mixture {
    let is_shared = recording.vcpus.iter().any(|vcpu| vcpu.mean_share(recording.took_s) < SHARED);
    let turns = recording.turn_ns.filter(|_| is_shared).map(Sharing::Turns);
    let models: Vec<Sharing> = [Sharing::Smooth].into_iter().chain(turns).collect();
    let errors = in_parallel("the check", models.len(), |place| {
        let conditions = Conditions { sharing: models[place], shift: 0.0, seed: 0, records: true };
        replay(recording, run, conditions)
            .map_or(f64::INFINITY, |outcome| outcome.time_s / recording.took_s - 1.0)
    });
    match (&models[..], &errors[..]) {
        (&[smooth, turns], &[below, above]) => {
            let weight = if above > below { (-below / (above - below)).clamp(0.0, 1.0) } else { 0.0 };
            let error = below + weight * (above - below);
            Mixture { models: vec![(smooth, 1.0 - weight), (turns, weight)], error }
        }
        _ => Mixture { models: vec![(Sharing::Smooth, 1.0)], error: errors[0] },
    }
}

/// Replays all changes, of which the first is the run. Leaves out those that cannot be replayed.
fn compare(recording: &Recording, changes: &[Change], mixture: &Mixture) -> Vec<Judged> {
    let each = mixture.models.len() * SHIFTS.len();
    let outcomes = in_parallel("the replays", changes.len() * each, |place| {
        let (model, which) = (place % each / SHIFTS.len(), place % SHIFTS.len());
        let sharing = mixture.models[model].0;
        let conditions = Conditions { sharing, shift: SHIFTS[which], seed: which as u64, records: false };
        replay(recording, &changes[place / each], conditions)
    });
    let all: Vec<Option<Vec<Outcome>>> =
        outcomes.chunks(each).map(|of_change| of_change.iter().cloned().collect()).collect();
    let Some(Some(base)) = all.first() else { return Vec::new() };
    let judged = |(change, outcomes): (&Change, &Option<Vec<Outcome>>)| {
        Some(one(recording, change, mixture, base, outcomes.as_ref()?))
    };
    changes.iter().zip(&all).filter_map(judged).collect()
}

/// Judges a change by its outcomes: those of the first model, and then those of the second.
fn one(
    recording: &Recording,
    change: &Change,
    mixture: &Mixture,
    base: &[Outcome],
    outcomes: &[Outcome],
) -> Judged {
    let mixed = |of: &[Outcome], which: usize| {
        let times = of.iter().skip(which).step_by(SHIFTS.len()).map(|outcome| outcome.time_s);
        times.zip(&mixture.models).map(|(time_s, (_, weight))| time_s * weight).sum::<f64>()
    };
    let gain_of = |which: usize| 1.0 - mixed(outcomes, which) / mixed(base, which);
    let gains = sorted((0..SHIFTS.len()).map(gain_of).collect());
    let by_model: Vec<f64> =
        outcomes.chunks(SHIFTS.len()).zip(base.chunks(SHIFTS.len())).map(middle_gain).collect();
    let apart = by_model.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        - by_model.iter().copied().fold(f64::INFINITY, f64::min);
    let mut moves: Vec<u64> = outcomes.iter().map(|outcome| outcome.moves).collect();
    moves.sort_unstable();
    let (gain, spread) = (middle(&gains), (gains[gains.len() - 1] - gains[0]) / 2.0);
    let is_run = std::ptr::eq(base, outcomes);
    let is_same = gains.iter().all(|gain| *gain == 0.0);
    let of_model = MODEL * apart + if is_same { 0.0 } else { mixture.error.abs() * (1.0 - gain).max(0.0) };
    let of_workers = if change.shares_ranks(recording) { WORKERS } else { 0.0 };
    let of_size = match change.size {
        Size::Same => 0.0,
        Size::Joined(_) => SIZE.max(JOINED * gain.abs()),
        Size::Divided(_) => SIZE + UNEVEN * recording.unevenness().min(1.0),
    };
    Judged {
        change: change.clone(),
        gain,
        spread,
        uncertainty: if is_run { 0.0 } else { EQUAL + spread + of_model + of_workers + of_size },
        time_s: recording.took_s * (1.0 - gain),
        moves: moves[moves.len() / 2],
        first: outcomes[heavier(mixture) * SHIFTS.len()].clone(),
    }
}

/// The model of most weight.
fn heavier(mixture: &Mixture) -> usize {
    usize::from(mixture.models.get(1).is_some_and(|(_, weight)| *weight > 0.5))
}

/// The gain under one model.
fn middle_gain((outcomes, base): (&[Outcome], &[Outcome])) -> f64 {
    middle(&sorted(
        outcomes.iter().zip(base).map(|(outcome, base)| 1.0 - outcome.time_s / base.time_s).collect(),
    ))
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The middle of ascending values.
fn middle(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// The change to make. Changes that gain as much as the best one on the same vCPUs, but for its uncertainty, are equally good.
/// Of these it is the one with the least effort, and then the one with the fewest moves. None if no gain exceeds its
/// uncertainty.
fn best_of(recording: &Recording, rows: &[Judged]) -> Option<usize> {
    let run = &rows.first()?.change;
    let is_good = |row: &Judged| is_free(recording, row) && row.gain > GAIN_MIN.max(row.uncertainty);
    let good = || (1..rows.len()).filter(|&place| is_good(&rows[place]));
    let least = |row: &Judged| row.gain - row.uncertainty;
    let most = good().max_by(|&one, &other| least(&rows[one]).total_cmp(&least(&rows[other])))?;
    let enough = least(&rows[most]) - EQUAL;
    let equal = good().filter(|&place| rows[place].gain > enough);
    equal.min_by_key(|&place| (rows[place].change.effort(run), rows[place].moves))
}
