//! Heat with a moving source on patches that are refined where it is hot: what both the program and the loop compute. All in
//! integers, so that no heat is lost between levels and results are equal to the last bit.

use std::collections::BTreeMap;

use rand::Rng;
use serde::{Deserialize, Serialize};

/// Patches along a side; cells along a side of a patch of either level.
pub(super) const PATCHES: u16 = 4;
pub(super) const CELLS: usize = 4;
/// Steps between two regrids; regrids.
pub(super) const INTERVAL: u64 = 3;
pub(super) const REGRIDS: u64 = 6;
const SIDE: usize = PATCHES as usize * CELLS;

/// The heat that flows between two cells along a segment, from their densities.
pub(super) fn flow(from: i64, to: i64) -> i64 {
    (from - to) / 32
}

/// What a step makes of the heat of a cell besides: it cools, and the source, which goes round, heats one coarse cell.
pub(super) fn step_cell(step: u64, level: u16, [x, y]: [usize; 2], heat: i64) -> i64 {
    let (sin, cos) = (step as f64 / 5.0).sin_cos();
    let at = |part: f64| (SIDE as f64 * (0.5 + 0.3 * part)) as usize;
    let source = if [at(cos), at(sin)] == [x >> level, y >> level] { 1 << 20 } else { 0 };
    heat - heat / 8 + (source >> (2 * level))
}

/// The part of the heat of a cell that goes to one of its quarters.
pub(super) fn part(heat: i64, quarter: usize) -> i64 {
    (heat + 3 - quarter as i64).div_euclid(4)
}

pub(super) fn is_hot(heat: i64) -> bool {
    heat > 1 << 15
}

/// The refined patches, a bit each.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Mesh(pub(super) u64);

impl Mesh {
    pub(super) fn bit([i, j]: [u16; 2]) -> u64 {
        1 << (i * PATCHES + j)
    }

    pub(super) fn is_refined(self, patch: [u16; 2]) -> bool {
        self.0 & Mesh::bit(patch) != 0
    }
}

/// Of all patches at a regrid, or of one: their number, the heat of leaves, a checksum of it, and the patches to refine.
pub(super) type MeshSummary = Vec<u64>;

/// The part of some cells in a census.
pub(super) fn summary_of(level: u16, cells: impl Iterator<Item = ([usize; 2], i64)>) -> [u64; 2] {
    cells.fold([0, 0], |[sum, checksum]: [u64; 2], ([x, y], heat)| {
        let place = (u64::from(level) << 32) + ((x as u64) << 16) + y as u64;
        let random = caribou::random::stream(place, heat as u64).next_u64();
        [sum.wrapping_add(heat as u64), checksum.wrapping_add(random)]
    })
}

/// The heat of leaf cells, by level and place.
type Leaves = BTreeMap<(u16, usize, usize), i64>;

fn is_refined(mesh: Mesh, x: usize, y: usize) -> bool {
    mesh.is_refined([(x / CELLS) as u16, (y / CELLS) as u16])
}

/// The cell of the leaves that a place of the finest level belongs to.
fn owner(mesh: Mesh, x: usize, y: usize) -> (u16, usize, usize) {
    let (x, y) = (x % (2 * SIDE), y % (2 * SIDE));
    if is_refined(mesh, x / 2, y / 2) { (1, x, y) } else { (0, x / 2, y / 2) }
}

fn step_all(step: u64, mesh: Mesh, cells: &Leaves) -> Leaves {
    let mut next = cells.clone();
    let density = |cell: (u16, usize, usize)| cells[&cell] << (2 * cell.0);
    for (x, y) in (0..4 * SIDE * SIDE).map(|n| (n / (2 * SIDE), n % (2 * SIDE))) {
        let one = owner(mesh, x, y);
        for other in [owner(mesh, x + 1, y), owner(mesh, x, y + 1)] {
            let flow = if other == one { 0 } else { flow(density(one), density(other)) };
            *next.entry(one).or_default() -= flow;
            *next.entry(other).or_default() += flow;
        }
    }
    next.iter_mut().for_each(|(&(level, x, y), heat)| *heat = step_cell(step, level, [x, y], *heat));
    next
}

/// The same heat on the leaves of another mesh.
fn regrid(cells: &Leaves, coarse: &[i64], [old, new]: [Mesh; 2]) -> Leaves {
    let mut next = Leaves::new();
    for (n, &heat) in coarse.iter().enumerate() {
        let (x, y) = (n / SIDE, n % SIDE);
        if !is_refined(new, x, y) {
            next.insert((0, x, y), heat);
            continue;
        }
        for quarter in 0..4 {
            let cell = (1, 2 * x + quarter / 2, 2 * y + quarter % 2);
            next.insert(cell, if is_refined(old, x, y) { cells[&cell] } else { part(heat, quarter) });
        }
    }
    next
}

/// All regrids, by one loop over the faces of the finest level.
pub(super) fn serial() -> Vec<MeshSummary> {
    let mut mesh = Mesh::default();
    let mut cells: Leaves = (0..SIDE * SIDE).map(|n| ((0, n / SIDE, n % SIDE), 0)).collect();
    let mut log = Vec::new();
    for number in 0..=REGRIDS {
        let mut coarse = vec![0; SIDE * SIDE];
        cells.iter().for_each(|(&(level, x, y), &heat)| coarse[(x >> level) * SIDE + (y >> level)] += heat);
        let of_level = |level| {
            summary_of(
                level,
                cells.iter().filter(|cell| cell.0.0 == level).map(|(&(_, x, y), &heat)| ([x, y], heat)),
            )
        };
        let ([heat, checksum], fine) = (of_level(0), of_level(1));
        let hot = (0..SIDE * SIDE).filter(|&n| is_hot(coarse[n]));
        let hot = hot.fold(0, |hot, n| hot | Mesh::bit([n / SIDE, n % SIDE].map(|k| (k / CELLS) as u16)));
        let patches = u64::from(PATCHES * PATCHES) + 4 * u64::from(mesh.0.count_ones());
        log.push(vec![patches, heat.wrapping_add(fine[0]), checksum.wrapping_add(fine[1]), hot]);
        cells = regrid(&cells, &coarse, [mesh, Mesh(hot)]);
        mesh = Mesh(hot);
        for step in number * INTERVAL..(number + 1) * INTERVAL {
            cells = step_all(step, mesh, &cells);
        }
    }
    log
}
