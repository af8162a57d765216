//! What the machines of a pool say to each other: one enum for all policies, so that drivers need to know nothing of them.

use serde::{Deserialize, Serialize};

use super::caa::CaaMessage;
use super::central::QueueMessage;
use super::leases::LeaseMessage;
use super::ruper::RuperMessage;

/// A message from one rank's machine to another's.
///
/// ```
/// use lb_strategies::pool::{Message, central::QueueMessage};
/// let message = Message::Queue(QueueMessage::Ask { worker: 3, fitting: 100 });
/// assert_eq!(message.clone(), message);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Between a central queue and the ranks whose workers ask it.
    Queue(QueueMessage),
    /// Of the combined adaptive algorithm, while nobody asks.
    Caa(CaaMessage),
    /// Of [`ruper`](super::ruper).
    Ruper(RuperMessage),
    /// Of the policies `leases` and `auto`.
    Leases(LeaseMessage),
}
