//! Charges CPU time to chunks, at the price of one cheap clock reading per message.
//!
//! A worker's time is cut into *laps*: from the end of one handler (with its flush) to the end of the next. So the cost
//! of a message includes its scheduling. Laps are wall time. A *batch* of laps ends every [`BATCH_NS`], when the
//! thread's CPU clock is read. If the batch used less CPU time than wall time, the thread was preempted. The loss is
//! then subtracted from the *longest interval* of the batch, which is a lap or a gap (time without work).
//!
//! # Error
//! 1. A preemption lasts about a millisecond or more, and a batch is shorter unless it was preempted. So the longest
//!    interval is the preempted one. Its chunk is charged its own CPU time, exactly up to the length of the second
//!    longest interval.
//! 2. If a loss is spread over several intervals (interrupts, steal in small pieces, a lap and a gap preempted in one
//!    batch), the wrong chunk is charged by at most the whole loss, which is small then.
//! 3. Measuring wall time, in contrast, charges the whole time slice of another process to the running chunk.

use super::cpu::thread_cpu_ns;
use crate::ids::CellId;

/// Wall time between two readings of the CPU clock, ns. The cost of readings stays below 0.3 %.
const BATCH_NS: u64 = 200_000;

/// One worker's meter.
pub(crate) struct Meter {
    /// End of the last lap or gap, ns.
    last_ns: u64,
    batch: Batch,
    batch_totals: Published,
}

/// The times of a worker in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// The thread's CPU clock at the end of the batch.
    pub(crate) cpu_clock_ns: u64,
    /// CPU time charged to chunks.
    pub(crate) charged_ns: u64,
    /// Time without work, except parked time.
    pub(crate) idle_ns: u64,
}

struct Batch {
    cpu_start_ns: u64,
    wall_ns: u64,
    longest_lap: Option<(CellId, u64)>,
    longest_gap_ns: u64,
}

/// A correction of the time charged to a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refund {
    pub(crate) cell: CellId,
    pub(crate) ns: u64,
}

impl Meter {
    pub(crate) fn new(now_ns: u64) -> Meter {
        Meter { last_ns: now_ns, batch: Batch::starting(thread_cpu_ns()), batch_totals: Published::default() }
    }

    /// End of the last lap or gap.
    #[inline]
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Ends a lap, with a handler and its flush. Returns the wall time to charge.
    #[inline]
    pub(crate) fn lap(&mut self, cell: CellId, now_ns: u64) -> u64 {
        let wall_ns = self.passed_ns(now_ns);
        self.batch.wall_ns += wall_ns;
        self.batch_totals.charged_ns += wall_ns;
        if self.batch.longest_lap.is_none_or(|(_, longest)| wall_ns > longest) {
            self.batch.longest_lap = Some((cell, wall_ns));
        }
        wall_ns
    }

    /// Tells whether the batch should be closed after a lap that ends now.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.batch.wall_ns + now_ns.saturating_sub(self.last_ns) >= BATCH_NS
    }

    /// Ends a gap since the last lap, in which the worker had no work and was parked for `parked_ns`.
    pub(crate) fn gap(&mut self, now_ns: u64, parked_ns: u64) {
        let wall_ns = self.passed_ns(now_ns);
        let awake_ns = wall_ns.saturating_sub(parked_ns);
        self.batch_totals.idle_ns += awake_ns;
        self.batch.wall_ns += awake_ns;
        self.batch.longest_gap_ns = self.batch.longest_gap_ns.max(awake_ns);
    }

    /// Skips time that was neither a chunk's nor idle, such as a sync, and that is no lap.
    pub(crate) fn skip(&mut self, now_ns: u64) {
        let wall_ns = self.passed_ns(now_ns);
        self.batch.wall_ns += wall_ns;
        self.batch.longest_gap_ns = self.batch.longest_gap_ns.max(wall_ns);
    }

    /// Time since the last call. It is 0 while the clock is behind its last reading, as after a VM has moved.
    #[inline]
    fn passed_ns(&mut self, now_ns: u64) -> u64 {
        let passed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns += passed_ns;
        passed_ns
    }

    /// Ends the batch, given the thread's CPU clock. Returns a correction, and the worker's times in the batch.
    pub(crate) fn close(&mut self, cpu_clock_ns: u64) -> (Option<Refund>, Published) {
        let refund = self.batch.refund(cpu_clock_ns);
        self.batch = Batch::starting(cpu_clock_ns);
        let mut published = std::mem::take(&mut self.batch_totals);
        published.cpu_clock_ns = cpu_clock_ns;
        if let Some(refund) = &refund {
            published.charged_ns = published.charged_ns.saturating_sub(refund.ns);
        }
        (refund, published)
    }
}

impl Batch {
    fn starting(cpu_start_ns: u64) -> Batch {
        Batch { cpu_start_ns, wall_ns: 0, longest_lap: None, longest_gap_ns: 0 }
    }

    fn refund(&self, cpu_end_ns: u64) -> Option<Refund> {
        let lost_ns = self.wall_ns.saturating_sub(cpu_end_ns.saturating_sub(self.cpu_start_ns));
        let (cell, longest_ns) = self.longest_lap?;
        (lost_ns > 0 && longest_ns >= self.longest_gap_ns)
            .then(|| Refund { cell, ns: lost_ns.min(longest_ns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(wall_ns: u64, lap_ns: u64, gap_ns: u64) -> Batch {
        Batch { cpu_start_ns: 0, wall_ns, longest_lap: Some((CellId(3), lap_ns)), longest_gap_ns: gap_ns }
    }

    #[test]
    fn a_preempted_chunk_is_charged_its_own_time_only() {
        // Three laps of 50 us, the second one preempted for 4 ms.
        let refund = batch(4_150_000, 4_050_000, 0).refund(150_000);
        assert_eq!(refund, Some(Refund { cell: CellId(3), ns: 4_000_000 }));
    }

    #[test]
    fn a_preemption_while_idle_refunds_no_chunk() {
        assert_eq!(batch(4_100_000, 50_000, 4_000_000).refund(100_000), None);
    }

    #[test]
    fn an_undisturbed_batch_is_charged_as_it_is() {
        assert_eq!(batch(200_000, 50_000, 0).refund(200_300), None);
    }

    #[test]
    fn a_clock_that_goes_back_has_stood_still() {
        let mut meter = Meter::new(1000);
        assert_eq!(meter.lap(CellId(0), 900), 0);
        assert_eq!(meter.lap(CellId(0), 1001), 1);
        meter.gap(950, 0);
        meter.skip(960);
        assert_eq!(meter.close(u64::MAX).1.charged_ns, 1);
        assert_eq!(batch(100, 100, 0).refund(0), Some(Refund { cell: CellId(3), ns: 100 }));
    }

    #[test]
    fn cpu_time_charged_follows_the_cpu_clock_through_preemptions() {
        // A thread that is preempted in every tenth lap, for longer than a lap takes.
        let (mut wall_ns, mut cpu_ns, mut charged_ns) = (0u64, 0u64, 0u64);
        let mut meter = Meter::new(wall_ns);
        meter.close(cpu_ns);
        for lap in 0..1000u64 {
            let own_ns = 20_000 + lap % 7 * 5_000;
            let preempted_ns = if lap % 10 == 3 { 1_000_000 + lap * 1_000 } else { 0 };
            wall_ns += own_ns + preempted_ns;
            cpu_ns += own_ns;
            let is_due = meter.is_due(wall_ns);
            charged_ns += meter.lap(CellId(0), wall_ns);
            if is_due {
                charged_ns -= meter.close(cpu_ns).0.map_or(0, |refund| refund.ns);
            }
        }
        charged_ns -= meter.close(cpu_ns).0.map_or(0, |refund| refund.ns);
        assert_eq!(charged_ns, cpu_ns);
    }
}
