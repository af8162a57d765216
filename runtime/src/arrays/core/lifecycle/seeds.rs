//! Seed balancing: keeps the spawned chunks of one rank until they start, and exchanges them with other ranks. A *seed*
//! is a spawned chunk that has not started. Idle ranks request seeds from their *lifelines*: their neighbours in a
//! hypercube, at most log2 of the number of ranks.
//!
//! The rank that starts a seed assigns the index of the chunk. So no other chunk has the index before, and no message
//! can be in flight to a seed. A seed may therefore move to any rank without a table or a route. The method is
//! lifeline-based work sharing: Saraswat, Kambadur, Kodali, Grove, Krishnamoorthy, "Lifeline-based global load
//! balancing", PPoPP 2011, without their random victims.
//!
//! # States of a rank towards each lifeline
//! | state | entered when | left when |
//! |---|---|---|
//! | nothing requested | seeds come from the lifeline | this rank has no ready chunk and no seed |
//! | requested | this rank has no ready chunk and no seed | seeds come from the lifeline |
//! | requested by the lifeline, in addition to one of the above | the lifeline requests seeds | this rank sends it seeds |
//!
//! # Rules
//! 1. A rank starts its newest seed first. Depth first keeps few seeds waiting: at most the depth of the tree of spawns
//!    times the number of children per chunk.
//! 2. A rank that has no ready chunk and no seed requests seeds from each lifeline once. It sends the next request only
//!    after seeds have come from that lifeline. So a run without work sends no packets, and is found
//!    [quiescent](crate::arrays::core::termination::quiescence).
//! 3. A rank with two or more seeds sends an equal share of its oldest seeds to each requester, at most [`SHARE_MAX`].
//!    The oldest seeds are nearest to the root of the tree of spawns, so they are likely to spawn most.
//! 4. A rank keeps at least one seed. Each transfer therefore halves the number of seeds that can be sent on, and a
//!    single seed never circulates among idle ranks. An inactive rank requests no seeds, keeps none, and sends all to
//!    rank 0, which is always active.
//! 5. A rank with seeds is not idle: quiescence comes after the last seed has started.
//!
//! Cost: nothing while ranks have work. One packet per lifeline each time that a rank has no work, and one packet per
//! transfer of up to [`SHARE_MAX`] seeds. O(1) per seed.
//!
//! There are no priorities. In branch and bound, running the best bound first explored 0 to 9 % fewer nodes than newest
//! first. It took 0.9 to 1.5 times as long (travelling salesman, strongly correlated knapsack).

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::transfer::ChunkBody;
use crate::ids::{ArrayId, ROOT, Rank};

/// The most seeds per packet. A requester with this number of seeds has work for a while before its next request.
const SHARE_MAX: usize = 64;

/// Bits of the number in a key. The upper bits are the starting rank plus 1; 0 for initial chunks of an array.
const NUMBER_BITS: u32 = 40;

/// The rank that gave a chunk its key, and the number in that key. No rank for initial chunks of an array.
pub(crate) fn split_key(key: u64) -> (Option<Rank>, u64) {
    let rank = (key >> NUMBER_BITS).checked_sub(1).map(|rank| Rank(rank as u32));
    (rank, key & ((1 << NUMBER_BITS) - 1))
}

/// The key of the `number`th chunk that this rank starts.
fn key_of(rank: Rank, number: u64) -> u64 {
    assert!(number < 1 << NUMBER_BITS, "a rank starts 2^{NUMBER_BITS} seeds at most");
    (u64::from(rank.0) + 1) << NUMBER_BITS | number
}

/// A chunk that was spawned and has not started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UnstartedChunk {
    pub(crate) array: ArrayId,
    pub(crate) body: ChunkBody,
}

/// The seeds of one rank, its requests for seeds, and its requesters.
#[derive(Debug, Default)]
pub(crate) struct Seeds {
    rank: Rank,
    lifelines: Vec<Rank>,
    /// Seeds that have not started, oldest first.
    waiting: VecDeque<UnstartedChunk>,
    started: u64,
    /// Lifelines that have not sent seeds since this rank's last request.
    requested: BTreeSet<Rank>,
    /// Ranks that have requested seeds and have received none since, in the order of their requests.
    requesters: VecDeque<Rank>,
    /// True while the rank is inactive: it is to have no work.
    is_inactive: bool,
}

impl Seeds {
    /// The seeds of one of `ranks` ranks. The rank has lifelines only if an array uses seeds.
    pub(crate) fn new(rank: Rank, ranks: u32, used: bool) -> Seeds {
        let bits = (0..u32::BITS).map(|bit| rank.0 ^ 1 << bit);
        let lifelines = bits.filter(|&other| used && other < ranks).map(Rank).collect();
        Seeds { rank, lifelines, ..Seeds::default() }
    }

    /// Number of seeds that wait to be started.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A chunk of this rank has spawned a seed.
    pub(crate) fn spawned(&mut self, seed: UnstartedChunk) {
        self.waiting.push_back(seed);
    }

    /// Takes the next seed to start, and the key that it has from now on.
    pub(crate) fn start(&mut self) -> Option<(UnstartedChunk, u64)> {
        let seed = self.waiting.pop_back()?;
        let key = key_of(self.rank, self.started);
        self.started += 1;
        Some((seed, key))
    }

    /// True if the rank, when it has no ready chunk, is to request seeds from a lifeline.
    pub(crate) fn may_request(&self) -> bool {
        !self.is_inactive && self.waiting.is_empty() && self.requested.len() < self.lifelines.len()
    }

    pub(crate) fn set_active(&mut self, active: bool) {
        self.is_inactive = !active;
    }

    /// The rank has no ready chunk. Returns the lifelines that get a request now.
    pub(crate) fn request(&mut self) -> Vec<Rank> {
        if !self.may_request() {
            return Vec::new();
        }
        self.lifelines.iter().copied().filter(|&lifeline| self.requested.insert(lifeline)).collect()
    }

    pub(crate) fn requested_by(&mut self, rank: Rank) {
        self.requesters.push_back(rank);
    }

    /// Seeds have come from a lifeline, oldest first.
    pub(crate) fn receive(&mut self, from: Rank, seeds: Vec<UnstartedChunk>) {
        self.requested.remove(&from);
        self.waiting.extend(seeds);
    }

    /// True if the rank has seeds for a rank that has requested some, or is inactive and has any seed.
    pub(crate) fn has_to_share(&self) -> bool {
        match self.is_inactive {
            true => !self.waiting.is_empty(),
            false => !self.requesters.is_empty() && self.waiting.len() > 1,
        }
    }

    /// Takes the next rank to send seeds to, and the seeds.
    pub(crate) fn share(&mut self) -> Option<(Rank, Vec<UnstartedChunk>)> {
        if !self.has_to_share() {
            return None;
        }
        if self.is_inactive {
            let share = self.waiting.len().min(SHARE_MAX);
            return Some((ROOT, self.waiting.drain(..share).collect()));
        }
        let share = (self.waiting.len() / (self.requesters.len() + 1)).clamp(1, SHARE_MAX);
        Some((self.requesters.pop_front()?, self.waiting.drain(..share).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A seed that can be recognised by its array.
    fn seed(array: u32) -> UnstartedChunk {
        UnstartedChunk { array: ArrayId(array), body: ChunkBody::Follows }
    }

    fn numbers<'s>(seeds: impl IntoIterator<Item = &'s UnstartedChunk>) -> Vec<u32> {
        seeds.into_iter().map(|seed| seed.array.0).collect()
    }

    fn with(ranks: u32, seeds: u32) -> Seeds {
        let mut all = Seeds::new(Rank(0), ranks, true);
        (0..seeds).for_each(|number| all.spawned(seed(number)));
        all
    }

    #[test]
    fn the_newest_starts_first_under_a_key_of_its_rank() {
        let mut seeds = Seeds::new(Rank(6), 7, true);
        (0..5).for_each(|number| seeds.spawned(seed(number)));
        let started: Vec<_> = std::iter::from_fn(|| seeds.start()).collect();
        assert_eq!(numbers(started.iter().map(|(seed, _)| seed)), [4, 3, 2, 1, 0]);
        let keys: Vec<_> = started.iter().map(|&(_, key)| split_key(key)).collect();
        assert_eq!(keys, [0, 1, 2, 3, 4].map(|number| (Some(Rank(6)), number)));
        assert_eq!(split_key(6), (None, 6), "a chunk that its array begins with");
    }

    #[test]
    fn lifelines_connect_any_number_of_ranks_and_go_both_ways() {
        for ranks in 1..40 {
            let lifelines = |rank: u32| Seeds::new(Rank(rank), ranks, true).lifelines;
            let (mut reached, mut next) = (BTreeSet::from([0]), vec![0]);
            while let Some(rank) = next.pop() {
                assert!(lifelines(rank).iter().all(|other| lifelines(other.0).contains(&Rank(rank))));
                assert!(lifelines(rank).len() <= ranks.next_power_of_two().ilog2() as usize);
                next.extend(
                    lifelines(rank).iter().map(|other| other.0).filter(|&other| reached.insert(other)),
                );
            }
            assert_eq!(reached.len(), ranks as usize);
        }
        assert!(!Seeds::new(Rank(0), 8, false).may_request(), "a run without seeds asks nobody");
    }

    #[test]
    fn a_lifeline_is_asked_once_until_it_sends_seeds() {
        let mut seeds = with(4, 1);
        assert_eq!(seeds.request(), [], "it has one");
        assert!(seeds.start().is_some());
        assert_eq!(seeds.request(), [Rank(1), Rank(2)]);
        assert!(!seeds.may_request() && seeds.request().is_empty());
        seeds.receive(Rank(2), vec![seed(0)]);
        assert!(seeds.start().is_some() && seeds.may_request());
        assert_eq!(seeds.request(), [Rank(2)]);
    }

    #[test]
    fn a_requester_gets_the_older_half_and_several_get_equal_shares() {
        let mut seeds = with(8, 9);
        assert!(seeds.share().is_none());
        seeds.requested_by(Rank(1));
        let (to, share) = seeds.share().expect("it was asked");
        assert_eq!((to, numbers(&share)), (Rank(1), vec![0, 1, 2, 3]));
        [2, 4].into_iter().for_each(|rank| seeds.requested_by(Rank(rank)));
        let shares: Vec<_> =
            std::iter::from_fn(|| seeds.share()).map(|(to, share)| (to.0, numbers(&share))).collect();
        assert_eq!(shares, [(2, vec![4]), (4, vec![5, 6])]);
        assert_eq!(seeds.waiting(), 2);
    }

    #[test]
    fn a_requester_waits_for_a_second_seed_and_packets_are_limited() {
        let mut seeds = with(2, 1);
        seeds.requested_by(Rank(1));
        assert!(seeds.share().is_none(), "the only one stays");
        (0..1000).for_each(|number| seeds.spawned(seed(number)));
        assert_eq!(seeds.share().map(|(_, share)| share.len()), Some(SHARE_MAX));
        assert!(seeds.share().is_none(), "it has got its share");
    }

    #[test]
    fn an_inactive_rank_sends_all_to_rank_0_and_asks_for_none() {
        let mut seeds = Seeds::new(Rank(1), 4, true);
        seeds.set_active(false);
        assert!(!seeds.may_request() && seeds.share().is_none());
        seeds.spawned(seed(7));
        assert_eq!(seeds.share().map(|(to, share)| (to, numbers(&share))), Some((ROOT, vec![7])));
        seeds.set_active(true);
        assert!(seeds.may_request());
    }

    /// Seeds that idle ranks pass on to each other come to rest.
    #[test]
    fn seeds_do_not_circulate_among_ranks_that_do_not_start_them() {
        let ranks = 8;
        let mut all: Vec<_> = (0..ranks).map(|rank| Seeds::new(Rank(rank), ranks, true)).collect();
        let mut packets = VecDeque::new();
        for rank in 1..ranks {
            packets.extend(all[rank as usize].request().into_iter().map(|to| (Rank(rank), to, None)));
        }
        (0..100).for_each(|number| all[0].spawned(seed(number)));
        let mut taken = 0;
        while let Some((from, to, packet)) = packets.pop_front() {
            let seeds = &mut all[to.index()];
            match packet {
                None => seeds.requested_by(from),
                Some(came) => seeds.receive(from, came),
            }
            packets
                .extend(std::iter::from_fn(|| seeds.share()).map(|(asker, share)| (to, asker, Some(share))));
            taken += 1;
            assert!(taken < 100, "no end of packets");
        }
        let waiting: Vec<_> = all.iter().map(Seeds::waiting).collect();
        assert_eq!(waiting.iter().sum::<usize>(), 100);
        assert!(waiting.iter().all(|&seeds| seeds > 0), "{waiting:?}");
    }
}
