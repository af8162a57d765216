//! Makes the whole of the parts of all ranks.

use litemap::LiteMap;

use crate::error::Error;
use crate::ids::Rank;
use crate::pools::core::packet::{IterationChecksum, Part, PoolResult};
use crate::pools::core::work::{Accumulated, PoolWork};

/// Merges the parts in the order of their ranks.
///
/// # Errors
/// [`Error::Miscounted`] if the iterations executed are not those of the pool, each once, unless it was cancelled.
pub(super) fn merge_results(
    work: &dyn PoolWork,
    parts: LiteMap<Rank, (Accumulated, Part)>,
    cancelled: bool,
) -> Result<(Accumulated, PoolResult), Error> {
    let mut whole = PoolResult::default();
    let mut tally = IterationChecksum::default();
    let mut all = None;
    for (_, (accumulated, part)) in parts {
        work.gather(&mut all, accumulated);
        tally.add(part.checksum);
        whole.workers.extend(part.workers);
        whole.messages += part.messages;
        whole.said = whole.said.or(part.said);
    }
    whole.iterations = tally.count;
    let expected = IterationChecksum::of(&(0..work.iterations()));
    whole.cancelled = cancelled && tally != expected;
    if !cancelled && tally != expected {
        return Err(Error::Miscounted { executed: tally.count, iterations: expected.count });
    }
    Ok((all.expect("a pool has a rank"), whole))
}
