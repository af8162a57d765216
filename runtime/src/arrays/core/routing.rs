//! Routing: the rank of each chunk, the messages that wait for one, and the counts of messages in flight between ranks.

pub(crate) mod envelope;
pub(crate) mod in_flight;
pub(crate) mod location;
pub(crate) mod message_list;
pub(crate) mod residents;
