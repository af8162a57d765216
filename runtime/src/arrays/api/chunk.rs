//! The trait of chunks: what a program of arrays implements.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ctx::Ctx;
use super::index::Index;
use crate::arrays::core::collectives::reduction::Values;

/// The work of a chunk, for the balancer.
///
/// ```
/// use caribou::Load;
/// assert_eq!(Load::default(), Load::Measured);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// The CPU time of its handlers since the last sync, times the speed of the vCPU.
    #[default]
    Measured,
    /// A model's answer, in ns of work on a vCPU of speed 1.
    Ticks(u64),
}

/// A piece of the program's state that reacts to messages and can move between ranks.
///
/// A chunk is touched by one thread at a time and never holds a lock. Its handlers are functions from (state, message) to
/// (state, outbox): what they send leaves when they return. It must be serialisable with everything it needs to go on,
/// because it may be somewhere else after a sync.
///
/// ```
/// use caribou::{Chunk, Config, Ctx};
/// use serde::{Deserialize, Serialize};
///
/// /// Counts down by passing a number around a ring of four.
/// #[derive(Serialize, Deserialize)]
/// struct Node;
///
/// impl Chunk for Node {
///     type Index = u32;
///     type Message = u64;
///
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         if ctx.index() == 0 {
///             ctx.send(1, 100);
///         }
///     }
///
///     fn receive(&mut self, left: u64, ctx: &mut Ctx<'_, Self>) {
///         match left {
///             0 => ctx.exit(),
///             _ => ctx.send((ctx.index() + 1) % 4, left - 1),
///         }
///     }
/// }
///
/// let report = caribou::run(Config::default().ranks(2), |setup| {
///     setup.array(4, |_| Node);
/// })?;
/// assert_eq!(report.messages, 4 + 101);
/// # Ok::<(), caribou::Error>(())
/// ```
///
/// A chunk that could not move between threads, or be encoded, does not build:
///
/// ```compile_fail,E0277
/// # use caribou::{Chunk, Ctx};
/// struct Stuck { shared: std::rc::Rc<u32> }
/// impl Chunk for Stuck {
///     type Index = u32;
///     type Message = ();
///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
/// }
/// ```
pub trait Chunk: Serialize + DeserializeOwned + Send + Sized + 'static {
    /// The chunk's name within its array.
    type Index: Index;

    /// The messages it understands: usually an enum, whose variants name the messages in error messages.
    ///
    /// It is encoded when it leaves the process, in a format without names and types: serde must read the fields in the order in
    /// which it wrote them. The serde attributes `untagged`, `tag`, `flatten` and `skip_serializing_if` work among threads and
    /// fail on the wire, also in a type inside the message. `CARIBOU_WIRE=always` encodes everything, so that one run on one
    /// machine finds them. A field with `skip` silently arrives as its default value. The same holds for chunks, which
    /// `CARIBOU_LB=rotate` moves at each sync.
    ///
    /// A message that points to memory of its own is also serialised when it is sent, wherever it goes, without its bytes being
    /// written. This counts the bytes that wait (see [`Config::mail_limit`](crate::Config::mail_limit)). It takes some ns per
    /// field; numbers in [`bulk`](crate::bulk) are one field.
    type Message: Serialize + DeserializeOwned + Send + 'static;

    /// The first handler of every chunk, on the rank it was placed on.
    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let _ = ctx;
    }

    /// True if the chunk can handle this message now. If not, the runtime defers the message and asks again after the next
    /// handler. Of several messages that have become ready the oldest goes first. Not asked between `at_sync` and `resume`.
    fn ready(&self, message: &Self::Message) -> bool {
        let _ = message;
        true
    }

    /// Handles a message. Messages from one chunk arrive in the order they were sent; no other order is promised.
    fn receive(&mut self, message: Self::Message, ctx: &mut Ctx<'_, Self>);

    /// Goes on after a sync, perhaps on another rank.
    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.start(ctx);
    }

    /// Makes the result of a reduction the message that announces it (not with [`Target::Exit`](crate::Target::Exit)); `tag` is the contributors',
    /// of this array or of another.
    ///
    /// # Panics
    /// By default: a chunk type that contributes says how it hears of results.
    fn reduced(tag: u32, values: Values) -> Self::Message {
        let _ = values;
        panic!(
            "a reduction (tag {tag}) has a result, but this chunk type does not implement `Chunk::reduced`"
        )
    }

    /// Its load in the phase that ends, asked at `at_sync`, or when it first runs after a window. [`Ctx::charge`] overrides it.
    fn load(&self) -> Load {
        Load::Measured
    }

    /// True if the balancer may move it, asked at `at_sync`, or when it first runs after a window. A pinned chunk still counts
    /// as load.
    fn migratable(&self) -> bool {
        true
    }

    /// Bytes that a migration would move, for the balancer to weigh against the gain. By default the size of the type alone.
    ///
    /// The first migrations between processes measure the encoded size of chunks of this array. From then on the balancer scales
    /// each declared size by the ratio of the two. So the default serves chunks of about one size; override it where sizes
    /// differ.
    ///
    /// It is called before every handler, since a handler may come to a sync and then change the state. So it should cost next
    /// to nothing.
    fn state_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }

    /// What it waits for, for the [`Error::Stalled`](crate::Error::Stalled) of a run that cannot go on: only the program knows which
    /// messages should still come. [`Halos`](crate::Halos) can say it for theirs: `Some(self.halos.to_string())`.
    fn waits_for(&self) -> Option<String> {
        None
    }

    /// Called before it leaves a rank.
    fn on_depart(&mut self) {}

    /// Called when it has arrived at a rank, before any handler.
    fn on_arrive(&mut self) {}
}
