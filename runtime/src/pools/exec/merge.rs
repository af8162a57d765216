//! Merges the parts of all ranks into the result of the pool, and encodes accumulated values for other ranks.

use litemap::LiteMap;

use super::rank::Shared;
use crate::error::Error;
use crate::ids::Rank;
use crate::pools::core::packet::{IterationChecksum, Part, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};
use crate::wire::WireError;

/// Merges the parts in rank order.
///
/// # Errors
/// [`Error::Miscounted`] if not every iteration was executed exactly once, unless the pool was cancelled.
pub(super) fn merge_results(
    work: &dyn PoolWork,
    parts: LiteMap<Rank, (Accumulated, Part)>,
    cancelled: bool,
) -> Result<(Accumulated, PoolResult), Error> {
    let mut result = PoolResult::default();
    let mut checksum = IterationChecksum::default();
    let mut all = None;
    for (_, (accumulated, part)) in parts {
        work.gather(&mut all, accumulated);
        checksum.add(part.checksum);
        result.workers.extend(part.workers);
        result.messages += part.messages;
        result.said = result.said.or(part.said);
    }
    result.iterations = checksum.count;
    let expected = IterationChecksum::of(&(0..work.iterations()));
    result.cancelled = cancelled && checksum != expected;
    if !cancelled && checksum != expected {
        return Err(Error::Miscounted { executed: checksum.count, iterations: expected.count });
    }
    Ok((all.expect("a pool has a rank"), result))
}

impl Shared<'_> {
    pub(super) fn encode(&self, accumulated: &Accumulated) -> Result<Vec<u8>, Error> {
        self.work.encode(accumulated).map_err(|why| self.accumulated_error(&why))
    }

    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Accumulated, Error> {
        self.work.decode(bytes).map_err(|why| self.accumulated_error(&why))
    }

    fn accumulated_error(&self, why: &WireError) -> Error {
        Error::Wire {
            rank: self.rank,
            what: "the accumulated value of the pool".into(),
            why: why.to_string(),
        }
    }
}
