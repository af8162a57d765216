//! Lists the changes that the command tries, and the settings with which a user makes each of them.

use std::sync::Arc;

use lb_strategies::{ARRAYS, Period, Strategy};

use super::command_line;
use super::program::Size;
use super::recording::Recording;
use crate::Error;

/// Strategies that are tried, beside that of the run.
const STRATEGIES: [&str; 3] = ["none", "refine", "greedy"];
/// Chunks are not divided into more than this number for each worker.
const CHUNKS_EACH_MAX: f64 = 256.0;
/// The strategy of a run without settings.
const DEFAULT: &str = "refine";
/// Number of ranks from which `hierarchical` is tried.
const MANY_RANKS: usize = 64;
/// Iterations between two syncs that are tried.
const PERIODS: [u64; 3] = [5, 20, 100];

/// A way to run the program.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) lb: String,
    pub(super) strategy: Arc<dyn Strategy>,
    pub(super) period: Period,
    pub(super) size: Size,
    /// Workers of each rank.
    pub(super) workers: Vec<u32>,
}

impl Change {
    /// The run as it was recorded.
    ///
    /// # Errors
    /// If the program brought a strategy of its own.
    pub(super) fn recorded(recording: &Recording) -> Result<Change, Error> {
        let lb = recording.lb.clone();
        let unknown = |why| {
            Error::Usage(format!(
                "the run was balanced by `{lb}`, which cannot be replayed: {why}; record it under another strategy, such as none"
            ))
        };
        Ok(Change {
            strategy: ARRAYS.parse(&lb).map_err(unknown)?.into(),
            lb,
            period: recording.period,
            size: Size::Same,
            workers: recording.workers.clone(),
        })
    }

    /// The same under another strategy of the table.
    fn under(&self, lb: &str) -> Result<Change, Error> {
        Ok(Change { lb: lb.to_owned(), strategy: parse(lb)?, ..self.clone() })
    }

    /// Whether workers share ranks otherwise than in the recorded run.
    pub(super) fn shares_ranks(&self, recording: &Recording) -> bool {
        self.workers.iter().zip(&recording.workers).any(|(now, recorded)| now != recorded)
    }

    /// Whether it needs other vCPUs than the recorded run.
    pub(super) fn needs_vcpus(&self, recording: &Recording) -> bool {
        self.workers.iter().sum::<u32>() > recording.workers.iter().sum()
    }

    /// How much a user has to change to get from `other` to this: a setting of the balancer is less than chunks of another size,
    /// and that is less than other ranks. The default strategy is the least.
    pub(super) fn effort(&self, other: &Change) -> u32 {
        let differ = [
            (self.lb != other.lb, if self.lb == DEFAULT { 1 } else { 2 }),
            (self.moves() && self.period != other.period, 1),
            (self.size != other.size, 2),
            (self.workers != other.workers, 3),
        ];
        differ.into_iter().filter(|(differs, _)| *differs).map(|(_, effort)| effort).sum()
    }

    /// Whether chunks ever move.
    pub(super) fn moves(&self) -> bool {
        self.strategy.terms().moves
    }

    /// Whether both give the same run.
    pub(super) fn is_same(&self, other: &Change) -> bool {
        self.effort(other) == 0
    }
}

fn parse(lb: &str) -> Result<Arc<dyn Strategy>, Error> {
    let parsed = ARRAYS.parse(lb).map_err(|source| Error::Strategy { spec: lb.to_owned(), source })?;
    Ok(parsed.into())
}

/// Each single change of the run, the run itself first.
pub(super) fn singles(recording: &Recording) -> Result<Vec<Change>, Error> {
    let run = Change::recorded(recording)?;
    let mut changes = vec![run.clone()];
    let many = (recording.workers.len() >= MANY_RANKS).then_some("hierarchical");
    for lb in STRATEGIES.into_iter().chain(many) {
        let name = run.lb.split(',').next().unwrap_or_default();
        if lb != name {
            changes.push(run.under(lb)?);
        }
    }
    let balanced = if run.moves() { run.clone() } else { run.under(DEFAULT)? };
    for period in periods(recording) {
        changes.push(Change { period, ..balanced.clone() });
    }
    for size in sizes(recording).into_iter().filter(|size| *size != Size::Divided(16)) {
        changes.push(Change { size, ..run.clone() });
    }
    changes.extend(other_workers(recording).into_iter().map(|workers| Change { workers, ..run.clone() }));
    Ok(distinct(changes))
}

/// Combinations of the best single change with the sizes of chunks and with other ranks. Smaller chunks alone help nobody if
/// nothing moves them, so they are combined with the default strategy too.
pub(super) fn combined(recording: &Recording, best: &Change) -> Result<Vec<Change>, Error> {
    let mut bases = vec![best.clone()];
    if !best.moves() {
        bases.push(Change { period: Period::Auto, ..best.under(DEFAULT)? });
    }
    let mut changes = Vec::new();
    for base in bases {
        let sizes = sizes(recording).into_iter();
        changes.extend(sizes.map(|size| Change { size, ..base.clone() }));
        changes
            .extend(other_workers(recording).into_iter().map(|workers| Change { workers, ..base.clone() }));
    }
    // On one rank no strategy has anything to do.
    let is_idle = |change: &Change| change.workers.len() == 1 && change.moves() && change.lb != recording.lb;
    changes.retain(|change| !is_idle(change));
    Ok(distinct(changes))
}

/// The sizes of chunks that can be typed, and leave enough chunks for each worker, but not very many.
fn sizes(recording: &Recording) -> Vec<Size> {
    let all = [Size::Joined(4), Size::Joined(2), Size::Divided(2), Size::Divided(4), Size::Divided(16)];
    let each = recording.chunks() as f64 / f64::from(recording.workers.iter().sum::<u32>().max(1));
    let has_room = |size: &Size| match size {
        Size::Divided(parts) => each * f64::from(*parts) <= CHUNKS_EACH_MAX,
        Size::Same | Size::Joined(_) => true,
    };
    let is_typed = |size: &Size| command_line::has_size(&recording.arguments, *size);
    all.into_iter().filter(has_room).filter(is_typed).collect()
}

/// The periods that the run has room for.
fn periods(recording: &Recording) -> Vec<Period> {
    let iterations = recording.steps() as u64 / recording.steps_per_iteration;
    let syncs = PERIODS.into_iter().filter(|period| 3 * period <= iterations).map(Period::Steps);
    [Period::Auto].into_iter().chain(syncs).collect()
}

/// Other numbers of ranks with the same workers each, and the same workers on half of the ranks.
fn other_workers(recording: &Recording) -> Vec<Vec<u32>> {
    let workers = &recording.workers;
    let mut all = Vec::new();
    if workers.len() >= 2 {
        all.push(workers[..workers.len().div_ceil(2)].to_vec());
    }
    let on_one_host = |pair: &[u32]| pair.iter().all(|host| *host == pair[0]);
    if workers.len().is_multiple_of(2) && recording.hosts.chunks(2).all(on_one_host) {
        all.push(workers.chunks(2).map(|pair| pair.iter().sum()).collect());
    }
    if recording.chunks() >= 2 * workers.len() {
        all.push([&workers[..], &workers[..]].concat());
    }
    all
}

/// Each change once, the first of equal ones.
fn distinct(changes: Vec<Change>) -> Vec<Change> {
    let mut kept: Vec<Change> = Vec::new();
    for change in changes {
        if !kept.iter().any(|other| other.is_same(&change)) {
            kept.push(change);
        }
    }
    kept
}
