//! Programs in supersteps: steps on divisible data, each of which ends when everybody is through.
//!
//! A layer on arrays: each worker's share is a chunk that stays where it is, and what shares say to each other are
//! messages. So simulation by seed, MPI, traces and "exactly once" are those of arrays. `api` is what users write;
//! `share` one share and its rules, `said` what shares say, `edges` what units show to their neighbours, `exchange` how
//! parts get to all, `moving` units to their new worker; `measure` what a share did; `root` what the first has besides;
//! `program` calls what the user wrote;
//! `run` starts them.

pub(crate) mod api;
mod edges;
mod exchange;
mod measure;
mod messages;
mod program;
mod redistribution;
pub(crate) mod report;
mod root;
pub(crate) mod run;
mod share;
