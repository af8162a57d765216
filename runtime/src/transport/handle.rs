//! The transport of a rank as its users hold it: rings between threads, or any other [`Transport`].

use std::ops::{Deref, DerefMut};

use super::Transport;
use super::local::Local;

/// The transport of a rank.
///
/// For the calls per message, the [`RemoteSender`](crate::arrays::exec::remote_sender::RemoteSender) of a worker
/// matches on the variant. It calls `Local` directly, because moving a packet between threads takes no longer than a
/// dynamic call. For encoded packets, and in rarer calls, the cost of a dynamic call does not matter.
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
