//! Rebalances the workers of a task, and predicts the time to the end (paper, Fig. 3 left).

use super::Task;
use crate::pools::machine::Nanos;
use crate::pools::ruper::parameters::seconds;
use crate::pools::ruper::share::{Participant, share};
use crate::pools::ruper::worker::{Stage, Worker};

/// Whether a rebalance may be postponed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It keeps a minimum time from the last one, and leaves quotas alone near the end.
    Usual,
    /// It is made at once, and quotas must add up afterwards, because the balance between ranks ends.
    Forced,
}

/// The forecast of the last rebalance.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    /// Iterations that were not reported then.
    pub(super) remaining: u64,
    /// Seconds to the end, infinite if unknown (paper: t_res).
    pub(super) eta: f64,
}

/// The times of the last and the next rebalance, and their number.
#[derive(Clone, Debug)]
pub(super) struct Rebalances {
    pub(super) last: Option<Nanos>,
    pub(super) next: Nanos,
    pub(super) made: u64,
}

impl Task {
    /// Divides the remaining iterations among the workers by speed (paper, Fig. 3 left).
    pub(crate) fn rebalance(&mut self, now: Nanos, urgency: Urgency) {
        if self.workers.iter().all(|worker| !worker.is_working()) {
            // A worker that starts late schedules the next rebalance.
            self.rebalances.next = Nanos::MAX;
            return;
        }
        let spaced = self.spaced();
        // If everything is done, there is no reason to wait.
        if now < spaced && urgency == Urgency::Usual && self.registered() < self.total {
            self.rebalances.next = self.rebalances.next.min(spaced);
            return;
        }
        let next = now.saturating_add(self.settings.interval);
        self.rebalances = Rebalances { last: Some(now), next, made: self.rebalances.made + 1 };
        let registered = self.registered();
        self.forecast.remaining = self.total.saturating_sub(registered);
        if self.forecast.remaining == 0 {
            self.forecast.eta = 0.0;
            self.assign();
            return;
        }
        self.forecast.eta = self.eta(now);
        let ends = self.forecast.eta <= seconds(self.settings.t_min);
        if !ends || !self.across.over || urgency == Urgency::Forced {
            self.assign();
        }
        self.across.finish_raised |= ends && !self.across.over;
    }

    /// Sets the total that rank 0 has assigned to this process. Quotas change at the next rebalance.
    pub(crate) fn set_total(&mut self, total: u64) {
        let Forecast { remaining, eta } = self.forecast;
        let speed = remaining as f64 / eta;
        self.forecast.remaining = (remaining.saturating_add(total)).saturating_sub(self.total);
        self.forecast.eta = match self.forecast.remaining {
            0 => 0.0,
            left if speed.is_finite() && speed > 0.0 => left as f64 / speed,
            _ => f64::INFINITY,
        };
        self.total = total;
    }

    /// The earliest time of the next rebalance.
    fn spaced(&self) -> Nanos {
        self.rebalances.last.map_or(0, |last| last.saturating_add(self.settings.spacing))
    }

    fn eta(&self, now: Nanos) -> f64 {
        let speed: f64 = self.workers.iter().filter(|worker| worker.is_working()).map(Worker::speed).sum();
        let left = self.total.saturating_sub(self.predicted(now));
        if speed > 0.0 { left as f64 / speed } else { f64::INFINITY }
    }

    /// The assignment step. Workers that have not started get nothing, and finished workers keep their quotas.
    pub(super) fn assign(&mut self) {
        let finished = self.workers.iter().filter(|worker| worker.stage == Stage::Finished);
        let budget = self.total.saturating_sub(finished.map(|worker| worker.done).sum());
        let (mut parties, mut shares) = (Vec::new(), Vec::new());
        for worker in &mut self.workers {
            match worker.stage {
                Stage::Absent => worker.assigned = 0,
                Stage::Finished => {}
                Stage::Running | Stage::Parked => {
                    let Worker { done, assigned, taken: floor, .. } = *worker;
                    parties.push(Participant { done, assigned, floor, speed: worker.measured_speed() });
                    shares.push(&mut worker.assigned);
                }
            }
        }
        share(budget, &mut parties);
        for (share, party) in shares.into_iter().zip(parties) {
            *share = party.assigned;
        }
    }
}
