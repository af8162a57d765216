//! Reads the loads of chunks per iteration, and the messages between them, from a trace with a sync per iteration.

use std::collections::BTreeMap;
use std::path::Path;

use lb_strategies::ChunkId;
use trace_reader::Trace;

/// The loads of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loads {
    /// The chunks, in the order of their ranks.
    pub(crate) chunks: Vec<ChunkId>,
    /// By chunk, its rank.
    pub(crate) ranks: Vec<u32>,
    /// By iteration and chunk: CPU time, ns.
    pub(crate) ns: Vec<Vec<f64>>,
    /// By chunk: the chunks that it sends to.
    pub(crate) sends_to: Vec<Vec<u32>>,
    /// Mean size of a message, bytes.
    pub(crate) message_bytes: f64,
}

/// Reads a trace.
pub(crate) fn read(traces: &Path) -> Result<Loads, String> {
    let trace = Trace::open(traces).map_err(|error| error.to_string())?;
    let reports: Vec<_> = trace.syncs.iter().filter_map(|sync| sync.reported.as_deref()).collect();
    let Some(first) = reports.first() else { return Err("no reports of ranks in its trace".to_owned()) };
    let mut places: Vec<(u32, ChunkId)> =
        first.chunks.iter().map(|chunk| (chunk.load.rank.0, chunk.load.id)).collect();
    places.sort_unstable();
    let number: BTreeMap<ChunkId, usize> = places.iter().map(|(_, id)| *id).zip(0..).collect();
    let mut ns = Vec::new();
    let (mut sends_to, mut messages, mut bytes) = (vec![Vec::new(); places.len()], 0, 0);
    for report in &reports {
        let mut row = vec![0.0; places.len()];
        for chunk in &report.chunks {
            if let Some(&place) = number.get(&chunk.load.id) {
                row[place] = chunk.load.ticks as f64;
            }
        }
        ns.push(row);
        for edge in &report.edges.list {
            let (Some(&from), Some(&to)) = (number.get(&edge.from), number.get(&edge.to)) else { continue };
            (messages, bytes) = (messages + edge.messages, bytes + edge.bytes);
            if !sends_to[from].contains(&(to as u32)) {
                sends_to[from].push(to as u32);
            }
        }
    }
    Ok(Loads {
        chunks: places.iter().map(|(_, id)| *id).collect(),
        ranks: places.iter().map(|(rank, _)| *rank).collect(),
        ns,
        sends_to,
        message_bytes: bytes as f64 / (messages as f64).max(1.0),
    })
}

impl Loads {
    /// These loads, of chunks on the ranks of another run.
    pub(crate) fn placed_as(&self, other: &Loads) -> Result<Loads, String> {
        let number: BTreeMap<ChunkId, usize> = self.chunks.iter().copied().zip(0..).collect();
        let places: Option<Vec<usize>> = other.chunks.iter().map(|id| number.get(id).copied()).collect();
        let places = places.ok_or("runs on different numbers of ranks have different chunks")?;
        let row = |row: &Vec<f64>| places.iter().map(|&place| row[place]).collect();
        Ok(Loads { ns: self.ns.iter().map(row).collect(), ..other.clone() })
    }

    /// The load of a chunk in an iteration, ns. The last iteration is not recorded, and is as the one before it.
    pub(crate) fn at(&self, chunk: u32, iteration: u64) -> f64 {
        let row = (iteration as usize).min(self.ns.len() - 1);
        self.ns[row][chunk as usize]
    }
}
