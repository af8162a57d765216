//! Measures a rank between two readings, such as syncs, by counters of its workers.
//!
//! A sample has the CPU time of chunks, other CPU time, idle time, waiting for the vCPU, steal and throttling, each
//! summed over workers. Charm++ and vt measure wall time only, and charge another process's time slice to the chunk
//! that was running. [`interval`](super::interval) computes what follows from two readings of a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::background::SchedStat;
use super::cgroup::Throttled;
use super::coarse_counters::{CoarseCounters, Phase, Vcpu};
use super::interval::Interval;
use super::meter::Published;
use super::process_scan::ProcessScanner;
use super::speed::CalibrationRounds;
use super::topology::Thread;
use crate::ids::SyncId;
use crate::measure::records::{Look, Sample};
use crate::warn::warn;

/// The source of the background load O_p of the refinement paper (Gupta et al., 2013, eq. 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackgroundSource {
    /// `Schedstat`, which uses wall and CPU time if the kernel does not keep it. `Procstat` for strategies that want
    /// that (`refine-paper`).
    #[default]
    Auto,
    /// Time in which the workers were runnable but did not run.
    Schedstat,
    /// As in the paper: wall time - CPU time of the worker - idle time of the vCPU in `/proc/stat`. That file has steps
    /// of 10 ms, so phases under half a second fall back to `Schedstat`. So do workers that are not pinned or whose
    /// vCPU is not listed. Each reason is reported once.
    Procstat,
    /// No background load.
    Off,
}

/// Minimum length of a phase for the 10 ms steps of `/proc/stat`, ns.
const PROCSTAT_MIN_NS: u64 = 500_000_000;

/// Why a phase has its background load from `Schedstat` although `Procstat` was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fallback {
    /// The worker came after the first phase had begun. No warning is needed.
    Late,
    Short,
    NotPinned,
    NotListed,
}

impl Fallback {
    /// Warns once in this process.
    fn tell(self) {
        static SHORT: Once = Once::new();
        static NOT_PINNED: Once = Once::new();
        static NOT_LISTED: Once = Once::new();
        let (once, why) = match self {
            Fallback::Late => return,
            Fallback::Short => (&SHORT, "a phase was shorter than 0.5 s"),
            Fallback::NotPinned => (&NOT_PINNED, "a worker is not pinned"),
            Fallback::NotListed => (&NOT_LISTED, "/proc/stat does not list the vCPU of a worker"),
        };
        once.call_once(|| {
            warn(&format!("{why}: the background load is read from schedstat instead of procstat"));
        });
    }
}

/// Minimum time between two samples for the record, ns: at syncs, and if syncs are rare.
const SAMPLE_AT_SYNC_NS: u64 = 20_000_000;
const SAMPLE_NS: u64 = 500_000_000;

/// The occasion of a sample for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleTrigger {
    /// At this sync.
    AtSync(SyncId),
    /// From time to time.
    Periodic,
    /// At the end of the run.
    AtEnd,
}

/// The counters by which one worker publishes its times. Counters only grow.
pub(crate) struct WorkerCounters {
    schedstat: OnceLock<Option<SchedStat>>,
    thread: OnceLock<Thread>,
    cpu_ns: AtomicU64,
    charged_ns: AtomicU64,
    deliveries: AtomicU64,
    /// Time without work in which the worker was awake.
    idle_ns: AtomicU64,
    /// While awake, twice the parked time so far. While parked, twice the difference of the begin of the park and the
    /// parked time before it, plus 1. One number lets a reader in the middle of a long park count the time so far once.
    parked: AtomicU64,
    speed_bits: AtomicU64,
}

impl WorkerCounters {
    fn new() -> WorkerCounters {
        WorkerCounters {
            schedstat: OnceLock::new(),
            thread: OnceLock::new(),
            cpu_ns: AtomicU64::new(0),
            charged_ns: AtomicU64::new(0),
            deliveries: AtomicU64::new(0),
            idle_ns: AtomicU64::new(0),
            parked: AtomicU64::new(0),
            speed_bits: AtomicU64::new(0),
        }
    }

    /// The worker parks now.
    pub(crate) fn begin_park(&self, now_ns: u64) {
        self.parked.store(2 * now_ns.saturating_sub(self.parked_ns(now_ns)) + 1, Ordering::Relaxed);
    }

    /// The worker is awake again.
    pub(crate) fn end_park(&self, now_ns: u64) {
        self.parked.store(2 * self.parked_ns(now_ns), Ordering::Relaxed);
    }

    /// Total time for which the worker was parked.
    fn parked_ns(&self, now_ns: u64) -> u64 {
        match self.parked.load(Ordering::Relaxed) {
            parked if parked % 2 == 1 => now_ns.saturating_sub(parked / 2),
            parked => parked / 2,
        }
    }

    /// Binds the counters to the calling thread, which must be the worker's. Called once.
    pub(crate) fn bind_to_thread(&self) {
        let _ = self.thread.set(Thread::this());
        if self.schedstat.set(SchedStat::of_this_thread()).is_ok()
            && self.schedstat.get().is_some_and(Option::is_none)
        {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| warn("schedstat cannot be read: waiting is estimated from wall and CPU time"));
        }
    }

    /// Adds the times of the worker since the last call.
    pub(crate) fn publish(&self, published: Published) {
        self.cpu_ns.store(published.cpu_clock_ns, Ordering::Relaxed);
        self.charged_ns.fetch_add(published.charged_ns, Ordering::Relaxed);
        self.idle_ns.fetch_add(published.idle_ns, Ordering::Relaxed);
    }

    /// Sets the number of deliveries that the worker has handled.
    pub(crate) fn set_deliveries(&self, deliveries: u64) {
        self.deliveries.store(deliveries, Ordering::Relaxed);
    }

    pub(crate) fn set_speed(&self, turns_per_us: f64) {
        self.speed_bits.store(turns_per_us.to_bits(), Ordering::Relaxed);
    }

    /// The vCPU to which the worker's thread is pinned.
    fn pinned_to(&self) -> Option<usize> {
        self.thread.get().and_then(Thread::pinned_to)
    }

    /// The worker's times so far, without the times of its vCPU.
    fn read(&self, now_ns: u64) -> Totals {
        let scheduled = self.schedstat.get().and_then(Option::as_ref).and_then(SchedStat::read);
        let cpu_ns = self.cpu_ns.load(Ordering::Relaxed);
        let parked_ns = self.parked_ns(now_ns);
        Totals {
            cpu_ns: scheduled.map_or(cpu_ns, |scheduled| scheduled.cpu_ns),
            delay_ns: scheduled.map(|scheduled| scheduled.wait_ns),
            charged_ns: self.charged_ns.load(Ordering::Relaxed),
            deliveries: self.deliveries.load(Ordering::Relaxed),
            idle_ns: self.idle_ns.load(Ordering::Relaxed) + parked_ns,
            parked_ns,
            vcpu: None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Totals {
    cpu_ns: u64,
    delay_ns: Option<u64>,
    charged_ns: u64,
    deliveries: u64,
    idle_ns: u64,
    parked_ns: u64,
    /// The vCPU to which the worker is pinned, with its times if they are known.
    vcpu: Option<Vcpu>,
}

impl Totals {
    /// Time since an earlier reading in which the worker neither ran nor waited nor was parked. 0 if the kernel does
    /// not report the waiting time, because all such time then counts as waiting.
    fn unexplained_ns(&self, before: &Totals, wall_ns: u64) -> u64 {
        let explained_ns = |totals: &Totals| Some(totals.delay_ns? + totals.cpu_ns + totals.parked_ns);
        let (now_ns, before_ns) = (explained_ns(self), explained_ns(before).unwrap_or(0));
        now_ns.map_or(0, |now_ns| wall_ns.saturating_sub(now_ns.saturating_sub(before_ns)))
    }

    /// The interval since an earlier reading, and the reason if the times of the vCPU are not known.
    fn since(&self, before: &Totals, wall_ns: u64, throttled_ns: u64) -> (Interval, Option<Fallback>) {
        let vcpu = match (self.vcpu, before.vcpu) {
            (Some((here, now)), Some((there, before))) if here == there => {
                now.zip(before).map(|(now, before)| now.since(before)).ok_or(Fallback::NotListed)
            }
            (Some(_), None) => Err(Fallback::Late),
            _ => Err(Fallback::NotPinned),
        };
        let interval = Interval {
            wall_ns,
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            delay_ns: self.delay_ns.map(|delay_ns| delay_ns.saturating_sub(before.delay_ns.unwrap_or(0))),
            parked_ns: self.parked_ns.saturating_sub(before.parked_ns),
            throttled_ns,
            vcpu: vcpu.ok(),
        };
        (interval, vcpu.err())
    }
}

#[derive(Default)]
struct Last {
    at_ns: u64,
    throttled: Throttled,
    workers: Vec<Totals>,
}

/// The counters of a rank's workers, and their last readings.
pub(crate) struct RankCounters {
    pub(crate) workers: Vec<WorkerCounters>,
    source: BackgroundSource,
    coarse: CoarseCounters,
    /// Calibration rounds requested from the workers.
    pub(crate) rounds: CalibrationRounds,
    /// The reading at the begin of the phase.
    last: Mutex<Last>,
    /// The last reading for the record.
    last_recorded: Mutex<Last>,
    takers: ProcessScanner,
}

impl RankCounters {
    pub(crate) fn new(workers: u32, source: BackgroundSource) -> RankCounters {
        let gauges = (0..workers).map(|_| WorkerCounters::new()).collect();
        let last =
            || Mutex::new(Last { workers: vec![Totals::default(); workers as usize], ..Last::default() });
        RankCounters {
            workers: gauges,
            source,
            coarse: CoarseCounters::default(),
            rounds: CalibrationRounds::default(),
            last: last(),
            last_recorded: last(),
            takers: ProcessScanner::default(),
        }
    }

    /// Begins the first phase. Time before it is not counted.
    pub(crate) fn begin(&self, now_ns: u64) {
        self.begin_phase(now_ns);
        let mut observed = self.last_recorded.lock().unwrap_or_else(PoisonError::into_inner);
        self.since(&mut observed, now_ns);
    }

    /// Begins a phase without a [`sample`](Self::sample) of the previous one.
    pub(crate) fn begin_phase(&self, now_ns: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.since(&mut last, now_ns);
    }

    /// Ends a phase, begins the next and returns the ended phase's sample. Takes 5 us in a short phase, else 20-40 us.
    pub(crate) fn sample(&self, now_ns: u64) -> Sample {
        // Locked before the counters are read, so that of two workers at once none uses a newer reading as its past.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (sample, fallback) = self.since(&mut last, now_ns);
        fallback.into_iter().for_each(Fallback::tell);
        sample
    }

    /// The part of the time since the last sample in which the workers were not idle; none if no time has passed.
    pub(crate) fn busy(&self, now_ns: u64) -> Option<f64> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let wall_ns = now_ns.checked_sub(last.at_ns).filter(|&wall_ns| wall_ns > 0)?;
        let idle_ns = |(gauge, before): (&WorkerCounters, &Totals)| {
            (gauge.idle_ns.load(Ordering::Relaxed) + gauge.parked_ns(now_ns)).saturating_sub(before.idle_ns)
        };
        let idle_ns: u64 = self.workers.iter().zip(&last.workers).map(idle_ns).sum();
        Some(1.0 - idle_ns as f64 / (wall_ns as f64 * self.workers.len() as f64))
    }

    /// The sample since the last one for the record; none if that is so recent that the cost would be too high.
    pub(crate) fn sample_for_record(&self, now_ns: u64, when: SampleTrigger) -> Option<Sample> {
        let mut observed = self.last_recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let least_ns = match when {
            SampleTrigger::AtSync(_) => SAMPLE_AT_SYNC_NS,
            SampleTrigger::Periodic => SAMPLE_NS,
            SampleTrigger::AtEnd => 0,
        };
        (now_ns >= observed.at_ns + least_ns).then(|| self.since(&mut observed, now_ns).0)
    }

    /// Makes [`competing_processes`](Self::competing_processes) report processes that run from now on.
    pub(crate) fn begin_process_scans(&self, now_ns: u64) {
        self.takers.begin(now_ns);
    }

    /// The processes that ran on the workers' vCPUs, if this sample has lost enough time for a scan.
    pub(crate) fn competing_processes(&self, sample: &Sample) -> Option<Look> {
        let vcpus: Vec<usize> = self.workers.iter().filter_map(WorkerCounters::pinned_to).collect();
        self.takers.scan(sample, &vcpus)
    }

    /// The mean speed of the workers that have measured their speed; 0 if none has.
    fn speed(&self) -> f64 {
        let speed = |gauge: &WorkerCounters| f64::from_bits(gauge.speed_bits.load(Ordering::Relaxed));
        let measured: Vec<f64> = self.workers.iter().map(speed).filter(|&speed| speed > 0.0).collect();
        // The sum of an empty iterator would be -0.
        measured.iter().fold(0.0, |sum, speed| sum + speed) / measured.len().max(1) as f64
    }

    fn since(&self, last: &mut Last, now_ns: u64) -> (Sample, Option<Fallback>) {
        let wall_ns = now_ns.saturating_sub(last.at_ns);
        let mut totals: Vec<Totals> = self.workers.iter().map(|gauge| gauge.read(now_ns)).collect();
        let unexplained =
            totals.iter().zip(&last.workers).map(|(now, before)| now.unexplained_ns(before, wall_ns));
        let phase = Phase { wall_ns, unexplained_ns: unexplained.max().unwrap_or(0) };
        let coarse = self.coarse.read(now_ns, phase, self.workers.iter().map(WorkerCounters::pinned_to));
        totals.iter_mut().zip(&coarse.vcpus).for_each(|(totals, &vcpu)| totals.vcpu = vcpu);
        let throttled = coarse.throttled.clone();
        drop(coarse);
        let throttled_ns = throttled.since(&last.throttled);
        let since = |(now, before): (&Totals, &Totals)| now.since(before, wall_ns, throttled_ns);
        let (intervals, unknown): (Vec<Interval>, Vec<Option<Fallback>>) =
            totals.iter().zip(&last.workers).map(since).unzip();
        let (background_ns, fallback) =
            self.source.load_ns(&intervals, wall_ns, unknown.into_iter().flatten().next());
        let sum = |part: fn(&Interval) -> u64| intervals.iter().map(part).sum();
        let added = |part: fn(&Totals) -> u64| {
            totals.iter().zip(&last.workers).map(|(now, before)| part(now).saturating_sub(part(before))).sum()
        };
        let sample = Sample {
            at_ns: now_ns,
            wall_ns: sum(|interval| interval.wall_ns),
            cpu_ns: sum(|interval| interval.cpu_ns),
            chunk_ns: added(|totals| totals.charged_ns),
            deliveries: added(|totals| totals.deliveries),
            idle_ns: added(|totals| totals.idle_ns),
            wait_ns: sum(Interval::wait_ns),
            steal_ns: sum(Interval::steal_ns),
            throttled_ns,
            background_ns,
            speed: self.speed(),
            ..Sample::default()
        };
        *last = Last { at_ns: now_ns, throttled, workers: totals };
        (sample, fallback)
    }
}

impl BackgroundSource {
    /// O_p of all workers together, and the reason if it is not from the requested source.
    fn load_ns(
        self,
        workers: &[Interval],
        wall_ns: u64,
        unknown: Option<Fallback>,
    ) -> (u64, Option<Fallback>) {
        let lost_ns = || workers.iter().map(|worker| worker.wait_ns() + worker.steal_ns()).sum();
        match self {
            BackgroundSource::Off => (0, None),
            BackgroundSource::Auto | BackgroundSource::Schedstat => (lost_ns(), None),
            BackgroundSource::Procstat => {
                let fallback = (wall_ns < PROCSTAT_MIN_NS).then_some(Fallback::Short).or(unknown);
                let taken_ns = workers.iter().map(Interval::taken_ns).sum::<Option<u64>>();
                let taken_ns = taken_ns.filter(|_| fallback.is_none());
                (taken_ns.unwrap_or_else(lost_ns), fallback)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::measure::background::VcpuTimes;

    const WALL_NS: u64 = 1_000_000_000;

    /// A worker on this vCPU that ran half of the time.
    fn half(vcpu: Option<(usize, Option<VcpuTimes>)>) -> Totals {
        Totals { cpu_ns: WALL_NS / 2, delay_ns: Some(WALL_NS / 4), vcpu, ..Totals::default() }
    }

    fn load(before: Option<(usize, Option<VcpuTimes>)>, wall_ns: u64) -> (u64, Option<Fallback>) {
        let now = half(Some((1, Some(VcpuTimes { idle_ns: WALL_NS / 10, steal_ns: 0 }))));
        let (interval, unknown) = now.since(&Totals { vcpu: before, ..Totals::default() }, wall_ns, 0);
        BackgroundSource::Procstat.load_ns(&[interval], wall_ns, unknown)
    }

    #[test]
    fn a_worker_that_has_not_measured_its_speed_yet_does_not_make_its_rank_slow() {
        let gauges = RankCounters::new(3, BackgroundSource::Off);
        assert_eq!(gauges.sample(1).speed.to_bits(), 0f64.to_bits());
        gauges.workers[0].set_speed(2.0);
        gauges.workers[2].set_speed(3.0);
        assert_eq!(gauges.sample(2).speed.to_bits(), 2.5f64.to_bits());
    }

    #[test]
    fn a_sample_is_of_one_phase() {
        let gauges = RankCounters::new(2, BackgroundSource::Off);
        gauges.begin(10);
        assert_eq!(gauges.sample(30).wall_ns, 2 * 20);
        gauges.begin_phase(500);
        assert_eq!(gauges.sample(510).wall_ns, 2 * 10);
    }

    #[test]
    fn a_sample_in_the_middle_of_a_rest_has_its_part_of_it() {
        let gauges = RankCounters::new(1, BackgroundSource::Off);
        gauges.begin(10);
        gauges.workers[0].begin_park(100);
        assert_eq!(gauges.sample(300).idle_ns, 200);
        gauges.workers[0].end_park(500);
        gauges.workers[0].publish(Published { idle_ns: 30, ..Published::default() });
        assert_eq!(gauges.sample(600).idle_ns, 200 + 30);
        gauges.workers[0].begin_park(700);
        assert_eq!((gauges.sample(750).idle_ns, gauges.sample(800).idle_ns), (50, 50));
    }

    #[test]
    fn time_is_unexplained_unless_the_worker_ran_waited_or_was_parked() {
        let before = Totals { cpu_ns: 5, delay_ns: Some(7), parked_ns: 9, ..Totals::default() };
        let now = Totals { cpu_ns: 15, delay_ns: Some(27), parked_ns: 39, ..Totals::default() };
        assert_eq!(now.unexplained_ns(&before, 100), 40);
        assert_eq!(now.unexplained_ns(&before, 50), 0);
        assert_eq!(Totals { delay_ns: None, ..now }.unexplained_ns(&before, 100), 0, "it is all waiting");
    }

    #[test]
    fn procstat_takes_what_it_cannot_know_from_schedstat_and_says_why() {
        let known = Some((1, Some(VcpuTimes::default())));
        assert_eq!(load(known, WALL_NS), (WALL_NS * 4 / 10, None));
        assert_eq!(load(Some((1, None)), WALL_NS), (WALL_NS / 4, Some(Fallback::NotListed)));
        assert_eq!(load(None, WALL_NS), (WALL_NS / 4, Some(Fallback::Late)));
        let elsewhere = Some((0, Some(VcpuTimes::default())));
        assert_eq!(load(elsewhere, WALL_NS), (WALL_NS / 4, Some(Fallback::NotPinned)));
        assert_eq!(load(known, WALL_NS / 4).1, Some(Fallback::Short));
    }
}
