//! Redistribution: units change their worker between two steps.
//!
//! All shares know the old and the new division, so each knows which units it sends and receives. The workers of a group
//! hold the same units and share the receivers: the worker at place p of a group of n sends to the workers w with
//! w mod n = p.

use std::ops::Range;

use lb_strategies::supersteps::Division;
use lb_strategies::supersteps::row::held;

use super::api::Supersteps;
use super::messages::ShareMessage;
use super::share::Share;
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Sends the units that other shares lack under the new division, and keeps those that stay.
    pub(super) fn divide(&mut self, new: Division, ctx: &mut Ctx<'_, Self>) {
        let old = std::mem::replace(&mut self.division, new);
        if let Some(root) = &mut self.root {
            root.divided(self.step, &old, &self.division);
        }
        self.measuring.move_begins(ctx.elapsed_ns());
        let mine = held(&old, self.me);
        let (group, stays) = (old.group(self.me), common(&mine, &held(&self.division, self.me)));
        let place = self.me - group.start;
        let mut leaving: Vec<(usize, Range<u64>)> = Vec::new();
        for other in (0..old.units.len()).filter(|&other| other != self.me && other % group.len() == place) {
            let (had, gets) = (held(&old, other), common(&mine, &held(&self.division, other)));
            // The units that it lacks are before or after those that it has.
            let before = gets.start..gets.end.min(had.start.max(gets.start));
            let after = gets.start.max(had.end.min(gets.end))..gets.end;
            let lacks = if had.is_empty() { vec![gets] } else { vec![before, after] };
            leaving.extend(lacks.into_iter().filter(|units| !units.is_empty()).map(|units| (other, units)));
        }
        let mut units: Vec<Option<P::Unit>> = std::mem::take(&mut self.units).into_iter().map(Some).collect();
        let first = self.first;
        for (at, (to, range)) in leaving.iter().enumerate() {
            let needed_later = |number: &u64| {
                stays.contains(number) || leaving[at + 1..].iter().any(|(_, later)| later.contains(number))
            };
            let take = |number: u64| {
                let unit = &mut units[(number - first) as usize];
                let unit = if needed_later(&number) { unit.clone() } else { unit.take() };
                unit.expect("it was here")
            };
            let message = ShareMessage::Units {
                step: self.step,
                first: range.start,
                units: range.clone().map(take).collect(),
            };
            ctx.send(*to as u32, message);
        }
        let staying =
            stays.clone().map(|number| units[(number - first) as usize].take().expect("it was kept"));
        let staying: Vec<P::Unit> = staying.collect();
        let has = held(&self.division, self.me);
        self.missing = (has.end - has.start) - staying.len() as u64;
        self.first = has.start;
        self.arrived.push((stays.start, staying));
    }

    /// Begins the next step if all units of this share have come.
    pub(super) fn settle(&mut self, ctx: &mut Ctx<'_, Self>) {
        if self.missing > 0 {
            return;
        }
        if !self.arrived.is_empty() {
            let mut arrived = std::mem::take(&mut self.arrived);
            arrived.sort_unstable_by_key(|(first, _)| *first);
            self.units = arrived.into_iter().flat_map(|(_, units)| units).collect();
            self.measuring.move_ends(ctx.elapsed_ns());
        }
        if self.workers() > 1 {
            return self.begin(ctx);
        }
        // A single share would run all steps within this handler.
        self.send(self.me, ShareMessage::Continue { step: self.step, job: self.me }, ctx);
    }
}

/// The intersection of two ranges.
fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let begin = one.start.max(other.start);
    begin..one.end.min(other.end).max(begin)
}
