//! Tests policies on simulated clusters, one file per policy or question.

mod arrays;
mod caa;
mod cpu_costs;
mod leases;
mod pools;
mod recorded;
mod ruper;
mod scenarios;
mod steps;
