//! Serves connections by a single thread, which sleeps until a client sends a request.
//!
//! | state of a connection | until |
//! |---|---|
//! | `Reading` | the empty line after the head has arrived |
//! | `Writing` | all of the answer was sent |
//! | `Draining` | the client has closed; closing earlier could reset an answer that the client has not read |
//!
//! 1. There are at most [`CONNECTIONS_MAX`]. A further connection evicts the oldest that is `Reading`, or else the
//!    oldest. So a client that connects and sends nothing delays no other.
//! 2. Each connection ends [`CONNECTION_NS_MAX`] after it was accepted, in any state.
//! 3. Of a head at most [`HEAD_MAX`] bytes are kept; of a body none.
//! 4. Only `poll` blocks. Closing the other end of `woken` ends it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::http::{Pages, refuse};
use crate::threads::clock::monotonic_ns;

/// Maximum number of connections at a time.
pub(super) const CONNECTIONS_MAX: usize = 16;
/// Maximum time of a connection from its acceptance to its end, ns.
const CONNECTION_NS_MAX: u64 = 2_000_000_000;
/// Maximum length of a head, bytes.
pub(super) const HEAD_MAX: usize = 8192;
/// How long no connections are accepted after the process had no file descriptor left, ns.
const EXHAUSTED_NS: u64 = 200_000_000;

/// Answers requests until the other end of `woken` is closed.
pub(super) fn serve(listener: &TcpListener, woken: &UnixStream, mut pages: Pages) {
    let mut connections: Vec<Connection> = Vec::new();
    let mut accept_from_ns = 0;
    loop {
        let now_ns = monotonic_ns();
        connections.retain(|connection| now_ns < connection.deadline_ns);
        let accepting = now_ns >= accept_from_ns;
        let paused_until_ns = (now_ns < accept_from_ns).then_some(accept_from_ns);
        let deadlines_ns = connections.iter().map(|connection| connection.deadline_ns).chain(paused_until_ns);
        let timeout_ns = deadlines_ns.min().map(|until_ns| until_ns.saturating_sub(now_ns));
        let ready = wait(listener, accepting, woken, &connections, timeout_ns);
        if ready.stop {
            return;
        }
        let mut answered = ready.connections.iter();
        connections.retain_mut(|connection| {
            let is_ready = answered.next().is_some_and(|ready| *ready);
            !is_ready || connection.advance(&mut pages)
        });
        if ready.listener {
            match accept(listener) {
                Ok(Some(connection)) => {
                    evict_if_full(&mut connections);
                    connections.push(connection);
                }
                Ok(None) => {}
                Err(_) => accept_from_ns = monotonic_ns() + EXHAUSTED_NS,
            }
        }
    }
}

/// Drops a connection if there are [`CONNECTIONS_MAX`].
fn evict_if_full(connections: &mut Vec<Connection>) {
    if connections.len() == CONNECTIONS_MAX {
        let silent = connections.iter().position(|other| matches!(other.state, State::Reading(_)));
        connections.remove(silent.unwrap_or(0));
    }
}

/// The sources that are ready.
struct Ready {
    stop: bool,
    listener: bool,
    connections: Vec<bool>,
}

/// Sleeps until a source is ready, or for `timeout_ns`.
fn wait(
    listener: &TcpListener,
    accepting: bool,
    woken: &UnixStream,
    connections: &[Connection],
    timeout_ns: Option<u64>,
) -> Ready {
    let accepts = if accepting { PollFlags::IN } else { PollFlags::empty() };
    let mut fds = vec![PollFd::new(woken, PollFlags::IN), PollFd::new(listener, accepts)];
    fds.extend(
        connections.iter().map(|connection| PollFd::new(&connection.stream, connection.state.awaits())),
    );
    let timeout = timeout_ns.map(|timeout_ns| Timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as i64,
        tv_nsec: (timeout_ns % 1_000_000_000) as _,
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        // The kernel has no memory for the list. The caller retries after a pause.
        Err(_) => std::thread::sleep(Duration::from_millis(100)),
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    Ready { stop: ready[0], listener: ready[1], connections: ready[2..].to_vec() }
}

/// The next connection, if there is one. Fails if the process has no file descriptor left.
fn accept(listener: &TcpListener) -> io::Result<Option<Connection>> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true)?;
            let deadline_ns = monotonic_ns() + CONNECTION_NS_MAX;
            Ok(Some(Connection { stream, state: State::Reading(Vec::new()), deadline_ns }))
        }
        // The client has closed the connection before it was accepted.
        Err(error) if would_block(&error) || error.kind() == ErrorKind::ConnectionAborted => Ok(None),
        Err(error) => Err(error),
    }
}

struct Connection {
    stream: TcpStream,
    state: State,
    deadline_ns: u64,
}

enum State {
    /// The part of the head that has arrived.
    Reading(Vec<u8>),
    /// The answer, and the number of its bytes that were sent.
    Writing(Vec<u8>, usize),
    Draining,
}

impl State {
    fn awaits(&self) -> PollFlags {
        if matches!(self, State::Writing(..)) { PollFlags::OUT } else { PollFlags::IN }
    }
}

impl Connection {
    /// Does everything that needs no waiting. False when the connection is over.
    fn advance(&mut self, pages: &mut Pages) -> bool {
        let mut bytes = [0; 4096];
        if let State::Reading(head) = &mut self.state {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => head.extend_from_slice(&bytes[..count]),
                Err(error) => return would_block(&error),
            }
            let Some(answer) = answer(head, pages) else { return true };
            self.state = State::Writing(answer, 0);
        }
        if let State::Writing(answer, gone) = &mut self.state {
            match self.stream.write(&answer[*gone..]) {
                Ok(count) => *gone += count,
                Err(error) => return would_block(&error),
            }
            if *gone < answer.len() {
                return true;
            }
            self.state = State::Draining;
            return self.stream.shutdown(Shutdown::Write).is_ok();
        }
        match self.stream.read(&mut bytes) {
            Ok(count) => count > 0,
            Err(error) => would_block(&error),
        }
    }
}

/// The answer, if the head is complete or too long.
fn answer(head: &[u8], pages: &mut Pages) -> Option<Vec<u8>> {
    let ends = |end: &[u8]| head.windows(end.len()).position(|window| window == end);
    match ends(b"\r\n\r\n").or_else(|| ends(b"\n\n")) {
        Some(end) if end <= HEAD_MAX => Some(pages.answer(&head[..end])),
        None if head.len() <= HEAD_MAX => None,
        _ => Some(refuse("431 Request Header Fields Too Large", "the request is too long")),
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
