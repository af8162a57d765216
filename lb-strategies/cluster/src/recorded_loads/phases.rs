//! Combines the files of all ranks into one snapshot per phase.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use lb_strategies::{ArrayId, Block, ChunkId, ChunkLoad, Edge, Memory, Rank, RankLoad, Snapshot};

use super::RecordedLoadsError;
use super::rank_file::{Entry, Listed, Name, RankFile, Sizes};

/// Largest number of ranks, loads and edges in all phases together. Repeated phases make many from a short file.
const SIZE_MAX: usize = 20_000_000;

/// Largest number of phases without an entry.
const LISTED_MAX: u64 = 1_000_000;

/// Speed of a rank whose loads count nothing: strategies limit capacities to it.
const SPEED_MAX: f64 = 1e6;

/// The snapshots of all phases, and the bytes that each rank uses besides its chunks, by phase.
type Phases = (Vec<Snapshot>, Vec<Vec<u64>>);

/// Reads all phases that no file skips.
pub(super) fn read(names: &[&str], files: &[RankFile]) -> Result<Phases, RecordedLoadsError> {
    let mut phases = BTreeSet::new();
    for (file, content) in names.iter().zip(files) {
        let listed =
            covered(content).map_err(|what| RecordedLoadsError { place: (*file).to_owned(), what })?;
        phases.extend(listed);
    }
    for file in files {
        file.leave_out_skipped(&mut phases);
    }
    let mut sizes = phases.iter().flat_map(|phase| files.iter().map(|file| file.size(*phase)));
    let within = |sum: usize, size: usize| Some(sum + size).filter(|sum| *sum <= SIZE_MAX);
    if sizes.try_fold(0, within).is_none() {
        let what = format!("more than {SIZE_MAX} ranks, loads and edges in all phases, expected fewer");
        return Err(RecordedLoadsError { place: format!("{} and those beside it", names[0]), what });
    }
    let ranks = ranks(files);
    let (mut snapshots, mut rank_bytes) = (Vec::new(), Vec::new());
    for phase in phases {
        let entries: Vec<Option<&Entry>> = files.iter().map(|file| file.entry(phase)).collect();
        let mut gathered = Gathered::default();
        for ((rank, file), entry) in (0..).map(Rank).zip(names).zip(&entries) {
            let Some(entry) = entry else { continue };
            let added = gathered.add(rank, entry);
            added.map_err(|(object, first)| RecordedLoadsError {
                place: (*file).to_owned(),
                what: format!(
                    "object {object} has two loads in phase {phase}, one in {}, expected each object once",
                    names[first.index()]
                ),
            })?;
        }
        gathered.connect(entries.iter().copied().flatten());
        snapshots.push(gathered.finish(phase, ranks.clone()));
        rank_bytes.push(entries.iter().map(|entry| entry.map_or(0, |entry| entry.rank_bytes)).collect());
    }
    Ok((snapshots, rank_bytes))
}

impl RankFile {
    /// Removes the phases that the file skips.
    fn leave_out_skipped(&self, phases: &mut BTreeSet<u64>) {
        for range in self.listed.iter().flat_map(|listed| &listed.skipped) {
            let skipped = phases.range(range.clone()).filter(|phase| !self.entries.contains_key(phase));
            for phase in skipped.copied().collect::<Vec<u64>>() {
                phases.remove(&phase);
            }
        }
    }

    /// Number of loads and edges in a phase, and one for the rank.
    fn size(&self, phase: u64) -> usize {
        self.entry(phase).map_or(1, |entry| 1 + entry.tasks.len() + entry.edges.len())
    }

    /// The entry of a phase, or the one that it repeats.
    fn entry(&self, phase: u64) -> Option<&Entry> {
        self.entries.get(&phase).or_else(|| {
            let repeated = &self.listed.as_ref()?.repeated;
            let earlier = contains(repeated, phase).then(|| self.entries.range(..phase).next_back());
            earlier?.map(|(_, entry)| entry)
        })
    }
}

/// True if a phase is in one of the ranges, which are in order and do not overlap.
fn contains(ranges: &[RangeInclusive<u64>], phase: u64) -> bool {
    let begun = ranges.partition_point(|range| *range.start() <= phase);
    begun > 0 && ranges[begun - 1].contains(&phase)
}

/// The phases of a file that have an entry or repeat one. If the file lists phases without an entry, no phase may be
/// missing.
fn covered(file: &RankFile) -> Result<BTreeSet<u64>, String> {
    let mut phases: BTreeSet<u64> = file.entries.keys().copied().collect();
    let Some(Listed { skipped, repeated }) = &file.listed else { return Ok(phases) };
    let long = |range: &RangeInclusive<u64>| (range.end() - range.start()).saturating_add(1);
    let count = skipped.iter().chain(repeated).map(long).fold(0, u64::saturating_add);
    if count > LISTED_MAX {
        return Err(format!("metadata.phases lists {count} phases, expected {LISTED_MAX} at most"));
    }
    for phase in repeated.iter().cloned().flatten() {
        if file.entry(phase).is_none() {
            return Err(format!(
                "phase {phase} is like the previous one, and there is none, expected an entry before it"
            ));
        }
        phases.insert(phase);
    }
    let mut known = phases.clone();
    known.extend(skipped.iter().cloned().flatten());
    let next = known.iter().zip(known.iter().skip(1)).find(|(phase, next)| **phase + 1 != **next);
    match next {
        None => Ok(phases),
        Some((phase, _)) => Err(format!(
            "phase {} is missing, expected an entry, or its number in a list of metadata.phases",
            phase + 1
        )),
    }
}

/// The ranks. Hosts are numbered in the order in which they appear; a rank without a host has its own.
fn ranks(files: &[RankFile]) -> Vec<RankLoad> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut hosts = 0;
    let mut ranks = Vec::new();
    for file in files {
        let known = file.host.as_deref().and_then(|name| numbers.get(name).copied());
        let host = known.unwrap_or(hosts);
        hosts += u32::from(known.is_none());
        numbers.extend(file.host.as_deref().map(|name| (name, host)));
        let speed = file.alpha.map_or(1.0, |alpha| (1.0 / alpha).min(SPEED_MAX));
        ranks.push(RankLoad { speed, host, ..RankLoad::default() });
    }
    ranks
}

/// The chunks and edges of one phase.
#[derive(Default)]
struct Gathered {
    chunks: Vec<ChunkLoad>,
    sizes: Vec<Sizes>,
    /// By object: position of its chunk.
    positions: BTreeMap<u64, usize>,
    /// By sequence number: position of the chunk, none if several have the number.
    by_sequence: BTreeMap<u64, Option<usize>>,
    /// By positions of the two ends: messages and bytes.
    edges: BTreeMap<(usize, usize), (u64, u64)>,
}

impl Gathered {
    /// Adds the tasks of a rank, in the order of their ids.
    ///
    /// # Errors
    /// An object that has a load already, and the rank of that load.
    fn add(&mut self, rank: Rank, entry: &Entry) -> Result<(), (u64, Rank)> {
        let mut tasks: Vec<_> = entry.tasks.iter().collect();
        tasks.sort_by_key(|task| task.object);
        for task in tasks {
            let position = self.chunks.len();
            match self.positions.entry(task.object) {
                Place::Vacant(place) => place.insert(position),
                Place::Occupied(place) => return Err((task.object, self.chunks[*place.get()].rank)),
            };
            if let Some(number) = task.sequence {
                self.by_sequence.entry(number).and_modify(|chunk| *chunk = None).or_insert(Some(position));
            }
            self.sizes.push(task.sizes);
            self.chunks.push(ChunkLoad {
                id: ChunkId { array: ArrayId(0), key: task.object },
                rank,
                ticks: (task.seconds * 1e9).round() as u64,
                bytes: task.sizes.state.or(task.sizes.footprint).unwrap_or(1),
                migratable: task.migratable,
            });
        }
        Ok(())
    }

    /// Adds the edges of all ranks. Any file may have an edge, and several may. The last of equal pairs counts, as in
    /// vt and LBAF.
    fn connect<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>) {
        for edge in entries.flat_map(|entry| &entry.edges) {
            let [from, to] = [edge.from, edge.to].map(|name| match name {
                Name::Id(id) => self.positions.get(&id).copied(),
                Name::Sequence(number) => self.by_sequence.get(&number).copied().flatten(),
            });
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                self.edges.insert((from, to), (edge.messages, edge.bytes));
            }
        }
    }

    fn finish(self, phase: u64, ranks: Vec<RankLoad>) -> Snapshot {
        let memory = memory(&self.sizes);
        let edge = |((from, to), (messages, bytes))| Edge { from, to, messages, bytes };
        let edges = self.edges.into_iter().map(edge).collect();
        Snapshot { phase, ranks, chunks: self.chunks, edges, memory, ..Snapshot::default() }
    }
}

/// The memory of the chunks, without limits; none if no file says anything about it.
fn memory(sizes: &[Sizes]) -> Option<Memory> {
    let says = |sizes: &Sizes| sizes.footprint.is_some() || sizes.working.is_some() || sizes.block.is_some();
    if !sizes.iter().any(says) {
        return None;
    }
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    for (position, (number, bytes)) in
        sizes.iter().enumerate().filter_map(|(at, sizes)| Some((at, sizes.block?)))
    {
        let block = blocks.entry(number).or_default();
        block.bytes = block.bytes.max(bytes);
        block.chunks.push(position);
    }
    Some(Memory {
        limits: Vec::new(),
        footprints: sizes.iter().map(|sizes| sizes.footprint.unwrap_or(0)).collect(),
        working: sizes.iter().map(|sizes| sizes.working.unwrap_or(0)).collect(),
        blocks: blocks.into_values().collect(),
    })
}
