//! Reads a recorded snapshot for `caribou balance --snapshot`, and refuses one that contradicts itself. Strategies
//! accept any snapshot, but the user of a damaged file needs an error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lb_strategies::{ChunkId, LinkCosts, Snapshot};

use crate::input;

/// Largest sum of the ticks of all chunks. Sums below it fit in 64 bits, and fractions of them are exact enough.
const TICKS_MAX: u64 = 1 << 62;

/// Largest sum of the memory of all chunks and blocks, for the same reason.
const BYTES_MAX: u64 = 1 << 62;

/// Where a user gets a snapshot.
const OWN_FORM: &str = "; `caribou trace export --to snapshot` writes such files";

/// Characters shown of a message of the JSON reader.
const MESSAGE_MAX: usize = 200;

/// Reads the snapshot in `file`. The error names the file, the fault, and what was expected.
pub(crate) fn read(file: &Path) -> Result<Snapshot, String> {
    let name = file.display();
    let bytes = input::read(file).map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let bytes = input::without_mark(&bytes);
    let snapshot = serde_json::from_slice(bytes).map_err(|error| {
        let no_json = if error.is_syntax() || error.is_eof() { "no valid JSON: " } else { "" };
        format!("{name}: not a snapshot: {no_json}{}{}", one_line(&error), foreign(bytes).unwrap_or(OWN_FORM))
    })?;
    contradiction(&snapshot).map_or(Ok(snapshot), |what| Err(format!("{name}: {what}")))
}

/// Names the other load-balancing programs that write such files, if `bytes` looks like one of their files.
fn foreign(bytes: &[u8]) -> Option<&'static str> {
    if std::str::from_utf8(bytes).is_err() {
        return Some(
            "; it is not text, perhaps a file of LBAF or vt that brotli compressed: `caribou balance --lbdata STEM` \
             reads those",
        );
    }
    let json: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    json.get("phases").map(|_| {
        "; it looks like a file of LBAF or vt: `caribou trace export --to lbdata` writes such files, \
         `caribou balance --lbdata STEM` reads them"
    })
}

/// Reads a snapshot from memory. The error is one line.
pub(crate) fn parse(bytes: &[u8]) -> Result<Snapshot, String> {
    let snapshot = serde_json::from_slice(input::without_mark(bytes)).map_err(|error| one_line(&error))?;
    contradiction(&snapshot).map_or(Ok(snapshot), Err)
}

/// The error in one line of limited length: serde repeats names of fields, of any length and with any characters.
fn one_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let mut line = String::new();
    for letter in text.chars().take(MESSAGE_MAX) {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    if text.chars().nth(MESSAGE_MAX).is_some() {
        line += &format!("... at line {} column {}", error.line(), error.column());
    }
    line
}

/// Returns the first value in the snapshot that cannot have been measured.
fn contradiction(snapshot: &Snapshot) -> Option<String> {
    if snapshot.ranks.is_empty() {
        return Some("ranks: none, expected one at least".to_owned());
    }
    rank_contradiction(snapshot)
        .or_else(|| chunk_contradiction(snapshot))
        .or_else(|| loose_edge(snapshot))
        .or_else(|| link_contradiction(snapshot))
        .or_else(|| memory_contradiction(snapshot))
}

fn rank_contradiction(snapshot: &Snapshot) -> Option<String> {
    for (position, rank) in snapshot.ranks.iter().enumerate() {
        if !(rank.speed.is_finite() && rank.speed > 0.0) {
            return Some(format!("ranks[{position}]: speed is {}, expected a number above 0", rank.speed));
        }
        if !(rank.share > 0.0 && rank.share <= 1.0) {
            return Some(format!(
                "ranks[{position}]: share is {}, expected a number above 0 and up to 1",
                rank.share
            ));
        }
    }
    None
}

fn chunk_contradiction(snapshot: &Snapshot) -> Option<String> {
    let ranks = snapshot.ranks.len();
    let mut ids = BTreeMap::new();
    let mut ticks = 0_u64;
    for (position, chunk) in snapshot.chunks.iter().enumerate() {
        let rank = chunk.rank;
        if rank.index() >= ranks {
            return Some(format!(
                "chunks[{position}]: rank is {rank}, expected one of the {ranks} ranks, counted from 0"
            ));
        }
        if let Some(first) = ids.insert(chunk.id, position) {
            let ChunkId { array, key } = chunk.id;
            return Some(format!(
                "chunks[{position}]: array {array}, key {key} are those of chunks[{first}], expected each chunk once"
            ));
        }
        ticks = match ticks.checked_add(chunk.ticks).filter(|&ticks| ticks <= TICKS_MAX) {
            Some(ticks) => ticks,
            None => {
                return Some(format!(
                    "chunks[{position}]: the ticks of the chunks up to here exceed {TICKS_MAX}"
                ));
            }
        };
    }
    None
}

fn loose_edge(snapshot: &Snapshot) -> Option<String> {
    let chunks = snapshot.chunks.len();
    let loose = snapshot.edges.iter().position(|edge| edge.from.max(edge.to) >= chunks)?;
    Some(format!("edges[{loose}]: names a chunk that is not there, expected a position below {chunks}"))
}

fn link_contradiction(snapshot: &Snapshot) -> Option<String> {
    let LinkCosts { within_host, between_hosts } = snapshot.links;
    let costs = [("within_host", within_host), ("between_hosts", between_hosts)].map(|(link, cost)| {
        [(link, "ns_per_message", cost.ns_per_message), (link, "ns_per_byte", cost.ns_per_byte)]
    });
    let (link, field, ns) = costs.into_iter().flatten().find(|(_, _, ns)| !(ns.is_finite() && *ns >= 0.0))?;
    Some(format!("links.{link}: {field} is {ns}, expected a number from 0"))
}

fn memory_contradiction(snapshot: &Snapshot) -> Option<String> {
    let memory = snapshot.memory.as_ref()?;
    let (chunks, ranks) = (snapshot.chunks.len(), snapshot.ranks.len());
    for (field, length, most, what) in [
        ("limits", memory.limits.len(), ranks, "ranks"),
        ("footprints", memory.footprints.len(), chunks, "chunks"),
        ("working", memory.working.len(), chunks, "chunks"),
    ] {
        if length > most {
            return Some(format!(
                "memory.{field}: {length} values, expected {most} at most, the number of {what}"
            ));
        }
    }
    for (position, block) in memory.blocks.iter().enumerate() {
        if let Some(chunk) = block.chunks.iter().find(|&&chunk| chunk >= chunks) {
            return Some(format!(
                "memory.blocks[{position}]: chunk {chunk} is not there, expected a position below {chunks}"
            ));
        }
        if let Some(chunk) = repeated(&block.chunks) {
            return Some(format!(
                "memory.blocks[{position}]: chunk {chunk} is there twice, expected each chunk once"
            ));
        }
    }
    let footprints = memory.footprints.iter().copied();
    let others = snapshot.chunks.iter().skip(memory.footprints.len()).map(|chunk| chunk.bytes);
    let blocks = memory.blocks.iter().map(|block| block.bytes);
    let working = memory.working.iter().copied();
    let bytes = footprints.chain(others).chain(blocks).chain(working).fold(0, u64::saturating_add);
    (bytes > BYTES_MAX).then(|| format!("memory: {bytes} bytes in all, expected {BYTES_MAX} at most"))
}

/// The first position that is in the list twice.
fn repeated(chunks: &[usize]) -> Option<usize> {
    let mut seen = BTreeSet::new();
    chunks.iter().copied().find(|&chunk| !seen.insert(chunk))
}
