//! Boundary exchange (halo exchange): sends the edges of units to neighbouring groups at the begin of a step.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::api::Supersteps;
use super::messages::ShareMessage;
use super::program::Program;
use super::share::Share;
use crate::arrays::api::ctx::Ctx;

/// The edges that the jobs of a group need in a step. Edges of other groups may arrive before the step begins.
#[derive(Serialize, Deserialize)]
pub(super) struct Boundary<E> {
    /// For each job of the group, the edges before and after it from within the group.
    inner: Vec<[Option<E>; 2]>,
    /// The edges before and after the group.
    outer: [Option<E>; 2],
    /// Whether the group needs an edge before it, and an edge after it.
    awaited: [bool; 2],
}

impl<E> Boundary<E> {
    pub(super) fn new() -> Boundary<E> {
        Boundary { inner: Vec::new(), outer: [None, None], awaited: [false; 2] }
    }

    /// Keeps the edge before the group, or after it.
    pub(super) fn keep(&mut self, after: bool, edge: E) {
        self.outer[usize::from(after)] = Some(edge);
    }

    /// Number of needed edges that have not arrived.
    pub(super) fn missing(&self) -> usize {
        let sides = self.awaited.iter().zip(&self.outer);
        sides.filter(|(awaited, edge)| **awaited && edge.is_none()).count()
    }

    /// The edges before and after a job, given its index in the group, its units, and all units of the group.
    pub(super) fn around(&self, place: usize, job: &Range<u64>, held: &Range<u64>) -> [Option<&E>; 2] {
        let ([before, after], outer) = (&self.inner[place], &self.outer);
        [
            if job.start == held.start { &outer[0] } else { before }.as_ref(),
            if job.end == held.end { &outer[1] } else { after }.as_ref(),
        ]
    }
}

impl<P: Supersteps> Share<P> {
    /// Keeps the edges that jobs of the group need of each other, and sends edges to neighbouring groups. The i-th of
    /// the n workers of a group sends to the workers i, i + n, ... of a neighbouring group.
    ///
    /// # Errors
    /// If only one of the first and the last unit has an edge.
    pub(super) fn send_boundaries(
        &mut self,
        program: &Program<P>,
        ctx: &mut Ctx<'_, Self>,
    ) -> Result<(), String> {
        let edge = |number: u64| program.edge(self.units.get(number)?);
        let (group, held) = (self.group(), self.held());
        let before = |number: u64| number.checked_sub(1);
        let ends = [edge(held.start), before(held.end).and_then(edge)];
        let shows = ends[0].is_some();
        if shows != ends[1].is_some() {
            let (first, last) = (held.start, held.end - 1);
            return Err(format!(
                "only one of the units {first} and {last} has an edge, expected all units or no unit to have one"
            ));
        }
        let inner = |job| {
            let units = self.units_of(job);
            [before(units.start).and_then(edge), edge(units.end)]
        };
        self.boundary.inner = group.clone().map(inner).collect();
        let all: u64 = self.division.units.iter().sum();
        self.boundary.awaited = [shows && held.start > 0, shows && held.end < all];
        let place = self.me - group.start;
        for (side, edge) in ends.into_iter().enumerate() {
            let Some(edge) = edge.filter(|_| self.boundary.awaited[side]) else { continue };
            let neighbours = self.neighbours(if side == 0 { held.start - 1 } else { held.end });
            for to in neighbours.clone().filter(|to| (to - neighbours.start) % group.len() == place) {
                let message = ShareMessage::Edge { step: self.step, after: side == 0, edge: edge.clone() };
                self.send(to, message, ctx);
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
