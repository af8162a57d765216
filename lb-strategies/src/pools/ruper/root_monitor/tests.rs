//! Tests the balance between ranks message by message.

use super::super::message::Reason;
use super::*;
use crate::pools::machine::SECOND;
use proptest::prelude::*;

fn balancing(iterations: u64, ranks: usize, settings: &str) -> RootMonitor {
    let mut root = RootMonitor::new(&Settings::of(settings), &Pool::new(iterations, vec![2; ranks]));
    root.boot(0, &mut Vec::new());
    for rank in 1..ranks as u32 {
        receive(&mut root, 1, rank, RuperMessage::Start);
    }
    root
}

fn receive(root: &mut RootMonitor, at_seconds: u64, from: u32, message: RuperMessage) -> Vec<Command> {
    let mut out = Vec::new();
    root.receive(at_seconds * SECOND, Rank(from), message, TaskView::default(), &mut out);
    out
}

fn report(predicted: u64, elapsed_seconds: u64) -> RuperMessage {
    let elapsed = elapsed_seconds * SECOND;
    RuperMessage::Report { reason: Reason::Requested, predicted, registered: predicted, elapsed }
}

fn tick(root: &mut RootMonitor, at_seconds: u64, predicted: u64) -> Vec<Command> {
    let (mut out, view) = (Vec::new(), TaskView { predicted, ..TaskView::default() });
    root.tick(at_seconds * SECOND, view, &mut out);
    out
}

fn send(to: u32, message: RuperMessage) -> Command {
    Command::Send { to: Rank(to), message }
}

#[test]
fn ranks_get_equal_shares_and_are_asked_when_their_reports_are_due() {
    let mut root = RootMonitor::new(&Settings::of(""), &Pool::new(10, vec![2; 3]));
    let mut out = Vec::new();
    root.boot(0, &mut out);
    assert_eq!(out, [Command::SetTotal(4)]);
    assert_eq!(receive(&mut root, 10, 2, RuperMessage::Start), [send(2, RuperMessage::StartOk { quota: 3 })]);
    assert_eq!(root.wake_at(), 300 * SECOND, "itself");
    assert_eq!(tick(&mut root, 299, 0), []);
    tick(&mut root, 300, 0);
    assert_eq!(root.wake_at(), 310 * SECOND, "the other");
    assert_eq!(tick(&mut root, 310, 0), [send(2, RuperMessage::ReportRequest)]);
}

#[test]
fn a_steady_rank_is_asked_less_often_if_intervals_adapt() {
    let mut root = balancing(1_000_000, 2, "mpi-adapt=on");
    receive(&mut root, 301, 1, report(3000, 300));
    assert_eq!(root.peers[1].due, (301 + 315) * SECOND, "a first speed is taken for steady");
    receive(&mut root, 616, 1, report(3000 + 3150, 315));
    let twice = 330_750_000_000;
    assert_eq!(root.peers[1].due, 616 * SECOND + twice);
    let reason = Reason::Finish { sequence: 1 };
    let early = RuperMessage::Report { reason, predicted: 7150, registered: 7150, elapsed: 100 * SECOND };
    receive(&mut root, 716, 1, early);
    assert_eq!(root.peers[1].due, 716 * SECOND + twice, "nobody asked it: the interval stays");
    let asked_at = 716 + 331;
    receive(&mut root, asked_at, 1, report(7150 + 1655, 331));
    assert_eq!(root.peers[1].due, asked_at * SECOND + 300 * SECOND, "half as fast");
}

#[test]
fn only_a_reporting_rank_gets_a_new_quota() {
    let mut root = balancing(9000, 3, "");
    let assign = |quota| send(1, RuperMessage::Assign { sequence: 0, quota });
    assert_eq!(receive(&mut root, 300, 1, report(300, 300)), [Command::SetTotal(3000), assign(3000)]);
    // Rank 0 does 2 iterations per second, rank 1 does 1. So rank 0 gets two thirds of the remaining 6000 - 900.
    assert_eq!(tick(&mut root, 300, 600), [Command::SetTotal(600 + 3400)]);
    assert_eq!(root.peers[1].assigned, 300 + 1700);
}

/// When the report of any rank ends the balance, all ranks get their quotas in the same step, unlike in the paper.
#[test]
fn the_end_is_told_to_all_at_once_with_all_that_is_missing_to_them() {
    let mut root = balancing(900, 3, "");
    let ranges = |out: &[Command]| match out {
        [Command::Send { message: RuperMessage::Granted { ranges, quota }, .. }] => (ranges.clone(), *quota),
        other => panic!("{other:?}"),
    };
    let granted = receive(&mut root, 10, 1, RuperMessage::Claim { count: 200 });
    assert_eq!(ranges(&granted), (vec![0..200], None));
    let granted = receive(&mut root, 20, 1, RuperMessage::Claim { count: 200 });
    assert_eq!(ranges(&granted), (vec![200..300], Some(300)), "not more than its quota");
    let told = receive(&mut root, 300, 1, report(300, 300));
    assert!(!told.contains(&Command::BalanceOver));
    let told = tick(&mut root, 300, 300);
    let expected = [
        Command::SetTotal(300),
        send(1, RuperMessage::End { quota: 300, ranges: vec![] }),
        send(2, RuperMessage::End { quota: 300, ranges: vec![300..600] }),
        Command::Grant(vec![600..900]),
        Command::Rebalance(Urgency::Forced),
        Command::BalanceOver,
    ];
    assert_eq!(told, expected);
    assert_eq!(receive(&mut root, 301, 1, report(300, 1)), [], "races 1 and 3: it is told already");
    for rank in [1, 2] {
        assert!(!root.is_closed());
        receive(&mut root, 302, rank, RuperMessage::Bye { registered: 300 });
    }
    assert!(root.is_closed());
    assert_eq!(root.wake_at(), Nanos::MAX);
}

/// The share of an absent rank is redistributed, and a rank that starts late gets an equal part of the rest.
#[test]
fn a_rank_that_starts_late_gets_a_part_of_what_is_left() {
    let mut root = RootMonitor::new(&Settings::of(""), &Pool::new(900, vec![2; 3]));
    root.boot(0, &mut Vec::new());
    receive(&mut root, 0, 1, RuperMessage::Start);
    receive(&mut root, 200, 1, report(20, 200));
    assert_eq!(root.peers[2].assigned, 300, "its deadline has not passed");
    tick(&mut root, 300, 30);
    assert_eq!(root.peers.iter().map(|peer| peer.assigned).collect::<Vec<_>>()[2], 0);
    let out = receive(&mut root, 300, 2, RuperMessage::Start);
    assert!(out.contains(&send(2, RuperMessage::StartOk { quota: 280 })), "a third of 840: {out:?}");
    assert_eq!(root.peers.iter().map(|peer| peer.assigned).sum::<u64>(), 900);
}

#[derive(Clone, Debug)]
enum Step {
    Report { rank: u32, predicted: u64 },
    Claim { rank: u32, count: u64 },
    Start { rank: u32 },
    Tick { predicted: u64 },
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        4 => (1..4u32, 0..600u64).prop_map(|(rank, predicted)| Step::Report { rank, predicted }),
        4 => (1..4u32, 1..200u64).prop_map(|(rank, count)| Step::Claim { rank, count }),
        2 => (1..4u32).prop_map(|rank| Step::Start { rank }),
        2 => (0..600u64).prop_map(|predicted| Step::Tick { predicted }),
    ];
    prop::collection::vec((0..200u64, step), 0..60)
}

proptest! {
    /// After a balance quotas add up, none is below the indices granted to its rank, and none changes after the end.
    #[test]
    fn quotas_of_ranks_add_up_and_cover_what_was_granted(steps in steps()) {
        let mut root = RootMonitor::new(&Settings::of("t-min-mpi=20"), &Pool::new(1000, vec![2; 4]));
        root.boot(0, &mut Vec::new());
        let (mut now, mut frozen) = (0, None);
        for (wait, step) in steps {
            now += wait;
            match step {
                Step::Report { rank, predicted } => { receive(&mut root, now, rank, report(predicted, wait)); }
                Step::Claim { rank, count } => { receive(&mut root, now, rank, RuperMessage::Claim { count }); }
                Step::Start { rank } => { receive(&mut root, now, rank, RuperMessage::Start); }
                Step::Tick { predicted } => { tick(&mut root, now, predicted); }
            }
            let quotas: Vec<u64> = root.peers.iter().map(|peer| peer.assigned).collect();
            let grants = root.grants.as_ref().unwrap();
            for (rank, &quota) in (0..).map(Rank).zip(&quotas) {
                prop_assert!(quota >= grants.granted(rank));
            }
            let absent_until_deadline = now >= 300 && root.peers.iter().any(|peer| peer.stage == Stage::Absent);
            if !absent_until_deadline {
                prop_assert_eq!(quotas.iter().sum::<u64>(), 1000);
            }
            if root.phase == Phase::Over {
                prop_assert_eq!(frozen.get_or_insert(quotas.clone()), &quotas);
            }
        }
    }
}
