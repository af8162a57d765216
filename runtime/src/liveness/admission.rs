//! A rank's open door and who stands in it: lets in whoever says the password and is awaited, and sends all others away.
//!
//! It costs at most [`ADMITTED_MAX`] new connections a turn, so that strangers slow nobody down for long.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::TcpStream;

use rustix::event::{PollFd, PollFlags};

use super::door::{Door, Hello};
use super::link::{self, Link};
use crate::ids::Rank;
use crate::threads::clock::Clock;

/// Connections accepted in one turn.
const ADMITTED_MAX: usize = 64;
/// Connections that may be knocking at once, besides one for each awaited rank. Beyond that the oldest is dropped.
const STRANGERS_MAX: usize = 64;

pub(super) struct Admission {
    door: Door,
    clock: Clock,
    closes_ns: u64,
    /// Who has not come yet.
    awaited: BTreeSet<Rank>,
    /// In the order in which they came, which is that of their deadlines.
    knocking: BTreeMap<u64, Knock>,
    knocks: u64,
}

struct Knock {
    link: Link,
    deadline_ns: u64,
}

impl Admission {
    pub(super) fn new(door: Door, awaited: impl Iterator<Item = Rank>) -> Admission {
        let clock = Clock::machine();
        let closes_ns = clock.now_ns() + door.open_ms * 1_000_000;
        Admission { door, clock, closes_ns, awaited: awaited.collect(), knocking: BTreeMap::new(), knocks: 0 }
    }

    /// Number of ranks that have not come yet.
    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Drops who has knocked for too long. False once the time is up for all.
    pub(super) fn goes_on(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        self.knocking.retain(|_, knock| now_ns < knock.deadline_ns);
        now_ns < self.closes_ns
    }

    /// Until [`goes_on`](Admission::goes_on) has something to do, ns.
    pub(super) fn timeout_ns(&self) -> u64 {
        let first_ns = self.knocking.first_key_value().map_or(u64::MAX, |(_, knock)| knock.deadline_ns);
        first_ns.min(self.closes_ns).saturating_sub(self.clock.now_ns())
    }

    /// Ready when somebody new has connected.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.door.listener, PollFlags::IN)
    }

    /// Ready when one of those who knock has said something, each with its number.
    pub(super) fn knocking(&self) -> impl Iterator<Item = (u64, PollFd<'_>)> {
        self.knocking.iter().map(|(&number, knock)| (number, knock.link.poll_fd()))
    }

    /// Accepts who has connected. Fails when nobody else can be.
    pub(super) fn answer(&mut self) -> io::Result<()> {
        for _ in 0..ADMITTED_MAX {
            match self.door.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    // Above all no descriptor is left. To ask again would find the same at once.
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Whoever connects hears the countersign and may then say who it is. One that cannot be set up is dropped.
    fn admit(&mut self, stream: TcpStream) {
        let Ok(mut link) = link::tune(&stream).and_then(|()| Link::new(stream)) else { return };
        link.send(&self.door.secret.countersign.to_le_bytes());
        let deadline_ns = self.clock.now_ns() + self.door.knock_ms_max * 1_000_000;
        self.knocking.insert(self.knocks, Knock { link, deadline_ns });
        self.knocks += 1;
        if self.knocking.len() > self.awaited.len() + STRANGERS_MAX {
            self.knocking.pop_first();
        }
    }

    /// Somebody at the door says who it is. Returned if it is an awaited rank and has the password; any other is dropped.
    pub(super) fn hear(&mut self, number: u64) -> Option<(Rank, Link)> {
        let Knock { link, .. } = self.knocking.get_mut(&number)?;
        link.flush();
        let open = link.hear();
        let hello = link.take().map(Hello::decode);
        if open && hello.is_none() {
            return None;
        }
        let Knock { link, .. } = self.knocking.remove(&number)?;
        let Hello { rank, .. } = hello.filter(|hello| hello.password == self.door.secret.password)?;
        self.awaited.remove(&rank).then_some((rank, link))
    }
}
