//! Tests of the monitor through sockets, as its clients use it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::threads::clock::monotonic_ns;
use crate::trace::{Sample, StepsSoFar, SyncReport};

fn made_up() -> Status {
    let worker = |worker| WorkerStatus {
        worker,
        cpu_ns: 1_500_000_000 + u64::from(worker),
        runtime_ns: 20_000_000,
        idle_ns: 300_000_000,
        lost_ns: 180_000_000,
        wall_ns: 2_000_000_000,
        handlers: 12_345,
    };
    let rank = |rank| RankStatus {
        rank,
        host: "host \"a\"\\b\n".into(),
        workers: vec![worker(0), worker(1)],
        chunks: 64,
        waiting_bytes: 4096,
        waiting_bytes_max: 8192,
        iterations: 30,
        messages: 777,
        sample: Some(Sample { wall_ns: 1000, cpu_ns: 600, wait_ns: 300, steal_ns: 100, ..Sample::default() }),
        running: vec![RunningStatus { what: "Tile[0, 1] of array 0".into(), ..RunningStatus::default() }],
    };
    let sync =
        |sync| SyncReport { sync, imbalance_before: 1.5, capacity: vec![1.0, 0.5], ..SyncReport::default() };
    let kind = |name: &str, cpu_ns| KindStatus { name: name.into(), cpu_ns, calls: 7, longest_ns: 5 };
    Status {
        run_id: "1-2".into(),
        program: "stencil2d".into(),
        lb: "refine,tolerance=0.1".into(),
        elapsed_ns: 2_000_000_000,
        ranks_total: 2,
        ranks: vec![rank(0), rank(1)],
        kinds: vec![kind("Halo", 900), kind("start", 100)],
        syncs: vec![sync(4), sync(5)],
        syncs_total: 6,
        moved_total: 9,
        ..Status::default()
    }
}

fn started(status: Status) -> Monitor {
    serving(Arc::new(move || status.clone()))
}

/// A monitor of a run with four ranks that refuses to be resized.
fn serving(collect: Collect) -> Monitor {
    let refuse = Arc::new(|ranks| Err(format!("not {ranks} of 4")));
    Monitor::start("127.0.0.1:0", Rank(0), collect, refuse).expect("a free port")
}

/// Sends a request and reads until the server closes. Returns status line, head and body.
fn ask(address: SocketAddr, request: &[u8]) -> (String, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may answer and close before the whole request was sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (head.lines().next().unwrap().into(), head.into(), body.into())
}

fn fetch(address: SocketAddr, path: &str) -> (String, String, String) {
    ask(address, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

/// All samples of a page in the text format of Prometheus, by name and labels. Panics if the format is wrong.
fn prometheus(page: &str) -> BTreeMap<(String, Vec<(String, String)>), f64> {
    let mut samples = BTreeMap::new();
    let (mut family, mut families) = (String::new(), BTreeSet::new());
    assert!(page.ends_with('\n'));
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().to_owned();
            assert!(families.insert(family.clone()), "{family} is in two places");
            let kind =
                lines.next().unwrap().strip_prefix(&format!("# TYPE {family} ")).expect("type after help");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{family} is a {kind}");
            assert!(["counter", "gauge"].contains(&kind));
            continue;
        }
        let (name, labels, value) = sample(line);
        assert_eq!(name, family, "a sample outside of its family");
        assert!(name.starts_with("caribou_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        assert!(samples.insert((name, labels), value).is_none(), "twice: {line}");
    }
    samples
}

/// `name{label="value",...} value`
fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(list) = rest.strip_prefix('{') {
        rest = list;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label");
            let (mut value, mut characters) = (String::new(), after.char_indices());
            let end = loop {
                match characters.next().expect("the label ends") {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match characters.next().expect("an escape ends").1 {
                        'n' => '\n',
                        escaped @ ('"' | '\\') => escaped,
                        other => panic!("no escape: {other}"),
                    }),
                    (_, other) => value.push(other),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &after[end + 1..];
            if let Some(last) = rest.strip_prefix('}') {
                rest = last;
                break;
            }
            rest = rest.strip_prefix(',').expect("a comma between labels");
        }
    }
    (name.to_owned(), labels, rest.strip_prefix(' ').expect("a space").parse().expect("a number"))
}

#[test]
fn the_status_that_arrives_is_the_one_that_was_collected() {
    let monitor = started(made_up());
    let (line, head, body) = fetch(monitor.address(), "/status");
    assert_eq!(line, "HTTP/1.1 200 OK");
    assert!(head.contains("Content-Type: application/json\r\n"), "{head}");
    assert!(!head.to_lowercase().contains("access-control"), "no other site may read it");
    assert_eq!(serde_json::from_str::<Status>(&body).unwrap(), made_up());
}

#[test]
fn prometheus_reads_the_same_figures() {
    let monitor = started(made_up());
    let (line, head, body) = fetch(monitor.address(), "/metrics?x=y");
    assert_eq!(line, "HTTP/1.1 200 OK");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    let samples = prometheus(&body);
    let value = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|&(label, value)| (label.to_owned(), value.to_owned())).collect();
        samples[&(format!("caribou_{name}"), labels)]
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    close(value("chunk_cpu_seconds_total", &[("rank", "1"), ("worker", "1")]), 1.500_000_001);
    close(value("lost_seconds_total", &[("rank", "0"), ("worker", "0")]), 0.18);
    close(value("kind_cpu_seconds_total", &[("kind", "Halo")]), 900e-9);
    let rank = [("rank", "0"), ("host", "host \"a\"\\b\n")];
    close(value("vcpu_share", &rank), 0.6);
    close(value("steal_ratio", &rank), 0.1);
    close(value("messages_total", &rank), 777.0);
    close(value("waiting_bytes", &rank), 4096.0);
    close(value("waiting_bytes_max", &rank), 8192.0);
    close(value("imbalance_ratio", &[]), 1.5);
    close(value("run_failed", &[]), 0.0);
    let run = [("run_id", "1-2"), ("program", "stencil2d"), ("lb", "refine,tolerance=0.1")];
    close(value("run_info", &run), 1.0);
}

#[test]
fn of_a_program_in_supersteps_prometheus_reads_steps_and_units_and_no_syncs() {
    let units = vec![40, 30, 20, 10];
    let steps = StepsSoFar { steps: 1000, last_ns: 2_000_000, units, copies: 1, divisions: 3, moved: 250 };
    let (_, _, body) = fetch(started(Status { steps: Some(steps), ..made_up() }).address(), "/metrics");
    let samples = prometheus(&body);
    let close = |name: &str, labels: &[(&str, &str)], expected: f64| {
        let labels = labels.iter().map(|&(label, value)| (label.to_owned(), value.to_owned())).collect();
        let value = samples[&(format!("caribou_{name}"), labels)];
        assert!((value - expected).abs() < 1e-12, "{name} {value} is not {expected}");
    };
    close("steps_total", &[], 1000.0);
    close("step_seconds", &[], 0.002);
    close("divisions_total", &[], 3.0);
    close("units_moved_total", &[], 250.0);
    close("units", &[("rank", "0"), ("worker", "1")], 30.0);
    close("units", &[("rank", "1"), ("worker", "0")], 20.0);
    assert!(!body.contains("syncs_total"), "{body}");
}

#[test]
fn kinds_of_one_name_are_one_series() {
    let mut status = made_up();
    status.kinds.extend(made_up().kinds);
    let (_, _, body) = fetch(started(status).address(), "/metrics");
    let calls =
        &prometheus(&body)[&("caribou_kind_calls_total".into(), vec![("kind".into(), "Halo".into())])];
    assert!((calls - 14.0).abs() < 1e-9);
}

#[test]
fn a_status_of_a_large_run_is_bounded_and_has_numbers_only() {
    let mut status = made_up();
    let numbers = vec![f64::NAN; 700];
    let sync = |sync| SyncReport {
        sync,
        capacity: numbers.clone(),
        share: numbers.clone(),
        imbalance_before: f64::INFINITY,
        reported: Some(Arc::default()),
        ..SyncReport::default()
    };
    status.syncs = (0..100).map(sync).collect();
    let kind = |n| KindStatus { name: format!("kind {n}"), cpu_ns: n, calls: 1, longest_ns: n };
    status.kinds = (0..1000).map(kind).collect();
    status.failed = Some("é".repeat(100_000));
    let (_, _, body) = fetch(started(status).address(), "/status");
    assert!(body.len() < 100_000, "{}", body.len());
    let status: Status = serde_json::from_str(&body).unwrap();
    assert_eq!(status.syncs.iter().map(|sync| sync.sync).collect::<Vec<_>>(), (80..100).collect::<Vec<_>>());
    let lists: Vec<usize> = status.syncs.iter().rev().map(|sync| sync.capacity.len()).collect();
    assert_eq!((&lists[..3], lists.iter().sum()), (&[700, 700, 0][..], 1400));
    assert!(status.syncs.iter().all(|sync| sync.reported.is_none()), "as long as there are chunks");
    assert_eq!(status.kinds.iter().map(|kind| kind.cpu_ns).sum::<u64>(), 499_500, "none is lost");
    let (first, last) = (&status.kinds[0], &status.kinds[100]);
    assert_eq!((status.kinds.len(), first.cpu_ns), (101, 999));
    assert_eq!((last.name.as_str(), last.calls, last.longest_ns), ("(others)", 900, 899));
}

#[test]
fn what_cannot_be_asked_for_is_refused_with_the_reason() {
    let monitor = started(made_up());
    for (request, expected) in [
        ("GET /etc HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        ("GET //status HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        ("POST /status HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405"),
        ("OPTIONS /status HTTP/1.1\r\n\r\n", "HTTP/1.1 405"),
        ("GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403"),
        ("\x16\x03\x01\r\n\r\n", "HTTP/1.1 400"),
        ("GET / HTTP/1.0\n\n", "HTTP/1.1 200"),
    ] {
        let (line, head, body) = ask(monitor.address(), request.as_bytes());
        assert!(line.starts_with(expected), "{request:?}: {line}");
        assert!(body.ends_with('\n'));
        assert_eq!(line.contains("405"), head.contains("Allow: GET, HEAD"));
    }
}

#[test]
fn head_is_get_without_the_body() {
    let monitor = started(made_up());
    let (line, head, body) = ask(monitor.address(), b"HEAD /status HTTP/1.1\r\n\r\n");
    let length = serde_json::to_string(&made_up()).unwrap().len();
    assert_eq!((line.as_str(), body.as_str()), ("HTTP/1.1 200 OK", ""));
    assert!(head.contains(&format!("Content-Length: {length}\r\n")), "{head}");
}

#[test]
fn a_request_without_end_is_refused_and_not_kept() {
    let monitor = started(made_up());
    let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &vec![b'x'; server::HEAD_MAX]].concat();
    assert!(ask(monitor.address(), &endless).0.starts_with("HTTP/1.1 431"));
    let body =
        [b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".as_slice(), &vec![b'x'; 1 << 20]].concat();
    assert!(ask(monitor.address(), &body).0.starts_with("HTTP/1.1 405"));
}

#[test]
fn silent_clients_keep_nobody_else_from_an_answer() {
    let monitor = started(made_up());
    let mut silent: Vec<TcpStream> = Vec::new();
    for begun in
        ["", "GET", "GET /status HTTP/1.1\r\nHost: local"].iter().cycle().take(server::CONNECTIONS_MAX - 1)
    {
        let mut stream = TcpStream::connect(monitor.address()).unwrap();
        stream.write_all(begun.as_bytes()).unwrap();
        silent.push(stream);
    }
    assert_eq!(fetch(monitor.address(), "/status").0, "HTTP/1.1 200 OK");
    // More connections than the server serves, and than the kernel queues.
    silent.extend((0..300).map(|_| TcpStream::connect(monitor.address()).unwrap()));
    assert_eq!(fetch(monitor.address(), "/status").0, "HTTP/1.1 200 OK");
    let mut nothing = [0];
    assert_eq!(silent[0].read(&mut nothing).unwrap(), 0, "sent away");
}

#[test]
fn many_clients_at_once_are_all_answered_and_figures_are_collected_four_times_a_second() {
    let collected = Arc::new(AtomicU64::new(0));
    let begin_ns = monotonic_ns();
    let count = collected.clone();
    let collect = Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        made_up()
    });
    let monitor = serving(collect);
    assert_eq!(collected.load(Ordering::Relaxed), 0, "nobody has asked");
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (path, address) = (["/status", "/metrics"][client % 2], monitor.address());
            scope.spawn(move || (0..25).for_each(|_| assert_eq!(fetch(address, path).0, "HTTP/1.1 200 OK")));
        }
    });
    let quarters = (monotonic_ns() - begin_ns) / 250_000_000;
    let collected = collected.load(Ordering::Relaxed);
    assert!((1..=quarters + 1).contains(&collected), "{collected} times in {quarters} quarters of a second");
}

#[test]
fn it_stops_though_clients_are_connected() {
    let monitor = started(made_up());
    let address = monitor.address();
    let mut stalled = TcpStream::connect(address).unwrap();
    stalled.write_all(b"GET /sta").unwrap();
    assert_eq!(fetch(address, "/").0, "HTTP/1.1 200 OK", "so the server has met the one before");
    drop(monitor);
    // The server has closed, with or without a reset.
    assert_eq!(stalled.read(&mut [0]).unwrap_or(0), 0);
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}

#[test]
fn an_address_that_cannot_be_used_is_one_line_that_names_the_variable() {
    let monitor = started(made_up());
    let taken = monitor.address().to_string();
    for (address, expected) in [
        ("nonsense", "CARIBOU_MONITOR: \"nonsense\" is not an address, expected HOST:PORT or PORT"),
        (&taken, "another program uses this port"),
        ("192.0.2.1:9", "cannot listen on \"192.0.2.1:9\": "),
        ("no-such-host.invalid:9", "cannot look up the host"),
    ] {
        let error = Monitor::start(address, Rank(0), Arc::new(Status::default), Arc::new(|_| Ok(())))
            .err()
            .expect("refused");
        assert!(matches!(error, Error::Config { .. }));
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

#[test]
fn a_run_is_resized_by_programs_of_this_host_only() {
    let asked = Arc::new(AtomicU64::new(0));
    let resize = {
        let asked = asked.clone();
        Arc::new(move |ranks: u32| match ranks {
            1..=4 => {
                asked.fetch_add(ranks.into(), Ordering::Relaxed);
                Ok(())
            }
            _ => Err(format!("{ranks} active ranks, expected a number from 1 to 4")),
        })
    };
    let collect: Collect = Arc::new(Status::default);
    let monitor = Monitor::start("127.0.0.1:0", Rank(0), collect.clone(), resize.clone()).unwrap();
    let post = |monitor: &Monitor, path: &str, header: &str| {
        let request = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: 0\r\n\r\n");
        let (status, _, body) = ask(monitor.address(), request.as_bytes());
        (status.split(' ').nth(1).unwrap().to_owned(), body)
    };
    let told = |status: &str, body: &str| (status.to_owned(), body.to_owned());
    let ours = "x-caribou: resize\r\n";
    assert_eq!(post(&monitor, "/resize/2", ""), told("403", "expected the header `X-Caribou: resize`\n"));
    assert_eq!(post(&monitor, "/resize/x", ours), told("400", "\"x\" is not a number of ranks\n"));
    let why = "5 active ranks, expected a number from 1 to 4\n";
    assert_eq!(post(&monitor, "/resize/5", ours), told("409", why));
    assert_eq!(fetch(monitor.address(), "/resize/2").0, "HTTP/1.1 404 Not Found");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(post(&monitor, "/resize/2", ours), told("202", ""));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    let open = Monitor::start("0.0.0.0:0", Rank(0), collect, resize).unwrap();
    let why = "a run can be resized on a loopback address only, because there is no password\n";
    assert_eq!(post(&open, "/resize/2", ours), told("403", why));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}
