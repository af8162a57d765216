//! Tests the advice on synthetic runs whose best change is known.

use std::path::Path;

use caribou::trace::{ArrayId, ChunkId, End, Event, NameId, RUNTIME, RunRecord, Sample, Shape, What, Writer};
use serde_json::Value;
use trace_reader::Trace;

use super::recording;
use crate::tests::{Scratch, caribou, refused};

/// Number of steps of a run.
const STEPS: u64 = 120;

/// A run of a ring of chunks in lockstep.
struct Run {
    /// By rank, the CPU time of each of its chunks on a step, ns.
    costs: Vec<Vec<u64>>,
    /// By rank, the part of its vCPU that it gets. It waits in turns of 2 ms.
    shares: Vec<f64>,
}

/// A change of the record of a run.
type Alter = fn(&mut RunRecord);

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

impl Run {
    fn record(&self, rank: usize) -> RunRecord {
        let ranks = self.costs.len() as u32;
        RunRecord {
            ranks,
            rank: rank as u32,
            workers: vec![1; ranks as usize],
            run_id: "by hand".into(),
            lb: "none".into(),
            filter: "all".into(),
            arrows: 1,
            arguments: vec!["program".into()],
            ..RunRecord::default()
        }
    }

    /// Writes the trace. A chunk gets a message of each neighbour, computes when it has both, and sends to both.
    fn write(&self, name: &str) -> Scratch {
        let dir = Scratch::new(name);
        let chunks: Vec<(usize, u64)> = (0..self.costs.len())
            .flat_map(|rank| self.costs[rank].iter().map(move |&cost| (rank, cost)))
            .collect();
        let mut now = vec![0; self.costs.len()];
        let mut events: Vec<Vec<Event>> = vec![Vec::new(); self.costs.len()];
        let mut debt = vec![0.0; self.costs.len()];
        for step in 0..STEPS {
            for (place, &(rank, cost)) in chunks.iter().enumerate() {
                self.compute(
                    &mut events[rank],
                    &mut now[rank],
                    &mut debt[rank],
                    &chunks,
                    (place, step, cost),
                );
            }
            let end = now.iter().copied().max().unwrap_or(0);
            for (rank, now) in now.iter_mut().enumerate() {
                if end > *now {
                    events[rank].push(Event { begin_ns: *now, end_ns: end, what: What::Idle });
                }
                *now = end;
            }
        }
        for (rank, events) in events.iter().enumerate() {
            let mut writer = Writer::create(dir.path(), &self.record(rank)).unwrap();
            writer.events(0, events).unwrap();
            writer.samples(&[self.sample(rank, now[rank])]).unwrap();
            writer.finish(&End { elapsed_ns: now[rank], ..End::default() }).unwrap();
        }
        dir
    }

    /// The events of a chunk on a step.
    fn compute(
        &self,
        events: &mut Vec<Event>,
        now: &mut u64,
        debt: &mut f64,
        chunks: &[(usize, u64)],
        (place, step, cost): (usize, u64, u64),
    ) {
        let (rank, all) = (chunks[place].0, chunks.len());
        let beside = [(place + all - 1) % all, (place + 1) % all];
        let mut handle = |from: ChunkId, number: u32, cost: u64| {
            *debt += cost as f64 * (1.0 / self.shares[rank] - 1.0);
            let lost_ns = if *debt > 2e6 { 2_000_000 } else { 0 };
            *debt -= lost_ns as f64;
            let begin_ns = *now;
            *now += cost + lost_ns;
            let what = What::Handler { chunk: chunk(place as u64), kind: NameId(0), from, number, lost_ns };
            events.push(Event { begin_ns, end_ns: *now, what });
        };
        if step == 0 {
            handle(RUNTIME, 0, cost);
        } else {
            // The neighbour to the left sends its second message of a step to the right.
            let number = |second: u64| (2 * (step - 1) + second + 1) as u32;
            handle(chunk(beside[0] as u64), number(1), 200);
            handle(chunk(beside[1] as u64), number(0), cost);
        }
        for (which, &to) in (0..).zip(&beside) {
            let (number, to_rank) = ((2 * step + which + 1) as u32, chunks[to].0 as u32);
            let what = What::Send {
                chunk: chunk(place as u64),
                to: chunk(to as u64),
                rank: to_rank,
                number,
                bytes: 100,
            };
            events.push(Event::point(*now, what));
        }
    }

    fn sample(&self, rank: usize, at_ns: u64) -> Sample {
        let cpu_ns = STEPS * self.costs[rank].iter().sum::<u64>();
        let wait_ns = (cpu_ns as f64 * (1.0 / self.shares[rank] - 1.0)) as u64;
        Sample { at_ns, wall_ns: at_ns, cpu_ns, chunk_ns: cpu_ns, wait_ns, speed: 100.0, ..Sample::default() }
    }
}

/// The advice as text and as JSON.
fn advice(run: &Path) -> (String, Value) {
    let json = Scratch::new(&format!("advice-{}", run.file_name().unwrap().to_str().unwrap()));
    let text = caribou(&["advise", run.to_str().unwrap(), "--json", json.text()]).unwrap();
    (text, serde_json::from_str(&json.read()).unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The row of the advice, if there is one.
fn advised(json: &Value) -> Option<&Value> {
    json["rows"].as_array().unwrap().iter().find(|row| row["advised"] == true)
}

#[track_caller]
fn near(value: &Value, expected: f64, within: f64) {
    let value = number(value);
    assert!((value - expected).abs() <= within, "{value} is not {expected} +- {within}");
}

#[test]
fn uneven_chunks_are_to_be_balanced() {
    let run = Run { costs: vec![vec![1_000_000; 12], vec![1_000_000; 4]], shares: vec![1.0, 1.0] };
    let dir = run.write("advise-uneven");
    let (text, json) = advice(dir.path());
    near(&json["replay_error"], 0.0, 0.02);
    let best = advised(&json).expect("balancing helps");
    assert_eq!((&best["lb"], number(&best["chunks_factor"])), (&"refine".into(), 1.0), "{text}");
    // 8 and 8 chunks instead of 12 and 4.
    near(&best["gain"], 1.0 / 3.0, 0.05);
    assert!(text.starts_with("Run it with CARIBOU_LB=refine CARIBOU_LB_PERIOD=auto: "), "{text}");
    assert!(
        text.contains("waited") && text.contains("for rank 0, which had 1.50 times the mean work"),
        "{text}"
    );
    assert!(!text.contains("Others had"), "{text}");
}

#[test]
fn chunks_that_are_too_coarse_are_to_be_divided() {
    let run = Run { costs: vec![vec![9_000_000; 2], vec![9_000_000; 1]], shares: vec![1.0, 1.0] };
    let dir = run.write("advise-coarse");
    let (text, json) = advice(dir.path());
    let best = advised(&json).expect("finer chunks help");
    assert!(number(&best["chunks_factor"]) > 1.0 && best["lb"] != "none", "{text}");
    // One and a half chunks each instead of two and one.
    near(&best["gain"], 0.25, 0.05);
    assert!(text.contains("times as many chunks"), "{text}");
}

#[test]
fn nothing_helps_a_balanced_run() {
    let run = Run { costs: vec![vec![100_000; 8], vec![100_000; 8]], shares: vec![1.0, 1.0] };
    let dir = run.write("advise-even");
    let (text, json) = advice(dir.path());
    assert!(advised(&json).is_none() && text.starts_with("Nothing helps"), "{text}");
    assert!(text.contains("All ranks were about equally busy"), "{text}");
    near(&json["bound_s"], 0.1 * 0.96, 0.002);
}

#[test]
fn a_neighbour_is_given_less_to_disturb() {
    let run = Run { costs: vec![vec![400_000; 12], vec![400_000; 12]], shares: vec![1.0, 0.5] };
    let dir = run.write("advise-neighbour");
    let (text, json) = advice(dir.path());
    near(&json["replay_error"], 0.0, 0.05);
    let best = advised(&json).expect("balancing helps");
    // 16 and 8 chunks, each in 16 units of time instead of 24.
    near(&best["gain"], 1.0 / 3.0, 0.08);
    assert!(text.contains("rank 1, which had its vCPU for 50 % of the time"), "{text}");
    assert!(text.contains("Others had up to 50 % of a vCPU during the recording"), "{text}");
}

#[test]
fn steps_follow_from_messages_also_where_deferred_ones_are_handled_at_once() {
    let run = Run { costs: vec![vec![100_000; 2], vec![50_000; 2]], shares: vec![1.0, 1.0] };
    let dir = run.write("advise-steps");
    let found = recording::read(&Trace::open(dir.path()).unwrap()).unwrap();
    assert_eq!((found.steps(), found.chunks()), (STEPS as usize, 4));
    assert!(found.work.iter().all(|row| row[0] >= 100_000.0 && row[3] < 51_000.0));
    assert_eq!(found.edges.len(), 8, "a ring of four, both ways");
    // Chunk 1 handles a message of the next step before its messages of this step are recorded.
    let mut handled = vec![(0, 10, 0, None, 0), (10, 20, 1, None, 0), (20, 30, 1, Some(0), 1)];
    handled.push((30, 40, 0, Some(1), 1));
    let of = |&(begin_ns, end_ns, key, from, number): &(u64, u64, u64, Option<u64>, u32)| {
        let from = from.map_or(RUNTIME, chunk);
        let what = What::Handler { chunk: chunk(key), kind: NameId(0), from, number, lost_ns: 0 };
        Event { begin_ns, end_ns, what }
    };
    let send = |at_ns, from, to| {
        Event::point(at_ns, What::Send { chunk: chunk(from), to: chunk(to), rank: 0, number: 1, bytes: 1 })
    };
    let mut events: Vec<Event> = handled.iter().map(of).collect();
    events.insert(1, send(10, 0, 1));
    events.insert(4, send(30, 1, 0));
    let dir = Scratch::new("advise-row");
    let one = Run { costs: vec![vec![1]], shares: vec![1.0] };
    let mut writer = Writer::create(dir.path(), &one.record(0)).unwrap();
    writer.events(0, &events).unwrap();
    writer.finish(&End { elapsed_ns: 40, ..End::default() }).unwrap();
    let found = recording::read(&Trace::open(dir.path()).unwrap()).unwrap();
    assert_eq!(found.work, [[10.0, 10.0], [10.0, 10.0]], "the message of chunk 1 is of step 0");
}

#[test]
fn of_a_run_with_many_steps_the_first_ones_are_kept() {
    let run = Run { costs: vec![vec![100_000; 2], vec![50_000; 2]], shares: vec![1.0, 1.0] };
    let dir = run.write("advise-cut");
    let mut trace = Trace::open(dir.path()).unwrap();
    trace.run.arguments = vec!["program".into(), "--iterations".into(), (STEPS / 2).to_string()];
    let whole = recording::read(&trace).unwrap();
    let cut = recording::read_at_most(&trace, 40).unwrap();
    assert_eq!((cut.steps(), cut.is_cut, whole.is_cut), (10, true, false));
    assert_eq!((whole.steps_per_iteration, cut.steps_per_iteration), (2, 2), "of the whole run");
    assert_eq!((&whole.edges, whole.message_ns), (&cut.edges, cut.message_ns));
    assert!(cut.took_s < whole.took_s / 10.0);
}

#[test]
fn a_share_counts_until_the_end_of_the_replayed_steps() {
    let vcpu = recording::Vcpu { speed: 1.0, shares: vec![(0.0, 1.0), (1.0, 0.5), (4.0, 1.0)], flush: 0.0 };
    assert!((vcpu.mean_share(2.0) - 0.75).abs() < 1e-12);
    assert!((vcpu.mean_share(8.0) - 6.5 / 8.0).abs() < 1e-12);
}

#[test]
fn a_slow_rank_has_a_speed_that_ends_the_replay() {
    let run = Run { costs: vec![vec![100_000; 2], vec![100_000; 2]], shares: vec![1.0, 1.0] };
    let dir = run.write("advise-slow");
    let mut trace = Trace::open(dir.path()).unwrap();
    trace.ranks[1].samples[0].speed = 1e-300;
    let speed = recording::read(&trace).unwrap().vcpus[1].speed;
    assert!((speed - 0.01).abs() < 1e-9, "{speed}");
}

#[test]
fn what_cannot_be_replayed_is_told_in_one_line() {
    let run = Run { costs: vec![vec![1_000; 2], vec![1_000; 2]], shares: vec![1.0, 1.0] };
    let cases: [(&str, Alter, &str); 5] = [
        ("pool", |run| run.shape = Shape::Pools, "the run is of a pool, which has no chunks to place"),
        ("steps", |run| run.shape = Shape::Supersteps, "`caribou simulate steps` compares its policies"),
        ("sampled", |run| run.arrows = 16, "one in 16 messages was recorded"),
        ("filtered", |run| (run.arrows, run.filter) = (0, "chunks".into()), "without messages, from which"),
        ("partial", |run| run.ranks = 3, "it has the files of 1 of 3 ranks"),
    ];
    for (name, change, words) in cases {
        let dir = Scratch::new(&format!("advise-{name}"));
        let mut record = RunRecord { ranks: 1, workers: vec![1], ..run.record(0) };
        change(&mut record);
        let mut writer = Writer::create(dir.path(), &record).unwrap();
        let start = What::Handler { chunk: chunk(0), kind: NameId(0), from: RUNTIME, number: 0, lost_ns: 0 };
        writer.events(0, &[Event { begin_ns: 0, end_ns: 9, what: start }]).unwrap();
        writer.finish(&End::default()).unwrap();
        refused(caribou(&["advise", dir.text()]), words);
    }
    let dir = Scratch::new("advise-profile");
    let writer =
        Writer::create(dir.path(), &RunRecord { ranks: 1, workers: vec![1], ..run.record(0) }).unwrap();
    writer.finish(&End::default()).unwrap();
    refused(
        caribou(&["advise", dir.text()]),
        "it has no events, only profiles: record the run with CARIBOU_TRACE=DIR",
    );
    let few = Run { costs: vec![vec![1_000], vec![1_000], Vec::new()], shares: vec![1.0; 3] };
    let few = few.write("advise-few");
    refused(caribou(&["advise", few.text()]), "2 chunks on 3 ranks, expected a chunk for each rank at least");
    let long = Run { costs: vec![vec![70_000_000_000_000]; 2], shares: vec![0.001; 2] };
    let long = long.write("advise-long");
    refused(caribou(&["advise", long.text()]), "s or more, expected 1e8 s at most");
    refused(caribou(&["advise", dir.text(), "--json", "x", "--csv", "x"]), "name the same file");
}
