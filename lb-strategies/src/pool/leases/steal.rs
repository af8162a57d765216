//! Whom to take from when nothing is free: pure arithmetic on what the root knows.
//!
//! All that want are robbed for together, so that a rank that has collapsed is cut once and not once for every other. A
//! holder is a victim if what it holds lasts more than two round trips longer than what the thieves hold. While all run as
//! they said, that difference stays as it is: nobody needs to look at it again until somebody speaks. While a worker waits
//! anywhere, only ranks with waiting workers are thieves: else what is taken for them could go to faster ranks, for ever.

use super::conversation::seconds;
use super::message::Thieves;
use crate::Rank;
use crate::pool::Nanos;

/// A rank as the root sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) rank: Rank,
    pub(super) pool: u64,
    pub(super) speed: f64,
    pub(super) waiting: u32,
    pub(super) rtt: Nanos,
    /// It has asked, and nobody is being cut for it.
    pub(super) wants: bool,
}

/// Who is robbed for whom.
#[derive(Debug, PartialEq)]
pub(super) struct Robbery {
    pub(super) thieves: Vec<Rank>,
    /// Victims, and what each is told.
    pub(super) cuts: Vec<(Rank, Thieves)>,
}

impl Holder {
    /// Seconds until its pool is empty.
    fn lasts(&self) -> f64 {
        if self.pool == 0 { 0.0 } else { self.pool as f64 / self.speed.max(f64::MIN_POSITIVE) }
    }
}

/// Picks victims and thieves; `None` if nobody has enough to be worth it.
pub(super) fn rob(holders: &[Holder]) -> Option<Robbery> {
    let poorest = holders.iter().filter(|holder| holder.wants).map(Holder::lasts).reduce(f64::min)?;
    let trips = |rtt: Nanos| seconds(2 * rtt);
    let rtt = holders.iter().filter(|holder| holder.wants).map(|holder| holder.rtt).max()?;
    let is_victim = |holder: &Holder| holder.pool > 0 && holder.lasts() > poorest + trips(rtt);
    let waits = holders.iter().any(|holder| holder.wants && holder.waiting > 0);
    let is_thief = |holder: &Holder| holder.wants && !is_victim(holder) && (holder.waiting > 0 || !waits);
    let thieves: Vec<&Holder> = holders.iter().filter(|holder| is_thief(holder)).collect();
    let victims: Vec<&Holder> = holders.iter().filter(|it| is_victim(it)).collect();
    let loot: u64 = victims.iter().map(|victim| victim.pool).sum();
    let all = Thieves {
        speed: thieves.iter().map(|thief| thief.speed).sum(),
        pool: thieves.iter().map(|thief| thief.pool).sum(),
        waiting: thieves.iter().map(|thief| thief.waiting).sum(),
        victim: 0.0,
    };
    let cuts: Vec<(Rank, Thieves)> = victims
        .iter()
        .map(|victim| {
            // Each victim works for its part of the thieves.
            let part = victim.pool as f64 / loot as f64;
            let pool = (all.pool as f64 * part) as u64;
            (victim, Thieves { speed: all.speed * part, pool, victim: victim.speed, ..all })
        })
        .filter(|(victim, thieves)| thieves.part_of(victim.pool, None) > 0)
        .map(|(victim, thieves)| (victim.rank, thieves))
        .collect();
    let thieves = thieves.iter().map(|thief| thief.rank).collect();
    (!cuts.is_empty()).then_some(Robbery { thieves, cuts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::SECOND;

    fn holder(rank: u32, pool: u64, wants: bool) -> Holder {
        Holder {
            rank: Rank(rank),
            pool,
            speed: 100.0,
            waiting: u32::from(pool == 0),
            rtt: SECOND / 10,
            wants,
        }
    }

    #[test]
    fn one_collapsed_rank_is_cut_once_for_all() {
        let robbery = rob(&[holder(0, 0, true), holder(1, 1000, false), holder(2, 0, true)]).unwrap();
        assert_eq!(robbery.thieves, [Rank(0), Rank(2)]);
        let [(Rank(1), thieves)] = robbery.cuts[..] else { panic!("{robbery:?}") };
        assert_eq!(thieves.part_of(1000, None), 666);
    }

    #[test]
    fn what_lasts_no_longer_than_the_theft_is_left_alone() {
        assert_eq!(rob(&[holder(0, 0, true), holder(1, 20, false)]), None);
        assert_eq!(rob(&[holder(0, 0, false), holder(1, 1000, false)]), None, "nobody asks");
        assert!(rob(&[holder(0, 0, true), holder(1, 30, true)]).is_some(), "who asks may be a victim");
    }

    #[test]
    fn several_victims_do_not_give_several_times_too_much() {
        let robbery = rob(&[holder(0, 0, true), holder(1, 1000, false), holder(2, 1000, false)]).unwrap();
        let given: u64 = robbery.cuts.iter().map(|(_, thieves)| thieves.part_of(1000, None)).sum();
        assert_eq!(given, 666);
    }
}
