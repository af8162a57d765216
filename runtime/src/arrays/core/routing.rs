//! Routing: the rank of each chunk, the messages that wait for one, and the counts of messages in flight between ranks.
//!
//! | module | part |
//! |---|---|
//! | [`location`], [`residents`] | the rank of a chunk, its cell on this rank, messages that wait for a chunk |
//! | [`envelope`], [`message_list`] | a message, and the list node that it lies on from sender to receiver |
//! | [`in_flight`], [`cut`] | messages in flight per epoch of routes; a consistent cut through them |

use std::sync::Arc;

use super::collectives::tree::Tree;
use super::lifecycle::erased::ErasedArray;
use cut::Cut;
use location::Location;

pub(crate) mod cut;
pub(crate) mod envelope;
pub(crate) mod in_flight;
pub(crate) mod location;
pub(crate) mod message_list;
pub(crate) mod residents;

/// One rank's routes.
pub(crate) struct Routing {
    pub(crate) location: Location,
    pub(crate) cut: Cut,
    /// Bytes of messages that came by routes which this rank does not know yet.
    pub(crate) early_bytes: u64,
}

impl Routing {
    pub(crate) fn new(tree: Tree, arrays: &Arc<[Arc<dyn ErasedArray>]>) -> Routing {
        let location = Location::new(tree.rank, tree.ranks, arrays.clone());
        Routing { location, cut: Cut::new(tree), early_bytes: 0 }
    }
}
