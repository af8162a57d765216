//! The part of a rank that exchanges reports and quotas with rank 0 ([RUPER-LB paper](super), Fig. 4 right).
//!
//! | state | input | action | next |
//! |---|---|---|---|
//! | New | boot | sends `Start` | Starting |
//! | Starting | `StartOk` | sets the rank's quota | Balancing |
//! | Balancing | `ReportRequest` | sends a `Report` | Balancing |
//! | Balancing | a worker has reached its quota near the end | sends a `Report`, at once if no worker runs, else after `spacing`. The next one is sent when this one is answered and `spacing` has passed | Balancing |
//! | Balancing | `Assign` | sets the quota; a rebalance if a worker waits | Balancing |
//! | Balancing | `Granted` | gives the indices to the rank; sets the quota if it has changed | Balancing |
//! | Starting, Balancing | `End` | sets the quota, gives the last indices to the rank, rebalances, ends the balance; sends `Bye` | Closed |
//! | Closed | any | nothing | Closed |
//!
//! The rank itself sends `Claim` to rank 0.

use super::command::{Command, TaskView};
use super::message::{Reason, RuperMessage};
use super::parameters::Settings;
use super::task::Urgency;
use crate::pools::machine::Nanos;
use crate::rank::Rank;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    Starting,
    Balancing,
    Closed,
}

/// The monitor of a rank that is not rank 0.
#[derive(Clone, Debug)]
pub(crate) struct RankMonitor {
    spacing: Nanos,
    stage: Stage,
    /// Time of its last report, or of its start.
    reported: Nanos,
    asking: FinishRequest,
}

/// The request of a rank to rank 0 to finish.
#[derive(Clone, Debug, Default)]
struct FinishRequest {
    /// The time from which the request may be sent; none if the task does not want to finish (paper: finish_req).
    raised: Option<Nanos>,
    /// Number of the last request.
    sequence: u64,
    /// True if the last request is not answered (paper: finish_sent).
    in_flight: bool,
    /// Earliest time of the next request.
    next: Nanos,
}

impl RankMonitor {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { spacing: settings.spacing, stage: Stage::New, reported: 0, asking: FinishRequest::default() }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    pub(crate) fn boot(&mut self, out: &mut Vec<Command>) {
        self.stage = Stage::Starting;
        out.push(send(RuperMessage::Start));
    }

    /// Notes that the task wants to finish. The request is sent at `at` or later.
    pub(crate) fn finish_raised(&mut self, at: Nanos) {
        let raised = self.asking.raised.unwrap_or(Nanos::MAX);
        self.asking.raised = Some(raised.min(at));
    }

    /// The time at which [`tick`](Self::tick) must be called.
    pub(crate) fn wake_at(&self) -> Nanos {
        let asks = self.stage == Stage::Balancing && !self.asking.in_flight;
        let raised = self.asking.raised.filter(|_| asks);
        raised.map_or(Nanos::MAX, |at| at.max(self.asking.next))
    }

    /// Sends the request to finish if the task wants to finish and it is time.
    pub(crate) fn tick(&mut self, now: Nanos, view: TaskView, out: &mut Vec<Command>) {
        if self.wake_at() > now {
            return;
        }
        let sequence = self.asking.sequence + 1;
        self.asking =
            FinishRequest { raised: None, sequence, in_flight: true, next: now.saturating_add(self.spacing) };
        self.report(now, Reason::Finish { sequence }, view, out);
    }

    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        message: RuperMessage,
        view: TaskView,
        out: &mut Vec<Command>,
    ) {
        match (self.stage, message) {
            (Stage::Starting, RuperMessage::StartOk { quota }) => {
                self.stage = Stage::Balancing;
                self.reported = now;
                out.push(Command::SetTotal(quota));
            }
            (Stage::Balancing, RuperMessage::ReportRequest) => self.report(now, Reason::Requested, view, out),
            (Stage::Balancing, RuperMessage::Assign { sequence, quota }) => {
                if sequence == self.asking.sequence {
                    self.asking.in_flight = false;
                }
                out.push(Command::SetTotal(quota));
                if view.any_parked {
                    out.push(Command::Rebalance(Urgency::Usual));
                }
            }
            (Stage::Balancing, RuperMessage::Granted { ranges, quota }) => {
                out.extend(quota.map(Command::SetTotal));
                out.push(Command::Grant(ranges));
            }
            (Stage::Starting | Stage::Balancing, RuperMessage::End { quota, ranges }) => {
                self.stage = Stage::Closed;
                out.push(Command::SetTotal(quota));
                out.push(Command::Grant(ranges));
                out.push(Command::Rebalance(Urgency::Forced));
                out.push(Command::BalanceOver);
                out.push(send(RuperMessage::Bye { registered: view.registered }));
            }
            _ => {}
        }
    }

    fn report(&mut self, now: Nanos, reason: Reason, view: TaskView, out: &mut Vec<Command>) {
        let TaskView { predicted, registered, .. } = view;
        let elapsed = now.saturating_sub(self.reported);
        self.reported = now;
        out.push(send(RuperMessage::Report { reason, predicted, registered, elapsed }));
    }
}

fn send(message: RuperMessage) -> Command {
    Command::Send { to: Rank(0), message }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "sets of indices are lists of ranges, some of one")]
mod tests {
    use super::*;
    use crate::pools::machine::SECOND;

    fn balancing() -> RankMonitor {
        let (mut monitor, mut out) = (RankMonitor::new(&Settings::of("")), Vec::new());
        monitor.boot(&mut out);
        monitor.receive(SECOND, RuperMessage::StartOk { quota: 50 }, TaskView::default(), &mut out);
        assert_eq!(out, [send(RuperMessage::Start), Command::SetTotal(50)]);
        monitor
    }

    fn tick(monitor: &mut RankMonitor, now: Nanos) -> Vec<Command> {
        let mut out = Vec::new();
        monitor.tick(now, TaskView::default(), &mut out);
        out
    }

    #[test]
    fn a_request_to_finish_waits_for_the_answer_to_the_last() {
        let mut monitor = balancing();
        monitor.finish_raised(2 * SECOND);
        assert_eq!(tick(&mut monitor, SECOND), [], "others may be about to finish, too");
        let reason = Reason::Finish { sequence: 1 };
        let report = RuperMessage::Report { reason, predicted: 0, registered: 0, elapsed: SECOND };
        assert_eq!(tick(&mut monitor, 2 * SECOND), [send(report)]);
        monitor.finish_raised(3 * SECOND);
        assert_eq!(tick(&mut monitor, 9 * SECOND), [], "one is unanswered");
        let parked = TaskView { any_parked: true, ..TaskView::default() };
        let mut out = Vec::new();
        monitor.receive(9 * SECOND, RuperMessage::Assign { sequence: 0, quota: 70 }, parked, &mut out);
        assert_eq!(out, [Command::SetTotal(70), Command::Rebalance(Urgency::Usual)]);
        assert_eq!(tick(&mut monitor, 9 * SECOND), [], "that was no answer");
        monitor.receive(9 * SECOND, RuperMessage::Assign { sequence: 1, quota: 70 }, parked, &mut out);
        assert_eq!(tick(&mut monitor, 9 * SECOND).len(), 1);
    }

    #[test]
    fn the_end_forces_a_rebalance_before_the_balance_is_over_and_says_goodbye() {
        let (mut monitor, mut out) = (balancing(), Vec::new());
        let end = RuperMessage::End { quota: 60, ranges: vec![3..9] };
        monitor.receive(5 * SECOND, end.clone(), TaskView::default(), &mut out);
        let expected = [
            Command::SetTotal(60),
            Command::Grant(vec![3..9]),
            Command::Rebalance(Urgency::Forced),
            Command::BalanceOver,
            send(RuperMessage::Bye { registered: 0 }),
        ];
        assert_eq!(out, expected);
        monitor.receive(6 * SECOND, end, TaskView::default(), &mut out);
        assert!(out.len() == expected.len() && monitor.is_closed(), "once");
    }
}
