//! Tests of whole trees of ranks, small and large.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::{Resource, getrlimit};

use super::*;

/// All ranks of a tree, in this process except for one that may be a separate process.
struct Grown {
    here: BTreeMap<u32, Here>,
    away: Option<Process>,
    invitations: BTreeMap<Rank, ContactInfo>,
}

impl Grown {
    fn all_here(tree: Tree) -> Grown {
        Grown::new(tree, tree.ranks)
    }

    fn new(tree: Tree, away: u32) -> Grown {
        let mut grown = Grown { here: BTreeMap::new(), away: None, invitations: BTreeMap::new() };
        for rank in 0..tree.ranks {
            let parent = tree.parent(Rank(rank)).map(|parent| &grown.invitations[&parent]);
            let invitation = if rank == away {
                let (process, invitation) = Process::grow(tree, rank, parent);
                grown.away = Some(process);
                invitation
            } else {
                let (door, invitation) = tree.is_inner(Rank(rank)).then(|| Listener::open().unwrap()).unzip();
                grown.here.insert(rank, Here::start(tree, rank, parent, door).unwrap());
                invitation
            };
            grown.invitations.extend(invitation.map(|invitation| (Rank(rank), invitation)));
        }
        grown
    }
}

#[test]
fn no_rank_is_reported_dead_when_all_leave_at_once() {
    for fan_out in [1, 2, 7].repeat(10) {
        let ranks = Grown::all_here(Tree { ranks: 8, fan_out }).here;
        let leaving: Vec<_> = ranks.into_values().map(|rank| thread::spawn(|| rank.leave())).collect();
        for heard in leaving.into_iter().flat_map(|rank| rank.join().unwrap()) {
            assert_eq!(heard.kind, LossKind::Left);
        }
    }
}

#[test]
fn a_dead_rank_of_a_tree_is_reported_to_every_rank_once() {
    for (ranks, fan_out, victim) in [(15, 2, 0), (15, 2, 1), (15, 2, 3), (15, 2, 14), (13, 3, 2), (5, 1, 2)] {
        let mut grown = Grown::new(Tree { ranks, fan_out }, victim);
        grown.away = None;
        grown.here.values().for_each(|rank| rank.hears(victim, LossKind::Died));
        for (rank, here) in grown.here {
            assert_eq!(here.leave(), [], "rank {rank} of {ranks} hears of {victim} once, and of no other");
        }
    }
}

/// All permutations of the numbers below `count`.
fn orders(count: u32) -> Vec<Vec<u32>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let places =
        orders(last).into_iter().flat_map(|order| (0..=order.len()).map(move |place| (order.clone(), place)));
    places
        .map(|(mut order, place)| {
            order.insert(place, last);
            order
        })
        .collect()
}

#[test]
fn ranks_leave_a_tree_in_any_order_and_all_hear_of_the_first() {
    for order in orders(5) {
        let mut ranks = Grown::all_here(Tree { ranks: 5, fan_out: 2 }).here;
        let first = order[0];
        assert_eq!(ranks.remove(&first).unwrap().leave(), []);
        ranks.values().for_each(|rank| rank.hears(first, LossKind::Left));
        for rank in &order[1..] {
            assert_eq!(ranks.remove(rank).unwrap().leave(), [], "{order:?}");
        }
    }
}

#[test]
fn a_death_after_a_goodbye_is_news_and_nothing_after_it() {
    let mut grown = Grown::new(Tree { ranks: 7, fan_out: 2 }, 6);
    drop(grown.here.remove(&3));
    grown.here.values().for_each(|rank| rank.hears(3, LossKind::Left));
    grown.away = None;
    grown.here.values().for_each(|rank| rank.hears(6, LossKind::Died));
    drop(grown.here.remove(&4));
    drop(grown.here.remove(&1));
    assert!(grown.here.into_values().all(|rank| rank.leave().is_empty()));
}

#[test]
fn a_late_child_of_an_inner_rank_is_told_the_lost_rank() {
    let tree = Tree { ranks: 4, fan_out: 2 };
    let (host_door, to_host) = Listener::open().unwrap();
    let (inner_door, to_inner) = Listener::open().unwrap();
    let host = Here::start(tree, 0, None, Some(host_door)).unwrap();
    drop(Here::start(tree, 2, Some(&to_host), None).unwrap());
    host.hears(2, LossKind::Left);
    let inner = Here::start(tree, 1, Some(&to_host), Some(inner_door)).unwrap();
    let leaf = Here::start(tree, 3, Some(&to_inner), None).unwrap();
    for rank in [&inner, &leaf] {
        rank.hears(2, LossKind::Left);
    }
}

#[test]
fn the_children_of_an_inner_rank_that_cannot_reach_its_parent_are_not_watched() {
    let tree = Tree { ranks: 3, fan_out: 1 };
    let (host_door, to_host) = Listener::open().unwrap();
    let (inner_door, to_inner) = Listener::open().unwrap();
    drop(host_door);
    assert!(Here::start(tree, 1, Some(&to_host), Some(inner_door)).is_err());
    assert!(Here::start(tree, 2, Some(&to_inner), None).is_err());
}

/// Number of accepted connections of the listeners at these ports, by port, from the kernel's list.
fn let_in(ports: &BTreeSet<u16>) -> BTreeMap<u16, u32> {
    let mut counts = BTreeMap::new();
    for list in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        for line in std::fs::read_to_string(list).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let port = u16::from_str_radix(fields[1].rsplit_once(':').unwrap().1, 16).unwrap();
            let is_established = fields[3] == "01";
            if is_established && ports.contains(&port) {
                *counts.entry(port).or_default() += 1;
            }
        }
    }
    counts
}

#[test]
fn no_rank_of_a_large_job_holds_more_sockets_than_its_children_and_one() {
    // A rank has two ends of a pipe, and both ends of its connection to its parent are in this process.
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let (ranks, fan_out) = if files >= 4_000 { (600, 24) } else { (100, 9) };
    let grown = Grown::all_here(Tree { ranks, fan_out });
    let ports = grown.invitations.values().map(|invitation| invitation.port).collect();
    // On a busy machine, a child accepted late has also connected by another address. That connection ends soon.
    let mut counts = (0..PATIENCE.as_millis() / 50).map(|_| {
        thread::sleep(Duration::from_millis(50));
        let_in(&ports)
    });
    let one_each = |counts: &BTreeMap<u16, u32>| counts.values().sum::<u32>() == ranks - 1;
    let children = counts.find(one_each);
    let children = children.expect("each rank but 0 has one connection to its parent");
    assert!(children.values().all(|&children| children <= fan_out), "{children:?}");
    let mut here = grown.here;
    drop(here.remove(&(ranks - 1)));
    here.values().for_each(|rank| rank.hears(ranks - 1, LossKind::Left));
}
