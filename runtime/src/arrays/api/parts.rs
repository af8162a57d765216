//! Gathers of any type: encodes the part of each chunk, and decodes all parts of a result.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::index::Index;
use crate::arrays::core::collectives::reduction::Values;
use crate::arrays::report::Report;
use crate::error::Error;
use crate::wire;

impl Values {
    /// The part of one chunk in a gather, of any type. [`gathered`](Self::gathered) or
    /// [`Report::gathered`](crate::Report::gathered) reads all parts.
    ///
    /// ```
    /// use caribou::Values;
    /// let part = Values::part(&("a", 1.5));
    /// assert_eq!(part.gathered::<u32, (String, f64)>(), [(0, ("a".to_string(), 1.5))]);
    /// ```
    ///
    /// # Panics
    /// If the `Serialize` implementation of the part fails.
    #[track_caller]
    pub fn part<T: Serialize>(part: &T) -> Values {
        match wire::encode(part) {
            Ok(bytes) => Values::from(bytes),
            Err(why) => panic!("a part of a gather cannot be encoded: {why}"),
        }
    }

    /// The [`part`](Self::part)s that chunks contributed, by packed index.
    ///
    /// # Panics
    /// If the values are numbers, or parts of another type.
    #[track_caller]
    pub fn gathered<I: Index, T: DeserializeOwned>(&self) -> Vec<(I, T)> {
        let Values::Gathered(parts) = self else {
            panic!("the result is {}, expected the parts of Reducer::Gather", self.describe())
        };
        match read_parts(parts) {
            Ok(parts) => parts,
            Err(why) => panic!("{why}"),
        }
    }
}

impl Report {
    /// The parts of the gather that ended the run ([`Values::part`](crate::Values::part)), by packed index, in every
    /// process.
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Reducer, Target, Values};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Namer;
    /// impl Chunk for Namer {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let name = format!("chunk {}", ctx.index());
    ///         ctx.contribute(0, Reducer::Gather, Values::part(&name), Target::Exit);
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(3, |_| Namer);
    /// })?;
    /// assert_eq!(report.gathered::<u32, String>()?[2], (2, "chunk 2".to_string()));
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] if no gather ended the run, or the parts are of other types.
    pub fn gathered<I: Index, T: DeserializeOwned>(&self) -> Result<Vec<(I, T)>, Error> {
        read_parts(&self.value::<Vec<(u64, Vec<u8>)>>()?).map_err(|why| Error::Value { why })
    }
}

fn read_parts<I: Index, T: DeserializeOwned>(parts: &[(u64, Vec<u8>)]) -> Result<Vec<(I, T)>, String> {
    let read = |(key, bytes): &(u64, Vec<u8>)| {
        let index = I::unpack(*key);
        match wire::decode(bytes) {
            Ok(part) => Ok((index, part)),
            Err(why) => {
                Err(format!("the part of {index:?} is not a `{}`: {why}", std::any::type_name::<T>()))
            }
        }
    };
    parts.iter().map(read).collect()
}
