//! Tests of the clients of metadata services, against a server on this machine with valid and invalid answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use super::*;

const ACTION: &str = r#"{"action": "terminate", "time": "2026-11-29T10:00:00Z"}"#;
const EVENTS: &str = r#"{"DocumentIncarnation": 1, "Events": [
    {"EventId": "1", "EventType": "Freeze", "Resources": ["own"], "NotBefore": "Sun, 29 Nov 2026 09:00:00 GMT"},
    {"EventId": "2", "EventType": "Preempt", "Resources": ["other"], "NotBefore": "Sun, 29 Nov 2026 09:00:00 GMT"},
    {"EventId": "3", "EventType": "Preempt", "Resources": ["other", "Own"], "NotBefore": "Sun, 29 Nov 2026 10:00:00 GMT"}]}"#;

/// What the server does on a connection.
enum Reply {
    Whole(Vec<u8>),
    /// One byte every 50 ms.
    Slow(Vec<u8>),
    /// No byte, until the client closes the connection.
    Never,
}

/// A server on this machine, which stops when dropped.
struct Server {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    /// The heads of the requests.
    requests: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(mut reply: impl FnMut(&str) -> Reply + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, ends) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (sender, requests) = channel();
        let stop = ends.clone();
        let serve = move || {
            for stream in listener.incoming().take_while(|_| !stop.load(Ordering::Acquire)) {
                let mut stream = stream.unwrap();
                let head = head(&mut stream);
                send(&mut stream, reply(&head));
                let _ = sender.send(head);
            }
        };
        let thread = Some(thread::spawn(serve));
        Server { address, ends, requests, thread }
    }

    fn http(&self) -> Http {
        Http::new(Some(self.address), Arc::default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// The head of a request, as far as it arrives in time.
fn head(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|bytes| bytes > 0) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn send(stream: &mut TcpStream, reply: Reply) {
    match reply {
        // The client may have closed the connection.
        Reply::Whole(bytes) => drop(stream.write_all(&bytes)),
        Reply::Slow(bytes) => {
            for byte in bytes {
                thread::sleep(Duration::from_millis(50));
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
        }
        Reply::Never => drop(stream.read(&mut [0])),
    }
}

/// An answer that all three services could give.
fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\nMetadata-Flavor: Google\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn whole(status: u16, body: &str) -> Reply {
    Reply::Whole(answer(status, body))
}

/// The answer to the first successful poll: a busy machine may take longer than the time limit of a request.
fn polled(service: &mut dyn Service, http: &Http) -> Option<Event> {
    let mut answers = (0..50).map(|_| service.poll(http));
    answers.find_map(Result::ok).expect("the server answers")
}

/// The result of the first poll, and of a later poll, when the machine is taken back.
fn taken_back_later(cloud: Cloud, reply: fn(request: &str, later: bool) -> Reply) -> (Option<Event>, String) {
    let later = Arc::new(AtomicBool::new(false));
    let is_later = later.clone();
    let server = Server::start(move |head| reply(head, is_later.load(Ordering::Acquire)));
    let (mut service, http) = (service(cloud), server.http());
    let first = polled(&mut *service, &http);
    later.store(true, Ordering::Release);
    match polled(&mut *service, &http) {
        Some(Event::Notice(text)) => (first, text),
        other => panic!("{other:?}"),
    }
}

fn like_aws(head: &str, later: bool) -> Reply {
    let token = "\r\nx-aws-ec2-metadata-token: secret\r\n";
    match head.split_once(" HTTP").map_or("", |(line, _)| line) {
        "PUT /latest/api/token" if head.contains("x-aws-ec2-metadata-token-ttl-seconds: 21600\r\n") => {
            whole(200, "secret")
        }
        "GET /latest/meta-data/spot/instance-action" if head.contains(token) && later => whole(200, ACTION),
        "GET /latest/meta-data/spot/instance-action"
        | "GET /latest/meta-data/events/recommendations/rebalance"
            if head.contains(token) =>
        {
            whole(404, "<html>Not Found</html>")
        }
        _ => whole(400, head),
    }
}

fn like_gcp(head: &str, later: bool) -> Reply {
    if !head.starts_with("GET /computeMetadata/v1/instance/preempted HTTP")
        || !head.contains("\r\nmetadata-flavor: Google\r\n")
    {
        return whole(403, head);
    }
    whole(200, if later { "TRUE\n" } else { "FALSE\n" })
}

fn like_azure(head: &str, later: bool) -> Reply {
    match head.split_once(" HTTP").map_or("", |(line, _)| line) {
        _ if !head.contains("\r\nmetadata: true\r\n") => whole(400, head),
        "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text" => whole(200, "own"),
        "GET /metadata/scheduledevents?api-version=2020-07-01" if later => whole(200, EVENTS),
        "GET /metadata/scheduledevents?api-version=2020-07-01" => {
            whole(200, &EVENTS.replace(r#", "Own""#, ""))
        }
        _ => whole(404, head),
    }
}

#[test]
fn each_cloud_gives_notice_when_it_takes_the_machine_back() {
    for (cloud, reply, expected) in [
        (
            Cloud::Aws,
            like_aws as fn(&str, bool) -> Reply,
            "AWS takes this instance back at 2026-11-29T10:00:00Z",
        ),
        (Cloud::Gcp, like_gcp, "Google Cloud takes this instance back"),
        (
            Cloud::Azure,
            like_azure,
            "Azure takes this instance back (Preempt) at Sun, 29 Nov 2026 10:00:00 GMT",
        ),
    ] {
        assert_eq!(taken_back_later(cloud, reply), (None, expected.to_owned()));
    }
}

#[test]
fn a_token_that_has_aged_is_renewed() {
    let tokens = Arc::new(Mutex::new(0));
    let valid = tokens.clone();
    let server = Server::start(move |head| {
        let mut tokens = valid.lock().unwrap();
        if head.starts_with("PUT") {
            *tokens += 1;
            return whole(200, &format!("token-{tokens}"));
        }
        let is_valid = head.contains(&format!("x-aws-ec2-metadata-token: token-{tokens}\r\n"));
        if is_valid { whole(404, "") } else { whole(401, "") }
    });
    let (mut service, http) = (service(Cloud::Aws), server.http());
    assert_eq!(polled(&mut *service, &http), None);
    *tokens.lock().unwrap() += 1;
    let before = *tokens.lock().unwrap();
    assert_eq!(polled(&mut *service, &http), None);
    assert_eq!(*tokens.lock().unwrap(), before + 1);
}

#[test]
fn a_machine_that_may_be_taken_back_is_told_of_once() {
    let server = Server::start(|head| match head {
        _ if head.starts_with("PUT") => whole(200, "secret"),
        _ if head.contains("rebalance") => whole(200, r#"{"noticeTime": "2026-11-29T09:00:00Z"}"#),
        _ => whole(404, ""),
    });
    let (mut service, http) = (service(Cloud::Aws), server.http());
    assert!(matches!(polled(&mut *service, &http), Some(Event::Advice(_))));
    assert_eq!(polled(&mut *service, &http), None);
}

#[test]
fn what_no_service_would_say_is_never_a_notice() {
    let notice = |body: &str| answer(200, body);
    let long = "x".repeat(1 << 20);
    let answers = [
        Vec::new(),
        b"\0\xff\x1b[2J".to_vec(),
        b"HTTP/1.1 200 OK\r\n".to_vec(),
        format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\nTRUE").into_bytes(),
        // Without Google's header, so the answer is from another server.
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nTRUE".to_vec(),
        b"HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 9\r\n\r\nTRUE".to_vec(),
        b"HTTP/1.1 302 OK\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".to_vec(),
        answer(500, "TRUE"),
        notice(""),
        notice("<html>TRUE</html>"),
        notice(&long),
        notice(&format!("TRUE{}", " ".repeat(1 << 20))),
        notice("\u{1f980}"),
        notice(&"[".repeat(60_000)),
        notice(&ACTION[..30]),
        notice(r#"{"action": "dance", "time": "2026-11-29T10:00:00Z"}"#),
        notice(r#"{"action": "stop", "time": "\u001b[2J"}"#),
        notice(&EVENTS[..EVENTS.len() - 1]),
        notice(r#"{"Events": [{"EventType": "Preempt", "Resources": "own"}]}"#),
        notice(
            r#"{"Events": [{"EventType": "Preempt", "Resources": ["owner"]}, {"EventType": "Freeze", "Resources": ["own"]}]}"#,
        ),
    ];
    for bytes in answers {
        for cloud in Cloud::ALL {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(99)]).into_owned();
            assert_no_notice(cloud, &shown, bytes.clone(), Reply::Whole);
        }
    }
}

#[test]
fn a_service_that_takes_too_long_gives_no_notice() {
    let slow = [(Cloud::Aws, ACTION), (Cloud::Gcp, "TRUE"), (Cloud::Azure, EVENTS)];
    thread::scope(|scope| {
        for (cloud, body) in slow {
            scope.spawn(move || assert_no_notice(cloud, "slow", answer(200, body), Reply::Slow));
            scope.spawn(move || assert_no_notice(cloud, "silent", Vec::new(), |_| Reply::Never));
        }
    });
}

/// Asserts that there is no notice if all answers are these bytes, or only those answers that could be a notice.
fn assert_no_notice(cloud: Cloud, what: &str, bytes: Vec<u8>, reply: fn(Vec<u8>) -> Reply) {
    let reply_to = move |head: &str, is_all: bool| match head {
        _ if head.starts_with("PUT") && !is_all => whole(200, "secret"),
        _ if head.contains("compute/name") && !is_all => whole(200, "own"),
        _ => reply(bytes.clone()),
    };
    for is_all in [true, false] {
        let reply_to = reply_to.clone();
        let server = Server::start(move |head| reply_to(head, is_all));
        let (mut service, http) = (service(cloud), server.http());
        let answers = [service.poll(&http), service.poll(&http)];
        for answer in answers {
            assert!(!matches!(answer, Ok(Some(Event::Notice(_)))), "{cloud:?}: {what}: {answer:?}");
            if let Err(why) = answer {
                assert!(why.len() < 300 && !why.contains(char::is_control), "{cloud:?}: {why:?}");
            }
        }
    }
}

/// A watcher of this server, its notification, and the receiver of its wake-ups.
fn watcher(server: &Server, spot: Spot) -> (Watcher, Arc<Notification>, Receiver<()>) {
    let (sender, woken) = channel();
    let wake = Box::new(move || {
        let _ = sender.send(());
    });
    let notification = Arc::new(Notification::new(Rank(3), wake));
    let watcher = Watcher::start(&spot.at(server.address), notification.clone()).unwrap();
    (watcher.expect("there are clouds"), notification, woken)
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_watcher_gives_notice_and_names_the_rank() {
    let mut polls = 0;
    let server = Server::start(move |head| {
        polls += 1;
        like_gcp(head, polls > 1)
    });
    let (_watcher, notification, woken) = watcher(&server, Spot::of(Cloud::Gcp));
    woken.recv_timeout(PATIENCE).unwrap();
    assert_eq!(notification.take().as_deref(), Some("Google Cloud takes this instance back (rank 3)"));
}

#[test]
fn the_first_service_that_answers_is_watched() {
    let server = Server::start(|head| like_azure(head, true));
    let (_watcher, notification, woken) = watcher(&server, Spot::auto());
    woken.recv_timeout(PATIENCE).unwrap();
    let by = notification.take().expect("it was given");
    assert!(by.starts_with("Azure takes") && by.ends_with("(rank 3)"), "{by}");
    let nobody = Server::start(|_| whole(404, ""));
    assert!(found(&Spot::auto(), &nobody.http()).is_none());
    assert!(found(&Spot::of(Cloud::Aws), &nobody.http()).is_some(), "it is asked again");
}

#[test]
fn a_watcher_ends_with_the_run_and_asks_no_more() {
    let server = Server::start(|head| like_gcp(head, false));
    let (watcher, notification, woken) = watcher(&server, Spot::of(Cloud::Gcp));
    server.requests.recv_timeout(PATIENCE).unwrap();
    drop(watcher);
    assert_eq!(Arc::strong_count(&notification), 1, "the thread is over");
    assert!(notification.take().is_none() && woken.try_recv().is_err());
    let http = server.http();
    http.stop.set();
    assert!(service(Cloud::Gcp).poll(&http).is_err_and(|why| why == "the run ends"));
    assert!(Watcher::start(&Spot::none(), notification).unwrap().is_none());
}

#[test]
fn a_service_that_is_lost_is_told_of_once_and_so_is_its_return() {
    let service = service(Cloud::Gcp);
    let mut contact = Contact::default();
    let mut lines = |answers: &[bool]| -> String {
        let answers = answers.iter().map(|&answers| if answers { Ok(None) } else { Err("why".to_owned()) });
        let line = |answer| match contact.after(&answer, &*service, Rank(3)) {
            None => '-',
            Some(Line::Lost(_)) => 'L',
            Some(Line::Back(_)) => 'B',
        };
        answers.map(line).collect()
    };
    let (yes, no) = (true, false);
    assert_eq!(lines(&[yes, no, no, yes, no, no, no, no]), "------L-");
    assert_eq!(lines(&[yes, yes, no, no, no, no, yes]), "B------");
    contact = Contact::default();
    let first = contact.after(&Err("why".into()), &*service, Rank(3));
    let Some(Line::Lost(line)) = first else { panic!("{first:?}") };
    assert!(line.contains("Google Cloud") && line.contains("rank 3") && line.ends_with(": why"), "{line}");
}
