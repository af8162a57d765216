//! Molecular dynamics in three dimensions, as Charm++'s LeanMD and Mol3D have it: cells of a periodic box hold
//! particles, and each two neighbouring cells are a pair that computes what their particles do to each other. Pairs
//! hold the load.
//!
//! `grid` is the box and its cells, `law` the forces, `particle` the work of a cell on its particles; `problem` is all
//! that together, `input` reads it from files, `serial` is the reference. `physics` is the result. `chunk` is the
//! program as the runtime sees it, `run` as the harness does, and `options` its command line.
//!
//! Sources: Kalé et al., "NAMD2: Greater scalability for parallel molecular dynamics", J. Comput. Phys. 151 (1999), for
//! the decomposition; Swope et al., J. Chem. Phys. 76 (1982), for the motion (velocity Verlet).
#![forbid(unsafe_code)]

mod chunk;
mod grid;
mod input;
mod lennard_jones;
mod options;
mod particle;
mod physics;
mod problem;
mod run;
mod serial;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main::<run::Molecules>(std::env::args_os())
}
