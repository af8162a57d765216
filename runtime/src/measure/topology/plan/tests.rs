use proptest::prelude::*;

use super::*;

/// A machine with `vcpus` vCPUs: `threads` hyperthreads per core, `per_cache` vCPUs per cache, two caches per domain.
/// As on real machines, the second hyperthreads have higher numbers than all first ones.
fn machine(vcpus: u32, threads: u32, per_cache: u32) -> Vec<Vcpu> {
    let cores = vcpus / threads;
    let vcpu = |number| {
        let core = number % cores;
        let cache = core * threads / per_cache;
        Vcpu { number, core, cache, numa: cache / 2 }
    };
    (0..vcpus).map(vcpu).collect()
}

/// vCPUs of different cores that share one cache and one domain.
fn alike(numbers: &[u32]) -> Vec<Vcpu> {
    numbers.iter().map(|&number| Vcpu { number, core: number, cache: 0, numa: 0 }).collect()
}

fn place(host: &str, vcpus: &[Vcpu], workers: Option<u32>) -> RankResources {
    RankResources { host: host.into(), vcpus: vcpus.to_vec(), quota: None, workers }
}

fn auto(places: &[RankResources]) -> Plan {
    plan(places, Pin::Auto).expect("only `on` is refused")
}

fn seats(plan: &Plan) -> Vec<&[usize]> {
    plan.placements.iter().map(|seats| seats.vcpus.as_deref().unwrap_or(&[])).collect()
}

#[test]
fn ranks_sit_side_by_side_while_vcpus_last() {
    let four = place("a", &alike(&[0, 2, 4, 6]), Some(2));
    assert_eq!(seats(&auto(&[four.clone(), four])), [[0, 2], [4, 6]]);
    let two = place("a", &alike(&[0, 2]), Some(2));
    let crowded = auto(&[two.clone(), two]);
    assert!(crowded.placements.iter().all(|seats| seats.vcpus.is_none() && seats.oversubscribed));
}

#[test]
fn a_rank_bound_by_the_launcher_keeps_to_its_own_mask() {
    let vcpus = machine(8, 1, 8);
    let plan =
        auto(&[place("a", &vcpus[4..], None), place("a", &vcpus[..2], None), place("b", &vcpus[4..], None)]);
    assert_eq!(seats(&plan), [&[4, 5, 6, 7][..], &[0, 1], &[4, 5, 6, 7]]);
    assert_eq!(plan.hosts, ["a", "b"]);
    assert_eq!(plan.placements.iter().map(|seats| seats.host).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn one_crowded_group_leaves_the_others_pinned() {
    let vcpus = machine(4, 1, 4);
    let plan = auto(&[place("a", &vcpus[..1], Some(3)), place("a", &vcpus[1..], Some(3))]);
    assert!(plan.placements[0].oversubscribed && !plan.placements[1].oversubscribed);
    assert_eq!(seats(&plan), [&[][..], &[1, 2, 3]]);
}

#[test]
fn hyperthread_siblings_are_used_last() {
    let vcpus = machine(8, 2, 8);
    assert_eq!(seats(&auto(&[place("a", &vcpus, Some(4))])), [[0, 1, 2, 3]]);
    assert_eq!(seats(&auto(&[place("a", &vcpus, Some(6))])), [[0, 4, 1, 5, 2, 6]]);
    assert_eq!(auto(&[place("a", &vcpus, None)]).placements[0].workers, 4, "one a physical core");
}

#[test]
fn a_quota_bounds_the_workers_that_nobody_asked_for() {
    let vcpus = machine(8, 1, 8);
    let under = |group: &str, quota, workers| RankResources {
        quota: Some(Quota { vcpus: quota, group: group.into() }),
        ..place("a", &vcpus, workers)
    };
    let counts = |places: &[RankResources]| auto(places).workers();
    assert_eq!(counts(&[under("/", 2.5, None)]), [3]);
    assert_eq!(counts(&[under("/", 0.5, None)]), [1]);
    assert_eq!(counts(&[under("/", 4.0, None), under("/", 4.0, None)]), [2, 2], "they share it");
    assert_eq!(counts(&[under("/0", 4.0, None), under("/1", 4.0, None)]), [4, 4], "each has its own");
    assert_eq!(counts(&[under("/", 2.0, None), place("a", &vcpus, None)]), [4, 4], "one has none");
    let bound =
        |vcpu: usize| RankResources { vcpus: vcpus[vcpu..vcpu + 4].to_vec(), ..under("/", 4.0, None) };
    assert_eq!(counts(&[bound(0), bound(4)]), [2, 2], "a launcher's binding does not double it");
    let (tight, loose) = (auto(&[under("/", 1.5, Some(2))]), auto(&[under("/", 2.0, Some(2))]));
    assert_eq!([tight.placements[0].avoid_spinning, loose.placements[0].avoid_spinning], [true, false]);
    assert_eq!(tight.to_string(), "1 host, 1 rank x 2 workers, pinned: a 0-1; quota of 1.50 vCPUs");
}

#[test]
fn a_rank_stays_within_a_cache_where_that_leaves_enough() {
    let vcpus = machine(8, 1, 4);
    let three = place("a", &vcpus, Some(3));
    assert_eq!(seats(&auto(&[three.clone(), three.clone()])), [[0, 1, 2], [4, 5, 6]]);
    let four = place("a", &vcpus, Some(5));
    assert_eq!(seats(&auto(&[three, four])), [&[0, 1, 2][..], &[3, 4, 5, 6, 7]]);
}

#[test]
fn a_rank_too_large_for_a_cache_stays_within_a_domain() {
    let six = place("a", &machine(16, 1, 4), Some(6));
    assert_eq!(seats(&auto(&[six.clone(), six])), [[0, 1, 2, 3, 4, 5], [8, 9, 10, 11, 12, 13]]);
}

#[test]
fn ranks_that_share_divide_the_cores_evenly() {
    let vcpus = machine(12, 2, 12);
    let workers = |places: &[RankResources]| auto(places).workers();
    assert_eq!(workers(&vec![place("a", &vcpus, None); 3]), [2, 2, 2]);
    assert_eq!(workers(&vec![place("a", &vcpus, None); 4]), [1, 1, 1, 1]);
    assert_eq!(workers(&vec![place("a", &vcpus, None); 9]), [1; 9], "at least one");
    let asked = [place("a", &vcpus, Some(2)), place("a", &vcpus, None), place("a", &vcpus, None)];
    assert_eq!(workers(&asked), [2, 2, 2]);
}

#[test]
fn the_smaller_of_two_masks_is_served_first() {
    let vcpus = machine(4, 1, 4);
    let plan = auto(&[place("a", &vcpus, Some(2)), place("a", &vcpus[..2], Some(2))]);
    assert_eq!(seats(&plan), [[2, 3], [0, 1]]);
}

#[test]
fn ranks_that_fight_for_one_vcpu_are_crowded_however_many_there_are() {
    let vcpus = machine(8, 1, 8);
    let plan =
        auto(&[place("a", &vcpus[..1], None), place("a", &vcpus[..1], None), place("a", &vcpus, None)]);
    assert!(plan.placements.iter().all(|seats| seats.oversubscribed && seats.vcpus.is_none()));
}

#[test]
fn pinning_that_is_demanded_and_impossible_is_refused_with_the_figures() {
    let place = place("a", &machine(2, 1, 2), Some(2));
    let error = plan(&[place.clone(), place.clone()], Pin::On).expect_err("two vCPUs are too few");
    assert!(matches!(&error, Error::Config { setting, .. } if setting == "CARIBOU_PIN"));
    assert!(error.to_string().contains("on host a, 4 workers of 2 ranks do not fit on 2 vCPUs"), "{error}");
    assert!(plan(&[place], Pin::On).is_ok());
}

#[test]
fn workers_that_are_not_pinned_still_know_whether_they_are_crowded() {
    let two = place("a", &machine(2, 1, 2), Some(2));
    for (ranks, crowded) in [(1, false), (2, true)] {
        let plan = plan(&vec![two.clone(); ranks], Pin::Off).expect("only `on` is refused");
        assert!(plan.placements.iter().all(|seats| seats.vcpus.is_none() && seats.oversubscribed == crowded));
    }
}

#[test]
fn the_line_names_hosts_and_the_vcpus_of_each_rank() {
    let vcpus = machine(4, 1, 4);
    let two = |host| place(host, &vcpus, Some(2));
    let line = |places: &[RankResources]| auto(places).to_string();
    assert_eq!(
        line(&[two("a"), two("a"), two("b"), two("b")]),
        "2 hosts, 4 ranks x 2 workers, pinned: a 0-1 2-3, b 0-1 2-3"
    );
    assert_eq!(line(&[place("a", &vcpus, Some(1))]), "1 host, 1 rank x 1 worker, pinned: a 0");
    assert_eq!(
        line(&[place("a", &alike(&[0, 2, 3, 4]), None), place("b", &vcpus, Some(1))]),
        "2 hosts, 2 ranks x 1 to 4 workers, pinned: a 0,2-4, b 0"
    );
    let crowded = place("b", &vcpus[..2], Some(2));
    assert_eq!(
        line(&[crowded.clone(), crowded.clone()]),
        "1 host, 2 ranks x 2 workers, not pinned: 4 workers on 2 vCPUs"
    );
    assert_eq!(
        line(&[two("a"), crowded.clone(), crowded.clone()]),
        "2 hosts, 3 ranks x 2 workers, pinned: a 0-1; not pinned: 4 workers on 2 vCPUs"
    );
    let free = plan(&[two("a")], Pin::Off).expect("only `on` is refused");
    assert_eq!(free.to_string(), "1 host, 1 rank x 2 workers, not pinned");
}

#[test]
fn ten_thousand_ranks_are_planned_and_told_in_one_line() {
    let vcpus = machine(128, 2, 16);
    let ranks = |hosts: usize, each: usize| -> Vec<RankResources> {
        (0..hosts * each).map(|rank| place(&format!("node{:04}", rank / each), &vcpus, Some(1))).collect()
    };
    assert_eq!(
        auto(&ranks(1, 100)).to_string(),
        "1 host, 100 ranks x 1 worker, pinned: node0000 0-49,64-113"
    );
    let all = auto(&ranks(80, 125));
    assert_eq!(all.to_string(), "80 hosts, 10000 ranks x 1 worker, pinned to 10000 vCPUs");
    let crowded = auto(&ranks(50, 200));
    assert_eq!(
        crowded.to_string(),
        "50 hosts, 10000 ranks x 1 worker, not pinned: 10000 workers on 6400 vCPUs"
    );
}

/// Ranks of up to four hosts in any order, each with all vCPUs of its machine, a part, or any subset.
fn places() -> impl Strategy<Value = Vec<RankResources>> {
    let mask = prop_oneof![
        3 => Just((0, u64::MAX)),
        2 => (0..4u32).prop_map(|part| (0, 0xff << (8 * part))),
        1 => (0..4u32, any::<u64>()),
    ];
    let one = (0..4u32, mask, prop::option::weighted(0.7, 0..6u32));
    (1..3u32, 1..9u32, prop::collection::vec(one, 1..24)).prop_map(|(threads, caches, ranks)| {
        let vcpus = machine(32, threads, 4 * caches);
        let rank = |(host, (_, mask), workers): (u32, (u32, u64), Option<u32>)| {
            let mine: Vec<Vcpu> = vcpus.iter().filter(|vcpu| mask >> vcpu.number & 1 == 1).copied().collect();
            place(&format!("h{host}"), &mine, workers)
        };
        ranks.into_iter().map(rank).collect()
    })
}

proptest! {
    #[test]
    fn no_two_workers_of_a_host_share_a_vcpu_and_all_keep_to_their_masks(places in places()) {
        let plan = auto(&places);
        let mut used = std::collections::BTreeSet::new();
        for (place, seats) in places.iter().zip(&plan.placements) {
            prop_assert_eq!(&plan.hosts[seats.host as usize], &place.host);
            prop_assert!(seats.workers >= 1);
            prop_assert_eq!(seats.vcpus.is_none(), seats.oversubscribed);
            let Some(vcpus) = &seats.vcpus else { continue };
            prop_assert_eq!(vcpus.len(), seats.workers as usize);
            for &vcpu in vcpus {
                prop_assert!(place.vcpus.iter().any(|own| own.number as usize == vcpu));
                prop_assert!(used.insert((seats.host, vcpu)), "vCPU {} is taken twice", vcpu);
            }
        }
    }

    #[test]
    fn workers_that_no_one_asked_for_are_seated_where_ranks_are_no_more_than_cores(ranks in 1..16usize, threads in 1..3u32) {
        let vcpus = machine(32, threads, 8);
        let plan = auto(&vec![place("a", &vcpus, None); ranks]);
        prop_assert!(plan.placements.iter().all(|seats| !seats.oversubscribed && seats.workers as usize == cores(&vcpus) / ranks));
        let used: Vec<usize> = plan.placements.iter().flat_map(|seats| seats.vcpus.clone().unwrap_or_default()).collect();
        let core = |&vcpu: &usize| vcpus[vcpu].core;
        prop_assert!(used.windows(2).all(|pair| core(&pair[0]) < core(&pair[1])), "neighbours sit in order, a core each");
    }

    #[test]
    fn seats_follow_from_the_ranks_of_the_host_alone(places in places()) {
        let whole = auto(&places);
        prop_assert_eq!(&whole, &auto(&places));
        for (number, host) in whole.hosts.iter().enumerate() {
            let own: Vec<RankResources> = places.iter().filter(|place| place.host == *host).cloned().collect();
            let alone = auto(&own).placements;
            let within = whole.placements.iter().filter(|seats| seats.host as usize == number);
            prop_assert!(within.zip(&alone).all(|(one, other)| (one.workers, &one.vcpus) == (other.workers, &other.vcpus)));
        }
    }

    #[test]
    fn every_plan_is_told_in_one_short_line(places in places()) {
        for pin in [Pin::Auto, Pin::Off] {
            let line = plan(&places, pin).expect("only `on` is refused").to_string();
            prop_assert!(line.len() <= 160 && !line.contains('\n'), "{line}");
        }
    }
}
