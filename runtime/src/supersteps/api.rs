//! The user interface of supersteps: the trait [`Supersteps`], and what its methods get.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A bulk-synchronous program on units of data (the rows of a matrix, the cells of a bar) that are divided among
/// workers.
///
/// In a step every worker computes its units into *parts*, receives the parts of all workers, and combines them into
/// the *shared* data. Units may change workers between two steps, and several workers may compute copies of the same
/// units. The result must not depend on either:
///
/// - `compute` on consecutive units must give the same result as on pieces of them.
/// - `combine` must not depend on where a part ends. (A floating-point sum over the units of a part does, in its last
///   bits; one number per unit does not.)
///
/// Under `mpirun` every process makes the same program. Only the units move.
///
/// ```
/// use caribou::supersteps::{Job, Parts, Supersteps, Then};
/// use caribou::Config;
///
/// /// Heat in a bar, whose ends are kept at 0 and 1.
/// struct Bar { cells: u64 }
///
/// impl Supersteps for Bar {
///     type Unit = f64;        // the heat of a cell
///     type Edge = f64;        // what the neighbours in another share need of it
///     type Part = f64;        // the greatest change in a run of cells
///     type Shared = u64;      // steps so far
///
///     fn units(&self) -> u64 { self.cells }
///     fn begin(&self) -> u64 { 0 }
///     fn unit(&self, _: u64) -> f64 { 0.5 }
///     fn edge(&self, heat: &f64) -> Option<f64> { Some(*heat) }
///
///     fn compute(&self, job: Job<'_, Self>) -> f64 {
///         let (mut change, mut left) = (0.0_f64, job.before.copied().unwrap_or(0.0));
///         for cell in 0..job.data.len() {
///             let right = job.data.get(cell + 1).or(job.after).copied().unwrap_or(1.0);
///             let old = job.data[cell];
///             job.data[cell] = 0.5 * old + 0.25 * (left + right);
///             change = change.max((job.data[cell] - old).abs());
///             left = old;
///         }
///         change
///     }
///
///     fn combine(&self, steps: &mut u64, changes: Parts<'_, f64>) -> Then {
///         *steps += 1;
///         if changes.map(|(_, change)| *change).fold(0.0, f64::max) < 1e-6 { Then::End } else { Then::Step }
///     }
///
///     fn collects(&self) -> bool { true }
/// }
///
/// let outcome = caribou::supersteps(&Config::default().ranks(2), Bar { cells: 20 })?;
/// assert!((outcome.units[9] - 10.0 / 21.0).abs() < 1e-4, "{:?}", outcome.units);
/// assert_eq!(outcome.report.steps, outcome.shared);
/// # Ok::<(), caribou::Error>(())
/// ```
pub trait Supersteps: Send + Sync + Sized + 'static {
    /// The data of one unit, which moves with the unit; `()` if there is none.
    type Unit: Clone + Serialize + DeserializeOwned + Send + 'static;
    /// The boundary data of a unit, for neighbours in another share; `()` if they need none.
    type Edge: Clone + Serialize + DeserializeOwned + Send + 'static;
    /// The result of consecutive units in a step. Every worker receives the parts of all units.
    type Part: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The data that every worker has, equal on all workers at the begin of a step.
    type Shared: Serialize + DeserializeOwned + Send + 'static;

    /// Number of units.
    fn units(&self) -> u64;

    /// The weight of a unit, above 0. A unit of twice the weight takes twice as long. The default is 1.
    fn weight(&self, unit: u64) -> f64 {
        let _ = unit;
        1.0
    }

    /// The shared data before the first step.
    fn begin(&self) -> Self::Shared;

    /// Unit number `number` before the first step. Called on the worker that computes the unit first.
    fn unit(&self, number: u64) -> Self::Unit;

    /// The boundary data of a unit, for neighbours in another job in the next step. All units must have an edge, or
    /// none. By default none has.
    fn edge(&self, unit: &Self::Unit) -> Option<Self::Edge> {
        let _ = unit;
        None
    }

    /// Computes a step of consecutive units.
    fn compute(&self, job: Job<'_, Self>) -> Self::Part;

    /// Tells whether [`compute`](Self::compute) changes the data of units, as by default. If so and a job has copies,
    /// all units of the job are sent to the other workers of its group in each step. Otherwise copies cost no messages.
    fn changes(&self) -> bool {
        true
    }

    /// Combines the parts of all units into the shared data. Every worker calls this with the same parts in the same
    /// order, and must get the same result.
    fn combine(&self, shared: &mut Self::Shared, parts: Parts<'_, Self::Part>) -> Then;

    /// The pattern by which every worker gets all parts of a step. The default is [`Exchange::Direct`].
    fn exchange(&self) -> Exchange {
        Exchange::Direct
    }

    /// Tells whether the outcome has all units. By default it has none.
    fn collects(&self) -> bool {
        false
    }
}

/// The pattern by which all parts of a step get to all P workers (an allgather).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exchange {
    /// Each worker sends its part to all others: one hop, P (P - 1) messages.
    #[default]
    Direct,
    /// Each part goes from worker to worker in a ring: P - 1 hops, P (P - 1) messages. A worker sends only to the next.
    Ring,
    /// All parts go to the first worker, which sends them on together: two hops, 2 (P - 1) messages, all of which the
    /// first worker sends or receives.
    Gather,
}

/// Whether the run goes on after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// The next step follows.
    #[default]
    Step,
    /// The run ends.
    End,
}

/// Consecutive units to compute.
pub struct Job<'j, P: Supersteps> {
    /// The number of the step, from 0.
    pub step: u64,
    /// The numbers of the units.
    pub units: Range<u64>,
    /// The data of the units.
    pub data: &'j mut [P::Unit],
    /// The shared data.
    pub shared: &'j P::Shared,
    /// The edge of the unit before the first, from the begin of the step; none before the first of all units.
    pub before: Option<&'j P::Edge>,
    /// The edge of the unit after the last; none after the last of all units.
    pub after: Option<&'j P::Edge>,
}

/// The parts of all units in a step, in the order of units. Each item is a range of units and its result.
pub struct Parts<'p, T> {
    pub(super) parts: Box<dyn Iterator<Item = &'p (Range<u64>, T)> + 'p>,
}

impl<'p, T> Iterator for Parts<'p, T> {
    type Item = (Range<u64>, &'p T);

    fn next(&mut self) -> Option<Self::Item> {
        self.parts.next().map(|(units, part)| (units.clone(), part))
    }
}
