//! Pending connections of a rank: accepts awaited children that send the password, and drops all others. At most
//! [`ACCEPTED_MAX`] connections are accepted per turn, so that foreign programs delay the thread only for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::TcpStream;

use rustix::event::{PollFd, PollFlags};

use super::connect::{Hello, Listener};
use super::link::{self, Link};
use crate::ids::Rank;
use crate::threads::clock::Clock;

/// Maximum number of connections accepted in one turn.
const ACCEPTED_MAX: usize = 64;
/// Maximum number of pending connections, besides one per awaited rank. Beyond this number the oldest is dropped.
const UNAUTHENTICATED_MAX: usize = 64;

pub(super) struct Handshakes {
    door: Listener,
    clock: Clock,
    closes_ns: u64,
    /// Children that have not connected yet.
    awaited: BTreeSet<Rank>,
    /// Connections in the order of acceptance, which is the order of their deadlines.
    pending: BTreeMap<u64, PendingConnection>,
    accepted: u64,
}

struct PendingConnection {
    link: Link,
    deadline_ns: u64,
}

impl Handshakes {
    pub(super) fn new(door: Listener, awaited: impl Iterator<Item = Rank>) -> Handshakes {
        let clock = Clock::machine();
        let closes_ns = clock.now_ns() + door.accept_ms * 1_000_000;
        Handshakes {
            door,
            clock,
            closes_ns,
            awaited: awaited.collect(),
            pending: BTreeMap::new(),
            accepted: 0,
        }
    }

    /// Number of ranks that have not connected yet.
    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Drops connections whose handshake took too long. False when the listener must close.
    pub(super) fn expire(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        self.pending.retain(|_, knock| now_ns < knock.deadline_ns);
        now_ns < self.closes_ns
    }

    /// Time until [`expire`](Handshakes::expire) must be called, ns.
    pub(super) fn timeout_ns(&self) -> u64 {
        let first_ns = self.pending.first_key_value().map_or(u64::MAX, |(_, knock)| knock.deadline_ns);
        first_ns.min(self.closes_ns).saturating_sub(self.clock.now_ns())
    }

    /// Ready when there is a new connection.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.door.listener, PollFlags::IN)
    }

    /// Ready when a pending connection has bytes to read. Each comes with its number.
    pub(super) fn knocking(&self) -> impl Iterator<Item = (u64, PollFd<'_>)> {
        self.pending.iter().map(|(&number, knock)| (number, knock.link.poll_fd()))
    }

    /// Accepts new connections. Fails when no further connection can be accepted.
    pub(super) fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED_MAX {
            match self.door.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    // Most likely no file descriptor is left, so another attempt would fail too.
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Sends the password to a new connection, which is then pending. Drops a connection that cannot be set up.
    fn admit(&mut self, stream: TcpStream) {
        let Ok(mut link) = link::tune(&stream).and_then(|()| Link::new(stream)) else { return };
        link.send(&self.door.secret.parent_password.to_le_bytes());
        let deadline_ns = self.clock.now_ns() + self.door.handshake_ms_max * 1_000_000;
        self.pending.insert(self.accepted, PendingConnection { link, deadline_ns });
        self.accepted += 1;
        if self.pending.len() > self.awaited.len() + UNAUTHENTICATED_MAX {
            self.pending.pop_first();
        }
    }

    /// Reads the hello of a pending connection. Returns its link if the rank is awaited and the password is right.
    /// Otherwise drops the connection.
    pub(super) fn read_hello(&mut self, number: u64) -> Option<(Rank, Link)> {
        let PendingConnection { link, .. } = self.pending.get_mut(&number)?;
        link.flush();
        let open = link.read_available();
        let hello = link.take().map(Hello::decode);
        if open && hello.is_none() {
            return None;
        }
        let PendingConnection { link, .. } = self.pending.remove(&number)?;
        let Hello { rank, .. } =
            hello.filter(|hello| hello.child_password == self.door.secret.child_password)?;
        self.awaited.remove(&rank).then_some((rank, link))
    }
}
