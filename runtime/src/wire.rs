//! Encodes and decodes everything that leaves a process, with bincode 2, little-endian. No other file names bincode,
//! except [`Message`](lb_strategies::pool::Message), which encodes the messages between the machines of a pool.
//!
//! There are two formats. In messages between chunks every number is as long as in memory, because shortening integers
//! takes longer than copying them. Elsewhere integers have variable length, because packets about many chunks have
//! mostly small numbers. [`bulk`](crate::bulk) writes fields with many numbers as one byte string, at memory speed.

pub mod bulk;
mod checked;
pub(crate) mod codec;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bincode::config::{Config, Configuration, Fixint, LittleEndian};
use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::checked::Checked;
use crate::panics::panic_message;
use crate::text::short_type_name;

/// A failed encode or decode, with the text of the codec.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WireError(String);

impl WireError {
    pub(crate) fn new(why: impl Into<String>) -> WireError {
        WireError(why.into())
    }
}

/// The format of messages between chunks.
const MESSAGE: Configuration<LittleEndian, Fixint> = bincode::config::standard().with_fixed_int_encoding();
/// The format of everything else.
const COMPACT: Configuration = bincode::config::standard();

/// Encodes a value. Fails if its `Serialize` implementation fails.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes)?;
    Ok(bytes)
}

/// Appends a value's encoding to `bytes`. If the encoding fails, part of it may have been appended.
#[inline]
pub(crate) fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) -> Result<(), WireError> {
    append(value, bytes, COMPACT)
}

/// Writes a value's encoding, in pieces of any length.
pub(crate) fn encode_to<T: Serialize>(value: &T, mut out: &mut dyn io::Write) -> io::Result<()> {
    match bincode::serde::encode_into_std_write(value, &mut out, COMPACT) {
        Ok(_) => Ok(()),
        Err(EncodeError::Io { inner, .. }) => Err(inner),
        Err(why) => Err(io::Error::other(unwritable(why))),
    }
}

/// Appends the encoding of a message between chunks, as [`encode_into`].
#[inline]
pub(crate) fn encode_message_into<M: Serialize>(message: &M, bytes: &mut Vec<u8>) -> Result<(), WireError> {
    append(message, bytes, MESSAGE)
}

#[inline]
fn append<T: Serialize>(value: &T, bytes: &mut Vec<u8>, format: impl Config) -> Result<(), WireError> {
    bincode::serde::encode_into_writer(value, Append(bytes), format).map_err(|why| WireError(unwritable(why)))
}

/// The length of a value's encoding in bytes, with numbers in [`bulk`](crate::bulk); 0 if the encoding fails.
#[inline]
pub(crate) fn encoded_bytes<T: Serialize>(value: &T) -> u64 {
    count(value, COMPACT)
}

/// The length of a message's encoding: about the bytes that it holds, inside the value or on the heap. For types of
/// known length the compiler computes the sum. 0 if the encoding fails or panics, which is reported where the
/// message is encoded.
#[inline(always)]
pub(crate) fn message_bytes<M: Serialize>(message: &M) -> u64 {
    catch_unwind(AssertUnwindSafe(|| count(message, MESSAGE))).unwrap_or(0)
}

#[inline]
fn count<T: Serialize>(value: &T, format: impl Config) -> u64 {
    let mut count = Count(0);
    bincode::serde::encode_into_writer(value, &mut count, format).map_or(0, |()| count.0)
}

/// Encodes or decodes a value of type `T` by `act`. This runs user code, so an error names the type.
#[inline(always)]
pub(crate) fn catching<T, R>(
    doing: &str,
    act: impl FnOnce() -> Result<R, WireError>,
) -> Result<R, WireError> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(WireError(why))) => {
            Err(WireError(format!("`{}` cannot be {doing}: {why}", short_type_name::<T>())))
        }
        Err(panic) => Err(WireError(format!(
            "`{}` panicked when it was {doing}: {}",
            short_type_name::<T>(),
            panic_message(&*panic)
        ))),
    }
}

struct Count(u64);

impl Writer for &mut Count {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}

struct Append<'b>(&'b mut Vec<u8>);

impl Writer for Append<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Decodes a value that takes up all of `bytes`.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    decode_all(bytes, COMPACT)
}

/// Decodes a message between chunks that takes up all of `bytes`.
#[inline]
pub(crate) fn decode_message<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, WireError> {
    decode_all(bytes, MESSAGE)
}

#[inline]
fn decode_all<T: DeserializeOwned>(mut bytes: &[u8], format: impl Config) -> Result<T, WireError> {
    let length = bytes.len();
    let value = take(&mut bytes, format)?;
    if bytes.is_empty() {
        Ok(value)
    } else {
        Err(unreadable(DecodeError::OtherString(format!("{} bytes left over of {length}", bytes.len()))))
    }
}

/// Decodes the first value in `bytes`, and advances `bytes` past it.
#[inline]
pub(crate) fn decode_first<T: DeserializeOwned>(bytes: &mut &[u8]) -> Result<T, WireError> {
    take(bytes, COMPACT)
}

#[inline]
fn take<T: DeserializeOwned>(bytes: &mut &[u8], format: impl Config) -> Result<T, WireError> {
    let (Checked(value), used) =
        bincode::serde::borrow_decode_from_slice(bytes, format).map_err(unreadable)?;
    *bytes = &bytes[used..];
    Ok(value)
}

/// The reason why a value is not encoded. An error of the program's `Serialize` keeps its text.
#[cold]
fn unwritable(why: EncodeError) -> String {
    match why {
        EncodeError::OtherString(why) => why,
        why => why.to_string(),
    }
}

/// The error of bytes that cannot be decoded. The usual cause is a type whose `Serialize` and `Deserialize` do not
/// match.
#[cold]
fn unreadable(why: DecodeError) -> WireError {
    // An error of the program's `Deserialize` keeps its text.
    let why = match why {
        DecodeError::OtherString(why) => why,
        why => why.to_string(),
    };
    WireError(format!(
        "{why}; the encoding has neither names nor types, so serde's `untagged`, `tag`, `flatten` and \
         `skip_serializing_if` do not work with it"
    ))
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

    #[test]
    fn what_serde_cannot_read_without_types_says_so() {
        #[derive(Serialize, serde::Deserialize)]
        #[serde(untagged)]
        enum Untagged {
            Number(u32),
        }
        #[derive(Serialize, serde::Deserialize)]
        struct Skipping {
            #[serde(skip_serializing_if = "Option::is_none")]
            field: Option<u32>,
            last: u32,
        }
        let untagged = encode(&Untagged::Number(7)).expect("it encodes");
        let skipping = encode(&Skipping { field: None, last: 7 }).expect("it encodes");
        let errors = [decode::<Untagged>(&untagged).err(), decode::<Skipping>(&skipping).err()];
        for error in errors {
            let said = error.expect("it cannot be read").to_string();
            assert!(said.contains("`untagged`") && said.contains("`skip_serializing_if`"), "{said}");
        }
    }

    #[test]
    fn what_a_type_of_the_program_says_is_told_in_its_words() {
        struct Refused;
        impl Serialize for Refused {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no words for 50"))
            }
        }
        impl<'de> serde::Deserialize<'de> for Refused {
            fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Refused, D::Error> {
                Err(serde::de::Error::custom("nothing from 50"))
            }
        }
        let written = encode(&Refused).expect_err("it refuses").to_string();
        assert_eq!(written, "no words for 50");
        let read = decode::<Refused>(&[]).err().expect("it refuses").to_string();
        assert!(read.starts_with("nothing from 50;"), "{read}");
    }

    #[test]
    fn values_follow_each_other() {
        let mut bytes = encode(&"first").expect("text encodes");
        encode_into(&2u64, &mut bytes).expect("a number encodes");
        let mut rest = &bytes[..];
        assert_eq!(decode_first::<String>(&mut rest).expect("it decodes"), "first");
        assert_eq!(decode::<u64>(rest).expect("it decodes"), 2);
    }
}
