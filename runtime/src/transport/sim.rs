//! A rank's way into a simulation: what it sends lies here until the simulation takes it, and what the simulation says has
//! arrived lies here until the rank does.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::{Receiver, Silent, Transport};
use crate::error::Error;
use crate::ids::Rank;

/// The rank's end.
pub(crate) struct Sim<P> {
    mail: SimMail<P>,
    nap: Option<Duration>,
}

/// The simulation's end.
pub(crate) struct SimMail<P>(Rc<RefCell<Mail<P>>>);

struct Mail<P> {
    sent: Vec<(Rank, P)>,
    arrived: VecDeque<(Rank, P)>,
}

impl<P> Sim<P> {
    /// Both ends. A rank that has to nap is not woken for what arrives.
    pub(crate) fn connect(nap: Option<Duration>) -> (Sim<P>, SimMail<P>) {
        let mail = Rc::new(RefCell::new(Mail { sent: Vec::new(), arrived: VecDeque::new() }));
        (Sim { mail: SimMail(mail.clone()), nap }, SimMail(mail))
    }
}

impl<P> SimMail<P> {
    /// Takes the packets that the rank has sent since the last call.
    pub(crate) fn take_sent(&self) -> Vec<(Rank, P)> {
        std::mem::take(&mut self.0.borrow_mut().sent)
    }

    /// A packet for the rank has arrived.
    pub(crate) fn arrives(&self, from: Rank, packet: P) {
        self.0.borrow_mut().arrived.push_back((from, packet));
    }
}

impl<P> Transport<P> for Sim<P> {
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error> {
        self.mail.0.borrow_mut().sent.push((to, packet));
        Ok(())
    }

    fn poll_each(&mut self, receiver: &mut dyn Receiver<P>) -> Result<(), Error> {
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

    fn close(&mut self, _lost: &dyn Fn(Silent<'_>) -> bool) {}
}
