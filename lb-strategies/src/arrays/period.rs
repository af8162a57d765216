//! Defines when the chunks of a run are balanced, as `CARIBOU_LB_PERIOD` sets it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::strategy::Terms;

/// Steps between two syncs under [`Period::Auto`], for a strategy that moves chunks whether it pays or not, and for a
/// program that moves chunks at syncs only.
const SYNC_PERIOD: u64 = 20;
/// The shortest window, ns.
const WINDOW_MIN_NS: u64 = 1_000;

/// When the chunks of a run are balanced: at syncs, to which all chunks come, or in windows, while chunks run.
///
/// ```
/// use std::time::Duration;
/// use lb_strategies::Period;
/// assert_eq!("20".parse(), Ok(Period::Steps(20)));
/// assert_eq!("5ms".parse(), Ok(Period::Every(Duration::from_millis(5))));
/// assert_eq!(Period::Every(Duration::from_micros(1500)).to_string(), "1500us");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// In windows that open when balancing is likely to pay. Chunks come to no sync.
    Auto,
    /// At syncs, one every this number of steps. With 0, no sync is ever due.
    Steps(u64),
    /// In windows of this fixed length. Chunks come to no sync. Windows shorter than 40 ms are added up and decided
    /// once in 40 ms, unless the strategy's plans need not pay.
    Every(Duration),
}

/// The moments at which the chunks of a run are balanced, computed from the period and the terms of the strategy.
///
/// ```
/// use lb_strategies::{ARRAYS, Moments, Period};
/// let moments = |strategy| Ok::<_, lb_strategies::ParseError>(Period::Auto.moments(&ARRAYS.parse(strategy)?.terms()));
/// assert_eq!(moments("refine")?, Moments::Windows { fixed_ns: None });
/// assert_eq!(moments("rotate")?, Moments::Syncs { period: 20 });
/// # Ok::<(), lb_strategies::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moments {
    /// At syncs.
    Syncs {
        /// Number of steps from one sync to the next; 0 for no sync.
        period: u64,
    },
    /// In windows.
    Windows {
        /// Length of a window, ns; none if windows open when balancing is likely to pay.
        fixed_ns: Option<u64>,
    },
}

impl Period {
    /// The moments at which a strategy with these terms balances. A strategy whose moves need not pay would move chunks
    /// in every window, so `auto` means syncs for it.
    pub fn moments(self, terms: &Terms) -> Moments {
        match self {
            Period::Steps(period) => Moments::Syncs { period },
            Period::Auto if terms.moves && !terms.must_pay => Moments::Syncs { period: SYNC_PERIOD },
            Period::Auto => Moments::Windows { fixed_ns: None },
            Period::Every(length) => {
                let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
                Moments::Windows { fixed_ns: Some(length_ns.max(WINDOW_MIN_NS)) }
            }
        }
    }

    /// The period for a program that moves its chunks at syncs only. `auto` becomes a sync every 20 steps; others stay.
    ///
    /// ```
    /// use lb_strategies::Period;
    /// assert_eq!((Period::Auto.at_syncs(), Period::Steps(7).at_syncs()), (Period::Steps(20), Period::Steps(7)));
    /// ```
    #[must_use]
    pub fn at_syncs(self) -> Period {
        if self == Period::Auto { Period::Steps(SYNC_PERIOD) } else { self }
    }

    /// The units of [`Period::Every`], each with its length in ns.
    const UNITS: [(&str, u64); 3] = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
}

/// Writes a number of steps as a number, any other period by its name.
impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Period::Steps(steps) => serializer.serialize_u64(*steps),
            Period::Auto | Period::Every(_) => serializer.collect_str(self),
        }
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Period, String> {
        let expected = || {
            format!(
                "`{text}`: expected auto, a number of steps (0 for never), or a time from 1us to 3600s such as 5ms"
            )
        };
        if text == "auto" {
            return Ok(Period::Auto);
        }
        if let Ok(steps) = text.parse() {
            return Ok(Period::Steps(steps));
        }
        let timed = |(unit, ns): (&str, u64)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(ns).filter(|ns| (1_000..=3_600_000_000_000).contains(ns))
        };
        let every = Period::UNITS.into_iter().find_map(timed);
        every.map(|ns| Period::Every(Duration::from_nanos(ns))).ok_or_else(expected)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Auto => f.write_str("auto"),
            Period::Steps(steps) => write!(f, "{steps}"),
            Period::Every(length) => {
                let ns = length.as_nanos();
                let longest =
                    Period::UNITS.into_iter().rev().find(|&(_, unit)| ns.is_multiple_of(unit.into()));
                let (name, unit) = longest.unwrap_or(Period::UNITS[0]);
                write!(f, "{}{name}", ns / u128::from(unit))
            }
        }
    }
}
