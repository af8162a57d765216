//! Computes the effect of a report, the quota of each rank, and the granted indices.

use std::ops::Range;

use super::{Phase, RootMonitor, Stage};
use crate::pools::machine::Nanos;
use crate::pools::ruper::interval::next_mpi_interval;
use crate::pools::ruper::message::Reason;
use crate::pools::ruper::share::{Participant, share};
use crate::rank::Rank;

impl RootMonitor {
    /// Handles the report of a rank, which may be rank 0 itself.
    pub(super) fn measure(
        &mut self,
        now: Nanos,
        rank: Rank,
        reason: Reason,
        elapsed: Nanos,
        predicted: u64,
        registered: u64,
    ) {
        if self.phase == Phase::Fresh {
            self.phase = Phase::Balancing;
        }
        let peer = &mut self.peers[rank.0 as usize];
        let ratio = peer.guess.measure(now, elapsed, predicted, &self.settings);
        peer.confirmed = registered;
        // As in the paper, a request to finish does not change the time between the reports of a rank.
        if reason == Reason::Requested {
            peer.interval = next_mpi_interval(&self.settings, peer.interval, ratio);
        }
        peer.due = now.saturating_add(peer.interval);
        peer.stage = Stage::Idle;
        if now.saturating_sub(self.own.began) >= self.settings.start_deadline {
            let absent = self.peers.iter_mut().filter(|peer| peer.stage == Stage::Absent);
            absent.for_each(|peer| peer.assigned = 0);
        }
    }

    /// Divides the iterations by the speeds of the ranks. Returns the time to the end, s.
    pub(super) fn balance(&mut self) -> f64 {
        let (mut parties, mut quotas) = (Vec::new(), Vec::new());
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers) {
            // An absent rank without a quota missed the deadline.
            if peer.stage == Stage::Absent && peer.assigned == 0 {
                continue;
            }
            parties.push(Participant {
                done: peer.guess.done,
                assigned: peer.assigned,
                floor: self.grants.as_ref().map_or(peer.confirmed, |grants| grants.granted(rank)),
                speed: peer.guess.measured_speed(),
            });
            quotas.push(&mut peer.assigned);
        }
        share(self.iterations, &mut parties);
        for (quota, party) in quotas.into_iter().zip(&parties) {
            *quota = party.assigned;
        }
        let done: u64 = parties.iter().map(|party| party.done).fold(0, u64::saturating_add);
        let speed: f64 = parties.iter().filter_map(|party| party.speed).sum();
        match self.iterations.saturating_sub(done) {
            0 => 0.0,
            left if speed > 0.0 => left as f64 / speed,
            _ => f64::INFINITY,
        }
    }

    /// Grants indices to a rank. Returns the quota, too, if it allows fewer indices than claimed.
    pub(crate) fn claim(&mut self, rank: Rank, count: u64) -> (Vec<Range<u64>>, Option<u64>) {
        let quota = self.peers[rank.0 as usize].assigned;
        let Some(grants) = &mut self.grants else { return (Vec::new(), None) };
        let allowed = quota - grants.granted(rank);
        let ranges = grants.grant(rank, count.min(allowed));
        let granted: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        debug_assert_eq!(granted, count.min(allowed), "free indices match what is open of the quotas");
        (ranges, (allowed < count).then_some(quota))
    }
}
