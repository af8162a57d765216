//! Measures each cost once, by short runs of small programs. Rounds are repeated, and the medians count.

use std::cell::Cell;
use std::time::Duration;

use caribou::config::Period;
use caribou::{Config, Error, Placement};
use lb_strategies::synthetic::Workload;
use lb_strategies::{ARRAYS, Assignment, Snapshot, Strategy};

use super::clock::thread_cpu_ns;
use super::nomads::Nomads;
use super::ring::Ring;
use super::sleeper::latencies_ns;
use super::spent::spent;

/// The strategy of runs with syncs: nothing moves.
struct Stay;

impl Strategy for Stay {
    fn name(&self) -> &'static str {
        "stay"
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        Assignment::current(snapshot)
    }
}

/// The costs that one round has found, by field.
pub(super) struct Round {
    pub(super) costs: Vec<(&'static str, f64)>,
    /// The part of the time in which a worker with work had its vCPU.
    pub(super) share: f64,
}

/// A ring without syncs.
const RING: Ring = Ring { chunks: 64, reach: 1, numbers: 0, warm: 100, timed: 1500 };
/// Numbers in a long message.
const NUMBERS: usize = 1024;
const LONG: Ring = Ring { numbers: NUMBERS, warm: 10, timed: 150, ..RING };
const LONG_BYTES: f64 = NUMBERS as f64 * 8.0;
/// A ring whose halves are on two ranks. A rank gets two messages of the other in an iteration, each in a packet of its
/// own, and runs ahead so far that it never waits for them.
const SPARSE: Ring = Ring { chunks: 64, timed: 4000, ..RING };
const PACKETS: f64 = 2.0;
/// Number of ends of messages of a chunk in an iteration: it sends two and receives two.
const ENDS: f64 = 4.0;
/// Numbers of chunks of rings with syncs or windows.
const FEW: u32 = 32;
const MANY: u32 = 2048;
/// A sync per iteration, and the shortest windows.
const SYNC: Period = Period::Steps(1);
const WINDOW: Period = Period::Every(Duration::from_millis(1));

fn quiet(ranks: u32) -> Result<Config, Error> {
    Ok(Config::default().ranks(ranks).lb("none")?.period(0))
}

/// Runs a round. Costs that need two ranks which run at the same time are left out if `ranks` is 1. `step` is called
/// after each part.
pub(super) fn run(ranks: u32, step: &dyn Fn()) -> Result<Round, Error> {
    let mut costs = Vec::new();
    let (local, mut share) = local(&mut costs)?;
    step();
    decisions(&mut costs);
    step();
    if ranks > 1 {
        share = share.min(messages(local, &mut costs)?);
        step();
        syncs(&mut costs)?;
        step();
        moves(&mut costs)?;
        step();
        reloads(&mut costs)?;
        step();
        let mut woken = latencies_ns(quiet(2)?, 20)?;
        woken.sort_unstable();
        let awake =
            costs.iter().find(|(field, _)| *field == "latency_ns").map_or(0.0, |(_, latency)| *latency);
        costs.push(("wake_ns", (woken[woken.len() / 2] as f64 - awake).max(0.0)));
        step();
    }
    Ok(Round { costs, share })
}

/// Costs within a rank.
#[derive(Clone, Copy)]
struct Local {
    iteration: f64,
    message: f64,
    /// CPU time of an iteration with two long messages.
    long: f64,
}

fn local(costs: &mut Vec<(&'static str, f64)>) -> Result<(Local, f64), Error> {
    let cpu_ns = |ring: Ring| -> Result<(f64, f64), Error> {
        let (timed, _) = ring.run(quiet(1)?, Placement::Block)?;
        Ok((timed.cpu_ns / (f64::from(ring.chunks) * ring.timed as f64), timed.cpu_ns / timed.wall_ns))
    };
    let (two, share) = cpu_ns(RING)?;
    let four = cpu_ns(Ring { reach: 2, ..RING })?.0;
    let message = ((four - two) / 2.0).clamp(0.0, two / 2.0);
    let local = Local { iteration: two - 2.0 * message, message, long: cpu_ns(LONG)?.0 };
    costs.extend([("iteration_ns", local.iteration), ("local_message_ns", local.message)]);
    Ok((local, share))
}

/// Messages between two ranks: all messages of a ring whose chunks are on the ranks in turn. Returns the part of the time
/// in which the ranks had their vCPUs.
fn messages(local: Local, costs: &mut Vec<(&'static str, f64)>) -> Result<f64, Error> {
    let share = Cell::new(1.0_f64);
    let in_turn = |ring: Ring, wire: bool| -> Result<f64, Error> {
        let (_, report) = ring.run(quiet(2)?.wire_always(wire), Placement::RoundRobin)?;
        let executed = f64::from(ring.chunks) * (ring.warm + ring.timed) as f64;
        let [one, other] = [0, 1].map(|rank| spent(&report, rank));
        share.set(share.get().min(one.share()).min(other.share()));
        Ok((one.all() + other.all()) / executed)
    };
    let mut remote = 0.0;
    for (wire, message_field, byte_field) in
        [(false, "remote_message_ns", "remote_byte_ns"), (true, "encoded_message_ns", "encoded_byte_ns")]
    {
        let short = in_turn(RING, wire)?;
        let message = ((short - local.iteration) / ENDS).max(0.0);
        let of_bytes = in_turn(LONG, wire)? - short - (local.long - local.iteration - 2.0 * local.message);
        costs.extend([(message_field, message), (byte_field, (of_bytes / ENDS / LONG_BYTES).max(0.0))]);
        if !wire {
            remote = message;
        }
    }
    let (timed, report) = SPARSE.run(quiet(2)?, Placement::Block)?;
    let [one, other] = [0, 1].map(|rank| spent(&report, rank));
    share.set(share.get().min(one.share()).min(other.share()));
    let chunks = f64::from(SPARSE.chunks / 2);
    let messages =
        chunks * local.iteration + (2.0 * chunks - PACKETS) * local.message + 2.0 * PACKETS * remote;
    costs.push(("packet_ns", ((timed.cpu_ns / SPARSE.timed as f64 - messages) / PACKETS).max(0.0)));
    // Two chunks send each other two messages, and wait for them.
    let pair = Ring { chunks: 2, timed: 4000, ..RING };
    let (timed, _) = pair.run(quiet(2)?, Placement::Block)?;
    let busy = local.iteration + ENDS * remote;
    costs.push(("latency_ns", (timed.wall_ns / pair.timed as f64 - busy).max(0.0)));
    Ok(share.get())
}

/// Syncs and windows at which nothing moves, by the CPU time of a rank that never waits.
fn syncs(costs: &mut Vec<(&'static str, f64)>) -> Result<(), Error> {
    // What the rank of the ring does more per phase than without balancing, ns.
    let per_phase = |chunks: u32, ranks: u32, period: Period, iterations: u32| -> Result<f64, Error> {
        let ring = Ring { chunks, warm: 2, timed: u64::from(iterations / chunks), ..RING };
        // All chunks are on the last rank. Rank 0 collects.
        let placement = || Placement::by(move |_: u32, ranks| ranks - 1);
        let (without, _) = ring.run(quiet(ranks)?, placement())?;
        let (with, report) = ring.run(quiet(ranks)?.strategy(Stay).balance(period), placement())?;
        let last = spent(&report, ranks as usize - 1);
        let phases = last.phases.max(1.0) * ring.timed as f64 / (ring.timed + ring.warm) as f64;
        Ok((with.cpu_ns - without.cpu_ns) / phases)
    };
    let slope = |[few, many]: [f64; 2]| ((many - few) / f64::from(MANY - FEW)).max(0.0);
    let sync = [per_phase(FEW, 1, SYNC, 40_000)?, per_phase(MANY, 1, SYNC, 80_000)?];
    let window = per_phase(MANY, 1, WINDOW, 800_000)? / f64::from(MANY);
    let of_chunk = slope(sync);
    let both = window.clamp(0.0, of_chunk);
    let report_chunk = (per_phase(MANY, 2, WINDOW, 800_000)? / f64::from(MANY)).clamp(0.0, both);
    costs.extend([
        ("report_ns", (sync[0] - of_chunk * f64::from(FEW)).max(0.0)),
        ("report_chunk_ns", report_chunk),
        ("collect_chunk_ns", both - report_chunk),
        ("sync_chunk_ns", of_chunk - both),
    ]);
    Ok(())
}

/// Chunks that move, as they are and encoded.
fn moves(costs: &mut Vec<(&'static str, f64)>) -> Result<(), Error> {
    let per_end = |chunks: u32, bytes: usize, wire: bool| -> Result<f64, Error> {
        let nomads = Nomads { chunks, bytes, syncs: 20, computes: false };
        let config = Config::default().ranks(2).lb("rotate")?.wire_always(wire);
        let (_, report) = nomads.run(config)?;
        let migrate = spent(&report, 0).migrate + spent(&report, 1).migrate;
        Ok(migrate / (2.0 * f64::from(chunks) * nomads.syncs as f64))
    };
    costs.push(("move_ns", per_end(256, 64, false)?));
    let (short, long) = (per_end(64, 64, true)?, per_end(64, 1 << 16, true)?);
    costs.push(("move_byte_ns", ((long - short) / f64::from(1 << 16)).max(0.0)));
    Ok(())
}

/// First passes over states after a move, against later ones.
fn reloads(costs: &mut Vec<(&'static str, f64)>) -> Result<(), Error> {
    let mut sum = 0.0;
    let sizes = [1 << 15, 1 << 16, 1 << 17];
    for bytes in sizes {
        let nomads = Nomads { chunks: 8, bytes, syncs: 10, computes: true };
        let (passes, _) = nomads.run(Config::default().ranks(2).lb("rotate")?)?;
        sum += (passes.first_ns - passes.later_ns).max(0.0) / bytes as f64;
    }
    costs.push(("reload_byte_ns", sum / sizes.len() as f64));
    Ok(())
}

/// Decisions of `refine` on small and large snapshots beside a busy neighbour.
fn decisions(costs: &mut Vec<(&'static str, f64)>) {
    let Ok(refine) = ARRAYS.parse("refine") else { return };
    let took_ns = |chunks: usize, ranks: usize| {
        let snapshot = Workload::NoisyRank.snapshot(chunks, ranks, 1);
        let once = || {
            let begin = thread_cpu_ns();
            std::hint::black_box(refine.assign(std::hint::black_box(&snapshot)));
            thread_cpu_ns() - begin
        };
        // The first one fills the caches.
        (0..4).map(|_| once()).min().unwrap_or(0) as f64
    };
    let (small, chunks, ranks) = (took_ns(128, 2), took_ns(4096, 2), took_ns(4096, 64));
    let per_chunk = ((chunks - small) / f64::from(4096 - 128)).max(0.0);
    let per_rank = ((ranks - chunks) / 62.0).max(0.0);
    let fixed = (small - 128.0 * per_chunk - 2.0 * per_rank).max(0.0);
    costs.extend([("decision_ns", fixed), ("decision_chunk_ns", per_chunk), ("decision_rank_ns", per_rank)]);
}
