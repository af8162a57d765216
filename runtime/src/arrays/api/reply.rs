//! [`ReplyTo`]: the address of a reply, which a request carries.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunk::Chunk;
use super::ctx::{Array, Ctx};
use super::index::Index;
use super::section::Section;
use crate::ids::{ArrayId, ChunkId};

/// The address for a reply of type `M`: a chunk or a section of any array with messages `M`, or the caller of
/// [`run`](crate::run()). A request carries the address, and the chunk that replies with [`Ctx::reply`] needs no other
/// data of the sender. A `ReplyTo` can be stored, sent and migrated.
///
/// ```
/// use caribou::{Array, Chunk, Config, Ctx, ReplyTo};
/// use serde::{Deserialize, Serialize};
///
/// /// Squares numbers for any chunk that asks.
/// #[derive(Serialize, Deserialize)]
/// struct Square;
///
/// impl Chunk for Square {
///     type Index = u32;
///     type Message = (u64, ReplyTo<u64>);
///     fn receive(&mut self, (number, reply): Self::Message, ctx: &mut Ctx<'_, Self>) {
///         ctx.reply(&reply, number * number);
///     }
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Client { square: Array<Square> }
///
/// impl Chunk for Client {
///     type Index = u32;
///     type Message = u64;
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         ctx.send_to(self.square, 0, (3, ctx.reply_to_self()));
///     }
///     fn receive(&mut self, nine: u64, ctx: &mut Ctx<'_, Self>) {
///         // The answer to this one comes out of the run.
///         ctx.send_to(self.square, 0, (nine, ReplyTo::run()));
///     }
/// }
///
/// let report = caribou::run(Config::default().ranks(2), |setup| {
///     let square = setup.array(1, |_| Square);
///     setup.array(1, move |_| Client { square });
/// })?;
/// assert_eq!(report.value::<u64>()?, 81);
/// # Ok::<(), caribou::Error>(())
/// ```
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ReplyTo<M> {
    to: Recipient,
    message: PhantomData<fn() -> M>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Recipient {
    Chunk(ChunkId),
    Section { array: ArrayId, keys: Arc<[u64]> },
    Run,
}

impl<M> ReplyTo<M> {
    fn new(to: Recipient) -> ReplyTo<M> {
        ReplyTo { to, message: PhantomData }
    }

    /// To a chunk of an array.
    pub fn chunk<C: Chunk<Message = M>>(array: Array<C>, index: C::Index) -> ReplyTo<M> {
        ReplyTo::new(Recipient::Chunk(ChunkId { array: array.id, key: index.pack() }))
    }

    /// To each chunk of a section of an array.
    pub fn section<C: Chunk<Message = M>>(array: Array<C>, section: &Section<C>) -> ReplyTo<M> {
        ReplyTo::new(Recipient::Section { array: array.id, keys: section.keys.clone() })
    }

    /// To the caller of [`run`](crate::run()): the reply ends the run, see [`Report::value`](crate::Report::value).
    pub fn run() -> ReplyTo<M> {
        ReplyTo::new(Recipient::Run)
    }
}

impl<M> Clone for ReplyTo<M> {
    fn clone(&self) -> ReplyTo<M> {
        ReplyTo::new(self.to.clone())
    }
}

impl<M> std::fmt::Debug for ReplyTo<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "reply to {:?}", self.to)
    }
}

impl<C: Chunk> Ctx<'_, C> {
    /// The address of this chunk, for a request to carry.
    pub fn reply_to_self(&self) -> ReplyTo<C::Message> {
        ReplyTo::new(Recipient::Chunk(self.handler.chunk()))
    }

    /// Sends a message to the address in a request. If a message to a section cannot be encoded, the run ends, as with
    /// [`multicast`](Self::multicast).
    ///
    /// # Panics
    /// If the message goes to the caller of `run` and cannot be encoded.
    #[track_caller]
    pub fn reply<M: Serialize + Send + 'static>(&mut self, reply: &ReplyTo<M>, message: M) {
        match &reply.to {
            Recipient::Chunk(to) => self.send_value(*to, message),
            Recipient::Section { array, keys } => self.multicast_value(*array, keys.clone(), &message),
            Recipient::Run => self.exit_with(&message),
        }
    }
}
