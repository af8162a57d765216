//! Simulates molecular dynamics in three dimensions, like Charm++'s LeanMD and Mol3D. Cells of a periodic box hold the
//! particles. Each two neighbouring cells form a pair, which computes the forces between their particles. Nearly all
//! time is spent in pairs.
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
