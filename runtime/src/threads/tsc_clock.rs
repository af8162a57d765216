//! A fast clock per worker, for measuring laps and times: the TSC, calibrated against the machine's clock. The second
//! place with `unsafe`, for the instruction that reads the TSC.
//!
//! Reading the machine's clock takes a fifth of the time of a short message. Reading the TSC takes half of that. The
//! worker reads the clock at least every [`REACH_NS`]. Each reading is an *anchor*, from which the TSC gives the time
//! until the next anchor. The rate of the TSC is measured while the worker runs.
//!
//! | condition | source of the time |
//! |---|---|
//! | no two anchors are [`BASE_MIN_NS`] apart yet | the clock |
//! | the kernel does not use the TSC: it may stop, change its rate, or differ from vCPU to vCPU | the clock |
//! | else | the TSC since the last anchor |
//!
//! # Error
//! An anchor is off by the time that its reading takes: 30 ns. A reading that took longer than [`READING_MAX`], 0.3 us, is
//! not used. So the rate is off by 60 ns per *base*, the time between the two anchors that it comes from. An anchor reaches
//! at most a tenth of the base, where the time is off by 6 ns. That is less than the time of a reading, and does not
//! add up from one anchor to the next. At an anchor the time may go back by the same amount, and by 0.3 us at most.

use super::clock::Clock;

/// Maximum reach of an anchor, ns: the time for which the anchor is used.
const REACH_NS: u64 = 1_000_000;
/// Minimum of the first base, ns. The *base* is the time between the two anchors from which the rate is known.
const BASE_MIN_NS: u64 = 100_000;
/// Minimum of later bases, ns: long enough for the maximum reach.
const BASE_NS: u64 = REACH_NS * BASE_PER_REACH;
/// Length of a base after which a new one begins, ns.
const BASE_MAX_NS: u64 = 1_000_000_000;
/// Ratio of the base to the reach of an anchor.
const BASE_PER_REACH: u64 = 10;
/// Maximum number of ticks for the reading of an anchor. A longer reading was interrupted.
const READING_MAX: u64 = 1000;
/// Fractional bits of `ns_per_tick`.
const PLACES: u32 = 32;

/// The clock of one worker.
pub(crate) struct TscClock {
    /// None if the TSC is not usable as a clock.
    counter: Option<Counter>,
    anchor: Anchor,
    /// Reach of the anchor in ticks; 0 while the rate is not known.
    reach: u64,
    ns_per_tick: u64,
    /// The anchor at which the base begins.
    base_start: Option<Anchor>,
    /// The base of the present rate, ns; 0 while the rate is not known.
    base_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Anchor {
    ticks: u64,
    ns: u64,
}

#[derive(Clone, Copy)]
enum Counter {
    #[cfg(target_arch = "x86_64")]
    Processor,
    #[cfg(test)]
    Test(fn() -> u64),
}

impl TscClock {
    pub(crate) fn new(clock: &Clock) -> TscClock {
        let counter = Counter::find().filter(|_| !clock.is_virtual());
        TscClock {
            counter,
            anchor: Anchor::default(),
            reach: 0,
            ns_per_tick: 0,
            base_start: None,
            base_ns: 0,
        }
    }

    /// Time since the run began, ns.
    #[inline]
    pub(crate) fn now_ns(&mut self, clock: &Clock) -> u64 {
        let Some(counter) = self.counter else { return clock.now_ns() };
        let passed = counter.read().wrapping_sub(self.anchor.ticks);
        if passed < self.reach {
            return self.anchor.ns + ((passed * self.ns_per_tick) >> PLACES);
        }
        self.recalibrate(counter, clock)
    }

    /// Reads the clock, and makes the reading the anchor.
    #[cold]
    fn recalibrate(&mut self, counter: Counter, clock: &Clock) -> u64 {
        let before = counter.read();
        let ns = clock.now_ns();
        let took = counter.read().wrapping_sub(before);
        self.reach = 0;
        if took <= READING_MAX {
            self.anchor(Anchor { ticks: before + took / 2, ns });
        }
        ns
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.anchor = anchor;
        let start = *self.base_start.get_or_insert(anchor);
        let ns = anchor.ns.saturating_sub(start.ns);
        // After the first base, a new base replaces the rate if it is at least as long as the present base, or long
        // enough for the maximum reach.
        if ns >= self.base_ns.clamp(BASE_MIN_NS, BASE_NS) {
            let ticks = anchor.ticks.wrapping_sub(start.ticks).max(1);
            self.ns_per_tick = ((u128::from(ns) << PLACES) / u128::from(ticks)) as u64;
            self.base_ns = ns;
        }
        if ns >= BASE_MAX_NS {
            self.base_start = Some(anchor);
        }
        let reach_ns = (self.base_ns / BASE_PER_REACH).min(REACH_NS);
        self.reach = (reach_ns << PLACES).checked_div(self.ns_per_tick).unwrap_or(0);
    }
}

impl Counter {
    /// The TSC, if the kernel uses it as its clock.
    fn find() -> Option<Counter> {
        #[cfg(target_arch = "x86_64")]
        {
            use std::sync::LazyLock;
            static IS_CLOCK: LazyLock<bool> = LazyLock::new(|| {
                let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
                std::fs::read_to_string(clock).is_ok_and(|name| name.trim() == "tsc")
            });
            IS_CLOCK.then_some(Counter::Processor)
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    #[inline]
    fn read(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Counter::Processor => processor_ticks(),
            #[cfg(test)]
            Counter::Test(read) => read(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "the instruction is one of the processor's, and touches no memory")]
fn processor_ticks() -> u64 {
    // SAFETY: every x86-64 processor has this instruction, and a kernel that uses the TSC as its clock lets programs read
    // it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    /// A counter with four ticks per nanosecond, and ten per reading.
    fn counter(now_ns: &Arc<AtomicU64>) -> TscClock {
        COUNT.set(4 * now_ns.load(Ordering::Relaxed));
        let counter = Counter::Test(|| {
            COUNT.set(COUNT.get() + 10);
            COUNT.get()
        });
        TscClock { counter: Some(counter), ..TscClock::new(&Clock::Virtual { now_ns: now_ns.clone() }) }
    }

    #[test]
    fn the_counter_is_used_once_its_rate_is_known_and_never_beyond_its_reach() {
        let now_ns = Arc::new(AtomicU64::new(7_000));
        let (mut ticks, clock) = (counter(&now_ns), Clock::Virtual { now_ns: now_ns.clone() });
        let mut told_by_count = 0;
        for step in 1..10_000 {
            let at_ns = 7_000 + step * 3_000;
            now_ns.store(at_ns, Ordering::Relaxed);
            COUNT.set(4 * at_ns);
            let told = ticks.now_ns(&clock);
            assert!(told.abs_diff(at_ns) <= 20, "{told} at {at_ns}");
            // The clock stands still, the counter advances.
            COUNT.set(4 * (at_ns + 12));
            told_by_count += u64::from(ticks.now_ns(&clock) > at_ns + 5);
            assert!(at_ns > BASE_MIN_NS || told_by_count == 0, "too early");
        }
        assert!(told_by_count > 5_000, "{told_by_count}");
        COUNT.set(COUNT.get() + 4 * 3 * REACH_NS);
        assert_eq!(
            ticks.now_ns(&clock),
            now_ns.load(Ordering::Relaxed),
            "so far the counter is not believed"
        );
    }

    #[test]
    fn the_clock_is_read_ever_less_often_and_the_time_is_always_right() {
        let now_ns = Arc::new(AtomicU64::new(0));
        let (mut ticks, clock) = (counter(&now_ns), Clock::Virtual { now_ns: now_ns.clone() });
        let mut looks = 0;
        for at_ns in (0..30_000_000).step_by(1_000) {
            COUNT.set(4 * at_ns);
            // The clock is off by up to 30 ns.
            now_ns.store(at_ns + at_ns / 1_000 % 7 * 5, Ordering::Relaxed);
            let before = ticks.anchor.ns;
            let told = ticks.now_ns(&clock);
            assert!(told.abs_diff(at_ns) <= 40, "{told} at {at_ns}");
            looks += u64::from(ticks.anchor.ns != before);
        }
        // One reading per call for 0.1 ms, then each a tenth later than the last up to 10 ms, then one per ms.
        assert!((100..250).contains(&looks), "{looks}");
    }

    #[test]
    fn an_interrupted_reading_is_no_anchor() {
        let now_ns = Arc::new(AtomicU64::new(0));
        let (mut ticks, clock) = (counter(&now_ns), Clock::Virtual { now_ns: now_ns.clone() });
        ticks.counter = Some(Counter::Test(|| {
            COUNT.set(COUNT.get() + 2 * READING_MAX);
            COUNT.get()
        }));
        for at_ns in (0..100).map(|step| step * BASE_NS) {
            now_ns.store(at_ns, Ordering::Relaxed);
            assert_eq!(ticks.now_ns(&clock), at_ns);
            assert_eq!(ticks.reach, 0);
        }
    }
}
