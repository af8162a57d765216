//! Divides iterations among workers of a task, or ranks of a run, by speed (the assignment step; paper, Fig. 3 left).
//!
//! Each participant gets its done iterations plus a part of the rest in proportion to its speed. Unlike in the paper,
//! the parts are whole numbers that add up exactly. No participant gets less than its floor.

use crate::pools::apportion::apportion;

/// A worker or rank that gets a quota.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Participant {
    /// Iterations that it has reported.
    pub(crate) done: u64,
    /// Quota: iterations that it executes in all.
    pub(crate) assigned: u64,
    /// Iterations that cannot be taken from it.
    pub(crate) floor: u64,
    /// Iterations per second; `None` if never measured.
    pub(crate) speed: Option<f64>,
}

impl Participant {
    fn open(&self) -> u64 {
        self.assigned.saturating_sub(self.done)
    }

    fn spare(&self) -> u64 {
        self.assigned.saturating_sub(self.floor)
    }
}

/// Assigns quotas that add up to `budget`, including done iterations.
///
/// A participant that was never measured keeps its quota, and the others share the rest. If no participant has a speed,
/// all quotas stay if they add up to the budget. Otherwise the rest is divided in the same proportions as before. If
/// done iterations or floors exceed the budget, quotas add up to more.
pub(crate) fn share(budget: u64, parties: &mut [Participant]) {
    let done: u64 = parties.iter().map(|party| party.done).fold(0, u64::saturating_add);
    let rest = budget.saturating_sub(done);
    parties.iter_mut().for_each(|party| party.assigned = party.assigned.max(party.done));
    if rest == 0 {
        parties.iter_mut().for_each(|party| party.assigned = party.done);
    } else if parties.iter().any(|party| party.speed > Some(0.0)) {
        by_speed(rest, parties);
    } else if parties.iter().map(|party| party.assigned).fold(0, u64::saturating_add) != budget {
        by_open(rest, &mut parties.iter_mut().collect::<Vec<_>>());
    }
    respect_floors(budget, parties);
}

fn by_speed(rest: u64, parties: &mut [Participant]) {
    let (mut measured, mut unmeasured): (Vec<_>, Vec<_>) =
        parties.iter_mut().partition(|party| party.speed.is_some());
    let reserved: u64 = unmeasured.iter().map(|party| party.open()).fold(0, u64::saturating_add);
    if reserved > rest {
        by_open(rest, &mut unmeasured);
    }
    let speeds: Vec<f64> = measured.iter().filter_map(|party| party.speed).collect();
    let parts = apportion(rest.saturating_sub(reserved), &speeds).expect("one of them has a speed");
    for (party, part) in measured.iter_mut().zip(parts) {
        party.assigned = party.done.saturating_add(part);
    }
}

fn by_open(rest: u64, parties: &mut [&mut Participant]) {
    let open: Vec<f64> = parties.iter().map(|party| party.open() as f64).collect();
    let parts = apportion(rest, &open).or_else(|| apportion(rest, &vec![1.0; parties.len()]));
    for (party, part) in parties.iter_mut().zip(parts.into_iter().flatten()) {
        party.assigned = party.done.saturating_add(part);
    }
}

/// Raises quotas to their floors, and takes the excess from others in proportion to what they have above the floor.
fn respect_floors(budget: u64, parties: &mut [Participant]) {
    for party in parties.iter_mut() {
        party.assigned = party.assigned.max(party.floor);
    }
    let mut excess = parties.iter().map(|party| party.assigned).sum::<u64>().saturating_sub(budget);
    while excess > 0 {
        let mut able: Vec<_> = parties.iter_mut().filter(|party| party.spare() > 0).collect();
        let spare: Vec<f64> = able.iter().map(|party| party.spare() as f64).collect();
        let Some(parts) = apportion(excess, &spare) else { return };
        for (party, part) in able.iter_mut().zip(parts) {
            let part = part.min(party.spare());
            party.assigned -= part;
            excess -= part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn party(done: u64, assigned: u64, speed: impl Into<Option<f64>>) -> Participant {
        Participant { done, assigned, floor: done, speed: speed.into() }
    }

    fn assigned(budget: u64, mut parties: Vec<Participant>) -> Vec<u64> {
        share(budget, &mut parties);
        parties.iter().map(|party| party.assigned).collect()
    }

    #[test]
    fn the_measured_share_what_the_unmeasured_leave() {
        let parties = vec![party(0, 30, None), party(10, 30, 2.0), party(20, 30, 1.0)];
        assert_eq!(assigned(90, parties), [30, 30, 30]);
        let parties = vec![party(0, 30, None), party(10, 30, 2.0), party(20, 30, 1.0)];
        assert_eq!(assigned(40, parties), [10, 10, 20], "10 are left");
    }

    #[test]
    fn without_speeds_quotas_stay_unless_they_do_not_add_up() {
        assert_eq!(assigned(40, vec![party(0, 30, None), party(5, 10, 0.0)]), [30, 10]);
        assert_eq!(assigned(75, vec![party(0, 30, None), party(5, 15, 0.0)]), [53, 22], "as 30 to 10");
        assert_eq!(assigned(10, vec![party(0, 0, None), party(0, 0, None)]), [5, 5]);
        assert_eq!(
            assigned(10, vec![party(0, 4, None), party(6, 0, None)]),
            [4, 6],
            "done counts as assigned"
        );
    }

    #[test]
    fn nobody_is_relieved_of_what_it_is_at() {
        let mut parties = vec![party(0, 0, 1.0), party(0, 0, 1.0), party(0, 0, 2.0)];
        parties[0].floor = 40;
        assert_eq!(assigned(100, parties), [40, 20, 40]);
    }

    #[test]
    fn done_beyond_the_budget_ends_it_and_a_guess_too_many_is_taken_back() {
        assert_eq!(assigned(10, vec![party(8, 9, 1.0), party(5, 9, 1.0)]), [8, 5]);
        let guessed = Participant { floor: 2, ..party(8, 9, 1.0) };
        assert_eq!(assigned(10, vec![guessed, party(5, 9, 1.0)]), [5, 5]);
    }

    proptest! {
        #[test]
        fn quotas_add_up_and_respect_floors(
            parties in prop::collection::vec(
                (0..1u64 << 55, 0..1u64 << 55, 0..1u64 << 55,
                 prop_oneof![Just(None), Just(Some(0.0)), (1e-3..1e9f64).prop_map(Some)]),
                1..12,
            ),
            shift in 0..55u32,
            more in 0..1u64 << 55,
        ) {
            let mut parties: Vec<Participant> = parties
                .into_iter()
                .map(|(done, assigned, floor, speed)| Participant {
                    done: done >> shift, assigned: assigned >> shift, floor: floor >> shift, speed,
                })
                .collect();
            let budget = parties.iter().map(|party| party.floor).sum::<u64>() + (more >> shift);
            share(budget, &mut parties);
            prop_assert!(parties.iter().all(|party| party.assigned >= party.floor));
            prop_assert_eq!(parties.iter().map(|party| party.assigned).sum::<u64>(), budget);
        }
    }
}
