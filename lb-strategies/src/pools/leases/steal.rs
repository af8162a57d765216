//! Chooses the ranks that must give iterations (*victims*) to ranks that want some (*thieves*), when nothing is free.
//! It is pure arithmetic on the root's record of the ranks.
//!
//! - One steal serves all thieves together, so that a collapsed rank is a victim once, and not once for each thief.
//! - A victim's iterations last longer than those of the poorest thief, by two round trips and a part of a piece.
//!   Evening out a smaller difference would cost more messages than it saves time.
//! - The richest ranks are victims first, and only as many as the thieves need to end with all others. Otherwise many
//!   ranks would take from each other again and again.
//! - A rank that ends with the others anyway is no thief. While any worker waits, exactly the ranks with waiting
//!   workers are thieves. Otherwise stolen iterations could go to faster ranks forever.
//!
//! While all ranks run as they reported, differences stay the same. So the next choice is needed at the next report.

use super::message::Thieves;
use super::root_link::seconds;
use crate::pools::machine::Nanos;
use crate::rank::Rank;

/// A steal must even out at least this fraction, 1/8, of a piece.
const PART_OF_PIECE: u64 = 8;

/// A rank as the root records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) rank: Rank,
    pub(super) pool: u64,
    pub(super) speed: f64,
    pub(super) waiting: u32,
    pub(super) rtt: Nanos,
    /// True if the rank has an unanswered `Want`, and no rank has been asked to give it ranges.
    pub(super) wants: bool,
}

/// Which ranks give iterations, and which get them.
#[derive(Debug, PartialEq)]
pub(super) struct StealPlan {
    pub(super) thieves: Vec<Rank>,
    /// Victims, each with its request.
    pub(super) requests: Vec<(Rank, Thieves)>,
}

impl Holder {
    /// Seconds until its pool is empty.
    fn lasts(&self) -> f64 {
        if self.pool == 0 { 0.0 } else { self.pool as f64 / self.speed.max(f64::MIN_POSITIVE) }
    }
}

/// Chooses victims and thieves; pieces last for `chunk`. `None` if no rank has enough to give.
pub(super) fn steal(holders: &[Holder], chunk: Nanos) -> Option<StealPlan> {
    let poorest = holders.iter().filter(|holder| holder.wants).map(Holder::lasts).reduce(f64::min)?;
    let rtt = holders.iter().filter(|holder| holder.wants).map(|holder| holder.rtt).max()?;
    let margin = seconds(2 * rtt + chunk / PART_OF_PIECE);
    let is_victim = |holder: &Holder| holder.pool > 0 && holder.lasts() > poorest + margin;
    let waits = holders.iter().any(|holder| holder.wants && holder.waiting > 0);
    let end = fair_end(holders);
    let is_thief = |it: &Holder| {
        it.wants && !is_victim(it) && if waits { it.waiting > 0 } else { it.lasts() + margin < end }
    };
    let thieves: Vec<&Holder> = holders.iter().filter(|holder| is_thief(holder)).collect();
    let all = Thieves {
        speed: thieves.iter().map(|thief| thief.speed).sum(),
        pool: thieves.iter().map(|thief| thief.pool).sum(),
        waiting: thieves.iter().map(|thief| thief.waiting).sum(),
        victim: 0.0,
    };
    let victims = richest(holders.iter().filter(|holder| is_victim(holder)).collect(), end, &all);
    let loot: u64 = victims.iter().map(|victim| victim.pool).sum();
    let cuts: Vec<(Rank, Thieves)> = victims
        .iter()
        .map(|victim| {
            // Each victim gives to its part of the thieves.
            let part = victim.pool as f64 / loot as f64;
            let pool = (all.pool as f64 * part) as u64;
            (victim, Thieves { speed: all.speed * part, pool, victim: victim.speed, ..all })
        })
        .filter(|(victim, thieves)| thieves.part_of(victim.pool, None) > 0)
        .map(|(victim, thieves)| (victim.rank, thieves))
        .collect();
    let thieves = thieves.iter().map(|thief| thief.rank).collect();
    (!cuts.is_empty()).then_some(StealPlan { thieves, requests: cuts })
}

/// The time after which all ranks would end together, s.
fn fair_end(holders: &[Holder]) -> f64 {
    let pool: u64 = holders.iter().map(|holder| holder.pool).sum();
    let speed: f64 = holders.iter().map(|holder| holder.speed).sum();
    pool as f64 / speed.max(f64::MIN_POSITIVE)
}

/// The victims that last longest, as many as the thieves need to end at `end`; at least one, if there is any.
fn richest<'h>(mut victims: Vec<&'h Holder>, end: f64, thieves: &Thieves) -> Vec<&'h Holder> {
    victims.sort_by(|one, other| other.lasts().total_cmp(&one.lasts()));
    let mut need = thieves.speed * end - thieves.pool as f64;
    let enough = victims.iter().position(|victim| {
        need -= victim.pool as f64 - victim.speed * end;
        need <= 0.0
    });
    victims.truncate(enough.map_or(victims.len(), |last| last + 1));
    victims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::machine::SECOND;

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
        let theft = steal(&[holder(0, 0, true), holder(1, 1000, false), holder(2, 0, true)], 0).unwrap();
        assert_eq!(theft.thieves, [Rank(0), Rank(2)]);
        let [(Rank(1), thieves)] = theft.requests[..] else { panic!("{theft:?}") };
        assert_eq!(thieves.part_of(1000, None), 666);
    }

    #[test]
    fn what_lasts_no_longer_than_the_theft_is_left_alone() {
        assert_eq!(steal(&[holder(0, 0, true), holder(1, 20, false)], 0), None);
        assert_eq!(steal(&[holder(0, 0, false), holder(1, 1000, false)], 0), None, "nobody asks");
        assert!(steal(&[holder(0, 0, true), holder(1, 30, true)], 0).is_some(), "askers may be victims");
        assert_eq!(steal(&[holder(0, 0, true), holder(1, 30, true)], SECOND), None, "an eighth of a piece");
    }

    #[test]
    fn several_victims_do_not_give_several_times_too_much() {
        let theft = steal(&[holder(0, 0, true), holder(1, 1000, false), holder(2, 1000, false)], 0).unwrap();
        let given: u64 = theft.requests.iter().map(|(_, thieves)| thieves.part_of(1000, None)).sum();
        assert_eq!(given, 666);
    }

    #[test]
    fn of_many_victims_the_richest_are_cut_and_no_more_than_needed() {
        let mut holders = vec![holder(0, 0, true)];
        holders.extend((1..9).map(|rank| holder(rank, 1000 + u64::from(rank), false)));
        let theft = steal(&holders, 0).unwrap();
        let victims: Vec<Rank> = theft.requests.iter().map(|&(victim, _)| victim).collect();
        assert_eq!(victims, (1..9).rev().map(Rank).collect::<Vec<_>>(), "each has a ninth of what is needed");
        holders[8].pool = 3000;
        let theft = steal(&holders, 0).unwrap();
        assert_eq!(theft.requests.iter().map(|&(victim, _)| victim).collect::<Vec<_>>(), [Rank(8)]);
    }

    #[test]
    fn a_rank_that_ends_with_the_others_steals_only_if_a_worker_waits() {
        let busy = |rank, pool| Holder { waiting: 0, ..holder(rank, pool, true) };
        let others = [holder(2, 200, false), holder(3, 40, false), holder(4, 40, false)];
        let thieves = |first| steal(&[&[first, busy(1, 70)], &others[..]].concat(), 0).map(|it| it.thieves);
        assert_eq!(thieves(busy(0, 10)), Some(vec![Rank(0)]), "all end at 0.72 s, rank 1 at 0.7 s");
        assert_eq!(thieves(busy(0, 65)), None, "at 0.83 s, it at 0.65 s: less than two round trips earlier");
        assert_eq!(thieves(Holder { waiting: 1, ..busy(0, 0) }), Some(vec![Rank(0)]));
    }
}
