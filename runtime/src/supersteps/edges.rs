//! What units show to their neighbours, at the begin of a step.

use std::ops::Range;

use lb_strategies::supersteps::row::held;

use super::api::Supersteps;
use super::messages::ShareMessage;
use super::program::Program;
use super::share::Share;
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Notes what the jobs of the group see of each other, and tells the neighbouring groups what they see of this one.
    ///
    /// # Errors
    /// If some units have edges and others none.
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
        let note = |job| {
            let at = self.at(&self.job(job));
            [
                at.start.checked_sub(1).and_then(|before| edge(self.units.get(before))),
                edge(self.units.get(at.end)),
            ]
        };
        self.inner = group.clone().map(note).collect();
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

    /// The group that has this unit.
    fn neighbours(&self, unit: u64) -> Range<usize> {
        let owner =
            self.division.ranges().position(|job| job.contains(&unit)).expect("every unit has a worker");
        self.division.group(owner)
    }
}
