//! The report of a run of arrays: [`Report`], and the [`Figures`] that each rank contributes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::core::collectives::exit_value::ExitValue;
use super::core::termination::undelivered::{Undelivered, UndeliveredReport, undelivered};
use crate::error::Error;
use crate::run::report::RunReport;
use crate::trace::{SyncReport, SyncTotals};

/// The record of a finished run of arrays.
///
/// ```
/// let report = caribou::Report::default();
/// assert!(report.syncs.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The part of the report that every shape of program has.
    #[serde(flatten)]
    pub run: RunReport,
    /// Number of deliveries handled on all ranks: messages, starts, resumes, results.
    pub messages: u64,
    /// The largest number of bytes of messages that waited in the mailboxes of one rank, to within about 64 KiB, see
    /// [`Config::mail_limit`](crate::Config::mail_limit).
    pub waiting_bytes_max: u64,
    /// One record per sync, or per window with a decision, in order. A run with thousands of them keeps every second,
    /// every fourth and so on, evenly spread: [`SyncReport::sync`] is the number. Only the process of rank 0 has the
    /// records.
    pub syncs: Vec<SyncReport>,
    /// Sums over all syncs, including the syncs that `syncs` leaves out.
    pub sync_totals: SyncTotals,
    /// Messages that no chunk received, on all ranks. If there are any, a warning also reports them.
    pub undelivered: Undelivered,
    #[serde(skip)]
    value: Option<ExitValue>,
}

/// The figures of a rank when it stops.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Number of deliveries handled.
    pub(crate) messages: u64,
    pub(crate) undelivered_report: UndeliveredReport,
    pub(crate) waiting_bytes_max: u64,
    /// The first value with which a chunk of the rank ended the run.
    pub(crate) value: Option<ExitValue>,
    /// The record of rank 0. Other processes have none.
    #[serde(skip)]
    pub(crate) syncs: Vec<SyncReport>,
    #[serde(skip)]
    pub(crate) sync_totals: SyncTotals,
}

impl Report {
    /// The report of a run with the figures of its ranks, in the order of ranks.
    pub(crate) fn new(run: RunReport, mut ranks: Vec<Figures>) -> Report {
        let (syncs, sync_totals) = ranks
            .first_mut()
            .map(|root| (std::mem::take(&mut root.syncs), root.sync_totals))
            .unwrap_or_default();
        let value = ranks.iter_mut().find_map(|rank| rank.value.take());
        let messages = ranks.iter().map(|rank| rank.messages).sum();
        let waiting_bytes_max = ranks.iter().map(|rank| rank.waiting_bytes_max).max().unwrap_or(0);
        let leftovers: Vec<UndeliveredReport> =
            ranks.into_iter().map(|rank| rank.undelivered_report).collect();
        Report {
            run,
            messages,
            waiting_bytes_max,
            syncs,
            sync_totals,
            undelivered: undelivered(&leftovers),
            value,
        }
    }

    /// The value with which the run ended, the same in every process: the argument of
    /// [`Ctx::exit_with`](crate::Ctx::exit_with), or the result of a reduction to
    /// [`Target::Exit`](crate::Target::Exit). Such a result is a vector of the contributors' type: `Vec<f64>`,
    /// `Vec<u64>` or `Vec<i64>`. The result of a gather is a `Vec<(u64, Vec<u8>)>`, by packed index.
    ///
    /// `T` must be exactly the type that was given. A `&str` is not read as `String`, so give owned values.
    ///
    /// If several chunks end the run at once, the value of the lowest rank counts, and on that rank the first one.
    ///
    /// ```
    /// use caribou::{Chunk, Config, Ctx, Reducer, Target};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Square;
    /// impl Chunk for Square {
    ///     type Index = u32;
    ///     type Message = ();
    ///     fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
    ///         let me = u64::from(ctx.index());
    ///         ctx.contribute(0, Reducer::Sum, vec![me * me], Target::Exit);
    ///     }
    ///     fn receive(&mut self, (): (), _: &mut Ctx<'_, Self>) {}
    /// }
    /// let report = caribou::run(Config::default().ranks(2), |setup| {
    ///     setup.array(10, |_| Square);
    /// })?;
    /// assert_eq!(report.value::<Vec<u64>>()?, [285]);
    /// # Ok::<(), caribou::Error>(())
    /// ```
    ///
    /// [`gathered`](Self::gathered) reads gathered parts of any type.
    ///
    /// # Errors
    /// [`Error::Value`] if the run ended without a value ([`Ctx::exit`](crate::Ctx::exit)), or with one of another
    /// type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let none = || Error::Value {
            why: "the run ended without one, expected Ctx::exit_with or Target::Exit".into(),
        };
        self.value.as_ref().ok_or_else(none)?.read()
    }
}
