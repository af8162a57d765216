//! Tests what commands print about a program in supersteps, against independently computed figures.

use std::fs;
use std::time::Duration;

use caribou::Config;
use caribou::config::Pin;
use caribou::supersteps::{Job, Parts, Supersteps, Then};
use caribou::trace::{End, RunRecord, Sample, Shape, StepRecord, StepWorker, Writer};

use super::json;
use crate::tests::{Scratch, caribou, caribou_says};

/// Ten steps of two workers: four of 40 us, a new division with copies, and six of 20 us. The last has a dropped job.
fn steps() -> Vec<StepRecord> {
    let step = |step: u64| {
        let long_ns = if step < 4 { 40_000 } else { 20_000 };
        let begin_ns = if step < 4 { 40_000 * step } else { 160_000 + 20_000 * (step - 4) };
        let divided = step == 4;
        let dropped = u64::from(step == 9);
        let worker = |units, computing_ns| StepWorker {
            units,
            computing_ns,
            waiting_ns: long_ns - computing_ns,
            moving_ns: if divided { 5_000 } else { 0 },
            ..StepWorker::default()
        };
        let workers = match step {
            0..4 => vec![worker(50, 10_000), worker(50, 40_000)],
            _ => {
                let slow = StepWorker { dropped, dropped_ns: 3_000 * dropped, ..worker(20, 16_000) };
                vec![worker(80, 16_000), slow]
            }
        };
        let reason = divided.then(|| "worker 1 is four times as slow".to_owned());
        // With copies, each worker has all units.
        let (moved, copies) = (if divided { 100 } else { 0 }, if step < 4 { 1 } else { 2 });
        StepRecord {
            step,
            begin_ns,
            end_ns: begin_ns + long_ns,
            copies,
            moved,
            divided,
            reason,
            restarted: false,
            workers,
        }
    };
    (0..10).map(step).collect()
}

fn written(name: &str, steps: &[StepRecord]) -> Scratch {
    let dir = Scratch::new(name);
    let run = RunRecord {
        run_id: "handmade".into(),
        shape: Shape::Supersteps,
        lb: "des".into(),
        ranks: 1,
        workers: vec![2],
        hosts: vec!["here".into()],
        ..RunRecord::default()
    };
    let mut writer = Writer::create(dir.path(), &run).unwrap();
    writer.steps(steps).unwrap();
    writer
        .samples(&[Sample { at_ns: 280_000, wall_ns: 280_000, wait_ns: 30_000, ..Sample::default() }])
        .unwrap();
    writer.finish(&End { elapsed_ns: 280_000, ..End::default() }).unwrap();
    dir
}

#[test]
fn every_command_says_what_divisions_and_drops_did() {
    let dir = written("supersteps", &steps());
    let trace = dir.text();
    let says = "10 steps, 28.00 us in the mean, 40.00 us at most; 1 new division (1 to other copies), 100 units moved; a step took 40.00 us \
                in the 4 steps before the first, 20.00 us after the last; 1 job dropped, after 3.00 us in the mean: 0.8 % of all computing";
    let text = caribou(&["trace", "lb", trace]).unwrap();
    assert!(text.contains(says), "{text}");
    assert!(text.contains("worker 1 is four times as slow") && text.contains("80 20"), "{text}");
    let text = caribou(&["trace", "check", trace]).unwrap();
    assert!(text.contains("\nsound: "), "{text}");
    let text = caribou(&["trace", "summary", trace]).unwrap();
    assert!(text.contains(&format!("balancing: {says}")) && text.contains("jobs dropped"), "{text}");
    let text = caribou(&["trace", "diff", trace, trace]).unwrap();
    assert!(text.contains("slow in turns counts as waiting"), "{text}");
    let text = caribou(&["trace", "utilisation", trace]).unwrap();
    assert!(text.contains(", ^ new divisions\n"), "{text}");
    let page = json(&["lb", trace]);
    let tables = &page["tables"];
    let division = &tables["divisions"][0];
    let figures =
        ["step", "moved", "moving_ns", "step_before_ns", "step_after_ns"].map(|key| division[key].as_f64());
    assert_eq!((&division["shares_before"], &division["shares"]), (&"50 50".into(), &"80 20".into()));
    assert_eq!((&division["copies_before"], &division["copies"]), (&1.into(), &2.into()));
    assert_eq!(figures, [4.0, 100.0, 5_000.0, 40_000.0, 20_000.0].map(Some));
    let slow = &tables["step_workers"][1];
    let figures =
        ["units", "computing_ns", "waiting_ns", "dropped", "dropped_ns"].map(|key| slow[key].as_f64());
    assert_eq!(figures, [20.0, 256_000.0, 24_000.0, 1.0, 3_000.0].map(Some));
    assert_eq!(tables["steps"].as_array().map(Vec::len), Some(10));
    assert_eq!(tables["steps"][0]["imbalance"].as_f64(), Some(1.6));
    let dropped = "time in chunks includes jobs that were dropped: 0.8 % of all computing";
    let for_vcpu = "waiting of workers includes that for their vCPUs: 30.00 us of rank 0";
    for command in ["utilisation", "summary"] {
        let text = caribou(&["trace", command, trace]).unwrap();
        assert!(text.contains(dropped) && text.contains(for_vcpu), "{text}");
    }
    assert_eq!(json(&["utilisation", trace])["tables"]["step_workers"], tables["step_workers"]);
    let html = dir.join("report.html");
    caribou(&["trace", "report", trace, "-o", &html]).unwrap();
    let html = fs::read_to_string(html).unwrap();
    for part in [says, "Time of each step", "Units of each worker", "worker 1 is four times as slow"] {
        assert!(html.contains(part), "no `{part}`");
    }
    for worker in 0..2 {
        let line = format!("class=\"line k{worker}\"");
        assert!(html.contains(&line) && html.contains(&format!(".line.k{worker}{{fill:none")), "{line}");
    }
}

#[test]
fn records_of_any_numbers_are_borne() {
    let worker = StepWorker {
        units: u64::MAX,
        computing_ns: u64::MAX,
        waiting_ns: u64::MAX,
        moving_ns: u64::MAX,
        dropped: u64::MAX,
        dropped_ns: u64::MAX,
    };
    let step = |workers: usize| StepRecord {
        begin_ns: u64::MAX,
        moved: u64::MAX,
        divided: true,
        workers: vec![worker; workers],
        ..StepRecord::default()
    };
    let dir = written("supersteps-wild", &[step(3), step(0), step(9), step(1)]);
    let trace = dir.text();
    let (text, error) = caribou_says(&["trace", "check", trace]);
    assert!(error.is_some() && text.contains("step 0: has 3 workers, the run had 2"), "{text}");
    for command in ["summary", "lb", "timeline", "utilisation"] {
        caribou(&["trace", command, trace]).map(drop).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
    let html = dir.join("report.html");
    caribou(&["trace", "report", trace, "-o", &html]).unwrap();
}

/// Only sleeps. Units from 20 on are slow, and after 20 steps units from 10 on.
struct Slow;

impl Supersteps for Slow {
    type Unit = ();
    type Edge = ();
    type Part = ();
    type Shared = u64;

    fn units(&self) -> u64 {
        30
    }

    fn begin(&self) -> u64 {
        0
    }

    fn unit(&self, _: u64) {}

    fn compute(&self, job: Job<'_, Self>) {
        let slow = if job.step < 20 { 20 } else { 10 };
        let time_us = job.units.map(|unit| if unit < slow { 20 } else { 200 }).sum();
        std::thread::sleep(Duration::from_micros(time_us));
    }

    fn changes(&self) -> bool {
        false
    }

    fn combine(&self, steps: &mut u64, _: Parts<'_, ()>) -> Then {
        *steps += 1;
        if *steps == 40 { Then::End } else { Then::Step }
    }
}

#[test]
fn the_trace_of_a_run_is_sound_whatever_the_policy() {
    for lb in ["des,by=wall", "replicate,copies=3", "adaptive"] {
        let dir = Scratch::new(&format!("supersteps-{}", lb.split(',').next().unwrap()));
        let config = Config::default().ranks(3).pin(Pin::Off).trace(dir.path()).lb(lb).unwrap();
        let report = caribou::supersteps(&config, Slow).unwrap().report;
        let text = caribou(&["trace", "check", dir.text()]).unwrap_or_else(|error| panic!("{lb}: {error}"));
        assert!(text.contains("sound: "), "{lb}: {text}");
        let says = caribou(&["trace", "lb", dir.text()]).unwrap();
        assert!(says.starts_with("40 steps, "), "{lb}: {says}");
        let chunks = caribou(&["trace", "chunks", dir.text()]).unwrap();
        assert!(chunks.contains("3 chunks") && !chunks.contains("too big"), "{lb}: {chunks}");
        assert!(!chunks.contains(" a phase\n"), "{lb}: {chunks}");
        assert!(!chunks.contains(" B ") && chunks.contains("sizes are not known"), "{lb}: {chunks}");
        let path = caribou(&["trace", "critical-path", dir.text()]).unwrap();
        assert!(path.contains("(bound_ns) is different"), "{lb}: {path}");
        let export = ["trace", "export", dir.text(), "--to", "lbdata", "--out", &dir.join("lbdata")];
        let refused = caribou(&export).unwrap_err().to_string();
        assert_eq!(refused, "LB data is of chunks and syncs, and shares of supersteps have none of these");
        let dropped: u64 = report.workers.iter().map(|worker| worker.dropped).sum();
        assert_eq!(says.contains(" dropped, after "), dropped > 0, "{lb}: {says}");
    }
}
