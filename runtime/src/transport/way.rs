//! The transport that a rank has been given.

use std::time::Duration;

use super::Transport;
use super::local::Local;
use crate::error::Error;
use crate::ids::Rank;

/// One of the transports. That between threads is called as it is: a packet takes no longer there than a call that is
/// looked up. Between processes it is encoded, and that call is nothing.
pub(crate) enum Way<'s, P> {
    Threads(Local<P>),
    Other(Box<dyn Transport<P> + 's>),
}

impl<'s, P: 's> Way<'s, P> {
    pub(crate) fn other(transport: impl Transport<P> + 's) -> Way<'s, P> {
        Way::Other(Box::new(transport))
    }

    fn any(&mut self) -> &mut (dyn Transport<P> + 's) {
        match self {
            Way::Threads(local) => local,
            Way::Other(transport) => &mut **transport,
        }
    }

    fn seen(&self) -> &(dyn Transport<P> + 's) {
        match self {
            Way::Threads(local) => local,
            Way::Other(transport) => &**transport,
        }
    }

    /// As [`poll_each`](Transport::poll_each), for a `take` that is known.
    #[inline(always)]
    pub(crate) fn take_each(&mut self, mut take: impl FnMut(Rank, P) -> bool) -> Result<(), Error> {
        match self {
            Way::Threads(local) => {
                local.take_each(take);
                Ok(())
            }
            Way::Other(transport) => transport.poll_each(&mut take),
        }
    }
}

impl<'s, P: 's> Transport<P> for Way<'s, P> {
    #[inline(always)]
    fn send(&mut self, to: Rank, packet: P) -> Result<(), Error> {
        match self {
            Way::Threads(local) => local.send(to, packet),
            Way::Other(transport) => transport.send(to, packet),
        }
    }

    fn poll_each(&mut self, take: &mut dyn FnMut(Rank, P) -> bool) -> Result<(), Error> {
        self.any().poll_each(take)
    }

    fn idle(&mut self) -> bool {
        self.any().idle()
    }

    fn ready(&mut self) -> bool {
        self.any().ready()
    }

    fn congested(&self) -> bool {
        self.seen().congested()
    }

    fn transfers(&self) -> bool {
        self.seen().transfers()
    }

    fn nap(&mut self) -> Option<Duration> {
        self.any().nap()
    }

    fn close(&mut self, lost: &dyn Fn() -> bool) {
        self.any().close(lost);
    }
}
