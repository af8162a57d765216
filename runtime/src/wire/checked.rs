//! Checks the length of each string against the available bytes before memory is allocated for it.
//!
//! For an owned string, bincode allocates the length that it reads first: eight wrong bytes request 2^60 bytes, which
//! panics or ends the process. For a borrowed string, bincode checks the length. [`Checked`] therefore decodes all
//! strings and byte buffers as borrowed, and the visitor copies them if its type owns them. (Serde expects a visitor
//! with `visit_string` to have `visit_str`.) Collections reserve memory for at most 2^20 elements in advance.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Maximum number of elements for which a collection reserves memory before they have arrived.
const HINT_MAX: usize = 1 << 20;

/// Wraps each role in serde's decoding of a value (deserializer, visitor, access, seed), so that all strings in the
/// value are checked. After decoding, holds the value.
pub(super) struct Checked<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Checked<T> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Checked<T>, D::Error> {
        T::deserialize(Checked(deserializer)).map(Checked)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Checked<S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Checked(deserializer))
    }
}

/// Methods that read a value without others inside. The second name is the method of the wrapped deserializer.
macro_rules! flat {
    ($($method:ident as $read:ident,)*) => { $(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$read(visitor)
        }
    )* };
}

/// Methods that read a value with others inside.
macro_rules! nested {
    ($($method:ident($($name:ident: $type:ty),*),)*) => { $(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Checked(visitor))
        }
    )* };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Checked<D> {
    type Error = D::Error;

    flat! {
        deserialize_string as deserialize_str,
        deserialize_byte_buf as deserialize_bytes,
        deserialize_str as deserialize_str,
        deserialize_bytes as deserialize_bytes,
        deserialize_bool as deserialize_bool,
        deserialize_i8 as deserialize_i8,
        deserialize_i16 as deserialize_i16,
        deserialize_i32 as deserialize_i32,
        deserialize_i64 as deserialize_i64,
        deserialize_i128 as deserialize_i128,
        deserialize_u8 as deserialize_u8,
        deserialize_u16 as deserialize_u16,
        deserialize_u32 as deserialize_u32,
        deserialize_u64 as deserialize_u64,
        deserialize_u128 as deserialize_u128,
        deserialize_f32 as deserialize_f32,
        deserialize_f64 as deserialize_f64,
        deserialize_char as deserialize_char,
        deserialize_unit as deserialize_unit,
        deserialize_identifier as deserialize_identifier,
        deserialize_ignored_any as deserialize_ignored_any,
        deserialize_any as deserialize_any,
    }

    nested! {
        deserialize_option(),
        deserialize_unit_struct(name: &'static str),
        deserialize_newtype_struct(name: &'static str),
        deserialize_seq(),
        deserialize_tuple(len: usize),
        deserialize_tuple_struct(name: &'static str, len: usize),
        deserialize_map(),
        deserialize_struct(name: &'static str, fields: &'static [&'static str]),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Checked<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    #[inline]
    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    #[inline]
    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Checked(deserializer))
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Checked(deserializer))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Checked(elements))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Checked(entries))
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Checked(variant))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Checked<A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Checked(seed))
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint().map(|hint| hint.min(HINT_MAX))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Checked<A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Checked(seed))
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Checked(seed))
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint().map(|hint| hint.min(HINT_MAX))
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Checked<A> {
    type Error = A::Error;
    type Variant = Checked<A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(Checked(seed)).map(|(value, variant)| (value, Checked(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Checked<A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Checked(seed))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Checked(visitor))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Checked(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt;

    use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, Visitor};
    use serde::{Serialize, Serializer};

    use crate::wire::{decode, decode_message, encode, encode_message_into};

    #[derive(Serialize, serde::Deserialize, PartialEq, Debug)]
    struct Name(String);

    #[derive(Serialize, serde::Deserialize, PartialEq, Debug)]
    enum Nested {
        Unit,
        Newtype(Name),
        Tuple(u8, Option<String>),
        Struct { names: Vec<Name>, by_name: BTreeMap<String, (i64, String)> },
    }

    /// Owned bytes, as a crate may serialise them.
    #[derive(PartialEq, Debug)]
    struct Owned(Vec<u8>);

    impl Serialize for Owned {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }

    impl<'de> Deserialize<'de> for Owned {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Owned, D::Error> {
            deserializer.deserialize_byte_buf(AnyBytes).map(Owned)
        }
    }

    struct AnyBytes;

    impl Visitor<'_> for AnyBytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }

    fn nested() -> [Nested; 4] {
        [
            Nested::Unit,
            Nested::Newtype(Name("one".into())),
            Nested::Tuple(7, Some("two".into())),
            Nested::Struct {
                names: vec![Name("three".into()), Name(String::new())],
                by_name: BTreeMap::from([("four".into(), (-4, "five".into()))]),
            },
        ]
    }

    #[test]
    fn values_of_each_kind_are_read_as_they_were_written() {
        for value in nested() {
            let bytes = encode(&value).expect("it encodes");
            assert_eq!(decode::<Nested>(&bytes).expect("it decodes"), value);
        }
        let owned = Owned(b"bytes".to_vec());
        let bytes = encode(&owned).expect("it encodes");
        assert_eq!(decode::<Owned>(&bytes).expect("it decodes"), owned);
    }

    /// A message with `length` before three bytes is an error, wherever the string or the bytes are in the message.
    fn length_is_checked<T: Serialize + DeserializeOwned>(value: &T, length: u64) {
        let mut bytes = Vec::new();
        encode_message_into(value, &mut bytes).expect("it encodes");
        let at = bytes.windows(3).position(|three| three == b"abc").expect("it holds these bytes");
        bytes[at - 8..at].copy_from_slice(&length.to_le_bytes());
        assert!(decode_message::<T>(&bytes).is_err());
    }

    #[test]
    fn a_length_beyond_the_bytes_asks_for_no_memory() {
        // More than a process can allocate, and more than a vector can hold.
        for length in [1 << 45, u64::MAX] {
            let text = || "abc".to_owned();
            length_is_checked(&text(), length);
            length_is_checked(&Nested::Newtype(Name(text())), length);
            length_is_checked(&Nested::Tuple(1, Some(text())), length);
            let by_name = || BTreeMap::from([("four".to_owned(), (4, text()))]);
            length_is_checked(&Nested::Struct { names: vec![], by_name: by_name() }, length);
            length_is_checked(&Nested::Struct { names: vec![Name(text())], by_name: by_name() }, length);
            length_is_checked(&BTreeMap::from([(text(), 1)]), length);
            length_is_checked(&(1u8, [text(), text()]), length);
            length_is_checked(&Owned(b"abc".to_vec()), length);
        }
    }
}
