//! Redistribution: moves units to their new workers between two steps, when the division has changed.
//!
//! All shares have the old and the new division, so each can compute which units it sends and receives. The workers of
//! a group hold the same units, and divide the receivers: the worker with index p in a group of n sends to the workers
//! w with w mod n = p.

use std::ops::Range;

use lb_strategies::supersteps::Division;
use lb_strategies::supersteps::row::held;

use super::api::Supersteps;
use super::messages::ShareMessage;
use super::share::{Share, State};
use super::units::{Incoming, Units};
use crate::arrays::api::ctx::Ctx;

impl<P: Supersteps> Share<P> {
    /// Sends the units that other shares lack under the new division. Returns the units of this share under the new
    /// division, of which those that stay have arrived.
    pub(super) fn divide(&mut self, new: Division, ctx: &mut Ctx<'_, Self>) -> Incoming<P::Unit> {
        let old = std::mem::replace(&mut self.division, new);
        if let Some(root) = &mut self.root {
            root.divided(self.step, &old, &self.division);
        }
        self.meter.move_begins(ctx.elapsed_ns());
        let stays = common(&held(&old, self.me), &self.held());
        let leaving = leaving(&old, &self.division, self.me);
        let first = self.units.first;
        let mut units: Vec<_> = std::mem::take(&mut self.units.data).into_iter().map(Some).collect();
        for (at, (to, numbers)) in leaving.iter().enumerate() {
            let needed_later = |number: &u64| {
                stays.contains(number) || leaving[at + 1..].iter().any(|(_, later)| later.contains(number))
            };
            let take = |number: u64| {
                let unit = &mut units[(number - first) as usize];
                let unit = if needed_later(&number) { unit.clone() } else { unit.take() };
                unit.expect("it was here")
            };
            let units = Units { first: numbers.start, data: numbers.clone().map(take).collect() };
            self.send(*to, ShareMessage::Units { step: self.step, units }, ctx);
        }
        let take = |number: u64| units[(number - first) as usize].take().expect("it was kept");
        let mut incoming = Incoming::new(self.held());
        incoming.add(Units { first: stays.start, data: stays.map(take).collect() });
        incoming
    }

    /// Redistributing to Ready, after all units of this share have arrived.
    pub(super) fn settle(&mut self, ctx: &mut Ctx<'_, Self>) {
        let State::Redistributing(incoming) = &mut self.state else { return };
        if incoming.missing == 0 {
            self.units = incoming.join();
            self.meter.move_ends(ctx.elapsed_ns());
            self.get_ready(ctx);
        }
    }
}

/// The units that a share sends when the division changes, by receiver.
fn leaving(old: &Division, new: &Division, me: usize) -> Vec<(usize, Range<u64>)> {
    let (mine, group) = (held(old, me), old.group(me));
    let place = me - group.start;
    let mut leaving = Vec::new();
    for other in (0..old.units.len()).filter(|&other| other != me && other % group.len() == place) {
        let (had, gets) = (held(old, other), common(&mine, &held(new, other)));
        // The missing units are before or after the present ones.
        let before = gets.start..gets.end.min(had.start.max(gets.start));
        let after = gets.start.max(had.end.min(gets.end))..gets.end;
        let lacks = if had.is_empty() { vec![gets] } else { vec![before, after] };
        leaving.extend(lacks.into_iter().filter(|units| !units.is_empty()).map(|units| (other, units)));
    }
    leaving
}

/// The intersection of two ranges.
pub(super) fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    let begin = one.start.max(other.start);
    begin..one.end.min(other.end).max(begin)
}
