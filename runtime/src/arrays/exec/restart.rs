//! Restart: reads the part of a checkpoint that is for one rank. The run may have another number of ranks than before.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use lb_strategies::{Moments, Strategy};

use super::build::moments;
use crate::arrays::core::checkpoint::{CoreImage, RankImage};
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::signature::restart_difference;
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer};
use crate::checkpoint::{Content, Saved, offering_older};
use crate::config::Config;
use crate::ids::{ArrayId, ChunkId, ROOT, Rank};
use crate::warn::print_line;
use crate::wire;

/// Checks that a program can be saved and restarted. The error is the reason why not.
pub(super) fn check_saved(
    config: &Config,
    arrays: &[Arc<dyn ErasedArray>],
    strategy: &dyn Strategy,
) -> Result<(), String> {
    if let Moments::Syncs { .. } = moments(config, arrays, strategy) {
        let (period, name) = (config.balanced(), strategy.name());
        return Err(format!(
            "a program with syncs cannot be saved, expected CARIBOU_LB_PERIOD=auto or a time (here {period}), a \
             strategy that moves chunks while they run (here `{name}`), and no array that moves at syncs only"
        ));
    }
    if !arrays.iter().any(|array| array.syncs()) {
        return Err("no array takes part in balancing, during which checkpoints begin".into());
    }
    match (0..).zip(arrays).find(|(_, array)| array.has_seeds()) {
        Some((number, array)) => {
            Err(format!("array {number} `{}` has spawned chunks, which are not saved yet", array.name()))
        }
        None => Ok(()),
    }
}

/// The part of a checkpoint for one rank.
#[derive(Default)]
pub(super) struct Restored {
    pub(super) image: RankImage,
    /// The chunks that restart away from their home rank, each with its rank. Includes chunks that do not exist yet.
    pub(super) moved: Vec<(ChunkId, Rank)>,
}

/// Reads the part of a checkpoint for this rank. Chunks restart where they were if the number of ranks is the same, all
/// ranks were active, and the strategy moves chunks. Otherwise they restart on their home ranks. The file of rank 0 is
/// read first, because it records whether all ranks were active.
pub(super) fn restart(
    path: &Path,
    rank: Rank,
    ranks: u32,
    config: &Config,
    arrays: &[Arc<dyn ErasedArray>],
    strategy: &dyn Strategy,
) -> Result<Restored, String> {
    let saved = Saved::open(path).map_err(|why| offering_older(path, why))?;
    let name = path.display();
    saved.check_program(config.program_settings())?;
    let Content::Arrays(saved_arrays) = &saved.manifest.content else {
        return Err(saved.of_another("a program of chunks"));
    };
    let signatures: Vec<_> = arrays.iter().map(|array| array.signature(ranks)).collect();
    if let Some(what) = restart_difference(saved_arrays, &signatures) {
        return Err(format!("{name} is of another program: {what}"));
    }
    let mut keeps_places = saved.files() == ranks as usize && strategy.terms().moves;
    let mut places = Places { rank, ranks, kept: None, arrays, found: BTreeSet::new(), moved: Vec::new() };
    let mut all = RankImage::default();
    for writer in 0..saved.files() {
        let bytes = saved.file(writer).map_err(|why| offering_older(path, why))?;
        let image: RankImage = wire::decode(&bytes).map_err(|why| format!("{name}/rank-{writer}: {why}"))?;
        if let Some(root) = &image.rest.root {
            keeps_places &= !root.is_resized;
        }
        places.kept = keeps_places.then_some(Rank(writer as u32));
        let its_part = part_of(image, &mut places).map_err(|why| format!("{name}/rank-{writer}: {why}"))?;
        all.chunks.extend(its_part.chunks);
        all.timers.extend(its_part.timers);
        let CoreImage { pending, insertions, at_quiescence, root } = its_part.rest;
        all.rest.pending.extend(pending);
        all.rest.insertions.extend(insertions);
        all.rest.at_quiescence.extend(at_quiescence);
        all.rest.root = all.rest.root.or(root);
    }
    if rank == ROOT && config.launch().speaks() {
        print_line(&saved.announcement());
    }
    Ok(Restored { image: all, moved: places.moved })
}

/// The ranks on which chunks restart, as one rank computes them.
struct Places<'a> {
    rank: Rank,
    ranks: u32,
    /// The rank of the image that is being read, if chunks restart where they were.
    kept: Option<Rank>,
    arrays: &'a [Arc<dyn ErasedArray>],
    /// The chunks in the images so far that have their home on this rank.
    found: BTreeSet<ChunkId>,
    /// The chunks so far that restart away from their home ranks. Includes chunks that do not exist yet.
    moved: Vec<(ChunkId, Rank)>,
}

impl Places<'_> {
    /// The home rank of a chunk. None for a chunk of a group, which begins anew.
    fn home(&self, chunk: ChunkId) -> Result<Option<Rank>, String> {
        let array = array_of(chunk, self.arrays)?;
        Ok((!array.is_group()).then(|| array.home(chunk.key, self.ranks)))
    }

    /// True if a chunk of the present image is to be on this rank. `exists` is false for a chunk that does not exist
    /// yet. An error if an earlier image had the chunk: found on its home rank, since all copies have the same home.
    fn is_here(&mut self, chunk: ChunkId, exists: bool) -> Result<bool, String> {
        let Some(home) = self.home(chunk)? else { return Ok(false) };
        if exists && home == self.rank && !self.found.insert(chunk) {
            return Err(format!("it contains {} twice", array_of(chunk, self.arrays)?.describe(chunk)));
        }
        let place = self.kept.unwrap_or(home);
        if place != home {
            self.moved.push((chunk, place));
        }
        Ok(place == self.rank)
    }
}

/// The part of a rank's image that is for this rank, with its chunks decoded. All ranks get the state of rank 0.
fn part_of(image: RankImage, places: &mut Places<'_>) -> Result<RankImage, String> {
    let RankImage { chunks, timers, rest: CoreImage { pending, insertions, at_quiescence, root } } = image;
    let &mut Places { rank, ranks, arrays, .. } = places;
    let mut part = RankImage::default();
    for mut transfer in chunks {
        if places.is_here(transfer.chunk, true)? {
            decode(&mut transfer, arrays)?;
            if let ChunkBody::Live(slot) = &mut transfer.body {
                let record = slot.record();
                record.wish = record.wish.filter(|wish| wish.0 < ranks);
                slot.on_arrive();
            }
            part.chunks.push(transfer);
        }
    }
    for (left_ns, envelope) in timers {
        if places.home(envelope.to)? == Some(rank) {
            part.timers.push((left_ns, envelope));
        }
    }
    for (chunk, messages) in pending {
        if places.is_here(chunk, false)? {
            part.rest.pending.push((chunk, messages));
        }
    }
    for (_, mut transfer) in insertions {
        if places.is_here(transfer.chunk, false)? {
            decode(&mut transfer, arrays)?;
            part.rest.insertions.push((rank, transfer));
        }
    }
    for envelope in at_quiescence {
        // Rank 0 keeps these messages for all ranks.
        if !array_of(envelope.to, arrays)?.is_group() && rank == ROOT {
            part.rest.at_quiescence.push(envelope);
        }
    }
    part.rest.root = root;
    if let Some(root) = &mut part.rest.root {
        if root.broadcasts.len() != arrays.len() || !root.reductions.are_of(arrays.len()) {
            return Err("its reductions and broadcasts belong to other arrays".into());
        }
        let groups = (0..).map(ArrayId).zip(arrays).filter(|(_, array)| array.is_group());
        groups.for_each(|(id, array)| root.reductions.begin_anew(id, array.population()));
    }
    Ok(part)
}

fn array_of(chunk: ChunkId, arrays: &[Arc<dyn ErasedArray>]) -> Result<&Arc<dyn ErasedArray>, String> {
    arrays.get(chunk.array.index()).ok_or_else(|| format!("this program has no array {}", chunk.array))
}

fn decode(transfer: &mut ChunkTransfer, arrays: &[Arc<dyn ErasedArray>]) -> Result<(), String> {
    let array = &arrays[transfer.chunk.array.index()];
    let ChunkBody::Encoded(bytes) = &transfer.body else {
        return Err(format!("{} has no state", array.describe(transfer.chunk)));
    };
    let slot = array.decode_slot(transfer.chunk.key, bytes);
    let slot = slot.map_err(|why| format!("{} cannot be read: {why}", array.describe(transfer.chunk)))?;
    transfer.body = ChunkBody::Live(slot);
    Ok(())
}
