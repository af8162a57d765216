use std::sync::Arc;
use std::time::Duration;

use caribou::config::{Period, Pin};
use caribou::report::SyncReport;
use caribou::trace::{End, RunRecord, Writer};
use caribou::{Chunk, Config, Ctx, Load, Reducer, Target, Values};
use lb_strategies::Rank;
use lb_strategies::balancer::PhaseReport;
use serde::{Deserialize, Serialize};
use trace_reader::Trace;

use crate::tests::{Scratch, caribou, json, refused};

const SYNCS: u32 = 6;

/// Comes to some syncs and sets its own load.
#[derive(Serialize, Deserialize)]
struct Weight {
    ticks: u64,
    syncs: u32,
}

impl Chunk for Weight {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.syncs < SYNCS {
            ctx.at_sync();
        } else {
            ctx.contribute(0, Reducer::Sum, vec![1.0], Target::Chunk(0));
        }
    }

    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.syncs += 1;
        self.start(ctx);
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        ctx.exit();
    }

    fn reduced(_: u32, _: Values) {}

    fn load(&self) -> Load {
        if self.ticks > 0 { Load::Ticks(self.ticks) } else { Load::Measured }
    }
}

/// Records a run in a directory that no other test uses.
fn record(name: &str, reports: bool) -> Scratch {
    let dir = Scratch::new(name);
    let config =
        Config::default().ranks(2).pin(Pin::Off).period(20).lb("refine,tolerance=0.01").expect("listed");
    caribou::run(config.trace(dir.path()).lb_reports(reports), |setup| {
        let ticks = |index: u32| if index.is_multiple_of(3) { 0 } else { u64::from(index) * 1_000_000 };
        setup.array(12, move |index| Weight { ticks: ticks(index), syncs: 0 });
    })
    .expect("it ends");
    dir
}

/// The output of `caribou balance` as a list of syncs.
fn rows(arguments: &[&str]) -> Vec<serde_json::Value> {
    let rows = json(&[&["balance"], arguments].concat());
    rows.as_array().expect("a list").clone()
}

#[test]
fn the_strategy_of_a_recorded_run_decides_each_of_its_syncs_again() {
    let dir = record("balance-again", true);
    let trace = Trace::open(dir.path()).expect("it was recorded");
    let rows = rows(&["--trace", dir.text()]);
    assert_eq!(rows.len(), SYNCS as usize);
    assert!(trace.syncs.iter().any(|sync| sync.moved > 0));
    for (row, sync) in rows.iter().zip(&trace.syncs) {
        let again =
            ["sync", "proposed", "moved", "expected_gain_ns", "needed_gain_ns", "makespan_predicted_ns"]
                .map(|field| row[field].as_u64().expect("a number"));
        let SyncReport { sync, proposed, moved, gain_ns, needed_ns, makespan_predicted_ns, .. } = *sync;
        assert_eq!(again, [sync, proposed, moved, gain_ns, needed_ns, makespan_predicted_ns]);
    }
    let text =
        caribou(&["balance", "--trace", dir.text(), "--lb", "greedy;none"]).expect("others can be asked");
    assert!(text.starts_with("Each sync starts from the placement that the run had at it"), "{text}");
    assert_eq!(text.lines().count(), 5 + 2 * SYNCS as usize, "{text}");
    assert!(text.lines().rev().nth(3).is_some_and(|line| line.starts_with("none ")), "{text}");
}

/// Handles messages for `BUSY`. In the second half of that time, chunks with a low index take ten times as long.
#[derive(Serialize, Deserialize)]
struct Busy;

const BUSY: Duration = Duration::from_millis(600);

impl Chunk for Busy {
    type Index = u32;
    type Message = ();

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        ctx.send(ctx.index(), ());
    }

    fn receive(&mut self, (): (), ctx: &mut Ctx<'_, Self>) {
        let passed = Duration::from_nanos(ctx.elapsed_ns());
        let spins = if passed > BUSY / 2 && ctx.index() < 6 { 200_000 } else { 20_000 };
        std::hint::black_box((0..spins).map(std::hint::black_box::<u64>).sum::<u64>());
        if passed < BUSY {
            // The next chunk waits for this message, so that a rank with less work is idle.
            ctx.send((ctx.index() + 1) % 12, ());
        } else {
            ctx.exit();
        }
    }
}

#[test]
fn a_run_in_windows_is_decided_again_as_it_was() {
    let dir = Scratch::new("balance-windows");
    let period = Period::Every(Duration::from_millis(10));
    let config = Config::default().ranks(2).pin(Pin::Off).balance(period).lb("refine").expect("listed");
    caribou::run(config.trace(dir.path()).lb_reports(true), |setup| {
        setup.array(12, |_| Busy);
    })
    .expect("it ends");
    let trace = Trace::open(dir.path()).expect("it was recorded");
    assert!(!trace.syncs.is_empty() && trace.syncs.iter().all(|sync| sync.window));
    let rows = rows(&["--trace", dir.text()]);
    let again =
        rows.iter().map(|row| ["proposed", "moved", "expected_gain_ns"].map(|field| row[field].as_u64()));
    let run = trace.syncs.iter().map(|sync| [sync.proposed, sync.moved, sync.gain_ns].map(Some));
    assert!(again.eq(run), "{rows:?}");
}

/// Writes the edited syncs of the trace in `dir` as another trace.
fn edited(dir: &Scratch, lb: &str, edit: impl FnOnce(&mut [SyncReport])) -> Scratch {
    let Trace { run, mut syncs, .. } = Trace::open(dir.path()).expect("it was recorded");
    edit(&mut syncs);
    let dir = Scratch::new(&format!("balance-edited-{lb}"));
    let mut writer =
        Writer::create(dir.path(), &RunRecord { lb: lb.into(), ..run }).expect("a new directory");
    writer.syncs(&syncs).expect("it can be written");
    writer.finish(&End::default()).expect("it can be written");
    dir
}

#[test]
fn the_strategy_of_the_run_takes_as_long_as_it_did_and_others_no_time() {
    const LONG_NS: u64 = 1_000_000_000_000;
    let dir = record("balance-slow", true);
    let slow = |syncs: &mut [SyncReport]| syncs.iter_mut().for_each(|sync| sync.decide_ns = LONG_NS);
    let edited = edited(&dir, "refine,tolerance=0.01", slow);
    let costs = |arguments: &[&str]| -> Vec<u64> {
        let rows = rows(&[&["--trace", edited.text()], arguments].concat());
        rows.iter().map(|row| row["needed_gain_ns"].as_u64().expect("a number")).collect()
    };
    for own in [&[][..], &["--lb", "refine,tolerance=0.01"]] {
        let costs = costs(own);
        assert!(
            costs[0] < LONG_NS / 2 && costs[1..].iter().all(|&cost_ns| cost_ns > LONG_NS / 2),
            "{costs:?}"
        );
    }
    assert!(costs(&["--lb", "greedy"]).iter().all(|&cost_ns| cost_ns < LONG_NS / 2));
}

#[test]
fn a_trace_that_cannot_be_decided_again_is_refused_with_the_reason() {
    let dir = record("balance-edited", true);
    for (lb, edit, expected) in [
        (
            "refine",
            (|report| report.chunks[0].load.rank = Rank(2)) as fn(&mut PhaseReport),
            "sync 1: a chunk is on rank 2",
        ),
        ("refine", |report| report.chunks[0].wish = Some(Rank(7)), "sync 1: a chunk is to go to rank 7"),
        ("refine", |report| report.ranks.truncate(1), "sync 1 has reports of 1 ranks, expected 2"),
        ("my-own", |_| (), "used strategy \"my-own\", which this command does not have: name one with --lb"),
    ] {
        let change =
            |syncs: &mut [SyncReport]| edit(Arc::make_mut(syncs[1].reported.as_mut().expect("kept")));
        refused(caribou(&["balance", "--trace", edited(&dir, lb, change).text()]), expected);
    }
    let edited = edited(&dir, "refine", |syncs| syncs[2].reported = None);
    let expected = "the reports of ranks to sync 2 are missing in the trace";
    refused(caribou(&["balance", "--trace", edited.text()]), expected);
}

#[test]
fn a_trace_without_reports_is_refused_with_what_would_record_them() {
    let dir = record("balance-without", false);
    refused(caribou(&["balance", "--trace", dir.text()]), "CARIBOU_LB_REPORTS=on");
}
