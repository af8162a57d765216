//! Tests flow control of one rank by its own inputs, and the deadlock detection of rank 0.

use super::*;

const ME: Rank = Rank(0);
const OTHER: Rank = Rank(1);
const BY_ME: Destination = Destination::Rank(ME);
const BY_OTHER: Destination = Destination::Rank(OTHER);

/// The report of a stall.
#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be nothing")]
fn waits(number: u64, waits_for: Vec<Destination>) -> Option<(u64, StallReport)> {
    Some((number, StallReport { waits_for, first_deferred_ack: None }))
}

/// Flow control with a window of 100 bytes, and a request for an ack every 25.
fn flow() -> FlowControl {
    let mut flow = FlowControl::new(ME, 2, 1 << 20, &Arc::default());
    flow.credits.window = 100;
    assert!(!flow.has_blocked());
    flow
}

#[test]
fn more_than_a_window_blocks_until_half_of_it_is_acknowledged() {
    let mut flow = flow();
    assert_eq!(flow.count_sent(OTHER, 24), SendOutcome { ack_request_due: false, blocks: false });
    assert_eq!(flow.count_sent(OTHER, 70), SendOutcome { ack_request_due: true, blocks: false });
    assert_eq!(flow.take_ack_request(BY_OTHER), 94);
    assert_eq!(flow.count_sent(OTHER, 7), SendOutcome { ack_request_due: false, blocks: true });
    flow.block(CellId(3), vec![BY_OTHER]);
    assert!(flow.park_if_blocked(CellId(3)) && !flow.park_if_blocked(CellId(4)));
    assert_eq!(flow.count_acked(BY_OTHER, 50), []);
    assert_eq!(flow.count_acked(BY_OTHER, 44), [CellId(3)]);
    assert!(!flow.has_blocked() && !flow.has_parked());
}

#[test]
fn a_chunk_that_two_ranks_block_waits_for_both() {
    let mut flow = flow();
    flow.count_sent(OTHER, 101);
    flow.block(CellId(3), vec![BY_OTHER, BY_ME]);
    assert!(flow.park_if_blocked(CellId(3)));
    assert_eq!(flow.below_low_watermark(), []);
    let requested = flow.take_ack_request(BY_OTHER);
    assert_eq!(flow.count_acked(BY_OTHER, requested), [CellId(3)]);
}

#[test]
fn a_rank_that_has_caught_up_meanwhile_blocks_no_chunk() {
    let mut flow = flow();
    assert!(flow.count_sent(OTHER, 101).blocks);
    let requested = flow.take_ack_request(BY_OTHER);
    assert_eq!(flow.count_acked(BY_OTHER, requested), []);
    flow.block(CellId(3), vec![BY_OTHER]);
    assert!(!flow.has_blocked());
}

#[test]
fn a_chunk_that_was_blocked_when_it_left_is_blocked_on_its_new_rank() {
    let mut flow = flow();
    flow.count_sent(OTHER, 101);
    [3, 4].map(CellId).into_iter().for_each(|cell| flow.block(cell, vec![BY_OTHER]));
    assert!(flow.park_if_blocked(CellId(3)));
    let returned = [3, 4, 5].map(|cell| flow.prepare_leave(CellId(cell)));
    assert_eq!(returned, [true, false, false], "one entry was parked");
    assert!(!flow.has_blocked() && !flow.has_parked());
    flow.block(CellId(5), vec![BY_ME]);
    assert_eq!([3, 4, 5, 6].map(|cell| flow.leave(CellId(cell))), [true, true, true, false]);
    assert!(!flow.leave(CellId(3)), "another is in its cell");
    assert_eq!(flow.blocking(), [BY_OTHER]);
    flow.count_broadcast(1 << 20);
    assert_eq!(flow.blocking(), [BY_OTHER, Destination::AllRanks]);
}

#[test]
fn a_sender_of_messages_that_migrate_with_a_chunk_waits_for_the_new_rank() {
    const THIRD: Rank = Rank(2);
    let by_third = Destination::Rank(THIRD);
    let mut flow = flow();
    flow.defer_ack(OTHER, 30);
    assert_eq!(flow.hand_over_acks(THIRD, 80), [(OTHER, 30)], "no chunk here waits for it");
    flow.block(CellId(3), vec![BY_ME]);
    assert!(flow.park_if_blocked(CellId(3)));
    assert_eq!(flow.hand_over_acks(THIRD, 80), [(ME, 80)]);
    assert_eq!(flow.below_low_watermark(), [], "it waits for the third");
    flow.count_moved(THIRD, OTHER, 80);
    assert_eq!(flow.count_acked(by_third, 80), [], "and now for the other");
    flow.count_moved(OTHER, ME, 80);
    assert_eq!(flow.count_acked(BY_OTHER, 80), []);
    assert_eq!(flow.below_low_watermark(), [CellId(3)], "it has come back");
}

#[test]
fn few_bytes_that_migrate_block_no_sender() {
    let mut flow = flow();
    flow.block(CellId(3), vec![BY_ME]);
    assert_eq!(flow.hand_over_acks(OTHER, 50), [(ME, 50)], "half a window");
    assert!(flow.below_low_watermark().is_empty() && !flow.has_blocked());
    assert!(flow.count_sent(OTHER, 51).blocks, "but counts");
}

#[test]
fn a_rank_reports_once_per_stall_what_its_entries_wait_for() {
    let mut flow = flow();
    flow.block(CellId(3), vec![BY_ME]);
    assert_eq!(flow.report_stall(None), None, "its entry is elsewhere");
    flow.park_if_blocked(CellId(3));
    assert_eq!(flow.report_stall(None), waits(1, vec![BY_ME]));
    assert_eq!(flow.report_stall(None), None);
    flow.count_sent(OTHER, 101);
    flow.block(CellId(4), vec![BY_OTHER]);
    flow.park_if_blocked(CellId(4));
    assert_eq!(flow.report_stall(None), waits(2, vec![BY_ME, BY_OTHER]));
    assert_eq!(flow.resolve_stall(1), None);
    assert_eq!(flow.resolve_stall(2), Some(StallAction::Unpark(vec![CellId(3), CellId(4)])));
    assert_eq!(flow.resolve_stall(2), None);
    flow.block(CellId(3), vec![BY_ME]);
    flow.block(CellId(4), vec![BY_OTHER]);
    assert!(flow.park_if_blocked(CellId(3)) && flow.park_if_blocked(CellId(4)));
    assert_eq!(flow.report_stall(None), waits(3, vec![BY_ME, BY_OTHER]));
    assert_eq!(flow.resolve_stall(3), Some(StallAction::GrowLimit), "it has had no room since");
    assert!(!flow.count_sent(OTHER, 99).blocks && flow.count_sent(OTHER, 1).blocks, "a window of 200 bytes");
    assert_eq!(flow.end_stall(), None);
    assert_eq!(flow.report_stall(None), waits(4, vec![BY_ME, BY_OTHER]));
    assert_eq!(flow.end_stall(), Some(4));
    assert_eq!(flow.resolve_stall(4), None, "it has gone on meanwhile");
}

#[test]
fn windows_grow_where_a_rank_waits_for_others() {
    let window_after = |by| {
        let mut flow = flow();
        flow.credits = Credits::new(2, 0);
        flow.count_sent(OTHER, 1);
        flow.count_broadcast(1);
        for number in 1..=2 {
            flow.block(CellId(3), vec![by]);
            flow.park_if_blocked(CellId(3));
            assert_eq!(flow.report_stall(None), waits(number, vec![by]));
            let grows = flow.resolve_stall(number) == Some(StallAction::GrowLimit);
            assert_eq!(grows, number == 2, "the first time what is parked runs once");
        }
        flow.credits.window
    };
    assert_eq!([BY_ME, BY_OTHER, Destination::AllRanks].map(window_after), [0, 2, 2]);
}

/// The report of a rank that waits for these ranks.
fn waiting_for(ranks: &[Rank]) -> StallReport {
    StallReport {
        waits_for: ranks.iter().copied().map(Destination::Rank).collect(),
        first_deferred_ack: None,
    }
}

/// The ranks that are deadlocked once this rank stalls, where no rank broadcasts.
fn stuck_after(detector: &mut StallDetector, rank: Rank, number: u64, ranks: &[Rank]) -> Vec<(Rank, u64)> {
    detector.stalled(rank, number, waiting_for(ranks));
    detector.take_deadlocked(|_| None)
}

#[test]
fn only_ranks_that_wait_only_for_each_other_are_deadlocked() {
    let [a, b, c, slow] = [0, 1, 2, 3].map(Rank);
    let mut detector = StallDetector::default();
    let mut stalls = |rank, number, ranks: &[Rank]| stuck_after(&mut detector, rank, number, ranks);
    assert_eq!(stalls(a, 1, &[b, slow]), []);
    assert_eq!(stalls(b, 1, &[a]), [], "the slow one answers, then the first, then the second");
    assert_eq!(stalls(c, 7, &[c]), [(c, 7)]);
    assert_eq!(stalls(a, 2, &[b]), [(a, 2), (b, 1)]);
    assert_eq!(stalls(a, 3, &[b]), []);
    detector.end_stall(a, 2);
    let stuck = stuck_after(&mut detector, b, 2, &[a]);
    assert_eq!(stuck, [(a, 3), (b, 2)], "an earlier number ends nothing");
    assert_eq!(stuck_after(&mut detector, a, 4, &[b]), []);
    detector.end_stall(a, 4);
    assert_eq!(stuck_after(&mut detector, b, 3, &[a]), []);
}

#[test]
fn a_rank_that_waits_for_broadcasts_waits_for_the_ranks_that_defer_the_first_ack() {
    let [broadcaster, full, other] = [0, 1, 2].map(Rank);
    let broadcasts = || StallReport { waits_for: vec![Destination::AllRanks], first_deferred_ack: None };
    let mut detector = StallDetector::default();
    detector.stalled(broadcaster, 1, broadcasts());
    detector.stalled(other, 1, waiting_for(&[broadcaster]));
    assert_eq!(detector.take_deadlocked(|_| Some(7)), [], "somebody will answer");
    detector.stalled(full, 1, StallReport { first_deferred_ack: Some(8), ..waiting_for(&[broadcaster]) });
    assert_eq!(detector.take_deadlocked(|_| Some(7)), [], "it has acknowledged, and another will");
    assert_eq!(detector.take_deadlocked(|_| None), [], "all have answered");
    let stuck = detector.take_deadlocked(|rank| (rank == broadcaster).then_some(8));
    assert_eq!(stuck, [(broadcaster, 1), (full, 1), (other, 1)]);
    detector.stalled(full, 2, StallReport { first_deferred_ack: Some(9), ..broadcasts() });
    assert_eq!(detector.take_deadlocked(|_| Some(9)), [(full, 2)], "it waits for itself");
}

#[test]
fn a_newly_deferred_ack_is_news() {
    let mut flow = flow();
    flow.block(CellId(3), vec![BY_ME]);
    flow.park_if_blocked(CellId(3));
    assert_eq!(flow.report_stall(None), waits(1, vec![BY_ME]));
    let deferring = StallReport { waits_for: vec![BY_ME], first_deferred_ack: Some(4) };
    let reports = (flow.report_stall(Some(4)), flow.report_stall(Some(4)));
    assert_eq!(reports, (Some((2, deferring)), None));
}
