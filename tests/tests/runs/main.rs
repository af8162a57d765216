//! Runs in one process, a file a question.

mod checkpoints;
mod deciding;
mod edges;
mod endings;
mod extremes;
mod memory;
mod migration;
mod order;
mod placement;
mod pools;
mod pressure;
mod refusals;
mod results;
mod seeds;
mod spot;
mod stalls;
mod steps;
mod traces;
mod without_calls;
mod workers;
