//! Boundary exchange: sends the edges of units to neighbouring groups at the begin of a step (also: halo exchange).

use std::ops::Range;

use lb_strategies::supersteps::row::held;

use super::api::Supersteps;
use super::messages::ShareMessage;
use super::program::Program;
use super::share::Share;
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Keeps the edges that the jobs of the group need of each other, and sends the neighbouring groups the edges of this
    /// group. Each of its workers sends to the workers of a neighbouring group that have its own place there.
    ///
    /// # Errors
    /// If one of the first and the last unit has an edge and the other has none.
    pub(super) fn send_boundaries(
        &mut self,
        program: &Program<P>,
        group: Range<usize>,
        ctx: &mut Ctx<'_, Self>,
    ) -> Result<(), String> {
        let edge = |unit: Option<&P::Unit>| unit.and_then(|unit| program.edge(unit));
        let mine = held(&self.division, self.me);
        let all: u64 = self.division.units.iter().sum();
        let shows = edge(self.units.first()).is_some();
        if shows != edge(self.units.last()).is_some() {
            let (first, last) = (mine.start, mine.end - 1);
            return Err(format!(
                "of units {first} and {last} one has an edge, expected all to have one or none"
            ));
        }
        let inner_edges = |job| {
            let at = self.at(&self.job(job));
            [
                at.start.checked_sub(1).and_then(|before| edge(self.units.get(before))),
                edge(self.units.get(at.end)),
            ]
        };
        self.inner = group.clone().map(inner_edges).collect();
        self.awaited = [shows && mine.start > 0, shows && mine.end < all];
        if !shows {
            return Ok(());
        }
        for (side, unit) in [(0, self.units.first()), (1, self.units.last())] {
            let Some(edge) = edge(unit).filter(|_| self.awaited[side]) else { continue };
            let neighbours = self.neighbours(if side == 0 { mine.start - 1 } else { mine.end });
            let place = self.me - group.start;
            for to in neighbours.clone().filter(|to| (to - neighbours.start) % group.len() == place) {
                self.send(
                    to,
                    ShareMessage::Edge { step: self.step, after: side == 0, edge: edge.clone() },
                    ctx,
                );
            }
        }
        Ok(())
    }

    /// The workers of the group that has this unit.
    fn neighbours(&self, unit: u64) -> Range<usize> {
        let owner =
            self.division.ranges().position(|job| job.contains(&unit)).expect("every unit has a worker");
        self.division.group(owner)
    }
}
