//! Runs the policies of the paper and `leases` on the model of the cluster, and averages over seeds.

use lb_strategies::POOLS;
use lb_strategies::pool::SECOND;
use lb_strategies::pool::caa::NextPhase;
use virtual_cluster::PoolRun;
use virtual_cluster::crossbar_cluster::{CORES, CrossbarModel};

use super::Context;

/// Policies of a column, in the order in which they run.
const POLICIES: [&str; 4] = ["static", "master-worker,batch=1", "caa,task=1", "leases"];

/// A column of figures 3 to 5: means over runs. Times in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// Number of cores, including the master's.
    pub(super) cores: u32,
    /// DD.
    pub(super) shares: f64,
    /// MS.
    pub(super) master: f64,
    /// CAA.
    pub(super) adaptive: f64,
    /// The policy `leases`.
    pub(super) leases: f64,
    /// All cores busy to the end.
    pub(super) ideal: f64,
    /// Part of the runs of CAA that continue with DD.
    pub(super) chose_shares: f64,
    /// Part of the runs of CAA that continue with MS.
    pub(super) chose_master: f64,
}

impl Column {
    /// The part of DD's time that CAA saves.
    pub(super) fn below_shares(&self) -> f64 {
        1.0 - self.adaptive / self.shares
    }

    /// The part of MS's time that CAA saves.
    pub(super) fn below_master(&self) -> f64 {
        1.0 - self.adaptive / self.master
    }
}

/// For each model, the columns of all numbers of cores, over `seeds` runs each.
pub(super) fn columns(
    context: &Context,
    what: &str,
    models: &[CrossbarModel],
    seeds: u64,
) -> Vec<Vec<Column>> {
    let per_column = POLICIES.len() * seeds as usize;
    let runs = context.each(what, models.len() * CORES.len() * per_column, |index| {
        let (column, rest) = (index / per_column, index % per_column);
        let (model, cores) = (models[column / CORES.len()], CORES[column % CORES.len()]);
        let policy = POOLS.parse(POLICIES[rest / seeds as usize]).expect("it is listed");
        model.run(&*policy, cores, rest as u64 % seeds)
    });
    let columns: Vec<Column> = runs
        .chunks(per_column)
        .enumerate()
        .map(|(place, runs)| column(&models[place / CORES.len()], CORES[place % CORES.len()], runs, seeds))
        .collect();
    columns.chunks(CORES.len()).map(<[Column]>::to_vec).collect()
}

fn column(model: &CrossbarModel, cores: u32, runs: &[PoolRun], seeds: u64) -> Column {
    let of_policy: Vec<&[PoolRun]> = runs.chunks(seeds as usize).collect();
    let chose = |choice: NextPhase| {
        let said =
            |run: &&PoolRun| run.said.as_deref().is_some_and(|said| said.starts_with(&choice.to_string()));
        of_policy[2].iter().filter(said).count() as f64 / seeds as f64
    };
    Column {
        cores,
        shares: mean_s(of_policy[0]),
        master: mean_s(of_policy[1]),
        adaptive: mean_s(of_policy[2]),
        leases: mean_s(of_policy[3]),
        ideal: (0..seeds).map(|seed| model.ideal_s(cores, seed)).sum::<f64>() / seeds as f64,
        chose_shares: chose(NextPhase::Shares),
        chose_master: chose(NextPhase::Master),
    }
}

/// Mean makespan, s.
pub(super) fn mean_s(runs: &[PoolRun]) -> f64 {
    runs.iter().map(|run| run.makespan() as f64 / SECOND as f64).sum::<f64>() / runs.len() as f64
}
