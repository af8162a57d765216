//! Tests of the failure detector. Ranks are threads of this process; ranks that are killed or stopped are processes.

mod trees;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::connect::{Hello, Secret};
use super::*;
use crate::wire;

/// A time that is long enough for any machine. Only a test that fails waits for all of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The variable in which a test passes its child process a rank.
const ROLE: &str = "LIVENESS_TEST_ROLE";

/// A rank of this process, and the events that it receives.
struct Here {
    liveness: Liveness,
    news: Receiver<PeerEvent>,
}

impl Here {
    fn start(
        tree: Tree,
        rank: u32,
        parent: Option<&ContactInfo>,
        door: Option<Listener>,
    ) -> io::Result<Here> {
        let (on_news, news) = ear();
        Ok(Here { liveness: Liveness::start(tree, Rank(rank), parent, door, on_news)?, news })
    }

    fn host(door: Listener, ranks: u32) -> Here {
        Here::start(Tree::of(ranks), 0, None, Some(door)).unwrap()
    }

    fn join(invitation: &ContactInfo, rank: u32) -> Here {
        Here::try_join(invitation, rank).unwrap()
    }

    fn try_join(invitation: &ContactInfo, rank: u32) -> io::Result<Here> {
        Here::start(Tree::of(rank + 1), rank, Some(invitation), None)
    }

    fn hears(&self, rank: u32, how: LossKind) {
        self.hears_news(PeerEvent::Lost(Lost { rank: Rank(rank), kind: how }));
    }

    fn hears_news(&self, news: PeerEvent) {
        assert_eq!(self.news.recv_timeout(PATIENCE), Ok(news));
    }

    /// Pings repeatedly until `other` receives this event, because a signal takes effect some time after it was sent.
    fn asks_until(&self, other: &Here, news: PeerEvent) {
        let heard = (0..60).find_map(|_| {
            self.liveness.pinger().ping();
            other.news.recv_timeout(PATIENCE / 60).ok()
        });
        assert_eq!(heard, Some(news));
    }

    fn hears_nothing_for(&self, time: Duration) {
        assert_eq!(self.news.recv_timeout(time), Err(RecvTimeoutError::Timeout));
    }

    /// Leaves. Returns the losses that were received and not read.
    fn leave(self) -> Vec<Lost> {
        drop(self.liveness);
        let lost = |news| if let PeerEvent::Lost(lost) = news { Some(lost) } else { None };
        self.news.iter().filter_map(lost).collect()
    }
}

/// A callback, and the events that it was called with.
fn ear() -> (OnPeerEvent, Receiver<PeerEvent>) {
    let (sender, news) = channel();
    (Box::new(move |news| sender.send(news).unwrap_or(())), news)
}

/// A rank that is a process: this test program, started to run a single test.
struct Process {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(role: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "liveness::tests::a_rank_that_is_a_process"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        Process { child, says }
    }

    /// A rank of `tree` below the rank of the contact info. The second result is the contact info of the new rank.
    fn grow(tree: Tree, rank: u32, parent: Option<&ContactInfo>) -> (Process, Option<ContactInfo>) {
        let parent = parent.map(|invitation| hex(&wire::encode(invitation).unwrap())).unwrap_or_default();
        let Tree { ranks, fan_out } = tree;
        let mut process = Process::start(&format!("{rank} {ranks} {fan_out} {parent}"));
        let invitation = process.waits_for("invitation ");
        process.waits_for("joined");
        (process, wire::decode(&bytes(&invitation)).ok())
    }

    fn join(invitation: &ContactInfo, rank: u32) -> Process {
        Process::grow(Tree::of(rank + 1), rank, Some(invitation)).0
    }

    fn host(ranks: u32) -> (Process, ContactInfo) {
        let (process, invitation) = Process::grow(Tree::of(ranks), 0, None);
        (process, invitation.unwrap())
    }

    /// Waits for a line with `word`. Returns the text after it.
    fn waits_for(&mut self, word: &str) -> String {
        let lines = self.says.by_ref().lines().map(Result::unwrap);
        lines.filter_map(|line| Some(line.split_once(word)?.1.to_owned())).next().unwrap()
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

#[test]
#[ignore = "not a test but the process that other tests start"]
#[expect(clippy::disallowed_methods, reason = "the test that starts it speaks to it by this variable")]
fn a_rank_that_is_a_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let [rank, ranks, fan_out, parent] = role.split(' ').collect::<Vec<_>>()[..] else { panic!("{role}") };
    let [rank, ranks, fan_out] = [rank, ranks, fan_out].map(|number| number.parse().unwrap());
    let tree = Tree { ranks, fan_out };
    let (door, invitation) = tree.is_inner(Rank(rank)).then(|| Listener::open().unwrap()).unzip();
    println!("invitation {}", invitation.map_or(String::new(), |said| hex(&wire::encode(&said).unwrap())));
    let parent: Option<ContactInfo> = wire::decode(&bytes(parent)).ok();
    let _rank = Here::start(tree, rank, parent.as_ref(), door).unwrap();
    println!("joined");
    // Ends with the test that started this process.
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn all_ranks_are_told_of_a_killed_one() {
    let (door, invitation) = Listener::open().unwrap();
    let host = Here::host(door, 4);
    let others = [1, 3].map(|rank| Here::join(&invitation, rank));
    Process::join(&invitation, 2).send(Signal::KILL);
    host.hears(2, LossKind::Died);
    others.iter().for_each(|other| other.hears(2, LossKind::Died));
    assert_eq!(host.leave(), [], "no rank is lost twice");
}

#[test]
fn a_stopped_rank_is_not_taken_for_dead() {
    let (door, invitation) = Listener::open().unwrap();
    let host = Here::host(door, 3);
    let other = Here::join(&invitation, 1);
    let process = Process::join(&invitation, 2);
    process.send(Signal::STOP);
    host.hears_nothing_for(Duration::from_secs(2));
    process.send(Signal::CONT);
    other.hears_nothing_for(Duration::from_millis(100));
    process.send(Signal::KILL);
    host.hears(2, LossKind::Died);
    other.hears(2, LossKind::Died);
}

#[test]
fn a_killed_rank_0_is_noticed_by_all_a_stopped_one_is_not_taken_for_dead() {
    let (process, invitation) = Process::host(3);
    let others = [1, 2].map(|rank| Here::join(&invitation, rank));
    process.send(Signal::STOP);
    others[0].hears_nothing_for(Duration::from_secs(2));
    process.send(Signal::KILL);
    for other in others {
        other.hears(0, LossKind::Died);
        assert_eq!(other.leave(), []);
    }
}

#[test]
fn a_stopped_rank_is_named_by_its_neighbours_whichever_rank_pings() {
    let (door, invitation) = Listener::open().unwrap();
    let host = Here::host(door, 4);
    let others = [1, 3].map(|rank| Here::join(&invitation, rank));
    let process = Process::join(&invitation, 2);
    others[0].liveness.pinger().ping();
    host.hears_nothing_for(Duration::from_nanos(PING_TIMEOUT_NS + 500_000_000));
    process.send(Signal::STOP);
    others[0].asks_until(&host, PeerEvent::Silent(Rank(2)));
    process.send(Signal::CONT);
    host.hears_news(PeerEvent::Answers(Rank(2)));
    others.iter().for_each(|other| other.hears_nothing_for(Duration::from_millis(100)));
}

#[test]
fn a_stopped_rank_0_is_named_by_the_others() {
    let (process, invitation) = Process::host(3);
    let others = [1, 2].map(|rank| Here::join(&invitation, rank));
    process.send(Signal::STOP);
    others.iter().for_each(|other| other.asks_until(other, PeerEvent::Silent(Rank(0))));
    process.send(Signal::CONT);
    others.iter().for_each(|other| other.hears_news(PeerEvent::Answers(Rank(0))));
    let gone = others[0].liveness.pinger();
    drop(others);
    // No rank is left to ping.
    gone.ping();
}

#[test]
fn a_goodbye_is_not_a_death() {
    let (door, invitation) = Listener::open().unwrap();
    let host = Here::host(door, 3);
    let [one, two] = [1, 2].map(|rank| Here::join(&invitation, rank));
    assert_eq!(one.leave(), []);
    host.hears(1, LossKind::Left);
    two.hears(1, LossKind::Left);
    assert_eq!(host.leave(), []);
    assert_eq!(two.leave(), [], "a second goodbye is not reported");
}

#[test]
fn a_late_child_is_told_the_lost_rank() {
    let (door, invitation) = Listener::open().unwrap();
    let host = Here::host(door, 4);
    drop(Here::join(&invitation, 3));
    host.hears(3, LossKind::Left);
    drop(Process::join(&invitation, 1));
    host.hears(1, LossKind::Died);
    let late = Here::join(&invitation, 2);
    late.hears(3, LossKind::Left);
    late.hears(1, LossKind::Died);
}

#[test]
fn a_rank_that_never_connects_is_only_not_watched() {
    let (mut door, invitation) = Listener::open().unwrap();
    door.accept_ms = 500;
    let host = Here::host(door, 4);
    let [one, two] = [1, 2].map(|rank| Here::join(&invitation, rank));
    host.hears_nothing_for(Duration::from_secs(1));
    assert!(Here::try_join(&invitation, 3).is_err(), "the listener is closed");
    drop(one);
    host.hears(1, LossKind::Left);
    two.hears(1, LossKind::Left);
}

/// Connects as a foreign program, sends `words` after the password of the parent has come, and expects to be dropped.
fn is_sent_away(invitation: &ContactInfo, words: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", invitation.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
    stream.write_all(words).unwrap();
    // If bytes were not read, the end is a reset.
    if let Err(error) = stream.read_exact(&mut [0]) {
        assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset));
    } else {
        panic!("a foreign program was welcomed");
    }
}

#[test]
fn foreign_programs_are_dropped_and_do_no_harm() {
    let (mut door, invitation) = Listener::open().unwrap();
    door.handshake_ms_max = 200;
    let host = Here::host(door, 3);
    let one = Here::join(&invitation, 1);
    let Secret { child_password: password, parent_password: countersign } = invitation.secret;
    let hello = |password, rank| Hello { child_password: password, rank: Rank(rank) }.encode();
    is_sent_away(&invitation, &hello(password ^ 1, 2));
    is_sent_away(&invitation, &hello(countersign, 2));
    is_sent_away(&invitation, &hello(password, 0));
    is_sent_away(&invitation, &hello(password, 1));
    is_sent_away(&invitation, &hello(password, 3));
    is_sent_away(&invitation, b"GET / HTTP/1.1\r\n\r\n");
    is_sent_away(&invitation, b"");
    let two = Here::join(&invitation, 2);
    for rank in [two, one, host] {
        assert!(rank.leave().iter().all(|lost| lost.kind == LossKind::Left));
    }
}

#[test]
fn many_pending_connections_keep_no_rank_out() {
    let (mut door, invitation) = Listener::open().unwrap();
    door.handshake_ms_max = 3_600_000;
    let _host = Here::host(door, 2);
    let crowd: Vec<_> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", invitation.port)).unwrap()).collect();
    let mut first = &crowd[0];
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let said = first.read_to_end(&mut Vec::new()).expect("the oldest is dropped for the newest");
    assert_eq!(said, 8);
    Here::join(&invitation, 1);
}

#[test]
fn another_program_on_the_port_never_hears_the_password() {
    let (_door, mut invitation) = Listener::open().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    invitation.port = other.local_addr().unwrap().port();
    invitation.addresses = vec![[127, 0, 0, 1].into()];
    let rank = thread::spawn(move || Here::try_join(&invitation, 1).map(|_| ()));
    let mut stream = other.accept().unwrap().0;
    stream.write_all(b"220 ESMTP ready\r\n").unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    assert!(rank.join().unwrap().is_err());
}

#[test]
fn leaving_never_hangs() {
    let (door, invitation) = Listener::open().unwrap();
    let host = Here::host(door, 9);
    let (process, other_invitation) = Process::host(2);
    let lone = Here::join(&other_invitation, 1);
    process.send(Signal::STOP);
    let stopped = Process::join(&invitation, 1);
    stopped.send(Signal::STOP);
    let _stranger = TcpStream::connect(("127.0.0.1", invitation.port)).unwrap();
    let (sender, gone) = channel();
    thread::spawn(move || {
        lone.leave();
        host.leave();
        sender.send(()).unwrap();
    });
    assert_eq!(gone.recv_timeout(PATIENCE), Ok(()));
}
