//! Reductions of user-defined types: chunks contribute values of a type that implements [`Combine`].

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arrays::core::collectives::own::Own;
use crate::arrays::core::collectives::reduction::Values;
use crate::arrays::report::Report;
use crate::error::Error;
use crate::text::short_type_name;
use crate::wire::{self, WireError, catching};

/// A value that can be reduced with others of its type, under [`Reducer::Own`](crate::Reducer::Own).
///
/// Values are combined in any order and in any grouping, on any rank, so `combine` must be commutative and associative.
/// Then the result does not depend on the ranks of chunks, except for the last bits of floating-point numbers.
/// `combine` is no handler: it runs between handlers, on ranks that may have other chunks, and should only compute. If
/// it panics, or a value does not survive encoding and decoding, the run ends with [`Error::Reduction`], which names
/// the type and the tag. If only the receiver can combine, the run ends with the error of the receiver's handler.
///
/// A contribution is encoded when it is made. A rank can combine values if one of its chunks has contributed to the
/// same reduction. Such a rank sends on one value. Other ranks send on all values, and the receiver combines the rest.
///
/// ```
/// use caribou::{Chunk, Combine, Config, Ctx, Reducer, Target, Values};
/// use serde::{Deserialize, Serialize};
///
/// /// The highest point, and whose it is.
/// #[derive(Serialize, Deserialize)]
/// struct Summit { height: f64, hill: u32 }
///
/// impl Combine for Summit {
///     fn combine(&mut self, other: Summit) {
///         // Of two of the same height the one with the lower index, in whatever order they are combined.
///         let order = self.height.total_cmp(&other.height).then(other.hill.cmp(&self.hill));
///         if order.is_lt() { *self = other; }
///     }
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Hill;
///
/// impl Chunk for Hill {
///     type Index = u32;
///     type Message = Summit;
///
///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
///         let hill = ctx.index();
///         let summit = Summit { height: f64::from(hill * 7 % 10), hill };
///         ctx.contribute(0, Reducer::Own, Values::own(&summit), Target::Chunk(0));
///     }
///
///     fn reduced(_tag: u32, values: Values) -> Summit { values.combined() }
///
///     fn receive(&mut self, highest: Summit, ctx: &mut Ctx<'_, Self>) {
///         // With `Target::Exit` it would have come out by `Report::combined`.
///         ctx.exit_with(&highest.hill);
///     }
/// }
///
/// let report = caribou::run(Config::default().ranks(2), |setup| {
///     setup.array(20, |_| Hill);
/// })?;
/// assert_eq!(report.value::<u32>()?, 7, "7 and 17 are as high");
/// # Ok::<(), caribou::Error>(())
/// ```
pub trait Combine: Serialize + DeserializeOwned {
    /// Combines `other` into this value.
    fn combine(&mut self, other: Self);
}

impl Values {
    /// The contribution of one chunk to a reduction of a user-defined type, under
    /// [`Reducer::Own`](crate::Reducer::Own).
    ///
    /// # Panics
    /// If the `Serialize` implementation of the value fails.
    #[track_caller]
    pub fn own<T: Combine>(value: &T) -> Values {
        match wire::encode(value) {
            Ok(bytes) => Values::Own(Own::new(type_name::<T>(), bytes, combine_all::<T>)),
            Err(why) => panic!("a value to reduce cannot be encoded: {why}"),
        }
    }

    /// The result of a reduction of values of type `T`, each contributed with [`own`](Self::own).
    ///
    /// # Panics
    /// If another type was reduced.
    #[track_caller]
    pub fn combined<T: Combine>(&self) -> T {
        let Values::Own(own) = self else {
            panic!("the result is {}, expected values of Reducer::Own", self.describe())
        };
        match read::<T>(own) {
            Ok(value) => value,
            Err(why) => panic!("{why}"),
        }
    }
}

impl Report {
    /// The result of the reduction under [`Reducer::Own`](crate::Reducer::Own) that ended the run, in every process.
    ///
    /// ```
    /// use caribou::{Chunk, Combine, Config, Ctx, Reducer, Target, Values};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// Lengths by the number of words that have them.
    /// #[derive(Serialize, Deserialize)]
    /// struct Histogram([u64; 8]);
    ///
    /// impl Combine for Histogram {
    ///     fn combine(&mut self, other: Histogram) {
    ///         self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    ///     }
    /// }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Page { words: String }
    ///
    /// impl Chunk for Page {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let mut histogram = Histogram([0; 8]);
    ///         self.words.split(' ').for_each(|word| histogram.0[word.len().min(7)] += 1);
    ///         ctx.contribute(0, Reducer::Own, Values::own(&histogram), Target::Exit);
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    ///
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(2, |page| Page { words: ["the wind blows", "from the north"][page as usize].into() });
    /// })?;
    /// assert_eq!(report.combined::<Histogram>()?.0, [0, 0, 0, 2, 2, 2, 0, 0]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] if no such reduction ended the run, or another type was reduced.
    pub fn combined<T: Combine>(&self) -> Result<T, Error> {
        read(&self.value::<Own>()?).map_err(|why| Error::Value { why })
    }
}

fn combine<T: Combine>(values: &[Vec<u8>]) -> Result<T, WireError> {
    catching::<T, _>("combined", || {
        let (first, others) = values.split_first().expect("there is a contribution");
        let mut value: T = wire::decode(first)?;
        for other in others {
            value.combine(wire::decode(other)?);
        }
        Ok(value)
    })
}

/// As [`combine`], and encodes the result.
fn combine_all<T: Combine>(values: &[Vec<u8>]) -> Result<Vec<u8>, WireError> {
    let value = combine::<T>(values)?;
    catching::<T, _>("encoded", || wire::encode(&value))
}

fn read<T: Combine>(own: &Own) -> Result<T, String> {
    if own.type_name() != type_name::<T>() {
        return Err(format!(
            "the result has values of `{}`, expected `{}`",
            own.type_name(),
            type_name::<T>()
        ));
    }
    combine(own.values())
        .map_err(|why| format!("values of `{}` do not combine: {why}", short_type_name::<T>()))
}
