//! A rank's own measurement between two syncs, summed over its workers.
//!
//! Parts, reported separately: CPU time of chunks, other CPU time of the workers, idle, waiting for the vCPU, steal,
//! throttled. Charm++ and vt know wall time only and charge a neighbour's theft to whichever chunk was running.
//!
//! *Waiting* is the larger of the kernel's run-queue delay and what the clocks leave unexplained (wall - CPU - parked):
//! the first sees the delay of a wake-up, the second sees a quota even where the kernel does not count it as delay.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::background::{SchedStat, VcpuTimes, throttled_ns, vcpu_times};
use super::meter::Published;
use crate::report::Sample;

/// Where the background load O_p of cloud-refine (eq. 2) comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackgroundSource {
    /// `Schedstat`, which falls back to wall and CPU time where the kernel keeps none.
    #[default]
    Auto,
    /// Time the workers were runnable but did not run.
    Schedstat,
    /// The paper's: wall time - CPU time of chunks - idle time of the vCPU in `/proc/stat`. It has 10 ms steps, so phases
    /// under half a second, and workers that are not pinned, fall back to `Schedstat`.
    Procstat,
    /// No background load.
    Off,
}

/// Phases shorter than this are too short for the 10 ms steps of `/proc/stat`.
const PROCSTAT_MIN_NS: u64 = 500_000_000;
const NO_VCPU: u32 = u32::MAX;

/// How often the gauges are read for the record: at syncs that are not too close, and where those are rare.
const OBSERVED_AT_SYNC_NS: u64 = 20_000_000;
const OBSERVED_NS: u64 = 500_000_000;

/// When the gauges are read for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// At this one.
    AtSync(u64),
    /// Now and then.
    Between,
    /// First of all, from where it counts, and last of all.
    AtEnds,
}

/// What one worker publishes about itself. Counters only grow.
pub(crate) struct Gauge {
    schedstat: OnceLock<Option<SchedStat>>,
    vcpu: AtomicU32,
    cpu_ns: AtomicU64,
    charged_ns: AtomicU64,
    idle_ns: AtomicU64,
    parked_ns: AtomicU64,
    /// When it parked, plus 1; 0 while it is awake.
    parked_since_ns: AtomicU64,
    speed_bits: AtomicU64,
}

impl Gauge {
    fn new() -> Gauge {
        Gauge {
            schedstat: OnceLock::new(),
            vcpu: AtomicU32::new(NO_VCPU),
            cpu_ns: AtomicU64::new(0),
            charged_ns: AtomicU64::new(0),
            idle_ns: AtomicU64::new(0),
            parked_ns: AtomicU64::new(0),
            parked_since_ns: AtomicU64::new(0),
            speed_bits: AtomicU64::new(0),
        }
    }

    /// The worker parks.
    pub(crate) fn parks(&self, now_ns: u64) {
        self.parked_since_ns.store(now_ns + 1, Ordering::Relaxed);
    }

    /// It is awake again. Returns how long it was parked.
    pub(crate) fn wakes(&self, now_ns: u64) -> u64 {
        let parked_ns = (now_ns + 1).saturating_sub(self.parked_since_ns.swap(0, Ordering::Relaxed));
        self.parked_ns.fetch_add(parked_ns, Ordering::Relaxed);
        parked_ns
    }

    /// Called once by the worker's own thread.
    pub(crate) fn occupy(&self, vcpu: Option<usize>) {
        self.vcpu.store(vcpu.map_or(NO_VCPU, |vcpu| vcpu as u32), Ordering::Relaxed);
        if self.schedstat.set(SchedStat::of_this_thread()).is_ok()
            && self.schedstat.get().is_some_and(Option::is_none)
        {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| {
                tracing::warn!("no schedstat here: waiting is estimated from wall and CPU time");
            });
        }
    }

    /// Adds what the worker did since the last call.
    pub(crate) fn publish(&self, published: Published) {
        self.cpu_ns.store(published.cpu_clock_ns, Ordering::Relaxed);
        self.charged_ns.fetch_add(published.charged_ns, Ordering::Relaxed);
        self.idle_ns.fetch_add(published.idle_ns, Ordering::Relaxed);
    }

    pub(crate) fn set_speed(&self, rounds_per_us: f64) {
        self.speed_bits.store(rounds_per_us.to_bits(), Ordering::Relaxed);
    }

    fn read(&self, now_ns: u64) -> Totals {
        let scheduled = self.schedstat.get().and_then(Option::as_ref).and_then(SchedStat::read);
        let cpu_ns = self.cpu_ns.load(Ordering::Relaxed);
        let since_ns = self.parked_since_ns.load(Ordering::Relaxed);
        let parked_now_ns = if since_ns > 0 { (now_ns + 1).saturating_sub(since_ns) } else { 0 };
        Totals {
            cpu_ns: scheduled.map_or(cpu_ns, |scheduled| scheduled.cpu_ns),
            delay_ns: scheduled.map_or(0, |scheduled| scheduled.wait_ns),
            charged_ns: self.charged_ns.load(Ordering::Relaxed),
            idle_ns: self.idle_ns.load(Ordering::Relaxed),
            parked_ns: self.parked_ns.load(Ordering::Relaxed) + parked_now_ns,
            vcpu: None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Totals {
    cpu_ns: u64,
    delay_ns: u64,
    charged_ns: u64,
    idle_ns: u64,
    parked_ns: u64,
    vcpu: Option<VcpuTimes>,
}

#[derive(Default)]
struct Last {
    at_ns: u64,
    throttled_ns: u64,
    workers: Vec<Totals>,
}

/// The gauges of a rank's workers, and their last reading.
pub(crate) struct Gauges {
    pub(crate) workers: Vec<Gauge>,
    source: BackgroundSource,
    /// At the last sync.
    last: Mutex<Last>,
    /// When they were last read for the record.
    observed: Mutex<Last>,
}

impl Gauges {
    pub(crate) fn new(workers: u32, source: BackgroundSource) -> Gauges {
        let gauges = (0..workers).map(|_| Gauge::new()).collect();
        let last =
            || Mutex::new(Last { workers: vec![Totals::default(); workers as usize], ..Last::default() });
        Gauges { workers: gauges, source, last: last(), observed: last() }
    }

    /// What the rank did since the last call. About 20-40 us.
    pub(crate) fn sample(&self, now_ns: u64) -> Sample {
        // Locked before the counters are read: two workers that sample at once must not see each other's past.
        self.since(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner), now_ns)
    }

    /// The same since this was last called, for the record; none if that was so little ago that it would cost too much.
    pub(crate) fn observe(&self, now_ns: u64, when: Observed) -> Option<Sample> {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let least_ns = match when {
            Observed::AtSync(_) => OBSERVED_AT_SYNC_NS,
            Observed::Between => OBSERVED_NS,
            Observed::AtEnds => 0,
        };
        (now_ns >= observed.at_ns + least_ns).then(|| self.since(&mut observed, now_ns))
    }

    fn since(&self, last: &mut Last, now_ns: u64) -> Sample {
        let mut totals: Vec<Totals> = self.workers.iter().map(|gauge| gauge.read(now_ns)).collect();
        let vcpus =
            self.workers.iter().map(|gauge| gauge.vcpu.load(Ordering::Relaxed)).filter(|&v| v != NO_VCPU);
        let vcpus: Vec<usize> = vcpus.map(|vcpu| vcpu as usize).collect();
        let known_vcpus = vcpus.len() == totals.len();
        if let Some(times) = vcpu_times(&vcpus).filter(|_| known_vcpus) {
            totals.iter_mut().zip(times).for_each(|(total, times)| total.vcpu = Some(times));
        }
        let throttled = throttled_ns().unwrap_or(0);

        let wall_ns = now_ns.saturating_sub(last.at_ns);
        let throttled_ns = throttled.saturating_sub(last.throttled_ns);
        let mut sample = Sample { at_ns: now_ns, throttled_ns, ..Sample::default() };
        for (now, before) in totals.iter().zip(&last.workers) {
            let cpu_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            let delay_ns = now.delay_ns.saturating_sub(before.delay_ns);
            let parked_ns = now.parked_ns.saturating_sub(before.parked_ns);
            let vcpu = now.vcpu.zip(before.vcpu).map(|(now, before)| now.since(before)).unwrap_or_default();
            let (steal_ns, vcpu_idle_ns) = (vcpu.steal_ns.min(wall_ns), vcpu.idle_ns);
            let chunk_ns = now.charged_ns - before.charged_ns;
            let unexplained_ns = wall_ns.saturating_sub(cpu_ns + parked_ns);
            let wait_ns = delay_ns.max(unexplained_ns).saturating_sub(steal_ns).min(wall_ns);
            sample.wall_ns += wall_ns;
            sample.cpu_ns += cpu_ns;
            sample.chunk_ns += chunk_ns;
            sample.idle_ns += now.idle_ns - before.idle_ns;
            sample.wait_ns += wait_ns;
            sample.steal_ns += steal_ns;
            let from_procstat =
                self.source == BackgroundSource::Procstat && known_vcpus && wall_ns >= PROCSTAT_MIN_NS;
            sample.background_ns += match self.source {
                BackgroundSource::Off => 0,
                _ if from_procstat => wall_ns.saturating_sub(chunk_ns + vcpu_idle_ns),
                _ => wait_ns + steal_ns,
            };
        }
        let speeds =
            self.workers.iter().map(|gauge| f64::from_bits(gauge.speed_bits.load(Ordering::Relaxed)));
        sample.speed = speeds.sum::<f64>() / self.workers.len() as f64;
        *last = Last { at_ns: now_ns, throttled_ns: throttled, workers: totals };
        sample
    }
}
