//! Carries the packets of syncs and windows along the tree of ranks, as real runs do: rank 0 is the root, and each rank
//! has up to 8 children. So each rank sends and gets a few packets, however many ranks there are.
//!
//! | packet | direction | says |
//! |---|---|---|
//! | [`Packet::Reports`] | up | all chunks of the sender and the ranks below it have come to a sync |
//! | [`Down::OpenWindow`], [`Up::WindowReports`] | down, up | report at once; these ranks have reported |
//! | [`Down::Decision`] | down | what stays continues; chunks that move are held |
//! | [`Up::SentCounts`], [`Down::ExpectedCounts`] | up, down | these ranks, and then all ranks, use the new routes: chunks leave |
//! | [`Up::Flushed`], [`Down::CompleteMigration`] | up, down | these ranks, and then all ranks, have their chunks: they continue |

use super::chores::Chore;
use super::event::Packet;
use super::history::EventLoop;
use super::placement::RankState;

/// Number of children of a rank in the tree, as in the runtime.
const ARITY: u32 = 8;

/// What a rank has told to its parent once all ranks below it have told it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Up {
    WindowReports,
    SentCounts,
    Flushed,
}

/// What rank 0 tells all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Down {
    OpenWindow,
    /// Rank 0 has decided, with this number of moves.
    Decision {
        moves: u32,
    },
    ExpectedCounts,
    CompleteMigration,
}

/// By kind of [`Up`], how many of a rank and its children are through.
pub(super) type Heard = [u8; 3];

/// The parent of a rank; none for rank 0.
pub(super) fn parent(rank: u32) -> Option<u32> {
    Some(rank.checked_sub(1)? / ARITY)
}

/// The children of a rank, if there are `ranks` ranks.
fn children(rank: u32, ranks: u32) -> std::ops::Range<u32> {
    let first = rank.saturating_mul(ARITY).saturating_add(1).min(ranks);
    first..first.saturating_add(ARITY).min(ranks)
}

/// Sets the numbers of chunks that ranks wait for at a sync.
pub(super) fn count_awaited(places: &mut [RankState]) {
    places.iter_mut().for_each(|place| place.awaited = place.chunks);
    for rank in (1..places.len() as u32).rev() {
        let parent = parent(rank).unwrap_or(0) as usize;
        places[parent].awaited += places[rank as usize].awaited;
    }
}

impl EventLoop<'_> {
    /// Notes that a rank, or a child with the ranks below it, is through. The last one lets the rank tell its parent.
    pub(super) fn rises(&mut self, rank: u32, what: Up) {
        let children = children(rank, self.places.len() as u32).len();
        let heard = &mut self.places[rank as usize].heard[what as usize];
        *heard += 1;
        if usize::from(*heard) <= children {
            return;
        }
        *heard = 0;
        match (parent(rank), what) {
            (Some(parent), _) => self.send(rank, parent, Packet::Up(what)),
            (None, Up::WindowReports) => self.do_chore(0, self.collect_ns(), Chore::CollectWindow),
            (None, Up::SentCounts) => self.falls(rank, Down::ExpectedCounts),
            (None, Up::Flushed) => {
                self.migrated();
                self.falls(rank, Down::CompleteMigration);
            }
        }
    }

    /// Passes a packet of rank 0 on to the ranks below, and handles it.
    pub(super) fn falls(&mut self, rank: u32, what: Down) {
        children(rank, self.places.len() as u32).for_each(|child| self.send(rank, child, Packet::Down(what)));
        match what {
            Down::OpenWindow => self.report_window(rank),
            Down::Decision { .. } if self.windows.is_some() => self.begin_window_migration(rank),
            Down::Decision { moves } => self.begin_migration(rank, moves > 0),
            Down::ExpectedCounts => self.send_outgoing(rank),
            Down::CompleteMigration => self.land(rank),
        }
    }

    /// Notes that these chunks of a rank, or of the ranks below it, have come to the sync that ends `phase`. Once all
    /// have, the rank tells its parent. Ranks without chunks are not waited for.
    pub(super) fn come_to_sync(&mut self, rank: u32, phase: u64, chunks: u32) {
        let Some(chunks) = self.places[rank as usize].come_to_sync(phase, chunks) else { return };
        match parent(rank) {
            Some(parent) => self.send(rank, parent, Packet::Reports { phase, chunks }),
            None => self.do_chore(0, self.collect_ns(), Chore::CollectSync { phase }),
        }
    }

    /// Moves a chunk in the numbers of chunks that ranks wait for at a sync.
    pub(super) fn count_move(&mut self, from: u32, to: u32) {
        let above = |rank: u32| std::iter::successors(Some(rank), |&rank| parent(rank));
        above(from).for_each(|rank| self.places[rank as usize].awaited -= 1);
        above(to).for_each(|rank| self.places[rank as usize].awaited += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_but_the_first_is_a_child_of_its_parent() {
        for ranks in [1, 2, 9, 10, 74, 1000] {
            let of = |parent: u32| children(parent, ranks).map(move |child| (child, parent));
            let pairs: Vec<(u32, u32)> = (0..ranks).flat_map(of).collect();
            let expected: Vec<(u32, u32)> = (1..ranks).map(|rank| (rank, parent(rank).unwrap())).collect();
            assert_eq!(pairs, expected, "{ranks}");
        }
        assert_eq!(parent(0), None);
        assert_eq!(children(u32::MAX / 2, u32::MAX), u32::MAX..u32::MAX);
    }
}
