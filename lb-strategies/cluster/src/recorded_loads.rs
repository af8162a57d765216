//! Reads the loads of chunks that real runs recorded, in the file formats of vt (DARMA's tasking runtime) and LBAF.
//!
//! A run has one file per rank, with the loads of the objects of the rank in each phase. An object is a chunk here.
//!
//! | format | content |
//! |---|---|
//! | [`Vom`](LoadFormat::Vom) | lines `phase,object,seconds`; lines of five fields are communication |
//! | [`Json`](LoadFormat::Json) | an object with `phases`, each with an `id` and `tasks`; a task has `time` and `entity` |
//!
//! Communication is checked in the first format and not used: its object ids are not those of the loads. The second
//! format has edges, hosts, speeds of ranks and memory too; [`RecordedLoads::parse`] lists what is read. Phases are
//! read in the order of their numbers, which may have gaps.
//!
//! The module gets bytes: its caller opens the files, and decompresses them if needed.

mod json;
mod phases;
mod rank_file;
mod vom;

use std::collections::BTreeMap;

use super::array_simulation::Home;
use super::cost_table::CostTable;
use lb_strategies::{Assignment, Background, ChunkId, Memory, Rank, Snapshot, metrics};

/// The largest load that is allowed, s.
const SECONDS_MAX: f64 = 1e6;
/// The largest number of loads (phases times objects): 400 MB.
const LOADS_MAX: usize = 50_000_000;

/// The format of a file of loads.
///
/// ```
/// assert_eq!(virtual_cluster::LoadFormat::Vom.extension(), "vom");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFormat {
    /// Lines of text.
    Vom,
    /// JSON.
    Json,
}

impl LoadFormat {
    /// Both formats.
    pub const ALL: [LoadFormat; 2] = [LoadFormat::Vom, LoadFormat::Json];

    /// The extension of the names of its files.
    pub fn extension(self) -> &'static str {
        match self {
            LoadFormat::Vom => "vom",
            LoadFormat::Json => "json",
        }
    }
}

/// An error in a file of loads.
///
/// ```
/// use virtual_cluster::{LoadFormat, RecordedLoads};
/// let error = RecordedLoads::parse(LoadFormat::Vom, &[("a.0.vom", b"0,7,1.5\n0,8,x\n")]).unwrap_err();
/// assert_eq!(error.to_string(), "a.0.vom:2: \"x\" is no load, expected seconds, a number from 0 to 1e6");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct RecordedLoadsError {
    /// The file, with the line or field if known.
    place: String,
    /// The error, and what is expected.
    what: String,
}

/// The loads of one run.
///
/// ```
/// use virtual_cluster::{LoadFormat, RecordedLoads};
/// let files = [("a.0.vom", &b"0,7,1.5\n1,7,2.0\n"[..]), ("a.1.vom", b"1,9,0.25\n")];
/// let loads = RecordedLoads::parse(LoadFormat::Vom, &files)?;
/// assert_eq!((loads.ranks(), loads.phases(), loads.homes().len()), (2, 2, 2));
/// assert_eq!(loads.costs(10.0).cost(1, 1), 2.5);
/// assert_eq!(loads.costs(1.0).cost(1, 0), 0.0, "object 9 was not there yet");
/// assert_eq!(loads.mean_phase_s(), 1.75);
/// assert_eq!(loads.snapshots()[1].chunks[1].ticks, 250_000_000);
/// # Ok::<(), virtual_cluster::RecordedLoadsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedLoads {
    /// One per phase, in ascending order. Each has the same number of ranks, and memory without limits.
    snapshots: Vec<Snapshot>,
    /// By phase and rank: bytes that the rank uses besides its chunks.
    rank_bytes: Vec<Vec<u64>>,
    /// Number of edges whose bytes were not whole.
    rounded_edges: usize,
    /// Ordered by first rank, then by id.
    homes: Vec<(ChunkId, Home)>,
}

impl RecordedLoads {
    /// Reads the files of a run, the first of rank 0. Each file has a name for error messages, and its content.
    ///
    /// A chunk is on the rank whose file has its load. Its ticks are ns of the recorded time, so fixed tasks are chunks
    /// that may not migrate. Of JSON, [`snapshots`](Self::snapshots) have besides:
    ///
    /// | in the snapshot | in the files |
    /// |---|---|
    /// | edges | `SendRecv` between two different objects that have loads; the last of equal pairs counts |
    /// | host of a rank | `shared_node.id` of the metadata, or `host` of its attributes; else a host of its own |
    /// | speed of a rank | 1 / `rank_alpha`, at most 1e6 |
    /// | bytes of a chunk | `task_serialized_bytes`, else `task_footprint_bytes`, else the attribute `state_bytes`, else 1 |
    /// | memory | `task_footprint_bytes`, `task_working_bytes`, and blocks by `shared_id` and `shared_bytes` |
    ///
    /// A phase like the one before it (`identical_to_previous`) is repeated. A phase that a file skips is left
    /// out, and so is a task of time 0 with an invalid id, as vt writes in phase 0.
    ///
    /// # Errors
    /// If a file has another format, there are no loads at all, or an object has two loads in a phase. A load must be a
    /// number of seconds up to 1e6.
    pub fn parse(format: LoadFormat, files: &[(&str, &[u8])]) -> Result<Self, RecordedLoadsError> {
        let read = |(rank, &(name, bytes)): (usize, &(&str, &[u8]))| match format {
            LoadFormat::Vom => vom::read(name, bytes),
            LoadFormat::Json => json::read(rank, name, bytes),
        };
        let content = files.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let (snapshots, rank_bytes) = phases::read(&names, &content)?;
        let rounded_edges =
            content.iter().flat_map(|file| file.entries.values()).map(|entry| entry.rounded_edges).sum();
        let all = names.first().map_or_else(String::new, |name| format!("{name} and those beside it"));
        let loads = Self::new(snapshots).map_err(|what| RecordedLoadsError { place: all, what })?;
        Ok(Self { rank_bytes, rounded_edges, ..loads })
    }

    /// The loads in the snapshots of the phases of a run, in order.
    ///
    /// # Errors
    /// If there is no chunk at all, the number of ranks changes, or there are too many loads.
    pub fn new(snapshots: Vec<Snapshot>) -> Result<Self, String> {
        let homes = homes(&snapshots);
        if homes.is_empty() {
            return Err("no load in any file, expected one at least".to_owned());
        }
        if homes.len().saturating_mul(snapshots.len()) > LOADS_MAX {
            let (objects, phases) = (homes.len(), snapshots.len());
            return Err(format!("{objects} objects in {phases} phases, expected {LOADS_MAX} loads at most"));
        }
        let ranks = snapshots[0].ranks.len();
        if let Some(other) = snapshots.iter().find(|snapshot| snapshot.ranks.len() != ranks) {
            let (phase, others) = (other.phase, other.ranks.len());
            return Err(format!("{others} ranks in phase {phase}, expected {ranks} as in the first phase"));
        }
        let rank_bytes = vec![vec![0; ranks]; snapshots.len()];
        Ok(Self { rank_bytes, rounded_edges: 0, snapshots, homes })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.snapshots[0].ranks.len() as u32
    }

    /// Number of phases.
    pub fn phases(&self) -> u64 {
        self.snapshots.len() as u64
    }

    /// Number of recorded edges whose bytes were not whole, and were rounded.
    pub fn rounded_edges(&self) -> usize {
        self.rounded_edges
    }

    /// Where each chunk begins: the rank of its first phase. Chunks are ordered by this rank, then by the ids of their
    /// objects.
    pub fn homes(&self) -> Vec<Home> {
        self.homes.iter().map(|(_, home)| *home).collect()
    }

    /// Where each chunk begins on another number of ranks: in blocks, in the order of [`homes`](Self::homes).
    ///
    /// # Panics
    /// If there is no rank.
    pub fn homes_on(&self, ranks: u32) -> Vec<Home> {
        assert!(ranks > 0, "chunks begin on a rank");
        let mut homes = self.homes();
        if ranks != self.ranks() {
            let chunks = homes.len() as u64;
            let block = |chunk| Rank((chunk * u64::from(ranks) / chunks) as u32);
            homes.iter_mut().zip(0..).for_each(|(home, chunk)| home.rank = block(chunk));
        }
        homes
    }

    /// Costs of chunks, one row per phase: seconds times `scale`. A chunk without a load in a phase costs nothing.
    pub fn costs(&self, scale: f64) -> CostTable {
        let column: BTreeMap<ChunkId, usize> = self.homes.iter().map(|(id, _)| *id).zip(0..).collect();
        let mut costs = vec![0.0; self.homes.len() * self.snapshots.len()];
        for (snapshot, row) in self.snapshots.iter().zip(costs.chunks_mut(self.homes.len())) {
            for chunk in &snapshot.chunks {
                row[column[&chunk.id]] = chunk.ticks as f64 / 1e9 * scale;
            }
        }
        CostTable::new(self.homes.len() as u32, costs)
    }

    /// Mean length of a phase in the placement of the files: the time of the busiest rank, s.
    pub fn mean_phase_s(&self) -> f64 {
        let longest_ns = |snapshot: &Snapshot| {
            metrics::max_ns(snapshot, &Assignment::current(snapshot), Background::Share) as f64
        };
        self.snapshots.iter().map(longest_ns).sum::<f64>() / 1e9 / self.snapshots.len() as f64
    }

    /// Mean size of a chunk that has a recorded size; none if no chunk has more than 1 byte.
    ///
    /// ```
    /// use virtual_cluster::{LoadFormat, RecordedLoads};
    /// let loads = RecordedLoads::parse(LoadFormat::Vom, &[("a.0.vom", b"0,7,1.5\n")])?;
    /// assert_eq!(loads.mean_bytes(), None, "this format has no sizes");
    /// # Ok::<(), virtual_cluster::RecordedLoadsError>(())
    /// ```
    pub fn mean_bytes(&self) -> Option<u64> {
        let chunks = self.snapshots.iter().flat_map(|snapshot| &snapshot.chunks);
        let add = |(sum, count): (u128, u128), bytes: u64| (sum + u128::from(bytes), count + 1);
        let (sum, count) = chunks.map(|chunk| chunk.bytes).filter(|&bytes| bytes > 1).fold((0, 0), add);
        (count > 0).then(|| ((sum + count / 2) / count) as u64)
    }

    /// The phases as a strategy would get them, with the chunks that have a load in them.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// Limits the memory of each rank to `bytes`, less what the rank uses besides its chunks (`rank_working_bytes`).
    pub fn limit_memory(&mut self, bytes: u64) {
        for (snapshot, used) in self.snapshots.iter_mut().zip(&self.rank_bytes) {
            let memory = snapshot.memory.get_or_insert_with(Memory::default);
            memory.limits = used.iter().map(|used| bytes.saturating_sub(*used)).collect();
        }
    }
}

/// All chunks with their first ranks. A chunk that may not migrate in one phase may not migrate at all.
fn homes(snapshots: &[Snapshot]) -> Vec<(ChunkId, Home)> {
    let mut homes: BTreeMap<ChunkId, Home> = BTreeMap::new();
    for chunk in snapshots.iter().flat_map(|snapshot| &snapshot.chunks) {
        let first = Home { rank: chunk.rank, migratable: true };
        homes.entry(chunk.id).or_insert(first).migratable &= chunk.migratable;
    }
    let mut homes: Vec<(ChunkId, Home)> = homes.into_iter().collect();
    homes.sort_by_key(|(id, home)| (home.rank, *id));
    homes
}

/// The error for a text that should be a load.
fn no_load(text: &str) -> String {
    format!("{text:?} is no load, expected seconds, a number from 0 to {SECONDS_MAX:e}")
}

#[cfg(test)]
mod tests;
