//! Whose turn it is among those that one rank listens to.
//!
//! To ask one whether it has sent something takes a nanosecond or two, and most ranks hear of few others. So of many, a
//! *glance* asks those who spoke last, and of the others as many, next time the next: it takes as long among a thousand as
//! among ten.

/// Packets taken from one rank before it is the next one's turn: each costs less if the others are not looked at between.
pub(super) const PACKETS_IN_A_ROW: u32 = 32;
/// Those who spoke last, whom a glance asks, and of the others as many.
const GLANCE: u32 = 8;

/// The place to look at first. Everybody in turn: who sends much must not keep the others from being heard.
///
/// Looks go on where the last one stopped, from place to place: through those who spoke last, then through some of the others, or
/// all, and again through those who spoke last. Whoever floods, one of the others waits for no more turns than twice as many as
/// there are others.
#[derive(Default)]
pub(super) struct Turn {
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
    glances: bool,
}

impl Turn {
    /// Among so many.
    #[cfg(any(feature = "mpi", test))]
    pub(super) fn among(places: usize) -> Turn {
        Turn { places: (0..places as u32).collect(), ..Turn::default() }
    }

    /// There is one more to listen to.
    pub(super) fn add(&mut self) {
        self.places.push(self.places.len() as u32);
    }

    /// From now on looks are glances; or ask everybody.
    #[inline]
    pub(super) fn glance(&mut self, on: bool) {
        self.glances = on;
    }

    /// Something has come from the one at this place: a glance asks it.
    #[cfg(any(feature = "mpi", test))]
    pub(super) fn comes_from(&mut self, place: u32) {
        let among = |places: &[u32]| places.iter().position(|&other| other == place);
        if self.places.len() > GLANCE as usize && among(&self.places[..GLANCE as usize]).is_none() {
            let position = among(&self.places).expect("it is listened to");
            self.displaces(position);
        }
    }

    /// A look begins: the number of places that it asks, if it finds nothing.
    #[inline]
    pub(super) fn begin(&mut self) -> u32 {
        let all = self.places.len() as u32;
        if all <= GLANCE || !self.glances { all } else { all.min(2 * GLANCE) }
    }

    #[inline]
    pub(super) fn place(&self) -> usize {
        self.place as usize
    }

    /// Packets that may be taken before it is the next one's turn.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        PACKETS_IN_A_ROW - self.in_a_row
    }

    /// So many packets were taken, no more than are left, from the one whose turn it is, of so many that are asked.
    #[inline]
    pub(super) fn took(&mut self, packets: u32, asked: u32) {
        self.in_a_row += packets;
        if self.position >= GLANCE {
            self.speaks();
        }
        if self.in_a_row == PACKETS_IN_A_ROW {
            self.pass(asked);
        }
    }

    /// The one whose turn it is has spoken, and has not lately. The round goes on behind where it was.
    #[cold]
    fn speaks(&mut self) {
        let (position, first) = (self.position as usize, self.oldest);
        // Unless it has become one of them since its turn began.
        if self.places[position] == self.place {
            self.displaces(position);
        }
        self.position = first;
    }

    /// The one at this position is among the first from now on.
    fn displaces(&mut self, position: usize) {
        self.places.swap(position, self.oldest as usize);
        self.oldest = (self.oldest + 1) % GLANCE;
    }

    /// It is the next one's turn.
    #[inline]
    pub(super) fn pass(&mut self, asked: u32) {
        self.in_a_row = 0;
        self.at += 1;
        if self.at >= asked {
            self.begin_round();
        }
        self.position = if self.at < GLANCE { self.at } else { self.other() };
        self.place = self.places[self.position as usize];
    }

    /// The next round goes on with the others behind those of this one.
    #[inline]
    fn begin_round(&mut self) {
        let all = self.places.len() as u32;
        if all > GLANCE {
            self.skipped = (self.skipped + self.at.saturating_sub(GLANCE)) % (all - GLANCE);
        }
        self.at = 0;
    }

    /// The position of the one of the others who is next.
    fn other(&self) -> u32 {
        let (all, position) = (self.places.len() as u32, self.at + self.skipped);
        if position < all { position } else { position - (all - GLANCE) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Those whom a look asks while none of them has sent anything.
    fn asked(turn: &mut Turn) -> Vec<usize> {
        let asked = turn.begin();
        let place = |_| {
            let place = turn.place();
            turn.pass(asked);
            place
        };
        (0..asked).map(place).collect()
    }

    /// Somebody says one word.
    fn speaks(turn: &mut Turn, who: usize) {
        let look = |turn: &mut Turn| {
            let asked = turn.begin();
            let heard = (0..asked).any(|_| {
                turn.place() == who || {
                    turn.pass(asked);
                    false
                }
            });
            heard.then(|| turn.took(1, asked))
        };
        assert!((0..20).any(|_| look(turn).is_some()), "it is heard in time");
    }

    #[test]
    fn a_glance_asks_those_who_spoke_last_and_of_the_others_the_next() {
        let mut turn = Turn::among(100);
        let spoke: BTreeSet<usize> = (90..90 + GLANCE as usize).collect();
        spoke.iter().for_each(|&who| speaks(&mut turn, who));
        turn.glance(true);
        asked(&mut turn);
        let mut others = BTreeSet::new();
        for _ in 0..(100 - GLANCE).div_ceil(GLANCE) {
            let asked = asked(&mut turn).into_iter().collect::<BTreeSet<_>>();
            assert!(asked.len() == 2 * spoke.len() && spoke.is_subset(&asked), "{asked:?}");
            others.extend(&asked - &spoke);
        }
        assert_eq!(others.len(), 100 - spoke.len(), "everybody is asked in time");
        speaks(&mut turn, 50);
        assert!((0..3).all(|_| asked(&mut turn).contains(&50)), "and always who has answered");
        turn.comes_from(51);
        assert!([50, 51].iter().all(|who| asked(&mut turn).contains(who)));
        turn.glance(false);
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
        let mut turn = Turn::among(places);
        turn.glance(glances);
        let mut unasked: BTreeSet<usize> = (0..places).filter(|place| !flooders.contains(place)).collect();
        (0..40 * places).position(|_| {
            let (asked, mut empty, mut left) = (turn.begin(), 0, packets);
            while empty < asked && left > 0 {
                if flooders.contains(&turn.place()) {
                    let taken = turn.left().min(left);
                    turn.took(taken, asked);
                    (left, empty) = (left - taken, 0);
                } else {
                    unasked.remove(&turn.place());
                    turn.pass(asked);
                    empty += 1;
                }
            }
            unasked.is_empty()
        })
    }

    #[test]
    fn whoever_floods_keeps_nobody_from_being_asked() {
        for places in [3, 9, 10, 16, 17, 24, 25, 100, 128] {
            let all: Vec<usize> = (0..places).collect();
            let some: Vec<usize> = (0..places).filter(|place| place % 3 == 1).collect();
            for flooders in
                [&all[..1], &all[places - 1..], &all[..places.min(8)], &all[..2], &some, &all[1..]]
            {
                for (glances, packets) in [(false, 1), (false, 64), (true, 1), (true, 32), (true, 64)] {
                    let what = format!("{places} places, {flooders:?}, {glances}, {packets} packets a look");
                    let looks = looks_until_all_are_asked(places, flooders, glances, packets);
                    let rows = 4 * places.max(2 * GLANCE as usize);
                    let most = rows * (PACKETS_IN_A_ROW as usize).div_ceil(packets as usize);
                    assert!(looks.is_some_and(|looks| looks <= most), "{what}: {looks:?} of {most} looks");
                }
            }
        }
    }

    #[test]
    fn a_glance_among_few_asks_everybody() {
        let mut turn = Turn::default();
        (0..GLANCE).for_each(|_| turn.add());
        turn.glance(true);
        assert_eq!(asked(&mut turn).len(), GLANCE as usize);
        turn.add();
        assert_eq!(asked(&mut turn).len(), GLANCE as usize + 1);
    }

    #[test]
    fn who_speaks_much_is_not_asked_for_ever() {
        let mut turn = Turn::among(20);
        let asked = turn.begin();
        turn.took(PACKETS_IN_A_ROW - 1, asked);
        assert_eq!((turn.place(), turn.left()), (0, 1));
        turn.took(1, asked);
        assert_eq!((turn.place(), turn.left()), (1, PACKETS_IN_A_ROW));
    }
}
