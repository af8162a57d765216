//! Finds out that nothing is left to do: no handler runs and no packet is on its way, on any rank.
//!
//! Rank 0 asks every rank, and a rank answers once it has nothing to do: how many packets it has sent and received. If
//! two waves in a row add up to the same numbers, and as many were received as sent, no packet was on its way and nobody
//! woke up between the waves (Mattern's four-counter method). Messages that were to wait for this are sent then. Without
//! any the run has not called `exit` and never will: it has stalled.
//!
//! Cost: nothing while somebody works; two rounds of small packets once everybody is idle. The packets of this search
//! are not counted.

/// The next step of rank 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Wait,
    /// Ask everybody.
    Wave(u64),
    /// It is over: send what was to wait for this, or ask everybody what they wait for.
    Quiescent,
    /// Everybody has said what it waits for.
    Explained(Vec<String>),
}

/// Rank 0's side of the search.
#[derive(Debug)]
pub(crate) struct Quiescence {
    ranks: u32,
    wave: u64,
    asking: bool,
    /// Ranks that have answered the wave, each once, and what they have sent and received together.
    answers: u32,
    total: (u64, u64),
    last: Option<(u64, u64)>,
    explained: Vec<Vec<String>>,
    quiescent: bool,
}

impl Quiescence {
    pub(crate) fn new(ranks: u32) -> Quiescence {
        Quiescence {
            ranks,
            wave: 0,
            asking: false,
            answers: 0,
            total: (0, 0),
            last: None,
            explained: Vec::new(),
            quiescent: false,
        }
    }

    /// Rank 0 has had nothing to do for a while.
    pub(crate) fn suspect(&mut self) -> Step {
        if self.asking || self.quiescent {
            return Step::Wait;
        }
        self.asking = true;
        self.wave += 1;
        (self.answers, self.total) = (0, (0, 0));
        Step::Wave(self.wave)
    }

    pub(crate) fn answer(&mut self, wave: u64, sent: u64, received: u64) -> Step {
        if wave != self.wave || self.quiescent {
            return Step::Wait;
        }
        self.answers += 1;
        self.total = (self.total.0 + sent, self.total.1 + received);
        if self.answers < self.ranks {
            return Step::Wait;
        }
        self.asking = false;
        let total = self.total;
        let before = self.last.replace(total);
        if total.0 != total.1 {
            return Step::Wait;
        }
        if before == Some(total) {
            self.quiescent = true;
            return Step::Quiescent;
        }
        self.suspect()
    }

    /// True while a wave is under way.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Quiescence is over: a message was sent.
    pub(crate) fn go_on(&mut self) {
        self.quiescent = false;
        self.last = None;
    }

    pub(crate) fn explained(&mut self, lines: Vec<String>) -> Step {
        self.explained.push(lines);
        if self.explained.len() < self.ranks as usize {
            return Step::Wait;
        }
        Step::Explained(std::mem::take(&mut self.explained).concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_equal_waves_with_nothing_on_its_way_are_quiescence() {
        let mut root = Quiescence::new(2);
        assert_eq!(root.suspect(), Step::Wave(1));
        assert_eq!(root.suspect(), Step::Wait);
        assert_eq!(root.answer(1, 5, 3), Step::Wait);
        assert_eq!(root.answer(1, 3, 5), Step::Wave(2));
        assert_eq!(root.answer(2, 3, 5), Step::Wait);
        assert_eq!(root.answer(2, 5, 3), Step::Quiescent);
    }

    #[test]
    fn a_packet_on_its_way_is_never_quiescence() {
        let mut root = Quiescence::new(1);
        for wave in 1..5 {
            assert_eq!(root.suspect(), Step::Wave(wave));
            assert_eq!(root.answer(wave, 2, 1), Step::Wait);
        }
    }

    #[test]
    fn work_between_two_waves_starts_the_search_again() {
        let mut root = Quiescence::new(1);
        assert_eq!(root.suspect(), Step::Wave(1));
        assert_eq!(root.answer(1, 1, 1), Step::Wave(2));
        assert_eq!(root.answer(2, 2, 2), Step::Wave(3));
        assert_eq!(root.answer(3, 2, 2), Step::Quiescent);
    }
}
