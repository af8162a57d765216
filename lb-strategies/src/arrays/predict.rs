//! Predicts the loads of chunks in the coming phase from measured loads. A strategy gets the predicted loads.
//!
//! Measured loads are noisy: a chunk that was preempted once for a 4 ms time slice can look ten times as heavy as it
//! is. A strategy that trusts the last phase moves this chunk. If loads move, a placement by the last phase is a phase
//! late.
//!
//! | predictor | expects | finds |
//! |---|---|---|
//! | [`Last`] | the last phase again | |
//! | [`Smoothing`] | a weighted mean of the last phases | loads with noise |
//! | [`Trend`] | a straight line through the last phases | loads that ramp up or down |
//! | [`Seasonal`] | the phase a cycle ago | loads that return every few phases |
//! | [`Drift`] | the last phases, moved on over the index space | a hot spot, a front, a cloud of particles |
//!
//! [`Prediction::Auto`] uses [`Smoothing`] until another predictor but [`Last`] has clearly smaller errors.

mod chooser;
mod drift;
mod history;
mod last;
mod seasonal;
mod smoothing;
mod trend;

use std::fmt;
use std::str::FromStr;

pub(super) use self::chooser::Chooser;
pub use self::drift::Drift;
pub(super) use self::history::History;
pub use self::history::Series;
pub use self::last::Last;
pub use self::seasonal::Seasonal;
pub use self::smoothing::Smoothing;
pub use self::trend::Trend;
use crate::choice::Choice;

/// A pure predictor of loads.
///
/// ```
/// use lb_strategies::{ArrayId, ChunkId, predict::{Last, Predictor, Series}};
/// let ids = [0, 1].map(|key| ChunkId { array: ArrayId(0), key });
/// let series = Series::of(&ids, vec![(vec![1.0, 3.0], 10.0), (vec![2.0, 2.0], 10.0)]);
/// assert_eq!(Last.predict(&series, 10.0), Some(vec![2.0, 2.0]));
/// ```
pub trait Predictor: Send + Sync {
    /// The mean load of each chunk in the `steps` steps after the last phase. The load is NaN for a chunk that the
    /// predictor cannot predict. The result is none if the predictor can predict no chunk.
    fn predict(&self, series: &Series<'_>, steps: f64) -> Option<Vec<f64>>;
}

/// The predictor of a run: a fixed one, or the one with the smallest errors.
///
/// ```
/// use lb_strategies::Prediction;
/// assert_eq!("drift".parse(), Ok(Prediction::Drift));
/// assert!("drifts".parse::<Prediction>().unwrap_err().contains("did you mean \"drift\"?"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prediction {
    /// [`Smoothing`], until another predictor has clearly smaller errors. For a strategy whose moves need not pay,
    /// always [`Smoothing`] with the weight of the strategy.
    #[default]
    Auto,
    /// [`Last`].
    Last,
    /// [`Smoothing`] with the weight of the strategy.
    Smoothing,
    /// [`Trend`].
    Trend,
    /// [`Seasonal`].
    Seasonal,
    /// [`Drift`].
    Drift,
}

impl Prediction {
    /// All choices.
    pub const ALL: [Prediction; 6] = [
        Prediction::Auto,
        Prediction::Last,
        Prediction::Smoothing,
        Prediction::Trend,
        Prediction::Seasonal,
        Prediction::Drift,
    ];

    /// The name in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Prediction::Auto => "auto",
            Prediction::Last => "last",
            Prediction::Smoothing => "smoothing",
            Prediction::Trend => "trend",
            Prediction::Seasonal => "seasonal",
            Prediction::Drift => "drift",
        }
    }
}

impl FromStr for Prediction {
    type Err = String;

    fn from_str(text: &str) -> Result<Prediction, String> {
        let named = Prediction::ALL.into_iter().find(|prediction| prediction.name() == text);
        named.ok_or_else(|| Choice::new(text, Prediction::ALL.map(Prediction::name)).to_string())
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
