//! Formats a tally for people: a table of fractions with their errors, and the depth profile as a CSV file.

use std::fmt::Write;

use presentation::Table;

use super::energy::KEV_PER_UNIT;
use super::tally::{CM_PER_UM, Tally};
use super::transport::Problem;
use caribou_apps::estimate::Estimate;

/// The fraction of photons with each fate, one per line, beside the exact value where theory gives one.
#[must_use]
pub(crate) fn table(problem: &Problem, tally: &Tally) -> String {
    let fraction = |hits| Estimate::fraction(hits, tally.histories);
    let mut rows = Table::new(["photons", "part", "theory"]);
    let mut row = |name: String, estimate: Estimate, theory: Option<f64>| {
        let theory = theory.map_or_else(|| "-".to_owned(), |theory| beside(theory, estimate));
        rows.row([name, estimate.to_string(), theory]);
    };
    row("transmitted".to_owned(), fraction(tally.transmitted.count), None);
    let uncollided = problem.stack.uncollided(problem.energy);
    row("  without a collision".to_owned(), fraction(tally.uncollided), Some(uncollided));
    row("reflected".to_owned(), fraction(tally.reflected.count), None);
    for (slab, &hits) in problem.stack.slabs().iter().zip(&tally.absorbed) {
        row(
            format!("absorbed in {} {}-{} cm", slab.medium.name(), slab.from_cm, slab.to_cm),
            fraction(hits),
            None,
        );
    }
    let mut text = rows.to_string();
    let depth_cm = tally.absorption_depth_um.mean().scaled(CM_PER_UM);
    let _ = writeln!(text, "mean depth of absorption: {depth_cm} cm");
    for (what, energies) in [("transmitted", tally.transmitted), ("reflected", tally.reflected)] {
        let energy_kev = energies.mean_over(tally.histories).scaled(KEV_PER_UNIT);
        let _ = writeln!(text, "energy {what}: {energy_kev} keV per photon");
    }
    text
}

/// A value of theory, and how far off the estimate is. Without a standard error the distance is left out.
fn beside(theory: f64, estimate: Estimate) -> String {
    match estimate.deviation(theory) {
        deviation if deviation.is_finite() => format!("{theory:.6} ({deviation:.1} standard errors off)"),
        _ => format!("{theory:.6}"),
    }
}

/// The energy left at each depth, per photon that arrived, as comma-separated values with a heading.
#[must_use]
pub(crate) fn depth_profile_csv(problem: &Problem, tally: &Tally) -> String {
    let mut text = "depth_from_cm,depth_to_cm,energy_kev_per_photon,standard_error_kev\n".to_owned();
    let bin_cm = problem.stack.depth_cm() / problem.bins as f64;
    for (bin, deposits) in tally.deposits.iter().enumerate() {
        let (from_cm, to_cm) = (bin as f64 * bin_cm, (bin + 1) as f64 * bin_cm);
        let Estimate { value, standard_error } = deposits.mean_over(tally.histories).scaled(KEV_PER_UNIT);
        let _ = writeln!(text, "{from_cm:.6},{to_cm:.6},{value:.9},{standard_error:.9}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Cost;
    use crate::energy::Energy;
    use crate::slabs::{SlabSpec, Stack};
    use crate::transport::run_histories;

    fn problem() -> Problem {
        let slabs = ["water:4", "lead:0.5"].map(|text| SlabSpec::parse(text).unwrap());
        let (stack, energy) = (Stack::new(&slabs).unwrap(), Energy::from_kev(500.0));
        Problem { stack, energy, bins: 9, seed: 1, cost: Cost::default() }
    }

    #[test]
    fn every_photon_is_in_the_table_once() {
        let problem = problem();
        let mut tally = problem.empty_tally();
        run_histories(&problem, 0..500, &mut tally);
        let text = table(&problem, &tally);
        let part = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().next().unwrap().parse().unwrap()
        };
        let fates = ["transmitted", "reflected", "absorbed in water 0-4 cm", "absorbed in lead 4-4.5 cm"];
        let sum: f64 = fates.into_iter().map(part).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{text}");
    }

    #[test]
    fn the_profile_adds_up_to_what_stayed() {
        let problem = problem();
        let mut tally = problem.empty_tally();
        run_histories(&problem, 0..500, &mut tally);
        let csv = depth_profile_csv(&problem, &tally);
        let cell = |line: &str, column: usize| line.split(',').nth(column).unwrap().parse::<f64>().unwrap();
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!((lines.len(), cell(lines[8], 1)), (9, 4.5));
        let stayed_kev: f64 = lines.iter().map(|line| cell(line, 2)).sum();
        let left_kev = (tally.transmitted.sum + tally.reflected.sum) as f64 * KEV_PER_UNIT / 500.0;
        assert!((stayed_kev + left_kev - 500.0).abs() < 1e-6, "{stayed_kev} + {left_kev}");
    }
}
