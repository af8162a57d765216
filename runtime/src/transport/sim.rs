//! The transport of a rank in a simulation. Two queues hold packets: sent packets until the simulation takes them, and
//! arrived packets until the rank takes them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::{OpenRanks, PacketHandler, Transport};
use crate::error::Error;
use crate::ids::Rank;

/// The end that the rank uses.
pub(crate) struct SimTransport<P> {
    mail: SimEndpoint<P>,
    nap: Option<Duration>,
}

/// The end that the simulation uses.
pub(crate) struct SimEndpoint<P>(Rc<RefCell<SimQueues<P>>>);

struct SimQueues<P> {
    sent: Vec<(Rank, P)>,
    arrived: VecDeque<(Rank, P)>,
}

impl<P> SimTransport<P> {
    /// Both ends. If `nap` is set, arrivals do not wake the rank.
    pub(crate) fn connect(nap: Option<Duration>) -> (SimTransport<P>, SimEndpoint<P>) {
        let mail = Rc::new(RefCell::new(SimQueues { sent: Vec::new(), arrived: VecDeque::new() }));
        (SimTransport { mail: SimEndpoint(mail.clone()), nap }, SimEndpoint(mail))
    }
}

impl<P> SimEndpoint<P> {
    /// Takes the packets that the rank has sent since the last call.
    pub(crate) fn take_sent(&self) -> Vec<(Rank, P)> {
        std::mem::take(&mut self.0.borrow_mut().sent)
    }

    /// Puts a packet into the queue of arrived packets.
    pub(crate) fn arrives(&self, from: Rank, packet: P) {
        self.0.borrow_mut().arrived.push_back((from, packet));
    }
}

impl<P> Transport<P> for SimTransport<P> {
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error> {
        self.mail.0.borrow_mut().sent.push((to, packet));
        Ok(())
    }

    fn poll_each(&mut self, receiver: &mut dyn PacketHandler<P>) -> Result<(), Error> {
        loop {
            let next = self.mail.0.borrow_mut().arrived.pop_front();
            let Some((from, packet)) = next else { return Ok(()) };
            if !receiver.take(from, packet) {
                return Ok(());
            }
        }
    }

    fn idle(&mut self) -> bool {
        true
    }

    fn ready(&mut self) -> bool {
        !self.mail.0.borrow().arrived.is_empty()
    }

    fn nap(&mut self) -> Option<Duration> {
        self.nap
    }

    fn close(&mut self, _lost: &dyn Fn(OpenRanks<'_>) -> bool) {}
}
