//! One connection between a rank and its parent, with frames of a fixed size, and without calls that block.
//!
//! | bytes | content | sender |
//! |---|---|---|
//! | 8 | password of the parent | the parent, on each new connection |
//! | 12 | password of the child, rank | the child |
//! | 5 | frame: kind, rank | the parent: welcome; then both: a lost rank, a goodbye, ping, pong |
//!
//! Numbers are little-endian. This module does not check the order of the messages.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::{LossKind, Lost};
use crate::ids::Rank;
use crate::threads::clock::Clock;

/// Idle time after which the kernel probes a connection, s.
const IDLE_S: u64 = 5;
const PROBE_INTERVAL_S: u64 = 2;
const PROBES: u32 = 3;
/// How long a leaving process waits for the other ends to close, ns.
const GOODBYE_NS_MAX: u64 = 200_000_000;

/// A message after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The receiver is watched from now on.
    Welcome,
    /// A rank was lost. A loss of the sender with [`LossKind::Left`](super::LossKind::Left) is a goodbye.
    Lost(Lost),
    /// Requests a pong.
    Ping,
    /// The reply to a ping.
    Pong,
}

impl Frame {
    pub(super) const BYTES: usize = 5;

    pub(super) fn encode(self) -> [u8; Frame::BYTES] {
        let (kind, rank) = match self {
            Frame::Welcome => (b'w', 0),
            Frame::Ping => (b'a', 0),
            Frame::Pong => (b'h', 0),
            Frame::Lost(Lost { rank, kind: LossKind::Died }) => (b'd', rank.0),
            Frame::Lost(Lost { rank, kind: LossKind::Left }) => (b'l', rank.0),
        };
        let [a, b, c, d] = rank.to_le_bytes();
        [kind, a, b, c, d]
    }

    /// None if no rank of this job sends these bytes.
    pub(super) fn decode([kind, a, b, c, d]: [u8; Frame::BYTES]) -> Option<Frame> {
        let rank = Rank(u32::from_le_bytes([a, b, c, d]));
        match kind {
            b'w' => Some(Frame::Welcome),
            b'a' => Some(Frame::Ping),
            b'h' => Some(Frame::Pong),
            b'd' => Some(Frame::Lost(Lost { rank, kind: LossKind::Died })),
            b'l' => Some(Frame::Lost(Lost { rank, kind: LossKind::Left })),
            _ => None,
        }
    }
}

/// One end of a connection.
pub(super) struct Link {
    stream: TcpStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
}

impl Link {
    pub(super) fn new(stream: TcpStream) -> io::Result<Link> {
        stream.set_nonblocking(true)?;
        Ok(Link { stream, received: Vec::new(), unsent: Vec::new() })
    }

    /// Sends bytes. Queues bytes that the other end cannot take yet, for [`Link::flush`].
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.flush();
    }

    /// Tries again to send queued bytes. If the connection has failed, the reading side finds the error.
    pub(super) fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Reads some of the available bytes; the next poll reports the rest. False if the connection has ended.
    pub(super) fn read_available(&mut self) -> bool {
        let mut bytes = [0; 64];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Takes the first `N` received bytes; none if fewer have arrived.
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.received.first_chunk()?;
        self.received.drain(..N);
        Some(bytes)
    }

    /// Takes the next received frame, if it is complete. `Some(None)` is a malformed frame.
    pub(super) fn next_frame(&mut self) -> Option<Option<Frame>> {
        self.take().map(Frame::decode)
    }

    /// Ready when there are bytes or an end to read, or when queued bytes can be sent.
    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        let sends = if self.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::new(&self.stream, PollFlags::IN | sends)
    }
}

/// Sets a connection up so that small frames leave at once. A vanished host is given up after about 11 s, whether or
/// not bytes were sent to it meanwhile.
pub(super) fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(IDLE_S))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(PROBE_INTERVAL_S))?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    sockopt::set_socket_keepalive(stream, true)?;
    // While sent bytes are not acknowledged, the kernel does not probe, but by default retransmits for 15 minutes.
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, 1000 * (IDLE_S as u32 + PROBES * PROBE_INTERVAL_S as u32))?;
    Ok(())
}

/// Waits until one of `fds` is ready or `timeout_ns` has passed. May also return earlier.
pub(super) fn wait(fds: &mut [PollFd<'_>], timeout_ns: Option<u64>) {
    let timeout = timeout_ns.map(|timeout_ns| Timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as i64,
        tv_nsec: (timeout_ns % 1_000_000_000) as _,
    });
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        // The kernel has no memory for the list. The caller retries after a pause.
        Err(_) => std::thread::sleep(Duration::from_millis(100)),
    }
}

/// Sends a goodbye for `rank` on all `links`, and waits for a moment until the other ends close. If this end closed
/// first with unread bytes, the connection would be reset, and the goodbye could be lost.
pub(super) fn say_goodbye(mut links: Vec<Link>, rank: Rank) {
    let goodbye = Frame::Lost(Lost { rank, kind: LossKind::Left }).encode();
    for link in &mut links {
        link.send(&goodbye);
        // An error means that the connection has ended already.
        let _ = link.stream.shutdown(Shutdown::Write);
    }
    let clock = Clock::machine();
    while let Some(left_ns) = GOODBYE_NS_MAX.checked_sub(clock.now_ns())
        && !links.is_empty()
    {
        let mut fds: Vec<_> = links.iter().map(|link| PollFd::new(&link.stream, PollFlags::IN)).collect();
        wait(&mut fds, Some(left_ns));
        let news: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut news = news.into_iter();
        links.retain_mut(|link| !news.next().unwrap_or(false) || link.read_available());
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> [Link; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        [near, far].map(|stream| {
            tune(&stream).unwrap();
            Link::new(stream).unwrap()
        })
    }

    fn read_available(link: &mut Link) -> bool {
        wait(&mut [link.poll_fd()], None);
        link.read_available()
    }

    #[test]
    fn frames_survive_encoding() {
        let lost =
            [LossKind::Died, LossKind::Left].map(|how| Frame::Lost(Lost { rank: Rank(70_000), kind: how }));
        for frame in [Frame::Welcome, Frame::Ping, Frame::Pong, lost[0], lost[1]] {
            assert_eq!(Frame::decode(frame.encode()), Some(frame));
        }
        assert_eq!(Frame::decode(*b"GET /"), None);
    }

    #[test]
    fn a_frame_that_comes_in_pieces_is_read_whole_and_before_the_end() {
        let [mut near, mut far] = pair();
        let bytes = Frame::Welcome.encode();
        near.send(&bytes[..2]);
        assert!(read_available(&mut far) && far.next_frame().is_none());
        near.send(&bytes[2..]);
        drop(near);
        assert!(read_available(&mut far));
        assert_eq!(far.next_frame(), Some(Some(Frame::Welcome)));
        assert!(!read_available(&mut far));
    }

    #[test]
    fn unsent_bytes_are_queued_until_the_other_end_reads() {
        let [mut near, mut far] = pair();
        let mut sent = 0;
        while near.unsent.is_empty() {
            near.send(&[7; 65_536]);
            sent += 65_536;
        }
        let mut heard = 0;
        while heard < sent {
            near.flush();
            assert!(read_available(&mut far));
            heard += far.received.drain(..).len();
        }
        assert!(near.unsent.is_empty());
    }

    #[test]
    fn a_host_that_vanished_is_given_up_soon() {
        let [near, _far] = pair();
        assert!(sockopt::socket_keepalive(&near.stream).unwrap() && near.stream.nodelay().unwrap());
        assert_eq!(sockopt::tcp_keepidle(&near.stream).unwrap(), Duration::from_secs(IDLE_S));
        assert_eq!(sockopt::tcp_keepintvl(&near.stream).unwrap(), Duration::from_secs(PROBE_INTERVAL_S));
        assert_eq!(sockopt::tcp_keepcnt(&near.stream).unwrap(), PROBES);
    }
}
