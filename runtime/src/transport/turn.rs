//! Whose turn it is among those that one rank listens to.
//!
//! To ask one whether it has sent something takes a nanosecond or two, and most ranks hear of few others. So of many, a
//! *glance* asks those who spoke last, and of the others as many, next time the next: it takes as long among a thousand as
//! among ten.

/// Packets taken from one rank before it is the next one's turn: each costs less if the others are not looked at between.
pub(super) const PACKETS_IN_A_ROW: u32 = 32;
/// Those who spoke last, whom a glance asks, and of the others as many.
pub(crate) const GLANCE: u32 = 8;

/// The place to look at first. Everybody in turn: who sends much must not keep the others from being heard.
#[derive(Default)]
pub(super) struct Turn {
    place: u32,
    in_a_row: u32,
    /// All places. Those who spoke last are the first [`GLANCE`], in no order.
    places: Vec<u32>,
    /// That of `place` among them, but for the `shift` of those behind the first.
    at: u32,
    shift: u32,
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

    /// A look begins: the number of places that it asks.
    #[inline]
    pub(super) fn begin(&mut self) -> u32 {
        let all = self.places.len() as u32;
        if all <= GLANCE || !self.glances {
            return all;
        }
        let others = all - GLANCE;
        self.shift = (self.shift + GLANCE) % others;
        if self.at >= GLANCE {
            self.turn_to(0);
        }
        GLANCE + GLANCE.min(others)
    }

    #[inline]
    pub(super) fn place(&self) -> usize {
        self.place as usize
    }

    /// Where the present place is among all.
    #[inline]
    fn position(&self) -> usize {
        let (all, shifted) = (self.places.len() as u32, self.at + self.shift);
        let position = match self.at {
            0..GLANCE => self.at,
            _ if shifted < all => shifted,
            _ => shifted - (all - GLANCE),
        };
        position as usize
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
        if self.at >= GLANCE {
            self.speaks();
        }
        if self.in_a_row == PACKETS_IN_A_ROW {
            self.pass(asked);
        }
    }

    /// The one whose turn it is has spoken, and has not lately.
    #[cold]
    fn speaks(&mut self) {
        let position = self.position();
        self.at = self.oldest;
        self.displaces(position);
    }

    /// The one at this position is among the first from now on.
    fn displaces(&mut self, position: usize) {
        self.places.swap(position, self.oldest as usize);
        self.oldest = (self.oldest + 1) % GLANCE;
    }

    /// It is the next one's turn.
    #[inline]
    pub(super) fn pass(&mut self, asked: u32) {
        self.turn_to(if self.at + 1 >= asked { 0 } else { self.at + 1 });
    }

    #[inline]
    fn turn_to(&mut self, at: u32) {
        self.at = at;
        self.in_a_row = 0;
        self.place = self.places[self.position()];
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
