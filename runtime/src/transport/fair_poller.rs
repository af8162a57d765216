//! Polls the sources that a rank receives from in a fair order: round robin, with a quantum of packets per source.
//!
//! Polling one source takes 1 or 2 ns, and most ranks receive from few sources. With many sources, a *partial poll*
//! covers the most recent ones and the same number of others, and the next poll continues with the next others. A
//! partial poll takes as long with a thousand sources as with sixteen.

/// Quantum: maximum number of packets taken from one source before the next source is polled. A packet costs less if no
/// other source is polled before it.
pub(super) const PACKETS_IN_A_ROW: u32 = 32;
/// Number of most recent sources that a partial poll covers, and number of other sources.
const RECENT_SOURCES: u32 = 8;

/// A round robin over places, one per source, so that a busy source does not starve the others.
///
/// A poll continues at the place where the last poll stopped. It covers the recent places, then some or all of the
/// others, and then the recent places again. Even if sources flood, each of the others waits at most twice as many
/// turns as there are others.
#[derive(Default)]
pub(super) struct FairPoller {
    place: u32,
    in_a_row: u32,
    /// All places. The first [`RECENT_SOURCES`] are the recent ones, in no order.
    places: Vec<u32>,
    /// The position of `place` in `places`.
    position: u32,
    /// Progress of this round, counted over the recent places and then the others. It skips `skipped` others.
    at: u32,
    skipped: u32,
    /// The position of the recent place that is replaced next.
    oldest: u32,
    /// Polls are partial.
    partial: bool,
}

impl FairPoller {
    /// A poller for this number of places.
    #[cfg(any(feature = "mpi", test))]
    pub(super) fn among(places: usize) -> FairPoller {
        FairPoller { places: (0..places as u32).collect(), ..FairPoller::default() }
    }

    /// Adds a place.
    pub(super) fn add(&mut self) {
        self.places.push(self.places.len() as u32);
    }

    /// Makes polls partial, or lets them cover all places.
    #[inline]
    pub(super) fn set_partial(&mut self, on: bool) {
        self.partial = on;
    }

    /// Makes a place recent after a packet has come from it, so that partial polls cover the place.
    #[cfg(any(feature = "mpi", test))]
    pub(super) fn mark_recent(&mut self, place: u32) {
        let among = |places: &[u32]| places.iter().position(|&other| other == place);
        if self.places.len() > RECENT_SOURCES as usize
            && among(&self.places[..RECENT_SOURCES as usize]).is_none()
        {
            let position = among(&self.places).expect("it is listened to");
            self.promote(position);
        }
    }

    /// Begins a poll. Returns the number of places that the poll covers if it finds no packet.
    #[inline]
    pub(super) fn begin(&mut self) -> u32 {
        let all = self.places.len() as u32;
        if all <= RECENT_SOURCES || !self.partial { all } else { all.min(2 * RECENT_SOURCES) }
    }

    #[inline]
    pub(super) fn place(&self) -> usize {
        self.place as usize
    }

    /// Number of packets that may be taken before the next place is polled.
    #[inline]
    pub(super) fn quantum_left(&self) -> u32 {
        PACKETS_IN_A_ROW - self.in_a_row
    }

    /// Counts packets that were taken from the current place, at most [`quantum_left`](Self::quantum_left). `asked` is
    /// the number of places that this poll covers.
    #[inline]
    pub(super) fn packets_taken(&mut self, packets: u32, asked: u32) {
        self.in_a_row += packets;
        if self.position >= RECENT_SOURCES {
            self.speaks();
        }
        if self.in_a_row == PACKETS_IN_A_ROW {
            self.advance(asked);
        }
    }

    /// Makes the current place recent, because a packet came from it. The round continues after the place's old
    /// position.
    #[cold]
    fn speaks(&mut self) {
        let (position, first) = (self.position as usize, self.oldest);
        // Not if the place has become recent since its turn began.
        if self.places[position] == self.place {
            self.promote(position);
        }
        self.position = first;
    }

    /// Makes the place at this position recent.
    fn promote(&mut self, position: usize) {
        self.places.swap(position, self.oldest as usize);
        self.oldest = (self.oldest + 1) % RECENT_SOURCES;
    }

    /// Moves to the next place.
    #[inline]
    pub(super) fn advance(&mut self, asked: u32) {
        self.in_a_row = 0;
        self.at += 1;
        if self.at >= asked {
            self.begin_round();
        }
        self.position = if self.at < RECENT_SOURCES { self.at } else { self.other() };
        self.place = self.places[self.position as usize];
    }

    /// Begins the next round, which continues with the others after those of this round.
    #[inline]
    fn begin_round(&mut self) {
        let all = self.places.len() as u32;
        if all > RECENT_SOURCES {
            self.skipped = (self.skipped + self.at.saturating_sub(RECENT_SOURCES)) % (all - RECENT_SOURCES);
        }
        self.at = 0;
    }

    /// The position of the next of the other places.
    fn other(&self) -> u32 {
        let (all, position) = (self.places.len() as u32, self.at + self.skipped);
        if position < all { position } else { position - (all - RECENT_SOURCES) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The places that a poll covers while no source has sent a packet.
    fn asked(poller: &mut FairPoller) -> Vec<usize> {
        let asked = poller.begin();
        let place = |_| {
            let place = poller.place();
            poller.advance(asked);
            place
        };
        (0..asked).map(place).collect()
    }

    /// Sends one packet from one source.
    fn speaks(poller: &mut FairPoller, source: usize) {
        let look = |poller: &mut FairPoller| {
            let asked = poller.begin();
            let heard = (0..asked).any(|_| {
                poller.place() == source || {
                    poller.advance(asked);
                    false
                }
            });
            heard.then(|| poller.packets_taken(1, asked))
        };
        assert!((0..20).any(|_| look(poller).is_some()), "it is heard in time");
    }

    #[test]
    fn a_partial_poll_takes_recent_sources_and_the_next_of_the_others() {
        let mut poller = FairPoller::among(100);
        let spoke: BTreeSet<usize> = (90..90 + RECENT_SOURCES as usize).collect();
        spoke.iter().for_each(|&source| speaks(&mut poller, source));
        poller.set_partial(true);
        asked(&mut poller);
        let mut others = BTreeSet::new();
        for _ in 0..(100 - RECENT_SOURCES).div_ceil(RECENT_SOURCES) {
            let asked = asked(&mut poller).into_iter().collect::<BTreeSet<_>>();
            assert!(asked.len() == 2 * spoke.len() && spoke.is_subset(&asked), "{asked:?}");
            others.extend(&asked - &spoke);
        }
        assert_eq!(others.len(), 100 - spoke.len(), "everybody is asked in time");
        speaks(&mut poller, 50);
        assert!((0..3).all(|_| asked(&mut poller).contains(&50)), "and always a source that has answered");
        poller.mark_recent(51);
        assert!([50, 51].iter().all(|source| asked(&mut poller).contains(source)));
        poller.set_partial(false);
        assert_eq!(asked(&mut poller).into_iter().collect::<BTreeSet<_>>(), (0..100).collect());
    }

    /// Polls `places` sources, of which the `flooders` always have a packet, for `packets` packets per poll. Returns
    /// the number of polls until all other sources were polled, or none.
    fn looks_until_all_are_asked(
        places: usize,
        flooders: &[usize],
        glances: bool,
        packets: u32,
    ) -> Option<usize> {
        let mut poller = FairPoller::among(places);
        poller.set_partial(glances);
        let mut unasked: BTreeSet<usize> = (0..places).filter(|place| !flooders.contains(place)).collect();
        (0..40 * places).position(|_| {
            let (asked, mut empty, mut left) = (poller.begin(), 0, packets);
            while empty < asked && left > 0 {
                if flooders.contains(&poller.place()) {
                    let taken = poller.quantum_left().min(left);
                    poller.packets_taken(taken, asked);
                    (left, empty) = (left - taken, 0);
                } else {
                    unasked.remove(&poller.place());
                    poller.advance(asked);
                    empty += 1;
                }
            }
            unasked.is_empty()
        })
    }

    #[test]
    fn a_flooding_source_starves_no_other() {
        for places in [3, 9, 10, 16, 17, 24, 25, 100, 128] {
            let all: Vec<usize> = (0..places).collect();
            let some: Vec<usize> = (0..places).filter(|place| place % 3 == 1).collect();
            for flooders in
                [&all[..1], &all[places - 1..], &all[..places.min(8)], &all[..2], &some, &all[1..]]
            {
                for (glances, packets) in [(false, 1), (false, 64), (true, 1), (true, 32), (true, 64)] {
                    let what = format!("{places} places, {flooders:?}, {glances}, {packets} packets a look");
                    let looks = looks_until_all_are_asked(places, flooders, glances, packets);
                    let rows = 4 * places.max(2 * RECENT_SOURCES as usize);
                    let most = rows * (PACKETS_IN_A_ROW as usize).div_ceil(packets as usize);
                    assert!(looks.is_some_and(|looks| looks <= most), "{what}: {looks:?} of {most} looks");
                }
            }
        }
    }

    #[test]
    fn a_partial_poll_of_few_sources_polls_all() {
        let mut poller = FairPoller::default();
        (0..RECENT_SOURCES).for_each(|_| poller.add());
        poller.set_partial(true);
        assert_eq!(asked(&mut poller).len(), RECENT_SOURCES as usize);
        poller.add();
        assert_eq!(asked(&mut poller).len(), RECENT_SOURCES as usize + 1);
    }

    #[test]
    fn a_busy_source_is_not_polled_for_ever() {
        let mut poller = FairPoller::among(20);
        let asked = poller.begin();
        poller.packets_taken(PACKETS_IN_A_ROW - 1, asked);
        assert_eq!((poller.place(), poller.quantum_left()), (0, 1));
        poller.packets_taken(1, asked);
        assert_eq!((poller.place(), poller.quantum_left()), (1, PACKETS_IN_A_ROW));
    }
}
