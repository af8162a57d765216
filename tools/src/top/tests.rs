//! Tests `caribou top` from status answers to the text on a screen.

use std::io::{Read, Write};
use std::net::TcpListener;

use caribou::monitor::{KindStatus, RankStatus, Status, WorkerStatus};
use caribou::report::SyncReport;
use caribou::trace::{Sample, Shape, StepsSoFar};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::dashboard::{Dashboard, Parts};
use super::view::{Sort, View};
use super::watch::Watch;
use super::{screen, text};
use crate::tests::{caribou, caribou_says, json};

/// Times of one worker so far, in ms: chunks, runtime, lost, idle; and wall time.
type Totals = ([u64; 4], u64);

fn worker(worker: u32, ([cpu, runtime, lost, idle], wall): Totals) -> WorkerStatus {
    let ns = |ms: u64| ms * 1_000_000;
    let (cpu_ns, runtime_ns, lost_ns) = (ns(cpu), ns(runtime), ns(lost));
    WorkerStatus { worker, cpu_ns, runtime_ns, lost_ns, idle_ns: ns(idle), wall_ns: ns(wall), handlers: 1 }
}

fn rank(rank: u32, messages: u64, totals: &[Totals]) -> RankStatus {
    let workers = totals.iter().zip(0..).map(|(&totals, number)| worker(number, totals)).collect();
    let sample = Sample { wall_ns: 1000, cpu_ns: 600, wait_ns: 300, steal_ns: 100, ..Sample::default() };
    RankStatus {
        rank,
        host: "node-1".into(),
        workers,
        chunks: 64,
        waiting_bytes: 2048,
        waiting_bytes_max: 4096,
        messages,
        sample: Some(sample),
        ..RankStatus::default()
    }
}

/// Status of a run of two ranks. The second rank has two workers.
fn status(elapsed_ms: u64, ranks: Vec<RankStatus>) -> Status {
    let mut sync = SyncReport::default();
    (sync.sync, sync.at_ns, sync.moved) = (7, 4_000_000_000, 33);
    (sync.imbalance_before, sync.imbalance_predicted) = (1.75, 1.0625);
    (sync.collect_ns, sync.decide_ns, sync.migrate_ns) = (0, 1_000_000, 2_500_000);
    let kind = |name: &str, cpu_ns| KindStatus { name: name.into(), cpu_ns, calls: 5, longest_ns: 4_000 };
    Status {
        run_id: "1-2".into(),
        program: "stencil2d".into(),
        lb: "refine".into(),
        elapsed_ns: elapsed_ms * 1_000_000,
        ranks_total: 2,
        ranks,
        kinds: vec![kind("Halo", 750), kind("start", 250)],
        syncs: vec![sync],
        syncs_total: 8,
        moved_total: 41,
        ..Status::default()
    }
}

fn before() -> Status {
    let second = [([300, 10, 0, 690], 1000), ([0, 0, 0, 1000], 1000)];
    status(1000, vec![rank(0, 1000, &[([900, 50, 0, 50], 1000)]), rank(1, 0, &second)])
}

/// 500 ms later. Rank 0: 60 % chunks, 10 % runtime, 20 % lost, 10 % idle. Workers of rank 1: 20 % and 60 % chunks.
fn now() -> Status {
    let second = [([400, 10, 0, 1090], 1500), ([300, 0, 0, 1200], 1500)];
    status(1500, vec![rank(0, 1500, &[([1200, 100, 100, 100], 1500)]), rank(1, 10, &second)])
}

fn watching(answers: impl IntoIterator<Item = Status>) -> Watch {
    let mut watch = Watch::new(["localhost:9977".to_owned()].into_iter());
    answers.into_iter().for_each(|answer| watch.update(0, Ok(answer)));
    watch
}

fn drawn(watch: &Watch, view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| _ = screen::draw(frame, watch, view)).unwrap();
    let cells = terminal.backend().buffer().content();
    cells.chunks(width.into()).map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect()).collect()
}

fn close(parts: Parts, expected: [f64; 4]) {
    let parts = [parts.chunks, parts.runtime, parts.lost, parts.idle];
    assert!(parts.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{parts:?} is not {expected:?}");
}

#[test]
fn figures_are_of_the_time_between_two_answers() {
    let picture = Dashboard::new(&[(Some(&before()), &now())]);
    close(picture.ranks[0].parts, [0.6, 0.1, 0.2, 0.1]);
    close(picture.ranks[1].workers[0].1, [0.2, 0.0, 0.0, 0.8]);
    close(picture.ranks[1].workers[1].1, [0.6, 0.0, 0.0, 0.4]);
    close(picture.ranks[1].parts, [0.4, 0.0, 0.0, 0.6]);
    let messages: Vec<f64> = picture.ranks.iter().map(|rank| rank.messages_per_s).collect();
    assert_eq!(messages, [1000.0, 20.0]);
    assert_eq!((picture.ranks[0].vcpu_share, picture.ranks[0].steal), (Some(0.6), Some(0.1)));
    assert_eq!((picture.ranks[1].waiting_bytes, picture.ranks[1].waiting_bytes_max), (2048, 4096));
    assert_eq!(picture.imbalance, Some(1.75), "that of the last sync");
    let without_syncs = |status: Status| Status { syncs: Vec::new(), ..status };
    let picture_before = Dashboard::new(&[(Some(&without_syncs(before())), &without_syncs(now()))]);
    // Ranks 0 and 1 are in chunks or lost for 0.8 and 0.4 of the time.
    assert!((picture_before.imbalance.unwrap() - 0.8 / 0.6).abs() < 1e-9);
    assert_eq!((picture.kinds[0].name.as_str(), picture.kinds[0].share), ("Halo", 0.75));
    assert_eq!(picture.syncs[0].cost_ns, 3_500_000);
}

#[test]
fn without_an_answer_before_figures_are_of_the_whole_run() {
    let picture = Dashboard::new(&[(None, &before())]);
    close(picture.ranks[0].parts, [0.9, 0.05, 0.0, 0.05]);
    assert!((picture.ranks[0].messages_per_s - 1000.0).abs() < 1e-9);
}

#[test]
fn parts_that_are_more_than_the_whole_are_scaled_to_it() {
    let more = status(1000, vec![rank(0, 0, &[([1500, 0, 500, 0], 1000)])]);
    close(Dashboard::new(&[(None, &more)]).ranks[0].parts, [0.75, 0.0, 0.25, 0.0]);
}

#[test]
fn ranks_of_several_programs_are_one_picture_and_kinds_of_one_name_one_row() {
    let (mut first, mut second) = (now(), now());
    first.ranks.truncate(1);
    second.ranks.remove(0);
    (second.syncs, second.syncs_total) = (Vec::new(), 0);
    let picture = Dashboard::new(&[(None, &second), (None, &first)]);
    assert_eq!(picture.ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((picture.kinds.len(), picture.kinds[0].cpu_ns, picture.kinds[0].calls), (2, 1500, 10));
    assert_eq!((picture.syncs.len(), picture.syncs_total), (1, 8));
}

#[test]
fn of_a_pool_it_shows_the_policy_and_how_far_it_is() {
    let mut pool = now();
    (pool.shape, pool.lb, pool.iterations_total) = (Shape::Pools, "leases".into(), Some(4000));
    (pool.ranks[0].iterations, pool.ranks[1].iterations) = (700, 300);
    (pool.syncs, pool.syncs_total, pool.moved_total) = (Vec::new(), 0, 0);
    let said = "leases  2 ranks  1000 of 4000 iterations (25.0 %)  run 1-2";
    let mut written = Vec::new();
    text::write(&Dashboard::new(&[(None, &pool)]), &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert!(
        written.contains(said) && written.contains("ranges/s") && !written.contains("chunks"),
        "{written}"
    );
    let lines = drawn(&watching([pool]), &View::default(), 120, 12);
    assert!(lines[1].starts_with(said), "{lines:?}");
    assert!(lines[2].contains("iterations") && !lines[2].contains("chunks"), "{lines:?}");
    assert!(lines[3].contains("    700"), "{lines:?}");
}

#[test]
fn of_a_program_in_supersteps_it_shows_steps_and_units() {
    let steps = |status: Status, steps| {
        let units = vec![30, 12, 8, 50];
        let so_far = StepsSoFar { steps, divisions: 2, moved: 31, units, copies: 1, ..StepsSoFar::default() };
        let (lb, syncs) = ("des".to_owned(), Vec::new());
        Status { shape: Shape::Supersteps, lb, syncs, syncs_total: 0, steps: Some(so_far), ..status }
    };
    let (before, now) = (steps(before(), 100), steps(now(), 350));
    let picture = Dashboard::new(&[(Some(&before), &now)]);
    let said = "des  2 ranks  350 steps  500 steps/s  2 divisions  31 units moved  run 1-2";
    let mut written = Vec::new();
    text::write(&picture, &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains(said) && written.contains("units") && !written.contains("chunks"), "{written}");
    assert_eq!(picture.ranks.iter().map(|rank| rank.units).collect::<Vec<_>>(), [Some(42), Some(58)]);
    let lines = drawn(&watching([before, now.clone()]), &View::default(), 120, 12);
    assert!(lines[1].starts_with(said) && lines[3].contains("     42"), "{lines:?}");
    // Without the first rank, the steps are unknown.
    let picture = Dashboard::new(&[(None, &Status { steps: None, ..now })]);
    assert_eq!((picture.steps, picture.ranks[0].units), (None, None));
}

#[test]
fn the_same_answer_again_changes_nothing() {
    let watch = watching([before(), now(), now()]);
    assert_eq!(*watch.picture(), *watching([before(), now()]).picture());
    assert_eq!(watch.imbalances.len(), 1);
}

#[test]
fn another_run_on_the_same_port_begins_anew() {
    let next = Status { run_id: "3-4".into(), elapsed_ns: 2_000_000_000, ..now() };
    let watch = watching([before(), now(), next.clone()]);
    assert_eq!((watch.picture().run_id.as_str(), watch.imbalances.len()), ("3-4", 1));
    assert_eq!(*watch.picture(), Dashboard::new(&[(None, &next)]));
}

#[test]
fn a_program_that_falls_silent_leaves_its_last_picture_and_the_reason() {
    let mut watch = watching([before(), now()]);
    let heard = watch.picture().clone();
    assert!(!watch.is_over());
    watch.update(0, Err("no program listens".into()));
    assert!(watch.is_over());
    assert_eq!(watch.picture().problems, ["localhost:9977: no program listens"]);
    assert_eq!(watch.picture().ranks, heard.ranks);
    let lines = drawn(&watch, &View::default(), 100, 30);
    assert!(lines[0].contains("does not answer, last answer after 1.5 s"), "{}", lines[0]);
    assert!(lines[2].contains("! localhost:9977: no program listens"));
    watch.update(0, Ok(Status { elapsed_ns: 2_000_000_000, ..now() }));
    assert!(!watch.is_over() && watch.picture().problems.is_empty(), "it is back");
}

#[test]
fn a_run_that_has_said_goodbye_is_not_missed() {
    let mut watch = watching([Status { finished: true, ..now() }]);
    watch.update(0, Err("no program listens".into()));
    assert_eq!(watch.picture().problems, [""; 0]);
    assert!(drawn(&watch, &View::default(), 80, 24)[0].contains("stencil2d  ended after 1.5 s"));
    let watch = watching([Status { failed: Some("rank 1 is gone".into()), ..now() }]);
    assert!(drawn(&watch, &View::default(), 80, 24)[0].contains("failed after 1.5 s: rank 1 is gone"));
}

#[test]
fn the_screen_shows_the_figures() {
    let lines = drawn(&watching([before(), now()]), &View::default(), 100, 30);
    assert!(lines[0].starts_with("stencil2d  running for 1.5 s"), "{}", lines[0]);
    assert!(
        lines[1].contains("refine  2 ranks  imbalance 1.75 (sync 7)  8 syncs  41 chunks moved  run 1-2"),
        "{}",
        lines[1]
    );
    let of_rank = |label: &str| lines.iter().find(|line| line.starts_with(label)).unwrap();
    let words: Vec<&str> = of_rank("   0 ").split_whitespace().collect();
    assert_eq!(words[2..], ["70%", "20%", "60%", "10%", "64", "1.00k", "10%", "2.05k"], "{words:?}");
    // Beside a label of 4 cells and columns of 50 are 45 cells of a bar: 60, 20, 10 and 10 percent of them.
    let cells = |cell| words[1].chars().filter(|&c| c == cell).count();
    assert_eq!(['█', '▒', '▓', '·'].map(cells), [27, 9, 5, 4], "{}", words[1]);
    assert!(of_rank(" 1.1 ").contains(" 60%"));
    assert!(lines.iter().any(|line| line.contains("1.75 now, 1.75 at most in 1 syncs")));
    let sync: Vec<&str> = of_rank("     7 ").split_whitespace().collect();
    assert_eq!(sync[..10], ["7", "4.0", "s", "1.75", "1.06", "33", "3.50", "ms", "0", "B"]);
    // To the right of the sync, in the same row.
    assert_eq!(sync[10..], ["75%", "5", "4.00", "us", "Halo"]);
}

#[test]
fn few_ranks_leave_their_room_to_syncs_and_imbalance() {
    let mut many = now();
    let sync = |number: u64| {
        let mut sync = many.syncs[0].clone();
        (sync.sync, sync.imbalance_before) = (number, 1.0 + number as f64 / 20.0);
        sync
    };
    many.syncs = (0..20).map(sync).collect();
    let watch = watching([before(), many]);
    let lines = drawn(&watch, &View::default(), 100, 50);
    for number in 0..20 {
        assert!(lines.iter().any(|line| line.starts_with(&format!("{number:>6} "))), "sync {number}");
    }
    let blank = lines.iter().filter(|line| line.trim().is_empty()).count();
    assert!(blank <= 12, "{blank} of 50 lines are blank");
    assert!(lines.iter().any(|line| line.contains("1.95 now, 1.95 at most in 13 syncs")), "{lines:#?}");
}

#[test]
fn a_terminal_of_any_size_is_large_enough() {
    let mut silent = watching([before(), now()]);
    silent.update(0, Err("no program listens".into()));
    let heights = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 20, 24, 30, 50];
    for watch in [silent, watching([Status::default()]), watching([before(), now()])] {
        for (width, height) in (1..130).step_by(7).flat_map(|width| heights.map(|height| (width, height))) {
            for help in [false, true] {
                drawn(&watch, &View { help, scroll: 9, ..View::default() }, width, height);
            }
        }
    }
    let lines = drawn(&watching([before(), now()]), &View::default(), 40, 10);
    assert!(lines.iter().any(|line| line.starts_with("   0 █") && line.contains("70%")), "{lines:#?}");
    drawn(&watching([before(), now()]), &View::default(), 20, 5);
}

#[test]
fn figures_that_cannot_be_true_are_shown_all_the_same() {
    let most = u64::MAX;
    let mut wild = now();
    wild.elapsed_ns = most;
    for rank in &mut wild.ranks {
        (rank.chunks, rank.messages) = (most, most);
        rank.sample =
            Some(Sample { steal_ns: most, wall_ns: 1, cpu_ns: most, speed: f64::MAX, ..Sample::default() });
        for worker in &mut rank.workers {
            *worker = WorkerStatus { cpu_ns: most, idle_ns: most, lost_ns: most, wall_ns: 0, ..*worker };
        }
    }
    wild.kinds[0] = KindStatus { name: "x".repeat(100_000), cpu_ns: most, calls: most, longest_ns: most };
    wild.syncs[0].imbalance_before = f64::MAX;
    (wild.syncs[0].at_ns, wild.syncs[0].decide_ns, wild.syncs[0].migrate_ns) = (most, most, most);
    wild.ranks.push(wild.ranks[0].clone());
    let watch = watching([before(), wild.clone(), Status { elapsed_ns: 5, ..now() }, wild]);
    assert!(watch.picture().ranks.iter().all(|rank| rank.parts.busy() <= 1.0 + 1e-9));
    drawn(&watch, &View::default(), 100, 30);
    text::write(watch.picture(), &mut Vec::new()).unwrap();
}

#[test]
fn keys_sort_scroll_pause_and_leave() {
    let mut view = View::default();
    let press = |view: &mut View, code| view.press(KeyEvent::new(code, KeyModifiers::NONE), 7);
    for (code, scroll) in [
        (KeyCode::Down, 1),
        (KeyCode::PageDown, 7),
        (KeyCode::Down, 7),
        (KeyCode::Up, 6),
        (KeyCode::PageUp, 0),
        (KeyCode::Up, 0),
    ] {
        press(&mut view, code);
        assert_eq!(view.scroll, scroll, "{code:?}");
    }
    let picture = watching([before(), now()]).picture().clone();
    let order = |view: &View| view.sort.ranks(&picture).iter().map(|rank| rank.rank).collect::<Vec<_>>();
    assert_eq!((order(&view), order(&View { sort: Sort::Busy, ..view })), (vec![0, 1], vec![0, 1]));
    let mut swapped = picture.clone();
    swapped.ranks[1].parts.runtime = 0.9;
    press(&mut view, KeyCode::Char('s'));
    assert_eq!((view.sort, view.sort.ranks(&swapped)[0].rank), (Sort::Busy, 1));
    press(&mut view, KeyCode::Char('?'));
    press(&mut view, KeyCode::Esc);
    assert!(!view.help && !view.quit, "the first Esc closes the help");
    press(&mut view, KeyCode::Char('p'));
    assert!(view.paused);
    view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), 0);
    assert!(view.quit);
}

/// Starts a server that sends `answer` a number of times, and returns its address.
fn serving(answer: Vec<u8>, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(times) {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            assert!(head.starts_with(b"GET /status HTTP/1.1\r\n"));
            // The client may have closed the connection.
            let _ = stream.write_all(&answer);
        }
    });
    address
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

#[test]
fn once_prints_the_run_so_far_and_json_the_same_figures() {
    let address = serving(ok(&serde_json::to_string(&now()).unwrap()), 2);
    let text = caribou(&["top", &address, "--once"]).unwrap();
    let of_rank = text.lines().find(|line| line.starts_with("   0 ")).unwrap();
    let words: Vec<&str> = of_rank.split_whitespace().collect();
    // 1200, 100, 100 and 100 of 1500 ms; 1500 messages in 1.5 s.
    let expected =
        ["0", "0", "80.0", "%", "6.7", "%", "6.7", "%", "6.7", "%", "60.0", "%", "10.0", "%", "64", "1000"];
    assert_eq!(words[..16], expected, "{text}");
    let picture = json(&["top", &address]);
    assert_eq!(picture["schema"], "caribou.top/1");
    assert_eq!(picture["ranks"][0]["parts"]["chunks"], 0.8);
    assert_eq!(picture["syncs"][0]["moved"], 33);
}

#[test]
fn nobody_and_somebody_else_at_the_address_are_one_line_and_exit_code_2() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut cut_off = ok(&serde_json::to_string(&now()).unwrap());
    cut_off.truncate(cut_off.len() / 2);
    let mut no_text = ok("\"?\"");
    *no_text.iter_mut().rfind(|byte| **byte == b'?').unwrap() = 0xff;
    let other_schema = Status { schema: "caribou.status/9\n".into(), ..Status::default() };
    for (address, expected) in [
        (free, "no program listens there: has it ended, was it started with CARIBOU_MONITOR?"),
        (serving(ok("<html>\n</html>"), 1), "this is not a Caribou program: "),
        (serving(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(), 1), "it has no /status"),
        (serving(b"\x00\x01 no HTTP".to_vec(), 1), "it does not speak HTTP, expected "),
        (serving(Vec::new(), 1), "program's CARIBOU_MONITOR, or has the program just ended?"),
        (serving(cut_off, 1), "it closed the connection before it had answered: is this the address of a "),
        (
            serving(ok(&" ".repeat((4 << 20) + 1)), 1),
            "not a Caribou program: its /status has more than 4 MiB",
        ),
        (serving(no_text, 1), "this is not a Caribou program: its /status is not text"),
        (serving(ok("{}"), 1), "its answer has no `schema`, expected \"caribou.status/1\""),
        (
            serving(ok(&serde_json::to_string(&other_schema).unwrap()), 1),
            "its schema is \"caribou.status/9 \", expected \"caribou.status/1\"",
        ),
        (
            serving(ok(r#"{"schema": "caribou.status/2", "ranks": 3}"#), 1),
            "its schema is \"caribou.status/2\", expected \"caribou.status/1\"",
        ),
        (
            serving(ok(r#"{"schema": "caribou.status/1", "ranks": 3}"#), 1),
            "its /status is not \"caribou.status/1\": ",
        ),
    ] {
        let (out, error) = caribou_says(&["top", &address, "--once"]);
        let error = error.expect("refused");
        let line = error.to_string();
        assert!(line.starts_with(&address) && line.contains(expected), "{line}");
        assert_eq!((out.as_str(), line.lines().count(), error.exit_code()), ("", 1, 2), "{line:?}");
    }
    for (arguments, expected) in [
        (["top", "1.2.3"], "\"1.2.3\" is not an address, expected HOST:PORT, PORT or HOST:PORT-PORT"),
        (["top", "--interval=0"], "expected seconds, 0.1 to 3600"),
    ] {
        assert!(caribou(&arguments).unwrap_err().contains(expected), "{arguments:?}");
    }
}

#[test]
fn a_run_that_was_shrunk_says_so() {
    let shrunk = Status { ranks_active: Some(1), ..now() };
    let address = serving(ok(&serde_json::to_string(&shrunk).unwrap()), 1);
    let text = caribou(&["top", "--once", &address]).unwrap();
    assert!(text.contains("2 ranks, 1 active"), "{text}");
}
