//! The list of all moves of a decision, which rank 0 broadcasts down the [tree](crate::arrays::core::collectives::tree)
//! of ranks. Every rank receives all moves and passes them on to its children. Between processes rank 0 encodes the
//! list once, and every other rank forwards the bytes that it received. So a further child costs a copy of a pointer,
//! not the encoding of thousands of moves.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use lb_strategies::balancer::Move;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use crate::wire::{self, bulk};

/// A shared list of moves, and its encoding once it has been sent to or received from another process.
#[derive(Clone, Debug)]
pub(crate) struct MoveList {
    all: Arc<[Move]>,
    encoded: Arc<OnceLock<Arc<[u8]>>>,
}

impl From<Vec<Move>> for MoveList {
    fn from(all: Vec<Move>) -> MoveList {
        MoveList { all: all.into(), encoded: Arc::default() }
    }
}

impl Deref for MoveList {
    type Target = [Move];

    fn deref(&self) -> &[Move] {
        &self.all
    }
}

impl Serialize for MoveList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = match self.encoded.get() {
            Some(bytes) => bytes,
            None => {
                let bytes = wire::encode(&&self.all[..]).map_err(ser::Error::custom)?;
                self.encoded.get_or_init(|| bytes.into())
            }
        };
        bulk::serialize(bytes, serializer)
    }
}

impl<'de> Deserialize<'de> for MoveList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MoveList, D::Error> {
        let bytes: Arc<[u8]> = bulk::deserialize(deserializer)?;
        let all: Vec<Move> = wire::decode(&bytes).map_err(de::Error::custom)?;
        Ok(MoveList { all: all.into(), encoded: Arc::new(OnceLock::from(bytes)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ArrayId, ChunkId, Rank};

    #[test]
    fn moves_are_decoded_as_they_were_encoded_and_forwarded_by_the_same_bytes() {
        let one = |key| Move { chunk: ChunkId { array: ArrayId(1), key }, from: Rank(7), to: Rank(300) };
        for moves in [0, 1, 10_000] {
            let moves: MoveList = Vec::from_iter((0..moves).map(one)).into();
            let bytes = wire::encode(&moves).expect("numbers encode");
            let came: MoveList = wire::decode(&bytes).expect("it was encoded");
            assert_eq!(came[..], moves[..]);
            let before = came.encoded.get().map(|bytes| bytes.as_ptr());
            assert_eq!(wire::encode(&came.clone()).expect("it was decoded"), bytes);
            assert!(before.is_some() && came.encoded.get().map(|bytes| bytes.as_ptr()) == before);
        }
    }
}
