//! Reads the loads of chunks that real runs recorded, in the file formats of vt (DARMA's tasking runtime) and LBAF.
//!
//! A run has one file per rank, with the loads of the objects of the rank in each phase. An object is a chunk here.
//!
//! | format | content |
//! |---|---|
//! | [`Vom`](LoadFormat::Vom) | lines `phase,object,seconds`; lines of five fields are communication |
//! | [`Json`](LoadFormat::Json) | an object with `phases`, each with an `id` and `tasks`; a task has `time` and `entity` |
//!
//! Communication is checked in the first format, and used in neither. Phases are read in the order of their numbers,
//! which may have gaps. An object without a load in a phase costs nothing in it, and begins on the rank that had it
//! first.
//!
//! The module gets bytes: its caller opens the files, and decompresses them if needed.

mod json;
mod vom;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::array_simulation::Home;
use super::cost_table::CostTable;
use lb_strategies::{ArrayId, ChunkId, ChunkLoad, Rank, RankLoad, Snapshot};

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

/// The load of an object in a phase.
#[derive(Clone, Copy)]
struct Task {
    phase: u64,
    object: u64,
    seconds: f64,
    migratable: bool,
}

/// An object, with its place as a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Object {
    id: u64,
    home: Home,
}

/// The loads of one run.
///
/// ```
/// use lb_strategies::Rank;
/// use virtual_cluster::{LoadFormat, RecordedLoads};
/// let files = [("a.0.vom", &b"0,7,1.5\n1,7,2.0\n"[..]), ("a.1.vom", b"1,9,0.25\n")];
/// let loads = RecordedLoads::parse(LoadFormat::Vom, &files)?;
/// assert_eq!((loads.ranks(), loads.phases(), loads.homes().len()), (2, 2, 2));
/// assert_eq!(loads.costs(10.0).cost(1, 1), 2.5);
/// assert_eq!(loads.costs(1.0).cost(1, 0), 0.0, "object 9 was not there yet");
/// assert_eq!(loads.mean_phase_s(), 1.75);
/// # Ok::<(), virtual_cluster::RecordedLoadsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedLoads {
    ranks: u32,
    /// Ordered by first rank, then by id.
    objects: Vec<Object>,
    /// The numbers of the phases, in ascending order.
    phases: Vec<u64>,
    /// The loads in seconds, one row per phase.
    seconds: Vec<f64>,
}

impl RecordedLoads {
    /// Reads the files of a run, the first of rank 0. Each file has a name for error messages, and its content.
    ///
    /// # Errors
    /// If a file has another format, there are no loads at all, or an object has two loads in a phase. A load must be a
    /// number of seconds up to 1e6.
    pub fn parse(format: LoadFormat, files: &[(&str, &[u8])]) -> Result<Self, RecordedLoadsError> {
        let mut gathered = Gathered::default();
        for (rank, (file, bytes)) in files.iter().enumerate() {
            let mut take = |place: &str, task: Task| {
                gathered.add(rank, task).map_err(|what| RecordedLoadsError { place: place.to_owned(), what })
            };
            match format {
                LoadFormat::Vom => vom::read(file, bytes, &mut take)?,
                LoadFormat::Json => json::read(file, bytes, &mut take)?,
            }
        }
        let all =
            || files.first().map_or_else(String::new, |(file, _)| format!("{file} and those beside it"));
        gathered.finish(files.len()).map_err(|what| RecordedLoadsError { place: all(), what })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Number of phases.
    pub fn phases(&self) -> u64 {
        self.phases.len() as u64
    }

    /// Where each chunk begins. Chunks are ordered by this rank, then by the ids of their objects.
    pub fn homes(&self) -> Vec<Home> {
        self.objects.iter().map(|object| object.home).collect()
    }

    /// Costs of chunks, one row per phase: seconds times `scale`.
    pub fn costs(&self, scale: f64) -> CostTable {
        CostTable::new(
            self.objects.len() as u32,
            self.seconds.iter().map(|seconds| seconds * scale).collect(),
        )
    }

    /// Mean length of a phase if objects had stayed on their first ranks: the time of the busiest rank, s.
    pub fn mean_phase_s(&self) -> f64 {
        let longest_s = |row: &[f64]| {
            let mut of_ranks = vec![0.0; self.ranks as usize];
            row.iter().zip(&self.objects).for_each(|(seconds, object)| {
                of_ranks[object.home.rank.index()] += seconds;
            });
            of_ranks.into_iter().fold(0.0, f64::max)
        };
        self.seconds.chunks(self.objects.len()).map(longest_s).sum::<f64>() / self.phases.len() as f64
    }

    /// The phases as a strategy would get them on equal ranks, if objects had stayed on their first ranks. An object
    /// without a load in a phase has load 0 in it.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> + '_ {
        self.phases.iter().zip(self.seconds.chunks(self.objects.len())).map(|(&phase, row)| {
            let chunk = |(object, seconds): (&Object, &f64)| ChunkLoad {
                id: ChunkId { array: ArrayId(0), key: object.id },
                rank: object.home.rank,
                ticks: (seconds * 1e9).round() as u64,
                bytes: 1,
                migratable: object.home.migratable,
            };
            let ranks = vec![RankLoad::default(); self.ranks as usize];
            Snapshot {
                phase,
                ranks,
                chunks: self.objects.iter().zip(row).map(chunk).collect(),
                ..Snapshot::default()
            }
        })
    }
}

/// The content of the files read so far.
#[derive(Default)]
struct Gathered {
    /// By object.
    objects: BTreeMap<u64, Seen>,
    /// By phase and object.
    seconds: BTreeMap<u64, BTreeMap<u64, f64>>,
}

/// An object, as in the first phase that has it.
struct Seen {
    phase: u64,
    rank: u32,
    migratable: bool,
}

impl Gathered {
    fn add(&mut self, rank: usize, task: Task) -> Result<(), String> {
        let Task { phase, object, seconds, migratable } = task;
        if !(0.0..=SECONDS_MAX).contains(&seconds) {
            return Err(no_load(&seconds.to_string()));
        }
        if self.seconds.entry(phase).or_default().insert(object, seconds).is_some() {
            return Err(format!("object {object} has two loads in phase {phase}, expected each object once"));
        }
        let seen = Seen { phase, rank: rank as u32, migratable };
        match self.objects.entry(object) {
            Entry::Vacant(place) => {
                place.insert(seen);
            }
            Entry::Occupied(mut place) => {
                let migratable = migratable && place.get().migratable;
                if phase < place.get().phase {
                    place.insert(seen);
                }
                place.get_mut().migratable = migratable;
            }
        }
        Ok(())
    }

    fn finish(self, ranks: usize) -> Result<RecordedLoads, String> {
        let loads = self.objects.len().saturating_mul(self.seconds.len());
        if loads == 0 {
            return Err("no load in any file, expected one at least".to_owned());
        }
        if loads > LOADS_MAX {
            return Err(format!(
                "{} objects in {} phases, expected {LOADS_MAX} loads at most",
                self.objects.len(),
                self.seconds.len()
            ));
        }
        let home = |seen: &Seen| Home { rank: Rank(seen.rank), migratable: seen.migratable };
        let mut objects: Vec<Object> =
            self.objects.iter().map(|(&id, seen)| Object { id, home: home(seen) }).collect();
        objects.sort_by_key(|object| (object.home.rank, object.id));
        let row = |loads: &BTreeMap<u64, f64>| -> Vec<f64> {
            objects.iter().map(|object| loads.get(&object.id).copied().unwrap_or(0.0)).collect()
        };
        let seconds = self.seconds.values().flat_map(row).collect();
        Ok(RecordedLoads {
            ranks: ranks as u32,
            phases: self.seconds.into_keys().collect(),
            seconds,
            objects,
        })
    }
}

/// The error for a text that should be a load.
fn no_load(text: &str) -> String {
    format!("{text:?} is no load, expected seconds, a number from 0 to {SECONDS_MAX:e}")
}

#[cfg(test)]
mod tests;
