//! Back-pressure as the core drives it: hands each input to [`pressure`](crate::arrays::core::pressure), which has the
//! rules, and does what that says.

use super::{Actions, RankCore};
use crate::arrays::core::action::Action;
use crate::arrays::core::crossings::Epoch;
use crate::arrays::core::packet::Packet;
use crate::arrays::core::pressure::Sent;
use crate::ids::{CellId, ROOT, Rank};

impl RankCore {
    /// A message of so many bytes leaves for another rank, by the route that was just looked up: of which epoch it is, and
    /// what follows from it.
    #[inline]
    pub(crate) fn message_sent(&mut self, to: Rank, bytes: u64) -> (Epoch, Sent) {
        self.traffic.sent += 1;
        (self.crossings.leave(to), self.pressure.sent(to, bytes))
    }

    /// A mark is due behind what was sent to a rank.
    #[cold]
    pub(crate) fn mark(&mut self, to: Rank, out: &mut Actions) {
        let bytes = self.pressure.mark(to);
        self.send(to, Packet::Mark { bytes }, 0, out);
    }

    /// This rank has room: answers marks, and runs what was pressed by itself.
    pub(crate) fn has_room(&mut self, out: &mut Actions) {
        for (to, bytes) in self.pressure.take_owed() {
            self.send(to, Packet::Room { bytes }, 0, out);
        }
        let freed = self.pressure.release(self.tree.rank);
        self.run_again(freed, out);
    }

    /// The handlers of a chunk have sent to these ranks, which press it.
    pub(crate) fn press(&mut self, cell: CellId, by: Vec<Rank>) {
        self.pressure.press(cell, by);
    }

    /// Tells whether any chunk is pressed.
    pub(crate) fn has_pressed(&self) -> bool {
        self.pressure.has_pressed()
    }

    /// Tells whether any token is parked.
    pub(crate) fn has_parked(&self) -> bool {
        self.pressure.has_parked()
    }

    /// Parks the token of a cell if its chunk is pressed.
    pub(crate) fn parks(&mut self, cell: CellId) -> bool {
        self.pressure.parks(cell)
    }

    /// The chunk of a cell is to leave: its token must come back, and nothing presses it any more.
    pub(super) fn forget_pressed(&mut self, cell: CellId, out: &mut Actions) {
        if self.pressure.forget(cell) {
            self.run_again(vec![cell], out);
        }
    }

    pub(super) fn room(&mut self, by: Rank, bytes: u64, out: &mut Actions) {
        let freed = self.pressure.answered(by, bytes);
        self.run_again(freed, out);
    }

    fn run_again(&mut self, freed: Vec<CellId>, out: &mut Actions) {
        if !freed.is_empty()
            && let Some(spell) = self.pressure.goes_on()
        {
            self.send(ROOT, Packet::GoesOn { spell }, 0, out);
        }
        out.extend(freed.into_iter().map(Action::Run));
    }

    /// This rank is full and has nothing to run.
    pub(crate) fn full_and_idle(&mut self, out: &mut Actions) {
        if !self.migrations.are_settled() || self.is_deciding() {
            // What waits may be for chunks that are about to leave, or to go on.
            return;
        }
        if let Some((spell, waits_for)) = self.pressure.stands_still() {
            self.send(ROOT, Packet::StandsStill { spell, waits_for }, 0, out);
        }
    }

    pub(super) fn stands_still(&mut self, rank: Rank, spell: u64, waits_for: Vec<Rank>, out: &mut Actions) {
        let root = self.root.as_mut().expect("rank 0 hears who stands still");
        for (stuck, spell) in root.standstill.stands(rank, spell, waits_for) {
            self.send(stuck, Packet::Widen { spell }, 0, out);
        }
    }

    pub(super) fn widen(&mut self, spell: u64, out: &mut Actions) {
        out.extend(self.pressure.widens(spell).then_some(Action::Widen));
    }
}

#[cfg(test)]
mod tests {
    use lb_strategies::balancer::RankPlace;

    use super::*;
    use crate::arrays::core::tree::{ARITY, Tree};

    #[test]
    fn a_rank_with_a_parked_token_answers_no_search() {
        let strategy = lb_strategies::ARRAYS.parse("none").expect("it is in the table").into();
        let places = [RankPlace { host: 0, workers: 1 }; 2];
        let tree = Tree { rank: Rank(1), ranks: 2, arity: ARITY };
        let mut core = RankCore::new(tree, &places, [].into(), strategy, false, 100, 0);
        let mut out = Actions::new();
        core.press(CellId(3), vec![Rank(1)]);
        assert!(core.parks(CellId(3)));
        core.receive(ROOT, Packet::Probe, 0, &mut out);
        core.idle(0, &mut out);
        assert!(out.is_empty(), "{out:?}");
        core.has_room(&mut out);
        assert!(matches!(out.pop_front(), Some(Action::Run(CellId(3)))));
        core.idle(0, &mut out);
        assert!(matches!(out.pop_front(), Some(Action::Send(ROOT, Packet::Answer(_)))));
    }
}
