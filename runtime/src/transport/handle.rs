//! The transport that a rank has been given.

use std::ops::{Deref, DerefMut};

use super::Transport;
use super::local::Local;

/// One of the transports. For what is called with each message the
/// [`RemoteSender`](crate::arrays::exec::remote_sender::RemoteSender) of a worker tells them apart, and calls that between threads as it is:
/// a packet takes no longer there than a call that is looked up. Between processes it is encoded, and that call is nothing;
/// nor is it for all else.
pub(crate) enum TransportHandle<'s, P> {
    Threads(Local<P>),
    Boxed(Box<dyn Transport<P> + 's>),
}

impl<'s, P: 's> TransportHandle<'s, P> {
    pub(crate) fn boxed(transport: impl Transport<P> + 's) -> TransportHandle<'s, P> {
        TransportHandle::Boxed(Box::new(transport))
    }
}

impl<'s, P: 's> Deref for TransportHandle<'s, P> {
    type Target = dyn Transport<P> + 's;

    fn deref(&self) -> &Self::Target {
        match self {
            TransportHandle::Threads(local) => local,
            TransportHandle::Boxed(transport) => &**transport,
        }
    }
}

impl<'s, P: 's> DerefMut for TransportHandle<'s, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            TransportHandle::Threads(local) => local,
            TransportHandle::Boxed(transport) => &mut **transport,
        }
    }
}
