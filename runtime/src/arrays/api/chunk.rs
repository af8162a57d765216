//! The trait [`Chunk`], which a program of arrays implements for its migratable objects.

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
    /// The result of a model of the program, in ns of work on a vCPU of speed 1.
    Ticks(u64),
}

/// A part of the program's state that reacts to messages and can move between ranks.
///
/// One thread at a time accesses a chunk, and a chunk never holds a lock. Its handlers are functions from (state,
/// message) to (state, outbox): the messages that they send leave when they return. A chunk must be serialisable with
/// everything that it needs to go on, because it may move to another rank between any two handlers.
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
    /// The type of a chunk's index in its array.
    type Index: Index;

    /// The type of messages to the chunk: usually an enum. Error messages name the variants.
    ///
    /// A message is encoded when it leaves the process, in a format without names and types. So serde must read the
    /// fields in the order in which it wrote them. The serde attributes `untagged`, `tag`, `flatten` and
    /// `skip_serializing_if` work among threads and fail between processes, also in a type inside the message.
    /// `CARIBOU_WIRE=always` encodes everything, so one run on one machine finds such faults. A field with `skip`
    /// silently arrives as its default value. The same holds for chunks, which `CARIBOU_LB=rotate` moves at each sync. A program
    /// without syncs also needs `CARIBOU_LB_PERIOD=1ms`.
    ///
    /// A message with memory behind pointers is also serialised when it is sent, to any rank, to count its bytes
    /// without writing them (see [`Config::mail_limit`](crate::Config::mail_limit)). This takes some ns per field;
    /// numbers in [`bulk`](crate::bulk) are one field.
    type Message: Serialize + DeserializeOwned + Send + 'static;

    /// The first handler of every chunk, called on the rank on which the chunk was placed.
    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        let _ = ctx;
    }

    /// True if the chunk can handle this message now. If not, the runtime defers the message and calls `ready` again
    /// after the next handler. The oldest ready message goes first. Not called between `at_sync` and `resume`.
    fn ready(&self, message: &Self::Message) -> bool {
        let _ = message;
        true
    }

    /// Handles a message. Messages from one chunk arrive in the order of sending; no other order is guaranteed.
    fn receive(&mut self, message: Self::Message, ctx: &mut Ctx<'_, Self>);

    /// Goes on after a sync, perhaps on another rank.
    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.start(ctx);
    }

    /// Makes a message of the result of a reduction (not with [`Target::Exit`](crate::Target::Exit)). `tag` is the tag
    /// of the contributors, which may be of another array.
    ///
    /// # Panics
    /// By default. A chunk type that receives results must implement this function.
    fn reduced(tag: u32, values: Values) -> Self::Message {
        let _ = values;
        panic!(
            "a reduction (tag {tag}) has a result, but this chunk type does not implement `Chunk::reduced`"
        )
    }

    /// The load of the chunk in the phase that ends. Called at `at_sync`, or after the first run since a window.
    /// [`Ctx::charge`] overrides it.
    fn load(&self) -> Load {
        Load::Measured
    }

    /// True if the balancer may move the chunk. Called at `at_sync`, or after the first run since a window. A chunk
    /// that may not move still counts as load.
    fn migratable(&self) -> bool {
        true
    }

    /// Bytes that a migration would move, which the balancer weighs against the gain. By default the size of the type.
    ///
    /// The first migrations between processes measure the encoded size of chunks of this array. From then on the
    /// balancer scales each declared size by encoded over declared bytes. So the default serves chunks of about one
    /// size; override it where sizes differ.
    ///
    /// Called before every handler, since a handler may come to a sync and then change the state. So it should be fast.
    fn state_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }

    /// What the chunk waits for, as text for the [`Error::Stalled`](crate::Error::Stalled) of a run that cannot go on.
    /// Only the program can tell which messages should still come. For a chunk with [`Halos`](crate::Halos):
    /// `Some(self.halos.to_string())`.
    fn waits_for(&self) -> Option<String> {
        None
    }

    /// Called before the chunk leaves a rank.
    fn on_depart(&mut self) {}

    /// Called when the chunk has arrived on a rank, before any handler.
    fn on_arrive(&mut self) {}
}
