//! Rank 0's thread: lets the others in for a while, then waits for one of them to be lost and tells the rest.
//!
//! The states and rules are in [`liveness`](super). While the door is open a turn costs at most [`ADMITTED_MAX`] new
//! connections, so that strangers slow nobody down for long; afterwards the thread runs once for each lost rank.

use std::collections::BTreeMap;
use std::io::{ErrorKind, PipeReader};
use std::net::TcpStream;

use litemap::LiteMap;
use rustix::event::{PollFd, PollFlags};

use super::door::{Door, Hello};
use super::link::{self, Frame, Link};
use super::{How, Lost, OnLost};
use crate::ids::ROOT;
use crate::ids::Rank;
use crate::threads::clock::Clock;
use crate::warn::warn;

/// Connections accepted in one turn.
const ADMITTED_MAX: usize = 64;
/// Connections that may be knocking at once, besides one for each rank. Beyond that the oldest is dropped.
const STRANGERS_MAX: usize = 64;

pub(super) struct Host {
    stop: PipeReader,
    on_lost: OnLost,
    /// None once everybody is in, or the time is up.
    admission: Option<Admission>,
    /// All ranks but 0.
    peers: LiteMap<Rank, Peer>,
}

enum Peer {
    Awaited,
    Watched(Link),
    Lost(How),
}

/// The open door and who stands in it.
struct Admission {
    door: Door,
    clock: Clock,
    closes_ns: u64,
    /// In the order in which they came, which is that of their deadlines.
    knocking: BTreeMap<u64, Knock>,
    knocks: u64,
}

struct Knock {
    link: Link,
    deadline_ns: u64,
}

/// The source of an event from the kernel.
enum Source {
    Stop,
    Door,
    Knock(u64),
    Peer(Rank),
}

impl Host {
    pub(super) fn new(door: Door, ranks: u32, stop: PipeReader, on_lost: OnLost) -> Host {
        let clock = Clock::machine();
        let closes_ns = clock.now_ns() + door.open_ms * 1_000_000;
        let admission = Admission { door, clock, closes_ns, knocking: BTreeMap::new(), knocks: 0 };
        let peers = (1..ranks).map(|rank| (Rank(rank), Peer::Awaited)).collect();
        Host { stop, on_lost, admission: Some(admission), peers }
    }

    /// Works until the process leaves.
    pub(super) fn watch(mut self) {
        loop {
            self.close_door_in_time();
            for source in self.wait() {
                match source {
                    Source::Stop => return self.part(),
                    Source::Door => self.answer_door(),
                    Source::Knock(number) => self.hear_knock(number),
                    Source::Peer(rank) => self.hear_peer(rank),
                }
            }
        }
    }

    /// Sleeps until there is news.
    fn wait(&self) -> Vec<Source> {
        let mut waiting = vec![(Source::Stop, PollFd::new(&self.stop, PollFlags::IN))];
        if let Some(admission) = &self.admission {
            waiting.push((Source::Door, PollFd::new(&admission.door.listener, PollFlags::IN)));
            let knocking = admission.knocking.iter();
            waiting.extend(knocking.map(|(&number, knock)| (Source::Knock(number), knock.link.poll_fd())));
        }
        waiting.extend(self.peers.iter().filter_map(|(&rank, peer)| match peer {
            Peer::Watched(link) => Some((Source::Peer(rank), link.poll_fd())),
            Peer::Awaited | Peer::Lost(_) => None,
        }));
        let (sources, mut fds): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        link::wait(&mut fds, self.admission.as_ref().map(Admission::timeout_ns));
        let news = fds.iter().map(|fd| !fd.revents().is_empty());
        sources.into_iter().zip(news).filter_map(|(source, news)| news.then_some(source)).collect()
    }

    /// Ends the admission when nobody is awaited any more or the time is up, and drops who knocks for too long.
    fn close_door_in_time(&mut self) {
        let awaited = self.awaited();
        let Some(admission) = &mut self.admission else { return };
        let now_ns = admission.clock.now_ns();
        if awaited == 0 {
            self.admission = None;
        } else if now_ns >= admission.closes_ns {
            self.give_up("they did not connect in time");
        } else {
            admission.knocking.retain(|_, knock| now_ns < knock.deadline_ns);
        }
    }

    /// Ends the admission before everybody is in.
    fn give_up(&mut self, why: &str) {
        self.admission = None;
        let (unwatched, ranks) = (self.awaited(), self.peers.len() + 1);
        warn(&format!("{unwatched} of {ranks} ranks are not watched, nobody is told if they die: {why}"));
    }

    fn awaited(&self) -> usize {
        self.peers.values().filter(|peer| matches!(peer, Peer::Awaited)).count()
    }

    fn answer_door(&mut self) {
        for _ in 0..ADMITTED_MAX {
            let Some(admission) = &mut self.admission else { return };
            match admission.door.listener.accept() {
                Ok((stream, _)) => admission.admit(stream, self.peers.len()),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    // Above all no descriptor is left. To ask again would find the same at once.
                    _ => return self.give_up(&error.to_string()),
                },
            }
        }
    }

    /// Somebody at the door says who it is: the right password and an awaited rank, or it is sent away.
    fn hear_knock(&mut self, number: u64) {
        let Some(admission) = &mut self.admission else { return };
        let Some(knock) = admission.knocking.get_mut(&number) else { return };
        knock.link.flush();
        let open = knock.link.hear();
        let hello = knock.link.take().map(Hello::decode);
        if open && hello.is_none() {
            return;
        }
        let password = admission.door.secret.password;
        let Some(Knock { mut link, .. }) = admission.knocking.remove(&number) else { return };
        let Some(Hello { rank, .. }) = hello.filter(|hello| hello.password == password) else { return };
        if !matches!(self.peers.get(&rank), Some(Peer::Awaited)) {
            return;
        }
        link.send(&Frame::Welcome.encode());
        for (&rank, peer) in self.peers.iter() {
            if let Peer::Lost(how) = *peer {
                link.send(&Frame::Lost(Lost { rank, how }).encode());
            }
        }
        self.peers.insert(rank, Peer::Watched(link));
    }

    /// A watched rank says goodbye, or its connection has ended, or it takes again what was kept for it.
    fn hear_peer(&mut self, rank: Rank) {
        let Some(Peer::Watched(link)) = self.peers.get_mut(&rank) else { return };
        link.flush();
        let open = link.hear();
        let how = match link.next_frame() {
            Some(Some(Frame::Lost(Lost { rank: named, how: How::Left }))) if named == rank => How::Left,
            None if open => return,
            // Nothing but a goodbye is ever said by a rank.
            _ => How::Died,
        };
        self.lose(Lost { rank, how });
    }

    fn lose(&mut self, lost: Lost) {
        self.peers.insert(lost.rank, Peer::Lost(lost.how));
        let frame = Frame::Lost(lost).encode();
        for (_, peer) in self.peers.iter_mut() {
            if let Peer::Watched(link) = peer {
                link.send(&frame);
            }
        }
        (self.on_lost)(lost);
    }

    fn part(self) {
        let watched = self.peers.into_iter().filter_map(|(_, peer)| match peer {
            Peer::Watched(link) => Some(link),
            Peer::Awaited | Peer::Lost(_) => None,
        });
        link::part(watched.collect(), ROOT);
    }
}

impl Admission {
    /// Whoever connects hears the countersign and may then say who it is. One that cannot be set up is dropped.
    fn admit(&mut self, stream: TcpStream, ranks: usize) {
        let Ok(mut link) = link::tune(&stream).and_then(|()| Link::new(stream)) else { return };
        link.send(&self.door.secret.countersign.to_le_bytes());
        let deadline_ns = self.clock.now_ns() + self.door.knock_ms_max * 1_000_000;
        self.knocking.insert(self.knocks, Knock { link, deadline_ns });
        self.knocks += 1;
        if self.knocking.len() > ranks + STRANGERS_MAX {
            self.knocking.pop_first();
        }
    }

    /// Until the door closes or somebody has knocked for too long, ns.
    fn timeout_ns(&self) -> u64 {
        let first_ns = self.knocking.first_key_value().map_or(u64::MAX, |(_, knock)| knock.deadline_ns);
        first_ns.min(self.closes_ns).saturating_sub(self.clock.now_ns())
    }
}
