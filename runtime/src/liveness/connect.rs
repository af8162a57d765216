//! Handshake: connects children of a rank to it, and checks on both ends that the other belongs to the job.
//!
//! A rank cannot find out by which of its addresses another host reaches it. So it sends all of them to its children,
//! and a child tries one after the other, loopback last. A wrong address may lead to another program, on the bridge of
//! another host or of another job on the same port. The parent therefore sends a password, by which a child recognises
//! its parent before it sends anything. No names are resolved.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::link::{self, Frame, Link};
use super::tree::FAN_OUT;
use crate::ids::Rank;

const CONNECT_MS_MAX: u64 = 1_000;
/// Longest wait for the parent's password, ms: the parent connects to its own parent first.
const PARENT_PASSWORD_MS_MAX: u64 = 5_000;
/// How long a rank accepts its children, ms.
const ACCEPT_MS: u64 = 10_000;
/// Time within which a process that has connected must send the password, ms.
const HANDSHAKE_MS_MAX: u64 = 2_000;

/// What a rank sends to its children: its port, its addresses, and the passwords of both ends. It must not be logged.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ContactInfo {
    pub(super) port: u16,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) secret: Secret,
}

/// The passwords by which two processes recognise that they belong to one job.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Secret {
    /// Sent by the owner of the listener on each new connection.
    pub(super) parent_password: u64,
    /// Sent by the children.
    pub(super) child_password: u64,
}

/// The listening socket of a rank that has children.
pub(crate) struct Listener {
    pub(super) listener: TcpListener,
    pub(super) secret: Secret,
    pub(super) accept_ms: u64,
    pub(super) handshake_ms_max: u64,
}

impl Listener {
    /// Listens on a free port of all addresses. The children must get the [`ContactInfo`].
    pub(crate) fn open() -> io::Result<(Listener, ContactInfo)> {
        // The unspecified address of IPv6 accepts IPv4 too, unless the host has no IPv6.
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        listener.set_nonblocking(true)?;
        // All children may connect before the first is accepted. If the backlog is full, they retry after 1 s.
        rustix::net::listen(&listener, FAN_OUT as i32)?;
        let secret = Secret::new()?;
        let invitation = ContactInfo { port: listener.local_addr()?.port(), addresses: addresses()?, secret };
        Ok((
            Listener { listener, secret, accept_ms: ACCEPT_MS, handshake_ms_max: HANDSHAKE_MS_MAX },
            invitation,
        ))
    }
}

impl Secret {
    fn new() -> io::Result<Secret> {
        let mut source = std::fs::File::open("/dev/urandom")?;
        let mut word = || {
            let mut bytes = [0; 8];
            source.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        Ok(Secret { parent_password: word()?, child_password: word()? })
    }
}

/// A child's reply to the parent's password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) child_password: u64,
    pub(super) rank: Rank,
}

impl Hello {
    pub(super) const BYTES: usize = 12;

    pub(super) fn encode(&self) -> [u8; Hello::BYTES] {
        let mut bytes = [0; Hello::BYTES];
        bytes[..8].copy_from_slice(&self.child_password.to_le_bytes());
        bytes[8..].copy_from_slice(&self.rank.0.to_le_bytes());
        bytes
    }

    pub(super) fn decode([p @ .., a, b, c, d]: [u8; Hello::BYTES]) -> Hello {
        Hello { child_password: u64::from_le_bytes(p), rank: Rank(u32::from_le_bytes([a, b, c, d])) }
    }
}

/// This host's addresses, loopback last, without link-local addresses, which have no meaning on other hosts.
fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut interfaces = if_addrs::get_if_addrs()?;
    interfaces.retain(|interface| !interface.is_link_local());
    interfaces.sort_by_key(|interface| (interface.is_loopback(), interface.ip().is_ipv6()));
    Ok(interfaces.iter().map(if_addrs::Interface::ip).collect())
}

/// Connects `rank` to its parent. Tries one address after the other; fails with the last error.
pub(super) fn connect_to_parent(invitation: &ContactInfo, rank: Rank) -> io::Result<Link> {
    let mut failure = Error::new(ErrorKind::NotFound, "the parent rank has no address");
    for &address in &invitation.addresses {
        match connect(SocketAddr::new(address, invitation.port), invitation.secret, rank) {
            Ok(link) => return Ok(link),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn connect(address: SocketAddr, secret: Secret, rank: Rank) -> io::Result<Link> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(CONNECT_MS_MAX))?;
    link::tune(&stream)?;
    stream.set_read_timeout(Some(Duration::from_millis(PARENT_PASSWORD_MS_MAX)))?;
    let mut countersign = [0; 8];
    stream.read_exact(&mut countersign)?;
    if u64::from_le_bytes(countersign) != secret.parent_password {
        return Err(Error::new(
            ErrorKind::InvalidData,
            "another program listens on the port of the parent rank",
        ));
    }
    // This is the parent. After it has read the password, it takes the end of the connection for a death. So from here
    // on only the parent gives up. If the parent dies or its host vanishes, the wait ends.
    stream.set_read_timeout(None)?;
    stream.write_all(&Hello { child_password: secret.child_password, rank }.encode())?;
    let mut welcome = [0; Frame::BYTES];
    stream.read_exact(&mut welcome)?;
    match Frame::decode(welcome) {
        Some(Frame::Welcome) => Link::new(stream),
        _ => Err(Error::new(ErrorKind::InvalidData, "the parent rank did not send a welcome frame")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_the_last_resort() {
        let addresses = addresses().expect("a host has interfaces");
        assert!(addresses.is_sorted_by_key(IpAddr::is_loopback) && addresses.iter().any(IpAddr::is_loopback));
    }

    #[test]
    fn a_hello_survives_encoding() {
        let hello = Hello { child_password: 0x0123_4567_89ab_cdef, rank: Rank(70_000) };
        assert_eq!(Hello::decode(hello.encode()), hello);
    }

    #[test]
    fn the_listen_backlog_holds_all_children() {
        let (_door, invitation) = Listener::open().expect("the host has ports");
        let address = (Ipv4Addr::LOCALHOST, invitation.port).into();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(CONNECT_MS_MAX / 2));
        let children: Vec<TcpStream> = (0..FAN_OUT).map_while(|child| connect(child).ok()).collect();
        assert_eq!(children.len(), FAN_OUT as usize);
    }

    #[test]
    fn no_two_secrets_are_alike() {
        let [one, other] = [(); 2].map(|()| Secret::new().expect("the host has randomness"));
        assert!(one.child_password != other.child_password && one.parent_password != other.parent_password);
        assert_ne!(one.child_password, one.parent_password);
    }
}
