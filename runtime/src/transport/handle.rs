//! The transport handle of a rank.

use std::ops::{Deref, DerefMut};

use super::Transport;
use super::local::Local;

/// The transport of a rank, in one of two forms.
///
/// For the calls per message the [`RemoteSender`](crate::arrays::exec::remote_sender::RemoteSender) of a worker matches on
/// the form. It calls the transport between threads directly: a packet takes no longer there than a dynamic call. Between
/// processes a packet is encoded, so the dynamic call does not matter; nor does it for all other calls.
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
