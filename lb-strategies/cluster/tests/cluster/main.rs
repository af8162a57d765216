//! Policies on clusters in virtual time, a file a policy or a question.

mod arrays;
mod caa;
mod leases;
mod pools;
mod recorded;
mod ruper;
mod scenarios;
mod steps;
