//! What the machines of a pool say to each other: one enum for all policies, so that drivers need to know nothing of them.

use serde::{Deserialize, Serialize};

/// A message from one rank's machine to another's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// Of a test: nothing.
    Nothing,
}
