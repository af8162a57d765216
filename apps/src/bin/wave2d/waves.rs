//! Combines the results of all chunks into the result of a run.

use serde::{Deserialize, Serialize};

use super::picture::Raster;
use super::problem::Problem;
use caribou_apps::stencil2d::serial::Field;

/// The result of a chunk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BlockResult {
    /// The chunk.
    pub(crate) index: [u16; 2],
    /// Its energy before the first step, and after the last.
    pub(crate) energies: [f64; 2],
    /// Its part of the picture, row by row.
    #[serde(with = "caribou::bulk")]
    pub(crate) pixels: Vec<f32>,
    /// Its cells, row by row, if results are compared.
    #[serde(with = "caribou::bulk")]
    pub(crate) cells: Vec<f64>,
}

/// Waves after the last step.
#[derive(Debug)]
pub(crate) struct Waves {
    /// All cells, if results are compared.
    pub(crate) field: Option<Field>,
    /// The energy before the first step, and after the last.
    pub(crate) energies: [f64; 2],
    /// The pixels of the picture.
    pub(crate) raster: Raster,
}

impl Waves {
    /// Combines the results of all chunks, given in any order.
    pub(crate) fn new(problem: &Problem, mut told: Vec<BlockResult>) -> Self {
        // Sums of floating-point numbers depend on their order.
        told.sort_unstable_by_key(|told| told.index);
        let energies = [0, 1].map(|at| told.iter().map(|told| told.energies[at]).sum());
        let mut raster = Raster::new(problem.shape.grid());
        let mut field =
            told.iter().any(|told| !told.cells.is_empty()).then(|| Field::unfilled(problem.shape));
        for BlockResult { index, pixels, cells, .. } in told {
            let part = problem.shape.part(index);
            raster.fill(part, &pixels);
            if let Some(field) = &mut field {
                field.fill(part, cells.chunks_exact(part.width));
            }
        }
        Self { field, energies, raster }
    }

    /// The change of the energy during the run, as a part of it.
    pub(crate) fn drift(&self) -> f64 {
        let [begin, end] = self.energies;
        if begin > 0.0 { (end - begin) / begin } else { 0.0 }
    }

    /// The first difference to the reference, in words.
    pub(crate) fn difference(&self, reference: &Self) -> Option<String> {
        let cells = self.field.as_ref().zip(reference.field.as_ref());
        if let Some(difference) = cells.and_then(|(field, reference)| field.difference(reference)) {
            return Some(difference.to_string());
        }
        let (energies, expected) = (self.energies, reference.energies);
        (energies.map(f64::to_bits) != expected.map(f64::to_bits))
            .then(|| format!("the energies are {energies:?} instead of {expected:?}"))
    }
}
