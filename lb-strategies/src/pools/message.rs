//! Messages between the machines of a pool, with their types erased for the transport.
//!
//! Within a process, a message is the value itself. To leave the process, it is encoded by serde, and the reader names
//! its type. Nothing else in this crate is encoded.

use std::any::{Any, type_name};
use std::fmt;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;
use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A message of the type that a policy has chosen.
///
/// ```
/// use lb_strategies::pool::Message;
/// assert_eq!(Message::new(7u64).read::<u64>()?, 7);
/// let error = Message::new(7u64).read::<String>().unwrap_err();
/// assert_eq!(error.to_string(), "it is not a `alloc::string::String`, but `u64`");
/// # Ok::<(), lb_strategies::pool::Unreadable>(())
/// ```
pub struct Message(Content);

enum Content {
    Value(Box<dyn AnyValue>),
    /// From another process.
    Bytes(Vec<u8>),
}

/// A message that is not of the type that its reader expects, or is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl Message {
    /// A message with this value.
    pub fn new<T: Serialize + Send + 'static>(value: T) -> Self {
        Self(Content::Value(Box::new(value)))
    }

    /// Reads the message as a `T`.
    ///
    /// # Errors
    /// It is of another type, or is damaged.
    pub fn read<T: DeserializeOwned + 'static>(self) -> Result<T, Unreadable> {
        match self.0 {
            Content::Value(value) => {
                let but = value.type_name();
                let read = (value as Box<dyn Any>).downcast().map(|value| *value);
                read.map_err(|_| not::<T>(&format!(", but `{but}`")))
            }
            Content::Bytes(bytes) => decode(&bytes),
        }
    }
}

trait AnyValue: Any + Send {
    fn type_name(&self) -> &'static str;

    fn encode(&self) -> Result<Vec<u8>, String>;
}

impl<T: Serialize + Send + 'static> AnyValue for T {
    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }

    fn encode(&self) -> Result<Vec<u8>, String> {
        let encoded = bincode::serde::encode_to_vec((kind::<T>(), self), bincode::config::standard());
        encoded.map_err(|why| format!("a message of the type `{}`: {why}", type_name::<T>()))
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    let config = bincode::config::standard();
    let damaged = |why: bincode::error::DecodeError| not::<T>(&format!(": {why}"));
    let (kind_of_sender, begin): (u32, usize) =
        bincode::serde::decode_from_slice(bytes, config).map_err(damaged)?;
    if kind_of_sender != kind::<T>() {
        return Err(not::<T>(""));
    }
    let (value, length) = bincode::serde::decode_from_slice(&bytes[begin..], config).map_err(damaged)?;
    match bytes.len() - begin - length {
        0 => Ok(value),
        rest => Err(not::<T>(&format!(": {rest} bytes are left over"))),
    }
}

/// A number for a type, by which a reader detects bytes of another type. All processes of a job run the same program.
fn kind<T>() -> u32 {
    FxBuildHasher.hash_one(type_name::<T>()) as u32
}

#[cold]
fn not<T>(why: &str) -> Unreadable {
    Unreadable(format!("it is not a `{}`{why}", type_name::<T>()))
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Content::Value(value) => f.write_str(value.as_ref().type_name()),
            Content::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Content::Value(value) => value.as_ref().encode().map_err(S::Error::custom)?.serialize(serializer),
            Content::Bytes(bytes) => bytes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|bytes| Self(Content::Bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent<T: Serialize + Send + 'static>(value: T) -> Message {
        carried(&Message::new(value))
    }

    fn carried(message: &Message) -> Message {
        let text = serde_json::to_string(message).expect("it encodes");
        serde_json::from_str(&text).expect("it is a list of bytes")
    }

    #[test]
    fn a_message_says_in_another_process_what_it_said_in_its_own() {
        let value = (7u32, vec!["seven".to_owned()]);
        assert_eq!(Message::new(value.clone()).read(), Ok(value.clone()));
        assert_eq!(sent(value.clone()).read(), Ok(value.clone()));
        assert_eq!(carried(&sent(value.clone())).read(), Ok(value), "passed on unread");
    }

    #[test]
    fn bytes_of_another_type_are_refused_where_they_could_be_read() {
        assert_eq!(sent(7u64).read(), Ok(7u64));
        assert_eq!(sent(7u64).read::<u32>(), Err(not::<u32>("")));
        assert_eq!(sent(7u64).read::<()>(), Err(not::<()>("")));
    }

    #[test]
    fn damaged_bytes_are_an_error_that_names_the_type() {
        let Content::Bytes(bytes) = sent("seven".to_owned()).0 else { unreachable!("it was sent") };
        for length in 0..bytes.len() {
            let error = Message(Content::Bytes(bytes[..length].to_vec())).read::<String>();
            assert!(
                error.is_err_and(|why| why.to_string().starts_with("it is not a `alloc::string::String`: "))
            );
        }
        let longer = Message(Content::Bytes([bytes, vec![0]].concat()));
        assert_eq!(longer.read::<String>(), Err(not::<String>(": 1 bytes are left over")));
    }
}
