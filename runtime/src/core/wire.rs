//! The encoding of everything that leaves a process. The only file that names bincode.
//!
//! Format: bincode 2, little-endian, variable-length integers, fixed-size floats. Bulk numeric fields should use
//! [`bulk`](crate::bulk), which writes them as one byte string at memory speed.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A failed decode: what the decoder said.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WireError(String);

/// Encodes a value. Fails where its `Serialize` implementation does.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    bincode::serde::encode_to_vec(value, bincode::config::standard()).map_err(|e| WireError(e.to_string()))
}

/// Decodes a value that takes up all of `bytes`.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (value, used) = bincode::serde::borrow_decode_from_slice(bytes, bincode::config::standard())
        .map_err(|e| WireError(e.to_string()))?;
    if used == bytes.len() {
        Ok(value)
    } else {
        Err(WireError(format!("{} bytes left over of {}", bytes.len() - used, bytes.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_left_over_are_an_error() {
        let mut bytes = encode(&7u32).expect("a number encodes");
        assert_eq!(decode::<u32>(&bytes).expect("it decodes"), 7);
        bytes.push(0);
        assert!(decode::<u32>(&bytes).is_err());
    }
}
