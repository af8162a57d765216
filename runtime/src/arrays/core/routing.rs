//! Routing: finds the rank of each chunk, keeps messages for missing chunks, and counts messages in flight.
//!
//! | module | purpose |
//! |---|---|
//! | [`location`], [`residents`] | store the rank of each chunk, its cell on this rank, and messages that wait for a chunk |
//! | [`envelope`], [`message_list`] | define a message, and the list node that carries it from sender to receiver |
//! | [`in_flight`], [`cut`] | count messages in flight per epoch of routes, and make a consistent cut through them |

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

/// The routes of one rank.
pub(crate) struct Routing {
    pub(crate) location: Location,
    pub(crate) cut: Cut,
    /// Bytes of messages that came under new routes before this rank received the `Decision` about these routes.
    pub(crate) early_bytes: u64,
}

impl Routing {
    pub(crate) fn new(tree: Tree, arrays: &Arc<[Arc<dyn ErasedArray>]>) -> Routing {
        let location = Location::new(tree.rank, tree.ranks, arrays.clone());
        Routing { location, cut: Cut::new(tree), early_bytes: 0 }
    }
}
