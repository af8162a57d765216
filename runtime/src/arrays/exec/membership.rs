//! Array membership of chunks: applies effects that contribute to reductions or insert chunks, and ends removed chunks.
//!
//! | effect of a chunk | its reports to the reductions |
//! |---|---|
//! | contributes to its next reduction | one, with values |
//! | contributes to the reduction of step `s`, or abstains until it | one without values to each before `s`; a contribution also reports to `s` |
//! | leaves the reductions, or is removed | one more, as a member that leaves |

use super::watermarks::bytes_of;
use super::worker::Worker;
use crate::arrays::core::collectives::reduction::{ReductionSpec, Values};
use crate::arrays::core::collectives::section::SectionContribution;
use crate::arrays::core::command::Commands;
use crate::arrays::core::lifecycle::erased::ErasedSlot;
use crate::arrays::core::lifecycle::transfer::ChunkTransfer;
use crate::arrays::core::rank::RankCore;
use crate::arrays::core::routing::message_list::MessageList;
use crate::ids::{CellId, ChunkId};

/// Maximum number of reductions that a chunk may abstain from at once: each takes a separate report.
const ABSTAINS_MAX: u64 = 1 << 16;

impl Worker<'_> {
    /// Contributes to the next reduction of the array, or to the reduction of `step`.
    pub(super) fn contribute(
        &mut self,
        chunk: ChunkId,
        slot: &mut dyn ErasedSlot,
        spec: ReductionSpec,
        values: Values,
        step: Option<u64>,
    ) {
        let mut contributed = None;
        self.with_core(|core, _, out| {
            let step = step.unwrap_or(slot.record().reductions.next);
            if abstain_until(core, chunk, slot, step, out) {
                let report = slot.record().reductions.report();
                contributed = Some(report.sequence);
                core.contribute(chunk, report, spec, values, out);
            }
        });
        if let (Some(recorder), Some(sequence)) = (self.instruments.recorder(), contributed) {
            recorder.contributed(chunk, sequence);
        }
    }

    pub(super) fn contribute_in(&mut self, chunk: ChunkId, contribution: SectionContribution) {
        if let Some(recorder) = self.instruments.recorder() {
            recorder.contributed(chunk, contribution.sequence);
        }
        self.with_core(|core, _, out| core.contribute_in(chunk, contribution, out));
    }

    pub(super) fn abstain_until(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot, step: u64) {
        let reductions = &slot.record().reductions;
        if !reductions.has_left() && step <= reductions.next {
            return;
        }
        self.with_core(|core, _, out| _ = abstain_until(core, chunk, slot, step, out));
    }

    pub(super) fn leave_reductions(&mut self, chunk: ChunkId, slot: &mut dyn ErasedSlot) {
        self.with_core(|core, _, out| core.leave_reductions(chunk, slot.record(), out));
    }

    /// Inserts a chunk without a parent. Rank 0 decides at which reduction and sync it joins.
    pub(super) fn insert_root(&mut self, chunk: ChunkId, slot: Box<dyn ErasedSlot>) {
        self.with_core(|core, _, out| core.insert_root(ChunkTransfer::inserted(chunk, slot), out));
    }

    /// Inserts a child of `parent`. The child joins at the next reduction and the next sync of the parent.
    pub(super) fn insert(
        &mut self,
        chunk: ChunkId,
        mut child: Box<dyn ErasedSlot>,
        parent: &mut dyn ErasedSlot,
    ) {
        child.record().join(parent.record());
        let transfer = Box::new(ChunkTransfer::inserted(chunk, child));
        self.with_core(|core, _, out| core.insert(transfer, out));
    }

    /// Frees the cell of a removed chunk. Messages that the chunk did not handle are counted and dropped: they were for
    /// this chunk, and not for the next chunk of its index.
    #[cold]
    pub(super) fn vacate(
        &mut self,
        chunk: ChunkId,
        id: CellId,
        slot: Box<dyn ErasedSlot>,
        mail: MessageList,
    ) {
        let kept_bytes = slot.deferred_bytes();
        let (kept, newer) = (slot.into_deferred(), self.shared.cells.get(id).mailbox.vacate());
        self.clear_blocked();
        self.count_out(kept_bytes + bytes_of(&mail) + bytes_of(&newer));
        let unread = kept.into_iter().chain(mail.into_messages()).chain(newer.into_messages());
        // Broadcasts and results for all chunks have number 0 and are not counted: a removed chunk does not miss them.
        let own = unread.filter(|delivery| delivery.from.number > 0);
        let array = &self.shared.arrays[chunk.array.index()];
        let kinds: Vec<_> = own.map(|delivery| array.kind(&delivery.payload)).collect();
        self.shared.cells.free(id);
        if !kinds.is_empty() {
            self.with_core(|core, _, _| core.unread(chunk, kinds));
        }
    }
}

/// Abstains from all reductions before `step`. If that is not possible, fails the run and returns false.
fn abstain_until(
    core: &mut RankCore,
    chunk: ChunkId,
    slot: &mut dyn ErasedSlot,
    step: u64,
    out: &mut Commands,
) -> bool {
    let reductions = &mut slot.record().reductions;
    let next = reductions.next;
    let why = if reductions.has_left() {
        "takes part in a reduction, but has left all reductions".to_owned()
    } else if step < next {
        format!(
            "contributes to reduction {step}, but its next one is {next}: it has contributed to earlier ones, or \
             abstained from them"
        )
    } else if step - next > ABSTAINS_MAX {
        format!(
            "takes part in reduction {step}, but its next one is {next}: it can skip at most {ABSTAINS_MAX} at once, \
             so number reductions consecutively"
        )
    } else {
        for _ in next..step {
            core.abstain(chunk, reductions.report(), out);
        }
        return true;
    };
    core.refuse_contribution(chunk, &why, out);
    false
}
