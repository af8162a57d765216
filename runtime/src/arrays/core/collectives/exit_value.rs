//! Stores the value that a run ends with, encoded, so that ranks do not need its type.

use std::any::type_name;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::own::Own;
use super::reduction::Values;
use crate::error::Error;
use crate::wire::{self, WireError};

/// The name of a type, for people. A type of the runtime is named after the reducer that yields it.
fn name_of<T>() -> String {
    let name = type_name::<T>();
    if name == type_name::<Own>() {
        "the result of Reducer::Own".to_owned()
    } else if name == type_name::<Vec<(u64, Vec<u8>)>>() {
        "the result of Reducer::Gather".to_owned()
    } else {
        format!("`{}`", name.replace("alloc::vec::", "").replace("alloc::string::", ""))
    }
}

/// A value of any type, encoded, with the name of its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExitValue {
    type_name: String,
    bytes: Vec<u8>,
}

impl ExitValue {
    pub(crate) fn new<T: Serialize>(value: &T) -> Result<ExitValue, WireError> {
        Ok(ExitValue { type_name: name_of::<T>(), bytes: wire::encode(value)? })
    }

    /// The result of a reduction, as a plain vector.
    pub(crate) fn reduced(values: &Values) -> Result<ExitValue, WireError> {
        match values {
            Values::F64(numbers) => ExitValue::new(numbers),
            Values::U64(numbers) => ExitValue::new(numbers),
            Values::I64(numbers) => ExitValue::new(numbers),
            Values::Gathered(parts) => ExitValue::new(parts),
            Values::Own(own) => ExitValue::new(own),
        }
    }

    /// The value, if it is a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let asked = name_of::<T>();
        if self.type_name != asked {
            return Err(Error::Value { why: format!("it is {}, not {asked}", self.type_name) });
        }
        wire::decode(&self.bytes).map_err(|why| {
            let why = format!("{} cannot be decoded: {why}", self.type_name);
            Error::Value { why }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_the_type_it_was_written_as_and_no_other() {
        let value = ExitValue::new(&vec![1.5, 2.5]).expect("numbers encode");
        assert_eq!(value.read::<Vec<f64>>(), Ok(vec![1.5, 2.5]));
        let error = value.read::<Vec<u64>>().expect_err("it is another type");
        assert_eq!(error.to_string(), "the value of the run: it is `Vec<f64>`, not `Vec<u64>`");
    }

    #[test]
    fn a_reduction_gives_the_vector_that_its_chunks_contributed() {
        let value = ExitValue::reduced(&Values::from(vec![7u64])).expect("numbers encode");
        assert_eq!(value.read::<Vec<u64>>(), Ok(vec![7]));
    }
}
