//! Restart: what a checkpoint has for a rank of a run with any number of ranks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lb_strategies::{Moments, Strategy};

use super::build::moments;
use crate::arrays::core::checkpoint::{CoreImage, RankImage};
use crate::arrays::core::lifecycle::erased::ErasedArray;
use crate::arrays::core::lifecycle::signature::restart_difference;
use crate::arrays::core::lifecycle::transfer::{ChunkBody, ChunkTransfer};
use crate::checkpoint::read;
use crate::config::Config;
use crate::ids::{ChunkId, ROOT, Rank};
use crate::text::counted;
use crate::warn::print_line;
use crate::wire;

/// Checks that checkpoints can be made of a program, and that it can be restarted from one. The error says why not.
pub(super) fn check_saved(
    config: &Config,
    arrays: &[Arc<dyn ErasedArray>],
    strategy: &dyn Strategy,
) -> Result<(), String> {
    if let Moments::Syncs { .. } = moments(config, arrays, strategy) {
        let name = strategy.name();
        return Err(format!(
            "the state of syncs is not saved, expected CARIBOU_LB_PERIOD=auto or a time, with a strategy that moves chunks \
             while they run, not {name}"
        ));
    }
    if !arrays.iter().any(|array| array.syncs()) {
        return Err("no array takes part in balancing: the time for a checkpoint is not looked for".into());
    }
    match (0..).zip(arrays).find(|(_, array)| array.has_seeds()) {
        Some((number, array)) => {
            Err(format!("array {number} `{}` has spawned chunks, which are not saved yet", array.name()))
        }
        None => Ok(()),
    }
}

/// What a checkpoint has for this rank.
pub(super) fn restart(
    path: &Path,
    rank: Rank,
    ranks: u32,
    config: &Config,
    arrays: &[Arc<dyn ErasedArray>],
) -> Result<RankImage, String> {
    let (manifest, files) = read(path)?;
    let name = path.display();
    let signatures: Vec<_> = arrays.iter().map(|array| array.signature(ranks)).collect();
    if let Some(what) = restart_difference(&manifest.arrays, &signatures) {
        return Err(format!("{name} is of another program: {what}"));
    }
    if rank == ROOT && config.launch().speaks() {
        let elapsed = Duration::from_nanos(manifest.elapsed_ns);
        print_line(&format!(
            "caribou: goes on from {name}, {elapsed:.3?} after its run began, {} then",
            counted(files.len(), "rank", "ranks")
        ));
    }
    let mut all = RankImage::default();
    for (writer, bytes) in files.iter().enumerate() {
        let image = wire::decode(bytes).map_err(|why| format!("{name}/rank-{writer}: {why}"))?;
        let its_part = part_of(rank, ranks, image, arrays);
        let its_part = its_part.map_err(|why| format!("{name}/rank-{writer}: {why}"))?;
        all.chunks.extend(its_part.chunks);
        let CoreImage { pending, insertions, at_quiescence, root } = its_part.rest;
        all.rest.pending.extend(pending);
        all.rest.insertions.extend(insertions);
        all.rest.at_quiescence.extend(at_quiescence);
        all.rest.root = all.rest.root.or(root);
    }
    Ok(all)
}

/// The part of the image of some rank that is for this one, with its chunks decoded. All ranks get what rank 0 knew.
fn part_of(
    rank: Rank,
    ranks: u32,
    image: RankImage,
    arrays: &[Arc<dyn ErasedArray>],
) -> Result<RankImage, String> {
    let RankImage { chunks, rest: CoreImage { pending, insertions, at_quiescence, root } } = image;
    let is_here = |chunk: ChunkId| match arrays.get(chunk.array.index()) {
        Some(array) => Ok(array.home(chunk.key, ranks) == rank),
        None => Err(format!("there is no array {}", chunk.array)),
    };
    let mut part = RankImage::default();
    for mut transfer in chunks {
        if is_here(transfer.chunk)? {
            decode(&mut transfer, arrays)?;
            if let ChunkBody::Live(slot) = &mut transfer.body {
                let record = slot.record();
                record.wish = record.wish.filter(|wish| wish.0 < ranks);
                slot.on_arrive();
            }
            part.chunks.push(transfer);
        }
    }
    for (chunk, messages) in pending {
        if is_here(chunk)? {
            part.rest.pending.push((chunk, messages));
        }
    }
    for (_, mut transfer) in insertions {
        if is_here(transfer.chunk)? {
            decode(&mut transfer, arrays)?;
            part.rest.insertions.push((rank, transfer));
        }
    }
    if rank == ROOT {
        part.rest.at_quiescence = at_quiescence;
    }
    part.rest.root = root;
    Ok(part)
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
