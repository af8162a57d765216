//! Whose turn it is among those that one rank listens to.

/// Packets taken from one rank before it is the next one's turn: each costs less if the others are not looked at between.
pub(super) const PACKETS_IN_A_ROW: u32 = 32;

/// The place to look at first. Everybody in turn: who sends much must not keep the others from being heard.
#[derive(Default)]
pub(super) struct Turn {
    place: usize,
    in_a_row: u32,
}

impl Turn {
    #[inline]
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// Packets that may be taken before it is the next one's turn.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        PACKETS_IN_A_ROW - self.in_a_row
    }

    /// So many packets were taken, no more than are left, from the one whose turn it is, one of so many.
    #[inline]
    pub(super) fn took(&mut self, packets: u32, places: usize) {
        self.in_a_row += packets;
        if self.in_a_row == PACKETS_IN_A_ROW {
            self.pass(places);
        }
    }

    /// It is the next one's turn.
    #[inline]
    pub(super) fn pass(&mut self, places: usize) {
        self.in_a_row = 0;
        self.place = if self.place + 1 == places { 0 } else { self.place + 1 };
    }
}
