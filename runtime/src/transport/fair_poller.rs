//! Whose turn it is among those that one rank listens to.
//!
//! To ask one whether it has sent something takes a nanosecond or two, and most ranks hear of few others. So of many, a
//! *glance* asks those who spoke last, and of the others as many, next time the next: it takes as long among a thousand as
//! among ten.

/// Packets taken from one rank before it is the next one's turn: each costs less if the others are not looked at between.
pub(super) const PACKETS_IN_A_ROW: u32 = 32;
/// Those who spoke last, whom a glance asks, and of the others as many.
const RECENT_SOURCES: u32 = 8;

/// The place to look at first. Everybody in turn: who sends much must not keep the others from being heard.
///
/// Looks go on where the last one stopped, from place to place: through those who spoke last, then through some of the others, or
/// all, and again through those who spoke last. Whoever floods, one of the others waits for no more turns than twice as many as
/// there are others.
#[derive(Default)]
pub(super) struct FairPoller {
    place: u32,
    in_a_row: u32,
    /// All places. Those who spoke last are the first [`GLANCE`], in no order.
    places: Vec<u32>,
    /// That of `place` among them.
    position: u32,
    /// How far this round has come, of the first and of the others, of which `skipped` come before those of this round.
    at: u32,
    skipped: u32,
    /// Whom of the first the next one displaces who speaks.
    oldest: u32,
    /// Looks are glances.
    partial: bool,
}

impl FairPoller {
    /// Among so many.
    #[cfg(any(feature = "mpi", test))]
    pub(super) fn among(places: usize) -> FairPoller {
        FairPoller { places: (0..places as u32).collect(), ..FairPoller::default() }
    }

    /// There is one more to listen to.
    pub(super) fn add(&mut self) {
        self.places.push(self.places.len() as u32);
    }

    /// From now on looks are glances; or ask everybody.
    #[inline]
    pub(super) fn set_partial(&mut self, on: bool) {
        self.partial = on;
    }

    /// Something has come from the one at this place: a glance asks it.
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

    /// A look begins: the number of places that it asks, if it finds nothing.
    #[inline]
    pub(super) fn begin(&mut self) -> u32 {
        let all = self.places.len() as u32;
        if all <= RECENT_SOURCES || !self.partial { all } else { all.min(2 * RECENT_SOURCES) }
    }

    #[inline]
    pub(super) fn place(&self) -> usize {
        self.place as usize
    }

    /// Packets that may be taken before it is the next one's turn.
    #[inline]
    pub(super) fn quantum_left(&self) -> u32 {
        PACKETS_IN_A_ROW - self.in_a_row
    }

    /// So many packets were taken, no more than are left, from the one whose turn it is, of so many that are asked.
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

    /// The one whose turn it is has spoken, and has not lately. The round goes on behind where it was.
    #[cold]
    fn speaks(&mut self) {
        let (position, first) = (self.position as usize, self.oldest);
        // Unless it has become one of them since its turn began.
        if self.places[position] == self.place {
            self.promote(position);
        }
        self.position = first;
    }

    /// The one at this position is among the first from now on.
    fn promote(&mut self, position: usize) {
        self.places.swap(position, self.oldest as usize);
        self.oldest = (self.oldest + 1) % RECENT_SOURCES;
    }

    /// It is the next one's turn.
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

    /// The next round goes on with the others behind those of this one.
    #[inline]
    fn begin_round(&mut self) {
        let all = self.places.len() as u32;
        if all > RECENT_SOURCES {
            self.skipped = (self.skipped + self.at.saturating_sub(RECENT_SOURCES)) % (all - RECENT_SOURCES);
        }
        self.at = 0;
    }

    /// The position of the one of the others who is next.
    fn other(&self) -> u32 {
        let (all, position) = (self.places.len() as u32, self.at + self.skipped);
        if position < all { position } else { position - (all - RECENT_SOURCES) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Those whom a look asks while none of them has sent anything.
    fn asked(turn: &mut FairPoller) -> Vec<usize> {
        let asked = turn.begin();
        let place = |_| {
            let place = turn.place();
            turn.advance(asked);
            place
        };
        (0..asked).map(place).collect()
    }

    /// Somebody says one word.
    fn speaks(turn: &mut FairPoller, who: usize) {
        let look = |turn: &mut FairPoller| {
            let asked = turn.begin();
            let heard = (0..asked).any(|_| {
                turn.place() == who || {
                    turn.advance(asked);
                    false
                }
            });
            heard.then(|| turn.packets_taken(1, asked))
        };
        assert!((0..20).any(|_| look(turn).is_some()), "it is heard in time");
    }

    #[test]
    fn a_partial_poll_takes_recent_sources_and_the_next_of_the_others() {
        let mut turn = FairPoller::among(100);
        let spoke: BTreeSet<usize> = (90..90 + RECENT_SOURCES as usize).collect();
        spoke.iter().for_each(|&who| speaks(&mut turn, who));
        turn.set_partial(true);
        asked(&mut turn);
        let mut others = BTreeSet::new();
        for _ in 0..(100 - RECENT_SOURCES).div_ceil(RECENT_SOURCES) {
            let asked = asked(&mut turn).into_iter().collect::<BTreeSet<_>>();
            assert!(asked.len() == 2 * spoke.len() && spoke.is_subset(&asked), "{asked:?}");
            others.extend(&asked - &spoke);
        }
        assert_eq!(others.len(), 100 - spoke.len(), "everybody is asked in time");
        speaks(&mut turn, 50);
        assert!((0..3).all(|_| asked(&mut turn).contains(&50)), "and always who has answered");
        turn.mark_recent(51);
        assert!([50, 51].iter().all(|who| asked(&mut turn).contains(who)));
        turn.set_partial(false);
        assert_eq!(asked(&mut turn).into_iter().collect::<BTreeSet<_>>(), (0..100).collect());
    }

    /// Looks at so many, of which some have a packet whenever they are asked; each takes so many packets. Returns the looks until
    /// all the others were asked, or none.
    fn looks_until_all_are_asked(
        places: usize,
        flooders: &[usize],
        glances: bool,
        packets: u32,
    ) -> Option<usize> {
        let mut turn = FairPoller::among(places);
        turn.set_partial(glances);
        let mut unasked: BTreeSet<usize> = (0..places).filter(|place| !flooders.contains(place)).collect();
        (0..40 * places).position(|_| {
            let (asked, mut empty, mut left) = (turn.begin(), 0, packets);
            while empty < asked && left > 0 {
                if flooders.contains(&turn.place()) {
                    let taken = turn.quantum_left().min(left);
                    turn.packets_taken(taken, asked);
                    (left, empty) = (left - taken, 0);
                } else {
                    unasked.remove(&turn.place());
                    turn.advance(asked);
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
        let mut turn = FairPoller::default();
        (0..RECENT_SOURCES).for_each(|_| turn.add());
        turn.set_partial(true);
        assert_eq!(asked(&mut turn).len(), RECENT_SOURCES as usize);
        turn.add();
        assert_eq!(asked(&mut turn).len(), RECENT_SOURCES as usize + 1);
    }

    #[test]
    fn a_busy_source_is_not_polled_for_ever() {
        let mut turn = FairPoller::among(20);
        let asked = turn.begin();
        turn.packets_taken(PACKETS_IN_A_ROW - 1, asked);
        assert_eq!((turn.place(), turn.quantum_left()), (0, 1));
        turn.packets_taken(1, asked);
        assert_eq!((turn.place(), turn.quantum_left()), (1, PACKETS_IN_A_ROW));
    }
}
