//! Counts messages to single chunks that no chunk received. Each rank counts its own, and the report of the run
//! combines the counts of all ranks.
//!
//! # What counts
//!
//! | message | counts as |
//! |---|---|
//! | its chunk removed itself before it read the message | *unread* |
//! | no chunk had its index when the run ended | *waiting* |
//! | still in flight at `exit` | nothing |
//! | a broadcast | nothing: a broadcast is for the chunks that exist |
//!
//! # How a rank finds that no chunk has an index
//!
//! A message waits on the rank where its chunk should be. The chunk may still be on its way there in two cases:
//!
//! 1. The chunk migrates. Then this rank expects it, unless this rank has not yet received the newest `Decision`.
//! 2. The chunk was inserted. Then more insertions were sent to this rank than it has admitted.
//!
//! In all other cases no chunk has that index.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use litemap::LiteMap;
use serde::{Deserialize, Serialize};

use crate::ids::{ChunkId, Rank};

/// The most addressees that a rank names, and that the report of a run names.
const NAMED_MAX: usize = 8;

/// Messages to single chunks that no chunk received: the index had no chunk, or the chunk removed itself before.
///
/// Messages still in flight at [`exit`](crate::Ctx::exit), messages for which an existing chunk was not ready, and
/// broadcasts are not counted. `Display` formats one line of text.
///
/// ```
/// use caribou::report::{Addressee, Undelivered};
/// let addressee = Addressee { chunk: "Tile[9]".into(), kind: "Halo".into(), messages: 2, removed: false };
/// let undelivered = Undelivered { messages: 3, addressees: vec![addressee] };
/// assert_eq!(
///     undelivered.to_string(),
///     "3 messages were not delivered: 2 `Halo` to Tile[9], which does not exist; and 1 more"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undelivered {
    /// Number of messages.
    pub messages: u64,
    /// The chunks to which the first of these messages were sent.
    pub addressees: Vec<Addressee>,
}

/// A chunk for which messages of one kind were undelivered.
///
/// ```
/// let report = caribou::Report::default();
/// assert!(report.undelivered.addressees.iter().all(|addressee| addressee.messages > 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressee {
    /// Array and index.
    pub chunk: String,
    /// The kind of the messages: the enum variant, `reduced` for a reduction's result, or `message`; `insertion of ..`
    /// for a chunk that was to be inserted.
    pub kind: String,
    /// Number of messages of that kind.
    pub messages: u64,
    /// True if the chunk removed itself; false if no chunk had that index when the run ended.
    pub removed: bool,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_delivered =
            if self.messages == 1 { "message was not delivered" } else { "messages were not delivered" };
        write!(f, "{} {not_delivered}", self.messages)?;
        let mut separator = ": ";
        for addressee in &self.addressees {
            write!(f, "{separator}{addressee}")?;
            separator = "; ";
        }
        let named: u64 = self.addressees.iter().map(|addressee| addressee.messages).sum();
        match self.messages.saturating_sub(named) {
            0 => Ok(()),
            more => write!(f, "{separator}and {more} more"),
        }
    }
}

impl fmt::Display for Addressee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = if self.removed { "had removed itself" } else { "does not exist" };
        write!(f, "{} `{}` to {}, which {why}", self.messages, self.kind, self.chunk)
    }
}

/// Undelivered messages by chunk and kind. Only the first [`NAMED_MAX`] pairs are counted separately.
#[derive(Debug, Default)]
pub(crate) struct Addressees {
    messages: u64,
    named: LiteMap<(ChunkId, Cow<'static, str>), u64>,
}

impl Addressees {
    pub(crate) fn add(&mut self, chunk: ChunkId, kind: Cow<'static, str>) {
        self.messages += 1;
        let (room, addressee) = (self.named.len() < NAMED_MAX, (chunk, kind));
        if let Some(count) = self.named.get_mut(&addressee) {
            *count += 1;
        } else if room {
            self.named.insert(addressee, 1);
        }
    }

    /// The same as text, with the names that `describe` gives to chunks.
    pub(crate) fn described(
        &self,
        removed: impl Fn(ChunkId) -> bool,
        describe: impl Fn(ChunkId) -> String,
    ) -> Undelivered {
        let addressee = |((chunk, kind), &messages): (&(ChunkId, Cow<'static, str>), &u64)| Addressee {
            chunk: describe(*chunk),
            kind: kind.to_string(),
            messages,
            removed: removed(*chunk),
        };
        Undelivered { messages: self.messages, addressees: self.named.iter().map(addressee).collect() }
    }
}

/// The counts of a rank when it stops.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UndeliveredReport {
    pub(crate) rank: Rank,
    pub(crate) unread: Undelivered,
    pub(crate) waiting: Undelivered,
    /// Number of `Decision`s with moves that the rank has received.
    pub(crate) migrations: u64,
    /// Numbers of chunks that handlers of the rank have inserted, by the rank that got them.
    pub(crate) inserted: BTreeMap<Rank, u64>,
    /// Inserted chunks that have come to the rank.
    pub(crate) admitted: u64,
}

/// The messages that reached no chunk, from the reports of all ranks.
pub(crate) fn undelivered(ranks: &[UndeliveredReport]) -> Undelivered {
    let migrations = ranks.iter().map(|rank| rank.migrations).max().unwrap_or(0);
    let inserted = |to: Rank| ranks.iter().filter_map(|rank| rank.inserted.get(&to)).sum::<u64>();
    let mut all = Undelivered::default();
    for rank in ranks {
        all.add(&rank.unread);
        if rank.migrations == migrations && rank.admitted == inserted(rank.rank) {
            all.add(&rank.waiting);
        }
    }
    all.addressees.truncate(NAMED_MAX);
    all
}

impl Undelivered {
    fn add(&mut self, other: &Undelivered) {
        self.messages += other.messages;
        self.addressees.extend_from_slice(&other.addressees);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ArrayId;

    fn waiting(rank: u32, messages: u64) -> UndeliveredReport {
        let addressee = Addressee { chunk: "C[9]".into(), kind: "m".into(), messages, removed: false };
        UndeliveredReport {
            rank: Rank(rank),
            waiting: Undelivered { messages, addressees: vec![addressee] },
            ..UndeliveredReport::default()
        }
    }

    #[test]
    fn a_message_that_waits_for_a_chunk_that_may_be_in_flight_is_not_lost() {
        let lost = |ranks: [UndeliveredReport; 2]| undelivered(&ranks).messages;
        assert_eq!(lost([waiting(0, 2), waiting(1, 3)]), 5);
        let moved = UndeliveredReport { migrations: 1, ..waiting(0, 2) };
        assert_eq!(lost([moved, waiting(1, 3)]), 2, "rank 1 has not heard of the moves");
        let inserts = UndeliveredReport { inserted: [(Rank(1), 1)].into_iter().collect(), ..waiting(0, 2) };
        assert_eq!(lost([inserts.clone(), waiting(1, 3)]), 2, "a chunk is on its way to rank 1");
        assert_eq!(lost([inserts, UndeliveredReport { admitted: 1, ..waiting(1, 3) }]), 5);
    }

    #[test]
    fn only_the_first_are_named_and_all_are_counted() {
        let mut addressees = Addressees::default();
        (0..1000).for_each(|key| addressees.add(ChunkId { array: ArrayId(0), key }, "m".into()));
        addressees.add(ChunkId { array: ArrayId(0), key: 3 }, "m".into());
        let all = addressees.described(|_| true, |chunk| chunk.key.to_string());
        assert_eq!((all.messages, all.addressees.len(), all.addressees[3].messages), (1001, NAMED_MAX, 2));
        assert_eq!(
            all.to_string(),
            "1001 messages were not delivered: 1 `m` to 0, which had removed itself; 1 `m` to 1, which had removed \
             itself; \
             1 `m` to 2, which had removed itself; 2 `m` to 3, which had removed itself; 1 `m` to 4, which had removed \
             itself; 1 `m` to 5, which had removed itself; 1 `m` to 6, which had removed itself; 1 `m` to 7, which had \
             removed itself; and 992 more"
        );
    }
}
