//! Heat on patches of two levels. A patch that becomes hot inserts four children, which take its place until it cools; at
//! every regrid a reduction tells all patches which ones are to be refined.

use caribou::{Chunk, Config, Ctx, Error, Grid, Halo, Halos, Neighbour, Reducer, Target, Values};
use serde::{Deserialize, Serialize};

use super::heat::{
    CELLS, INTERVAL, Mesh, MeshSummary, PATCHES, REGRIDS, flow, is_hot, part, step_cell, summary_of,
};

pub(super) use super::heat::serial;

/// The cells of a patch, and the directions of its sides.
const GRID: Grid<[u16; 2]> = Grid::new([CELLS as u16; 2]);
const SIDES: [[i8; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];

/// Level, row and column.
type Index = [u16; 3];

#[derive(Serialize, Deserialize)]
struct Patch {
    cells: Vec<i64>,
    mesh: Mesh,
    /// Regrids that it has heard of.
    regrid: u64,
    /// Of a leaf: edges, each in slot 2 x side + half. Of a parent: what its children have become, by quarter.
    halos: Halos<Vec<i64>>,
    /// False from a census until its result.
    open: bool,
    log: Vec<MeshSummary>,
}

#[derive(Serialize, Deserialize)]
enum Message {
    Halo(Halo<Vec<i64>>),
    Regrid(MeshSummary),
}

fn children([_, i, j]: Index) -> [Index; 4] {
    [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[a, b]| [1, 2 * i + a, 2 * j + b])
}

/// The leaves beside a leaf.
fn neighbours([level, i, j]: Index, mesh: Mesh) -> impl Iterator<Item = (Index, Neighbour<[u16; 2]>)> {
    let grid = Grid::new([PATCHES << level; 2]).periodic();
    grid.faces([i, j]).flat_map(move |face| {
        let ([i, j], side) = (face.index, face.their_slot as usize);
        let leaves = match (level, mesh.is_refined([i >> level, j >> level])) {
            (0, true) => children([0, i, j])
                .into_iter()
                .filter(|at| at[1 + side / 2] as usize % 2 == side % 2)
                .collect(),
            (1, false) => vec![[0, i / 2, j / 2]],
            _ => vec![[level, i, j]],
        };
        leaves.into_iter().map(move |leaf| (leaf, face))
    })
}

/// The half of the side of a coarse patch at which a fine one is.
fn half(fine: Index, side: u32) -> usize {
    usize::from(fine[2 - side as usize / 2] % 2)
}

/// The place of a cell on its level.
fn place([_, i, j]: Index, n: usize) -> [usize; 2] {
    [usize::from(i) * CELLS + n / CELLS, usize::from(j) * CELLS + n % CELLS]
}

impl Patch {
    fn new(cells: Vec<i64>, mesh: Mesh, regrid: u64) -> Patch {
        Patch { cells, mesh, regrid, halos: Halos::new(0), open: false, log: Vec::new() }
    }

    fn is_parent(&self, [level, i, j]: Index) -> bool {
        level == 0 && self.mesh.is_refined([i, j])
    }

    fn sync_or_advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        if ctx.sync_due(self.regrid) { ctx.at_sync() } else { self.resume(ctx) }
    }

    fn send_edges(&self, ctx: &mut Ctx<'_, Self>) {
        let me = ctx.index();
        for (to, face) in neighbours(me, self.mesh) {
            let mut edge = self.edge(face.slot as usize, me[0]);
            let mut slot = 2 * face.their_slot;
            if me[0] < to[0] {
                edge = edge.split_off(half(to, face.slot) * CELLS);
                edge.truncate(CELLS);
            } else if me[0] > to[0] {
                slot += half(me, face.slot) as u32;
            }
            ctx.send(to, Message::Halo(self.halos.halo(slot, edge)));
        }
    }

    /// The densities along a side, for each segment of the finest level.
    fn edge(&self, side: usize, level: u16) -> Vec<i64> {
        let (across, segments) = (side % 2 * (CELLS - 1), 2 >> level);
        let at = |along| if side < 2 { across * CELLS + along } else { along * CELLS + across };
        (0..CELLS * segments).map(|k| self.cells[at(k / segments)] << (2 * level)).collect()
    }

    fn compute(&mut self, step: u64, beside: &[Vec<i64>; 4], me @ [level, ..]: Index) {
        let segments = 2 >> level;
        let inflow = |n: usize, side: usize| {
            let cell = [n / CELLS, n % CELLS];
            let along = cell[1 - side / 2] * segments;
            let from = |density: i64| flow(density, self.cells[n] << (2 * level));
            match GRID.neighbour(cell.map(|k| k as u16), SIDES[side]) {
                Some([x, y]) => {
                    segments as i64 * from(self.cells[usize::from(x) * CELLS + usize::from(y)] << (2 * level))
                }
                None => beside[side][along..along + segments].iter().copied().map(from).sum(),
            }
        };
        let heat = |n| self.cells[n] + (0..4).map(|side| inflow(n, side)).sum::<i64>();
        self.cells = (0..CELLS * CELLS).map(|n| step_cell(step, level, place(me, n), heat(n))).collect();
    }

    fn contribute_summary(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.open = false;
        let me @ [level, i, j] = ctx.index();
        let is_hot = level == 0 && self.cells.iter().any(|&heat| is_hot(heat));
        let leaf = self.cells.iter().enumerate().filter(|_| !self.is_parent(me));
        let [heat, checksum] = summary_of(level, leaf.map(|(n, &heat)| (place(me, n), heat)));
        let census = vec![1, heat, checksum, if is_hot { Mesh::bit([i, j]) } else { 0 }];
        ctx.contribute_at(self.regrid, 0, Reducer::WrappingSum, census, Target::All);
    }

    fn insert_children(&self, ctx: &mut Ctx<'_, Self>) {
        for (quarter, child) in children(ctx.index()).into_iter().enumerate() {
            let cells = (0..CELLS * CELLS).map(|n| {
                let (x, y) = (quarter / 2 * CELLS + n / CELLS, quarter % 2 * CELLS + n % CELLS);
                part(self.cells[x / 2 * CELLS + y / 2], x % 2 * 2 + y % 2)
            });
            ctx.insert(child, Patch::new(cells.collect(), self.mesh, self.regrid));
        }
    }

    /// The heat of each four cells.
    fn coarse(&self) -> Vec<i64> {
        let mut coarse = vec![0; CELLS * CELLS / 4];
        self.cells
            .iter()
            .enumerate()
            .for_each(|(n, heat)| coarse[n / CELLS / 2 * CELLS / 2 + n % CELLS / 2] += heat);
        coarse
    }
}

impl Chunk for Patch {
    type Index = Index;
    type Message = Message;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        // A child comes to the sync that its parent comes to.
        if ctx.index()[0] == 0 { self.contribute_summary(ctx) } else { self.sync_or_advance(ctx) }
    }

    /// Begins the steps until the next regrid.
    fn resume(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.open = true;
        if self.is_parent(ctx.index()) {
            self.halos = Halos::at_step(self.regrid * INTERVAL, 4);
        } else {
            let neighbours = neighbours(ctx.index(), self.mesh).count() as u32;
            self.halos = Halos::at_step((self.regrid - 1) * INTERVAL, neighbours);
            self.send_edges(ctx);
        }
    }

    fn ready(&self, message: &Message) -> bool {
        match message {
            Message::Halo(halo) => self.open && self.halos.expects(halo),
            Message::Regrid(_) => true,
        }
    }

    fn reduced(_: u32, values: Values) -> Message {
        let Values::U64(census) = values else { unreachable!("patches contribute u64") };
        Message::Regrid(census)
    }

    fn receive(&mut self, message: Message, ctx: &mut Ctx<'_, Self>) {
        let me @ [level, i, j] = ctx.index();
        let is_parent = self.is_parent(me);
        match message {
            Message::Halo(halo) => {
                let step = self.halos.step();
                let Some(halos) = self.halos.add_with_slots(halo) else { return };
                if is_parent {
                    for (quarter, heats) in halos {
                        let begin = (quarter as usize / 2 * CELLS + quarter as usize % 2) * CELLS / 2;
                        let rows = self.cells[begin..].chunks_mut(CELLS);
                        rows.zip(heats.chunks(CELLS / 2))
                            .for_each(|(row, heats)| row[..CELLS / 2].copy_from_slice(heats));
                    }
                    return self.contribute_summary(ctx);
                }
                let mut beside: [Vec<i64>; 4] = Default::default();
                halos.for_each(|(slot, edge)| beside[slot as usize / 2].extend(edge));
                self.compute(step, &beside, me);
                if !(step + 1).is_multiple_of(INTERVAL) {
                    return self.send_edges(ctx);
                }
                if level == 1 {
                    let quarter = self.halos.halo((i % 2 * 2 + j % 2).into(), self.coarse());
                    ctx.send([0, i / 2, j / 2], Message::Halo(quarter));
                }
                self.contribute_summary(ctx);
            }
            Message::Regrid(census) => {
                self.mesh = Mesh(census[3]);
                self.regrid += 1;
                if me == [0; 3] {
                    self.log.push(census);
                    if self.regrid > REGRIDS {
                        ctx.exit_with(&self.log);
                    }
                }
                if self.regrid > REGRIDS {
                    return;
                }
                if level == 1 && !self.mesh.is_refined([i / 2, j / 2]) {
                    return ctx.remove();
                }
                if self.is_parent(me) && !is_parent {
                    self.insert_children(ctx);
                }
                self.sync_or_advance(ctx);
            }
        }
    }
}

/// What all patches know together at each regrid: the number of patches, their heat, its checksum, and those to refine.
pub(super) fn run(config: Config) -> Result<Vec<Vec<u64>>, Error> {
    let report = caribou::run(config, |setup| {
        let cold = |_: Index| Patch::new(vec![0; CELLS * CELLS], Mesh::default(), 0);
        setup.array([1, PATCHES, PATCHES], cold);
    })?;
    assert_eq!(report.undelivered.messages, 0, "{}", report.undelivered);
    report.value()
}
