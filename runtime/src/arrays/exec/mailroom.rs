//! Where a worker puts letters into the mailboxes of its rank, and the tokens that this makes on a queue; and where packets of
//! other ranks come in.

use super::backlog::Account;
use super::cells::Cell;
use super::mailbox::{By, Pushed};
use super::ready::Ready;
use super::shared::RankShared;
use crate::arrays::core::crossings::Epoch;
use crate::arrays::core::envelope::Envelope;
use crate::arrays::core::mail::{Blanks, Letter};
use crate::arrays::core::packet::Packet;
use crate::error::Error;
use crate::ids::{CellId, Rank, WorkerId};
use crate::transport::PacketHandler;

/// That of one worker.
pub(crate) struct Mailroom<'r> {
    pub(super) shared: &'r RankShared,
    id: WorkerId,
    pub(super) ready: Ready<'r>,
    pub(super) account: Account,
}

/// Takes what another process has sent: a message goes from its bytes onto its letter.
pub(crate) struct Reception<'a, 'r> {
    pub(super) mailroom: &'a mut Mailroom<'r>,
    pub(super) blanks: &'a mut Blanks,
    pub(super) intake: &'a mut Intake,
}

impl PacketHandler<Packet> for Reception<'_, '_> {
    fn take(&mut self, from: Rank, packet: Packet) -> bool {
        self.mailroom.receive(from, packet, self.blanks, self.intake)
    }

    fn read(&mut self, _from: Rank, bytes: &[u8]) -> Option<Result<bool, Box<Error>>> {
        let (letter, epoch) = match self.mailroom.shared.codec.read(bytes, self.blanks)? {
            Ok(read) => read,
            Err(why) => return Some(Err(why)),
        };
        self.intake.left -= 1;
        self.intake.drained = self.mailroom.deliver(letter, epoch);
        Some(Ok(self.intake.wants_more()))
    }
}

/// How far a look at the transport has come: messages go into mailboxes at once, and it stops at anything else.
pub(crate) struct Intake {
    /// Packets that may still be taken: one at least when the look begins.
    pub(super) left: usize,
    /// The rank has all messages of the epoch that has ended.
    pub(super) drained: bool,
    /// The packet that is no message.
    pub(super) other: Option<(Rank, Packet)>,
}

impl Intake {
    pub(crate) fn new(packets_max: usize) -> Intake {
        Intake { left: packets_max, drained: false, other: None }
    }

    #[inline]
    fn wants_more(&self) -> bool {
        self.left > 0 && !self.drained && self.other.is_none()
    }
}

impl<'r> Mailroom<'r> {
    pub(crate) fn new(shared: &'r RankShared, id: WorkerId, ready: Ready<'r>) -> Mailroom<'r> {
        Mailroom { shared, id, ready, account: shared.backlog.account(shared.record.workers()) }
    }

    /// The next token, with its cell.
    #[inline]
    pub(super) fn find(&mut self) -> Option<(CellId, &'r Cell)> {
        self.shared.scheduler.find(self.id, &mut self.ready, &self.shared.cells)
    }

    /// The worker is about to call what users wrote, which may take long: nobody is to wait behind that who need not.
    #[inline]
    pub(super) fn show_newest(&mut self) {
        self.shared.scheduler.show_newest(self.id, &mut self.ready);
    }

    /// Hop 4, and the token on its way if the push made one. Returns what the mailbox refused.
    #[inline(always)]
    pub(crate) fn push(&mut self, cell: CellId, letter: Box<Letter>, by: By) -> Option<Box<Letter>> {
        let bytes = letter.message.bytes;
        let shared = self.shared;
        let place = shared.cells.get(cell);
        match place.mailbox.push(letter, by) {
            Pushed::Queued => {}
            Pushed::Token => self.put(cell, place),
            Pushed::Refused(letter) => return Some(letter),
        }
        self.count_in(bytes, by);
        None
    }

    /// A packet has come: a message goes into its mailbox, anything else is put by for the worker. True if another one may be
    /// taken.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        from: Rank,
        packet: Packet,
        blanks: &mut Blanks,
        intake: &mut Intake,
    ) -> bool {
        intake.left -= 1;
        match packet {
            Packet::Message(envelope) => intake.drained = self.take_in(envelope, blanks),
            packet => intake.other = Some((from, packet)),
        }
        intake.wants_more()
    }

    /// A message of another rank has come; it is written on a letter from where it lies. True if the rank is drained now.
    #[inline(always)]
    fn take_in(&mut self, envelope: Envelope, blanks: &mut Blanks) -> bool {
        let Envelope { to, delivery, epoch } = envelope;
        let letter = blanks.write(to, delivery.from, delivery.bytes, || delivery.payload);
        self.deliver(letter, epoch)
    }

    /// The same of one that is written on its letter.
    #[inline(always)]
    fn deliver(&mut self, letter: Box<Letter>, epoch: Epoch) -> bool {
        tracing::trace!(hop = 3, "Transport::poll");
        let to = letter.to;
        let mut core = self.shared.plane.lock();
        let (cell, drained) = core.rank.message_received(to, epoch);
        let unread = match cell {
            Some(cell) => self.push(cell, letter, By::Core),
            None => Some(letter),
        };
        if let Some(early) = unread {
            // Its chunk has not arrived, or was removed between the look and the push.
            core.rank.stash_of(epoch, to, early.message);
            self.shared.backlog.follow(&core.rank);
        }
        drained
    }

    /// Puts the token of the chunk in this cell on a queue: that of the worker where it is at home.
    #[inline]
    pub(crate) fn put(&mut self, token: CellId, cell: &'r Cell) {
        if !self.ready.push_newest(token, cell) {
            self.put_among(token, cell);
        }
    }

    /// The same where there are other tokens, or other workers.
    #[inline(never)]
    fn put_among(&mut self, token: CellId, cell: &'r Cell) {
        if self.shared.scheduler.lone() {
            self.ready.push(token, cell);
        } else {
            self.shared.scheduler.put(token, cell, self.id, &mut self.ready);
        }
    }
}
