//! Has the options that `simulate pool`, `array` and `steps` share, and runs what they describe: named scenarios, or one
//! described by options.

use std::io::Write;

use lb_strategies::{Choice, Listing};

use super::cluster::{self, NetworkOptions};
use super::compare::{Comparable, Comparison, Policy, all_complete, write_tables};
use super::description::Description;
use super::files;
use crate::{Error, output};

/// What to compare, on which cluster, and where to write the results.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Common {
    /// List scenarios and policies.
    #[arg(long, exclusive = true)]
    list: bool,
    /// Policies with their parameters, as in static,leases,chunk=0.05; all of them if not given.
    #[arg(long, value_name = "SPEC[,SPEC..]")]
    pub(super) compare: Option<String>,
    #[command(flatten)]
    pub(super) wires: NetworkOptions,
    #[command(flatten)]
    pub(super) files: output::Files,
    #[command(flatten)]
    pub(super) cluster: cluster::Options,
}

/// Scenarios by name.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct ByName {
    /// Named scenarios, or `all`; --list lists them. Without one, the program and the cluster described below.
    #[arg(long, value_name = "NAME[,NAME..]|all", value_delimiter = ',', conflicts_with_all = ["described", "cluster"])]
    pub(super) scenario: Vec<String>,
}

/// A scenario with a name.
pub(super) struct Named<S> {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) build: Box<dyn Fn() -> S>,
}

impl ByName {
    /// The named scenarios; none if no name is given.
    pub(super) fn scenarios<S: Comparable>(&self) -> Result<Option<Vec<S>>, Error> {
        let known = S::named();
        match &self.scenario[..] {
            [] => Ok(None),
            [all] if all == "all" => Ok(Some(known.iter().map(|one| (one.build)()).collect())),
            names => names.iter().map(|name| find(&known, name.trim())).collect::<Result<_, _>>().map(Some),
        }
    }
}

fn find<S>(known: &[Named<S>], name: &str) -> Result<S, Error> {
    let found = known.iter().find(|one| one.name == name);
    found.map(|one| (one.build)()).ok_or_else(|| {
        let choice = Choice::new(name, known.iter().map(|one| one.name));
        Error::Usage(format!("--scenario: unknown scenario {choice}, or all"))
    })
}

impl Common {
    /// Writes the list if it is asked for. `more` follows the scenarios.
    pub(super) fn listed<S: Comparable>(
        &self,
        more: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
        out: &mut dyn Write,
    ) -> Result<bool, Error> {
        if !self.list {
            return Ok(false);
        }
        let named = S::named();
        if !named.is_empty() {
            writeln!(out, "scenarios")?;
            named.iter().try_for_each(|one| writeln!(out, "  {:<12}{}", one.name, one.about))?;
            writeln!(out)?;
        }
        more(out)?;
        writeln!(out, "{}", S::POLICIES)?;
        out.write_all(S::table().help().as_bytes())?;
        Ok(true)
    }

    /// The description by these options of a cluster; its program is to be added.
    pub(super) fn describe(&self, recorded: bool) -> Result<Description, Error> {
        let mut description = Description::default();
        self.wires.describe(&mut description);
        self.cluster.describe(&mut description, recorded)?;
        Ok(description)
    }

    /// The policies to compare.
    pub(super) fn policies<S: Comparable>(&self) -> Result<Vec<Policy<S::Policy>>, Error> {
        Policy::list(S::table(), self.compare.as_deref().or(S::COMPARED))
    }

    /// Runs the scenarios, and writes their tables, `more`, and the files.
    pub(super) fn run<S: Comparable>(
        &self,
        scenarios: &[S],
        policies: &[Policy<S::Policy>],
        more: impl FnOnce(&[Comparison<S::Metrics>], &mut dyn Write) -> std::io::Result<()>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let comparisons = write_tables(scenarios, policies, out)?;
        more(&comparisons, out)?;
        self.finish(&comparisons)
    }

    /// Writes the files, and refuses incomplete runs.
    pub(super) fn finish<M: super::compare::Metrics>(
        &self,
        comparisons: &[Comparison<M>],
    ) -> Result<(), Error> {
        files::write(&self.files, comparisons)?;
        all_complete(comparisons)
    }
}
