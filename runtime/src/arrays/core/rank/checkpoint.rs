//! Drives checkpoints on one rank. The states and rules are in [`checkpoint`](crate::arrays::core::checkpoint).

use std::collections::BTreeSet;

use super::RankCore;
use crate::arrays::core::checkpoint::{
    CheckpointPacket, CoreImage, FrozenCounts, RankImage, RankWritten, RootImage,
};
use crate::arrays::core::command::{Command, Commands, Task};
use crate::arrays::core::lifecycle::transfer::ChunkTransfer;
use crate::arrays::core::sync::coordinator::Coordinator;
use crate::arrays::core::termination::quiescence::{Quiescence, SearchStep};
use crate::checkpoint::{Schedule, Written};
use crate::error::Error;
use crate::ids::{ArrayId, CellId, ChunkId, ROOT, Rank};

const SECTIONS: &str = "no checkpoint is made: reductions over sections cannot be saved yet";

impl RankCore {
    /// Rank 0: makes checkpoints by this schedule.
    pub(crate) fn checkpointing(mut self, schedule: Schedule) -> RankCore {
        self.checkpoints.schedule = Some(schedule);
        self
    }

    /// A packet of a checkpoint.
    pub(super) fn handle_checkpoint(&mut self, packet: CheckpointPacket, now_ns: u64, out: &mut Commands) {
        match packet {
            CheckpointPacket::Freeze => self.freeze(out),
            CheckpointPacket::Probe => self.checkpoints.probe(),
            CheckpointPacket::ProbeReply(counts) => self.frozen_replied(counts, now_ns, out),
            CheckpointPacket::Save { number } => self.save(number, out),
            CheckpointPacket::Copied => self.copied(now_ns, out),
            CheckpointPacket::Thaw => self.thaw(now_ns, out),
            CheckpointPacket::Written(written) => self.written(written, now_ns, out),
            CheckpointPacket::Notice(by) => {
                if let Some(schedule) = &mut self.checkpoints.schedule {
                    out.later.extend(schedule.pass_on_notice(by).map(Task::Warn));
                    self.begin_checkpoint(now_ns, out);
                }
            }
            CheckpointPacket::Ask => self.ask_for_checkpoint(now_ns, out),
        }
    }

    /// Rank 0: begins a checkpoint if one is due and may be made. True if all ranks stop.
    pub(crate) fn begin_checkpoint(&mut self, now_ns: u64, out: &mut Commands) -> bool {
        let is_free = self.sync.coordinator.as_ref().is_some_and(Coordinator::may_open_window);
        let Some(schedule) = self.checkpoints.schedule.as_mut().filter(|schedule| schedule.is_due(now_ns))
        else {
            return false;
        };
        if is_free {
            schedule.begin();
            self.checkpoints.search = Quiescence::default();
            let step = self.checkpoints.search.suspect();
            debug_assert_eq!(step, SearchStep::Wave, "`Freeze` is the first wave");
            self.broadcast_down(ROOT, CheckpointPacket::Freeze, now_ns, out);
        }
        is_free
    }

    /// A chunk requests a checkpoint, in a run that makes some. Rank 0 makes it at once, or soon.
    pub(crate) fn ask_for_checkpoint(&mut self, now_ns: u64, out: &mut Commands) {
        match &mut self.checkpoints.schedule {
            Some(schedule) => {
                schedule.ask();
                self.begin_checkpoint(now_ns, out);
            }
            None => self.send(ROOT, CheckpointPacket::Ask, now_ns, out),
        }
    }

    /// The process of this rank has been given notice by `by`. Rank 0 soon makes a checkpoint, and then ends the run.
    pub(crate) fn noticed(&mut self, by: String, now_ns: u64, out: &mut Commands) {
        match &mut self.checkpoints.schedule {
            Some(schedule) => {
                schedule.give_notice(by);
                self.begin_checkpoint(now_ns, out);
            }
            None => self.send(ROOT, CheckpointPacket::Notice(by), now_ns, out),
        }
    }

    /// True while all ranks stop. Timers that are due have to wait.
    pub(crate) fn holds_timers(&self) -> bool {
        self.checkpoints.stops()
    }

    fn freeze(&mut self, out: &mut Commands) {
        let cells: Vec<CellId> = self.all_chunks().into_iter().map(|(_, cell)| cell).collect();
        self.checkpoints.freeze(cells.clone());
        out.now.push_back(Command::Hold(cells.clone()));
        cells.into_iter().for_each(|cell| self.unblock_leaving(cell, out));
    }

    fn all_chunks(&self) -> Vec<(ChunkId, CellId)> {
        let arrays = (0..self.arrays.len() as u32).map(ArrayId);
        arrays.flat_map(|array| self.routing.location.residents(array)).collect()
    }

    /// This rank is idle: replies to a probe if it is frozen.
    pub(super) fn reply_if_frozen(&mut self, now_ns: u64, out: &mut Commands) {
        if self.checkpoints.take_probe() {
            let (traffic, sections) = (self.termination.traffic, self.collectives.sections.in_use());
            let counts = FrozenCounts { traffic, sections };
            self.frozen_replied(counts, now_ns, out);
        }
    }

    /// This rank is frozen and idle, or a child and all ranks below it are.
    pub(super) fn frozen_replied(&mut self, counts: FrozenCounts, now_ns: u64, out: &mut Commands) {
        let Some(total) = self.checkpoints.replies.add(&self.tree, |sum| *sum += counts) else { return };
        let Some(schedule) = &mut self.checkpoints.schedule else {
            return self.send_up(CheckpointPacket::ProbeReply(total), now_ns, out);
        };
        let search = &mut self.checkpoints.search;
        let step = match search.wave_answered(total.traffic) {
            // Packets were in flight. They have arrived when all ranks have replied again.
            SearchStep::Wait => search.suspect(),
            step => step,
        };
        let number = schedule.number;
        let packet = match step {
            SearchStep::Wave | SearchStep::Wait => CheckpointPacket::Probe,
            SearchStep::Quiescent if total.sections > 0 => {
                schedule.give_up();
                match schedule.notice.take() {
                    Some(by) => {
                        return self.fail(Error::InterruptedUnsaved { by, why: SECTIONS.into() }, out);
                    }
                    None => out.later.push_back(Task::Warn(SECTIONS.into())),
                }
                CheckpointPacket::Thaw
            }
            SearchStep::Quiescent => CheckpointPacket::Save { number },
        };
        self.broadcast_down(ROOT, packet, now_ns, out);
    }

    /// No packet is in flight: returns the state of this rank in a task, to be copied.
    fn save(&mut self, number: u64, out: &mut Commands) {
        let root = (self.tree.rank == ROOT).then(|| RootImage {
            reductions: self.collectives.reductions.root_image(),
            broadcasts: self.collectives.broadcasts.numbered(),
            is_resized: self.sync.coordinator.as_ref().is_some_and(Coordinator::is_resized),
        });
        let rest = CoreImage {
            pending: self.routing.location.take_pending().into_iter().collect(),
            insertions: std::mem::take(&mut self.checkpoints.insertions),
            at_quiescence: std::mem::take(&mut self.termination.at_quiescence),
            root,
        };
        let is_saved = |chunk: ChunkId| !self.arrays[chunk.array.index()].is_group();
        let chunks = self.all_chunks().into_iter().filter(|&(chunk, _)| is_saved(chunk)).collect();
        let next = self.collectives.broadcasts.next_of_all();
        out.later.push_back(Task::Save { number, chunks, next_broadcasts: next, rest: Box::new(rest) });
    }

    /// Answers [`Task::Save`]: this rank has copied its state. Takes back the state that was in the task.
    pub(crate) fn saved(&mut self, rest: CoreImage, now_ns: u64, out: &mut Commands) {
        let CoreImage { pending, insertions, at_quiescence, root: _ } = rest;
        for (chunk, messages) in pending {
            self.routing.location.prepend_pending(chunk, messages);
        }
        self.checkpoints.insertions = insertions;
        self.termination.at_quiescence = at_quiescence;
        self.copied(now_ns, out);
    }

    /// This rank, or a child and all ranks below it, have copied their state.
    fn copied(&mut self, now_ns: u64, out: &mut Commands) {
        if self.checkpoints.copied.add(&self.tree, |()| ()).is_none() {
            return;
        }
        match self.tree.parent() {
            Some(_) => self.send_up(CheckpointPacket::Copied, now_ns, out),
            None => self.broadcast_down(ROOT, CheckpointPacket::Thaw, now_ns, out),
        }
    }

    fn thaw(&mut self, now_ns: u64, out: &mut Commands) {
        let cells = self.checkpoints.thaw();
        out.now.push_back(Command::Thaw(cells));
        let insertions = std::mem::take(&mut self.checkpoints.insertions);
        self.admit_inserted(insertions, BTreeSet::new(), out);
        if let Some(active) = self.sync.deferred_resize.take() {
            self.resize(active, now_ns, out);
        }
    }

    /// Admits chunks that were inserted and kept. The indices `taken` belong to chunks that are about to be admitted.
    fn admit_inserted(
        &mut self,
        insertions: Vec<(Rank, Box<ChunkTransfer>)>,
        mut taken: BTreeSet<ChunkId>,
        out: &mut Commands,
    ) {
        for (by, transfer) in insertions {
            if !taken.insert(transfer.chunk) {
                let (chunk, rank) = (self.describe(transfer.chunk), self.tree.rank);
                return self.fail(Error::IndexInUse { chunk, rank, by }, out);
            }
            self.receive_inserted(by, transfer, out);
        }
    }

    /// Answers [`Command::Thaw`] for a chunk. Blocks the chunk again if flow control blocked it when it was held.
    pub(crate) fn thawed(&mut self, cell: CellId, is_full: bool) {
        if self.flow.control.leave(cell) {
            self.block_incoming(cell, is_full);
        }
    }

    /// This rank has written its copy, or could not write it.
    pub(crate) fn rank_written(&mut self, written: Result<Written, String>, now_ns: u64, out: &mut Commands) {
        self.written(vec![(self.tree.rank, written)], now_ns, out);
    }

    fn written(&mut self, written: Vec<RankWritten>, now_ns: u64, out: &mut Commands) {
        let Some(all) = self.checkpoints.written.add(&self.tree, |sum| sum.extend(written)) else { return };
        match &self.checkpoints.schedule {
            None => self.send_up(CheckpointPacket::Written(all), now_ns, out),
            Some(schedule) => {
                let (number, arrays) = (schedule.number, self.lifecycle.signatures.clone());
                out.later.push_back(Task::CommitCheckpoint { number, arrays, written: all });
            }
        }
    }

    /// Answers [`Task::CommitCheckpoint`]. `checkpoint` is the name of the checkpoint, or the reason why there is none.
    /// After a notice the run ends here.
    pub(crate) fn committed(&mut self, checkpoint: Result<String, String>, now_ns: u64, out: &mut Commands) {
        let Some(schedule) = &mut self.checkpoints.schedule else { return };
        match schedule.committed(checkpoint, now_ns) {
            Ok(line) => out.later.extend(line.map(Task::Warn)),
            Err(interrupted) => self.fail(interrupted, out),
        }
    }

    /// The run restarts: takes the state of this rank from a checkpoint, with its chunks decoded, before any message
    /// has come. `moved` lists the chunks away from their home ranks, on all ranks. The worker restores the timers.
    pub(crate) fn restore(&mut self, image: RankImage, moved: Vec<(ChunkId, Rank)>, out: &mut Commands) {
        for (chunk, rank) in moved {
            self.routing.location.moved(chunk, rank);
            if let Some(coordinator) = &mut self.sync.coordinator {
                let home = self.arrays[chunk.array.index()].home(chunk.key, self.tree.ranks);
                coordinator.began_on(chunk, home);
            }
        }
        let RankImage { chunks, timers: _, rest } = image;
        let CoreImage { pending, insertions, at_quiescence, root } = rest;
        if let Some(RootImage { reductions, broadcasts, is_resized: _ }) = root {
            self.collectives.broadcasts.restore(&broadcasts);
            if self.tree.rank == ROOT {
                self.collectives.reductions.restore(reductions);
            }
        }
        self.termination.at_quiescence = at_quiescence;
        for (chunk, messages) in pending {
            messages.into_iter().for_each(|delivery| self.routing.location.add_pending(chunk, delivery));
        }
        let taken = chunks.iter().map(|transfer| transfer.chunk).collect();
        for transfer in chunks {
            self.flow.control.add_incoming(transfer.queued_bytes());
            out.now.push_back(Command::Admit(Box::new(transfer)));
        }
        let mut insertions = insertions;
        for (_, transfer) in &mut insertions {
            transfer.epoch = self.routing.cut.epoch();
            *self.termination.undelivered.inserted.entry(self.tree.rank).or_default() += 1;
        }
        self.admit_inserted(insertions, taken, out);
    }
}
