//! Sends packets to the other ranks of a pool, and receives theirs.

use std::time::Duration;

use super::rank::Shared;
use crate::error::Error;
use crate::ids::Rank;
use crate::pools::core::packet::PoolPacket;
use crate::transport::handle::TransportHandle;
use crate::wire::codec::{Codec, SerdeCodec};

/// Longest time until the communication thread notices a packet that does not wake it, ns.
pub(super) const NAP_MAX_NS: u64 = 20_000_000;
/// How long to sleep while packets wait for a receiver without space; longer if no packet has arrived for a while.
const UNSENT_NAP: Duration = Duration::from_micros(200);
/// The longest sleep between hosts is the time since the last packet divided by this number.
const NAP_PART: u64 = 32;

pub(super) struct Peers<'m> {
    pub(super) shared: &'m Shared<'m>,
    /// None if this rank is the only one.
    pub(super) transport: Option<TransportHandle<'m, PoolPacket>>,
    /// Number of ranks, including this one.
    pub(super) ranks: u32,
    /// True if packets are encoded and decoded even inside the process.
    pub(super) wire: bool,
    /// See [`Config::watchdog`](crate::config::Config::watchdog).
    pub(super) watchdog_limit: Duration,
    /// The policy and its parameters, as given.
    pub(super) policy: &'m str,
    pub(super) last_packet_ns: u64,
}

impl Peers<'_> {
    /// All ranks except this one.
    pub(super) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let rank = self.shared.rank;
        (0..self.ranks).map(Rank).filter(move |&other| other != rank)
    }

    /// The next packet that has arrived, with its sender.
    pub(super) fn poll(&mut self) -> Result<Option<(Rank, PoolPacket)>, Error> {
        let received = self.transport.as_mut().and_then(|transport| transport.poll()).transpose()?;
        if received.is_some() {
            self.last_packet_ns = self.shared.clock.now_ns();
        }
        Ok(received)
    }

    pub(super) fn send(&mut self, to: Rank, mut packet: PoolPacket) -> Result<(), Error> {
        // Only the policy can address a message to its own rank or to a rank that does not exist.
        if to == self.shared.rank || to.0 >= self.ranks {
            return Err(self.misdirected(to));
        }
        let Some(transport) = &mut self.transport else { return Ok(()) };
        if self.wire {
            packet = SerdeCodec::new(self.shared.rank).round_trip(packet)?;
        }
        transport.send(to, packet)
    }

    fn misdirected(&self, to: Rank) -> Error {
        let (rank, last) = (self.shared.rank, self.ranks - 1);
        let to = if to == rank { "itself".into() } else { format!("rank {to}") };
        let fault = format!("sent a message to {to}, expected another rank from 0 to {last}");
        Error::PolicyFailed { rank, policy: self.policy.into(), fault }
    }

    /// Sends all others the failure of the run.
    pub(super) fn send_failure(&mut self, error: &Error) {
        let others = self.others();
        let Some(transport) = &mut self.transport else { return };
        for to in others {
            // A rank that cannot be reached has ended or been lost.
            let _ = transport.send(to, PoolPacket::Abort(Box::new(error.clone())));
        }
        transport.idle();
    }

    /// Tells whether a packet has arrived.
    pub(super) fn has_packet(&mut self) -> bool {
        self.transport.as_mut().is_some_and(|transport| transport.ready())
    }

    /// The longest time to sleep before the transport must be polled, ns; none if packets wake the thread.
    pub(super) fn nap_ns(&mut self, now_ns: u64) -> Option<u64> {
        let transport = self.transport.as_mut()?;
        let all_left = transport.idle();
        // A receiver that makes room for a packet does not wake its sender.
        let nap = transport.nap().or((!all_left).then_some(UNSENT_NAP))?;
        let quiet_ns = (now_ns.saturating_sub(self.last_packet_ns) / NAP_PART).min(NAP_MAX_NS);
        Some((nap.as_nanos() as u64).max(quiet_ns))
    }

    /// Closes the transport when all packets have arrived, or when they never will.
    pub(super) fn close(&mut self) {
        let Shared { outcome, clock, .. } = self.shared;
        if let Some(transport) = &mut self.transport {
            transport.close(&outcome.give_up_condition(clock, self.watchdog_limit));
        }
    }
}
