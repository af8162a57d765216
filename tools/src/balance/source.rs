//! Takes snapshots from where the options say: a file, recorded loads, or a synthetic workload.

use std::path::PathBuf;

use lb_strategies::Snapshot;
use lb_strategies::synthetic::Workload;
use presentation::count_parser;

use super::model::Model;
use crate::{Error, recorded, room, snapshot_file};

/// One of a synthetic snapshot, a file, and recorded loads.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Source {
    /// Chunks of the synthetic snapshot.
    #[arg(long, default_value_t = 10_000, value_parser = count_parser(1..=u32::MAX))]
    chunks: u32,
    /// Ranks of the synthetic snapshot; 100 if not given.
    #[arg(long, value_parser = count_parser(1..=u32::MAX))]
    ranks: Option<u32>,
    /// Shape of the synthetic snapshot: uniform, lognormal, ramp, tenth-slow, noisy-rank, giant, equal or hot-spots.
    #[arg(long, default_value = "uniform", value_parser = Workload::ALL.map(Workload::name))]
    workload: String,
    /// Seed of the synthetic snapshot.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A recorded snapshot in JSON, instead of a synthetic one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chunks", "ranks", "workload", "seed", "lbdata"])]
    snapshot: Option<PathBuf>,
    /// Loads and messages recorded by vt or LBAF, or by `caribou trace export --to lbdata`: the files STEM.RANK.json or
    /// STEM.RANK.vom.
    #[arg(long, value_name = "STEM", conflicts_with_all = ["chunks", "ranks", "workload", "seed"])]
    lbdata: Option<String>,
    /// Phase of the recorded loads, or `all`; the last one if not given.
    #[arg(long, value_name = "N|all", value_parser = phase)]
    phase: Option<Phase>,
}

/// The phases to balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    All,
    One(u64),
}

fn phase(text: &str) -> Result<Phase, String> {
    match text {
        "all" => Ok(Phase::All),
        number => {
            number.parse().map(Phase::One).map_err(|_| "expected the number of a phase, or all".to_owned())
        }
    }
}

/// Default of `--ranks`.
const RANKS: u32 = 100;

/// Approximate memory of a snapshot and its assignments, in bytes per chunk and per rank.
const CHUNK_BYTES: u64 = 100;
const RANK_BYTES: u64 = 200;

impl Source {
    /// The number of ranks, if an option sets it.
    pub(super) fn given_ranks(&self) -> Option<u32> {
        self.ranks
    }

    /// True if the results are of all phases, even if there is one.
    pub(super) fn is_all(&self) -> bool {
        self.phase == Some(Phase::All)
    }

    /// The snapshots under this model of messages and memory.
    pub(super) fn snapshots(&self, model: &Model) -> Result<Vec<Snapshot>, Error> {
        if let Some(stem) = &self.lbdata {
            return self.recorded(stem, model);
        }
        if self.phase.is_some() {
            return Err(Error::Usage("--phase is for --lbdata: any other snapshot is of one phase".into()));
        }
        let mut snapshot = match &self.snapshot {
            Some(file) => snapshot_file::read(file).map_err(Error::File)?,
            None => self.synthetic()?,
        };
        model.limit_memory(&mut snapshot);
        model.apply(&mut snapshot);
        Ok(vec![snapshot])
    }

    fn synthetic(&self) -> Result<Snapshot, Error> {
        self.check_room(caribou::machine::available_memory())?;
        let workload = Workload::named(&self.workload).expect("clap lets only listed names pass");
        Ok(workload.snapshot(self.chunks as usize, self.ranks.unwrap_or(RANKS) as usize, self.seed))
    }

    fn recorded(&self, stem: &str, model: &Model) -> Result<Vec<Snapshot>, Error> {
        let mut loads = recorded::read("--lbdata ", stem)?;
        recorded::note(stem, &loads, 1.0);
        if let Some(bytes) = model.memory_limit() {
            loads.limit_memory(bytes);
        }
        let all = loads.snapshots();
        let chosen = match self.phase {
            Some(Phase::All) => all,
            Some(Phase::One(phase)) => {
                let found = all.iter().position(|snapshot| snapshot.phase == phase);
                let position = found.ok_or_else(|| no_phase(phase, all))?;
                &all[position..=position]
            }
            None => &all[all.len() - 1..],
        };
        let mut snapshots = chosen.to_vec();
        snapshots.iter_mut().for_each(|snapshot| model.apply(snapshot));
        Ok(snapshots)
    }

    /// Refuses a synthetic snapshot that needs more memory than `available`, in bytes.
    fn check_room(&self, available: Option<u64>) -> Result<(), Error> {
        let (chunks, ranks) = (self.chunks, self.ranks.unwrap_or(RANKS));
        let needed = u64::from(chunks) * CHUNK_BYTES + u64::from(ranks) * RANK_BYTES;
        room::check(&format!("--chunks {chunks} --ranks {ranks}: the snapshot"), needed, available)
    }
}

fn no_phase(phase: u64, all: &[Snapshot]) -> Error {
    let [first, last] =
        [all.first(), all.last()].map(|snapshot| snapshot.map_or(0, |snapshot| snapshot.phase));
    Error::Usage(format!(
        "--phase {phase}: not recorded, expected one of the {} phases from {first} to {last}, or all",
        all.len()
    ))
}
