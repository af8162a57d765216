//! Finds the front of strategies: what imbalance can be reached with how many moves.

use lb_strategies::ARRAYS;

use super::all;
use crate::Error;
use crate::report::Row;

/// The parameter of a strategy that limits how many chunks it moves.
const BUDGET: &str = "moves";

/// The specifications, with those of strategies that take a budget once for each budget. All strategies if there are
/// no specifications.
pub(super) fn with_budgets(specs: Vec<String>, budgets: &[u32]) -> Result<Vec<String>, Error> {
    if budgets.is_empty() {
        return Ok(specs);
    }
    let specs = if specs.is_empty() { all() } else { specs };
    let takes_budget = |spec: &String| {
        let entry = ARRAYS.find(spec);
        let listed =
            entry.is_some_and(|entry| entry.parameters.iter().any(|parameter| parameter.name == BUDGET));
        listed && !without_budget(spec).1
    };
    if !specs.iter().any(takes_budget) {
        let takes: Vec<String> = all().into_iter().filter(takes_budget).collect();
        let expected = if takes.is_empty() { "and none has one".to_owned() } else { takes.join(", ") };
        return Err(Error::Usage(format!(
            "--moves: no strategy in the list has a parameter `{BUDGET}`, expected one that has: {expected}"
        )));
    }
    let expand = |spec: String| -> Vec<String> {
        if takes_budget(&spec) {
            budgets.iter().map(|budget| format!("{spec},{BUDGET}={budget}")).collect()
        } else {
            vec![spec]
        }
    };
    Ok(specs.into_iter().flat_map(expand).collect())
}

/// The specification without its budget, and whether it has one. Specifications that differ in their budget alone are
/// one line of the picture.
pub(super) fn without_budget(spec: &str) -> (String, bool) {
    let is_budget = |part: &&str| part.split_once('=').is_some_and(|(key, _)| key.trim() == BUDGET);
    let rest: Vec<&str> = spec.split(',').filter(|part| !is_budget(part)).collect();
    (rest.join(","), rest.len() < spec.split(',').count())
}

/// Marks the rows that no other row beats: with fewer moves and no higher imbalance, or as many moves and less
/// imbalance. Of equal rows the first is marked, and no row with a rank that exceeds its memory.
pub(super) fn mark(rows: &mut [Row]) {
    let results: Vec<(usize, f64)> = rows.iter().map(Row::result).collect();
    for (row, on_front) in rows.iter_mut().zip(front(&results)) {
        row.on_front = on_front;
    }
}

/// Whether each result, of moves and imbalance, is on the front.
fn front(results: &[(usize, f64)]) -> Vec<bool> {
    let is_beaten = |(position, &(moved, imbalance)): (usize, &(usize, f64))| {
        results.iter().enumerate().any(|(other, &(others, lower))| {
            let is_better = others < moved || lower < imbalance || other < position;
            others <= moved && lower <= imbalance && is_better
        })
    };
    let results = results.iter().enumerate();
    results.map(|result| result.1.1.is_finite() && !is_beaten(result)).collect()
}

/// Keeps the rows on the front, by chunks moved.
pub(super) fn keep(rows: &mut Vec<Row>) {
    rows.retain(|row| row.on_front);
    rows.sort_by_key(|row| row.result().0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_front_is_worse_in_one_of_both_than_any_other() {
        let results = [
            (0, 2.0),
            (0, 2.0),
            (0, 2.5),
            (3, 1.5),
            (4, 1.5),
            (4, 1.6),
            (9, 1.2),
            (2, f64::INFINITY),
            (9, 1.3),
        ];
        let expected = [true, false, false, true, false, false, true, false, false];
        assert_eq!(front(&results), expected);
        assert_eq!(front(&[(0, f64::INFINITY)]), [false], "over its memory");
    }

    #[test]
    fn a_budget_is_taken_off_a_specification() {
        assert_eq!(without_budget("comm,moves=5"), ("comm".to_owned(), true));
        assert_eq!(without_budget("comm, moves = 5,rounds=2"), ("comm,rounds=2".to_owned(), true));
        assert_eq!(without_budget("refine,tolerance=0.1"), ("refine,tolerance=0.1".to_owned(), false));
    }
}
