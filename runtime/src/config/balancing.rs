//! The strategy of a run, and the tables from which it is selected by name.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lb_strategies::pool::PoolStrategy;
use lb_strategies::supersteps::SuperstepStrategy;
use lb_strategies::{
    ARRAYS, Assignment, Entry, Listing, POOLS, Renamed, SUPERSTEPS, Shape, Snapshot, Strategy, Table, Terms,
    check_own, unknown,
};

use super::{Config, wrong};
use crate::error::Error;
use crate::panics::panic_message;
use crate::warn::warn;

/// The chosen strategy, for one shape of program.
#[derive(Clone)]
enum Chosen {
    /// The default of each shape of program.
    Default,
    Arrays(Arc<dyn Strategy>),
    Pools(Arc<dyn PoolStrategy>),
    Supersteps(Arc<dyn SuperstepStrategy>),
    /// No strategy: the user requested the list.
    Help,
}

/// The name that requests the list of strategies.
const HELP: &str = "help";

/// The chosen strategy, and the tables to choose from.
#[derive(Clone)]
pub(super) struct Balancing {
    chosen: Chosen,
    /// The specification as given; empty if none was.
    spec: String,
    arrays: Table<dyn Strategy>,
    pools: Table<dyn PoolStrategy>,
    supersteps: Table<dyn SuperstepStrategy>,
}

impl Default for Balancing {
    fn default() -> Balancing {
        let (arrays, pools, supersteps) = (ARRAYS.clone(), POOLS.clone(), SUPERSTEPS.clone());
        Balancing { chosen: Chosen::Default, spec: String::new(), arrays, pools, supersteps }
    }
}

impl fmt::Debug for Balancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.spec.is_empty() { "default" } else { &self.spec })
    }
}

impl Balancing {
    fn tables(&self) -> [&dyn Listing; 3] {
        [&self.arrays, &self.pools, &self.supersteps]
    }

    fn table(&self, shape: Shape) -> &dyn Listing {
        match shape {
            Shape::Arrays => &self.arrays,
            Shape::Pools => &self.pools,
            Shape::Supersteps => &self.supersteps,
        }
    }

    fn choose(&mut self, spec: &str, chosen: Chosen) {
        (self.spec, self.chosen) = (spec.into(), chosen);
    }

    pub(super) fn check_registered(&self) -> Result<(), Error> {
        check_own(&self.tables()).map_err(|error| wrong("register_strategy", error.to_string()))
    }
}

impl Config {
    /// Selects the balancing strategy by name, with parameters: `"refine,tolerance=0.05"`. With `"help"` the run does
    /// not begin, and fails with the text of [`lb_help`](Self::lb_help).
    pub fn lb(mut self, spec: &str) -> Result<Config, Error> {
        self.lb.check_registered()?;
        let made = if spec.trim() == HELP {
            Ok(Chosen::Help)
        } else if let Some(entry) = self.lb.arrays.find(spec) {
            entry.make(spec).map(|strategy| Chosen::Arrays(strategy.into()))
        } else if let Some(entry) = self.lb.pools.find(spec) {
            entry.make(spec).map(|policy| Chosen::Pools(policy.into()))
        } else if let Some(entry) = self.lb.supersteps.find(spec) {
            entry.make(spec).map(|policy| Chosen::Supersteps(policy.into()))
        } else {
            Err(unknown(&self.lb.tables(), spec))
        };
        self.lb.choose(spec, made.map_err(|error| wrong("lb", error.to_string()))?);
        Ok(self)
    }

    /// Registers a strategy of your own, so that [`lb`](Self::lb) and `CARIBOU_LB` accept its name. The name takes
    /// precedence over a built-in one. Read the environment afterwards, by [`with_env`](Self::with_env). That call and
    /// `lb` refuse a name of several words, a name used twice, and the name of a policy for pools. See
    /// [`lb`](mod@crate::lb) for an example.
    #[must_use]
    pub fn register_strategy(mut self, entry: Entry<dyn Strategy>) -> Config {
        self.lb.arrays.register(entry);
        self
    }

    /// Registers a policy of your own for pools, as [`register_strategy`](Self::register_strategy).
    #[must_use]
    pub fn register_pool_strategy(mut self, entry: Entry<dyn PoolStrategy>) -> Config {
        self.lb.pools.register(entry);
        self
    }

    /// Registers a policy of your own for supersteps, as [`register_strategy`](Self::register_strategy).
    #[must_use]
    pub fn register_superstep_strategy(mut self, entry: Entry<dyn SuperstepStrategy>) -> Config {
        self.lb.supersteps.register(entry);
        self
    }

    /// A balancing strategy of your own.
    #[must_use]
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> Config {
        self.lb.choose(strategy.name(), Chosen::Arrays(Arc::new(strategy)));
        self
    }

    /// A policy of your own for pools.
    #[must_use]
    pub fn pool_strategy(mut self, policy: impl PoolStrategy + 'static) -> Config {
        self.lb.choose(policy.name(), Chosen::Pools(Arc::new(policy)));
        self
    }

    /// A policy of your own for programs in supersteps.
    #[must_use]
    pub fn superstep_strategy(mut self, policy: impl SuperstepStrategy + 'static) -> Config {
        self.lb.choose(policy.name(), Chosen::Supersteps(Arc::new(policy)));
        self
    }

    /// The strategy as given; else the default for programs of this shape.
    pub fn lb_spec(&self, shape: Shape) -> &str {
        if matches!(self.lb.chosen, Chosen::Default) { shape.default_spec() } else { &self.lb.spec }
    }

    /// The strategies for programs of this shape, with their parameters, as text for a person, including registered ones.
    ///
    /// ```
    /// use caribou::{Config, lb::Shape};
    /// let text = Config::default().lb_help(Shape::Supersteps);
    /// assert!(text.starts_with("for programs in supersteps, as NAME[,KEY=VALUE]... (default: des):\n\nequal "));
    /// ```
    pub fn lb_help(&self, shape: Shape) -> String {
        let (programs, default) = (shape.programs(), shape.default_spec());
        let table = self.lb.table(shape).help();
        format!("for {programs}, as NAME[,KEY=VALUE]... (default: {default}):\n\n{table}")
    }

    /// Tells whether [`lb`](Self::lb) or `CARIBOU_LB` requested [`lb_help`](Self::lb_help) instead of a strategy.
    pub fn asks_lb_help(&self) -> bool {
        matches!(self.lb.chosen, Chosen::Help)
    }

    /// Checks that programs of this shape can run with this configuration: the strategy is for the shape, or the
    /// default, and the numbers of ranks and workers are valid.
    ///
    /// # Errors
    /// [`Error::Config`], with the strategies for this shape, or the wrong number.
    pub fn check_shape(&self, shape: Shape) -> Result<(), Error> {
        let (ranks, workers) = match shape {
            // A simulated rank of arrays has one worker.
            Shape::Arrays | Shape::Supersteps if self.simulate.is_some() => (self.rank_count(), 1),
            Shape::Arrays | Shape::Supersteps => (self.rank_count(), self.worker_count()),
            Shape::Pools => self.pool_size(),
        };
        self.check_numbers(ranks, workers)?;
        let (name, of) = match &self.lb.chosen {
            Chosen::Default => return Ok(()),
            Chosen::Help => return Err(wrong("CARIBOU_LB", self.lb_help(shape))),
            Chosen::Arrays(strategy) => (strategy.name(), Shape::Arrays),
            Chosen::Pools(policy) => (policy.name(), Shape::Pools),
            Chosen::Supersteps(policy) => (policy.name(), Shape::Supersteps),
        };
        match shape == of {
            true => Ok(()),
            false => Err(wrong("CARIBOU_LB", self.lb.table(shape).misplaced(name, of).to_string())),
        }
    }

    /// Warns of former names of parameters, in one process only.
    fn warn_of(&self, renamed: impl Iterator<Item = Renamed>) {
        if self.launch().speaks() {
            renamed.for_each(|renamed| warn(&renamed.to_string()));
        }
    }

    /// The strategy for arrays of chunks.
    pub(crate) fn balance_arrays(&self) -> Result<Arc<dyn Strategy>, Error> {
        self.check_shape(Shape::Arrays)?;
        self.warn_of(self.lb.arrays.old_names(self.lb_spec(Shape::Arrays)));
        match &self.lb.chosen {
            Chosen::Arrays(strategy) => Ok(Arc::new(StrategyWithTerms::once(strategy)?)),
            _ => Ok(ARRAYS.default_policy().into()),
        }
    }

    /// The policy for pools of iterations.
    pub(crate) fn balance_pools(&self) -> Result<Arc<dyn PoolStrategy>, Error> {
        self.check_shape(Shape::Pools)?;
        self.warn_of(self.lb.pools.old_names(self.lb_spec(Shape::Pools)));
        match &self.lb.chosen {
            Chosen::Pools(policy) => Ok(policy.clone()),
            _ => Ok(POOLS.default_policy().into()),
        }
    }
}

impl Config {
    /// The policy for programs in supersteps.
    pub(crate) fn balance_supersteps(&self) -> Result<Arc<dyn SuperstepStrategy>, Error> {
        self.check_shape(Shape::Supersteps)?;
        self.warn_of(self.lb.supersteps.old_names(self.lb_spec(Shape::Supersteps)));
        match &self.lb.chosen {
            Chosen::Supersteps(policy) => Ok(policy.clone()),
            _ => Ok(SUPERSTEPS.default_policy().into()),
        }
    }
}

/// A strategy with its terms, read once before the run. A user's `terms` may panic, so a sync calls only `assign`.
struct StrategyWithTerms {
    strategy: Arc<dyn Strategy>,
    terms: Terms,
}

impl StrategyWithTerms {
    fn once(strategy: &Arc<dyn Strategy>) -> Result<StrategyWithTerms, Error> {
        let ask = || StrategyWithTerms { terms: strategy.terms(), strategy: strategy.clone() };
        catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| {
            let why = format!("it panicked before the run: {}", panic_message(&*panic));
            wrong(&format!("the strategy `{}`", strategy.name()), why)
        })
    }
}

impl Strategy for StrategyWithTerms {
    fn name(&self) -> &'static str {
        self.strategy.name()
    }

    fn assign(&self, snapshot: &Snapshot) -> Assignment {
        self.strategy.assign(snapshot)
    }

    fn within_group(&self) -> Option<Box<dyn Strategy>> {
        self.strategy.within_group()
    }

    fn terms(&self) -> Terms {
        self.terms
    }
}
