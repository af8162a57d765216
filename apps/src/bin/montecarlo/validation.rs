//! Compares the transport of photons with exact results.

use super::cost::Cost;
use super::energy::{Energy, KEV_PER_UNIT};
use super::run::serial;
use super::slabs::{SlabSpec, Stack};
use super::tally::{CM_PER_UM, Tally};
use super::transport::Problem;
use caribou_apps::estimate::Estimate;

fn problem(energy_kev: f64, bins: usize, slabs: &[&str]) -> Problem {
    let slabs: Vec<_> = slabs.iter().map(|text| SlabSpec::parse(text).unwrap()).collect();
    let (stack, energy) = (Stack::new(&slabs).unwrap(), Energy::from_kev(energy_kev));
    Problem { stack, energy, bins, seed: 5, cost: Cost::default() }
}

fn reflected(tally: &Tally) -> Estimate {
    Estimate::fraction(tally.reflected.count, tally.histories)
}

#[test]
fn two_absorbers_transmit_the_exponential_of_their_free_paths() {
    let problem =
        problem(100.0, 2, &["grey,absorption=0.8,scattering=0:1.5", "grey,absorption=2,scattering=0:0.5"]);
    let tally = serial(&problem, 200_000);
    let part = |hits| Estimate::fraction(hits, tally.histories);
    let (first, both) = ((-1.2_f64).exp(), (-2.2_f64).exp());
    assert!(part(tally.transmitted.count).deviation(both) < 4.0);
    assert!(part(tally.absorbed[0]).deviation(1.0 - first) < 4.0);
    assert!(part(tally.absorbed[1]).deviation(first - both) < 4.0);
    assert_eq!((tally.reflected.count, tally.transmitted.count), (0, tally.uncollided));
    // The bins are cut at 1 cm, inside the first slab.
    let left_kev = tally.deposits[0].mean_over(tally.histories).scaled(KEV_PER_UNIT);
    assert!(left_kev.deviation(100.0 * (1.0 - (-0.8_f64).exp())) < 4.0);
}

#[test]
fn an_absorber_absorbs_at_its_mean_depth() {
    let tally = serial(&problem(100.0, 1, &["grey,absorption=0.8,scattering=0:1.5"]), 200_000);
    // The mean of an exponential cut off at 1.5 cm.
    let expected_cm = 1.0 / 0.8 - 1.5 / (1.2_f64.exp() - 1.0);
    let mean_cm = tally.absorption_depth_um.mean().scaled(CM_PER_UM);
    assert!(mean_cm.deviation(expected_cm) < 4.0, "{mean_cm} cm instead of {expected_cm}");
}

#[test]
fn some_photons_pass_matter_as_if_it_only_absorbed() {
    for energy_kev in [60.0, 1000.0] {
        let problem = problem(energy_kev, 1, &["water:4", "iron:0.2", "lead:0.01"]);
        let tally = serial(&problem, 100_000);
        let uncollided = Estimate::fraction(tally.uncollided, tally.histories);
        assert!(uncollided.deviation(problem.stack.uncollided(problem.energy)) < 4.0, "{uncollided}");
        assert!(tally.transmitted.count > tally.uncollided && tally.reflected.count > 0);
    }
}

/// Chandrasekhar's H function at 1, for isotropic scattering with the probability `albedo` (Radiative Transfer, 1950,
/// chapter V), by iteration of its integral equation with the midpoint rule.
fn chandrasekhar_h_at_1(albedo: f64) -> f64 {
    let steps = 400;
    let cosines: Vec<f64> = (0..steps).map(|step| (f64::from(step) + 0.5) / f64::from(steps)).collect();
    let mut h = vec![1.0; cosines.len()];
    let at = |cosine: f64, h: &[f64]| {
        let terms = cosines.iter().zip(h).map(|(other, h)| other * h / (cosine + other));
        let integral = terms.sum::<f64>() / f64::from(steps);
        1.0 / ((1.0 - albedo).sqrt() + 0.5 * albedo * integral)
    };
    for _ in 0..200 {
        h = cosines.iter().map(|&cosine| at(cosine, &h)).collect();
    }
    at(1.0, &h)
}

#[test]
fn a_half_space_of_isotropic_scattering_reflects_as_chandrasekhar_says() {
    for (absorption, scattering) in [(0.5, 0.5), (0.1, 0.9)] {
        let slab = format!("grey,absorption={absorption},scattering={scattering}:200");
        let tally = serial(&problem(100.0, 1, &[&slab]), 100_000);
        let expected = 1.0 - chandrasekhar_h_at_1(scattering) * (1.0 - scattering).sqrt();
        let found = reflected(&tally);
        assert!(found.deviation(expected) < 4.0, "{found} instead of {expected}");
        assert_eq!(tally.transmitted.count, 0);
    }
}

#[test]
fn what_arrives_is_what_stays_and_what_leaves() {
    let problem = problem(1500.0, 20, &["aluminium:3", "lead:0.5", "water:5"]);
    let tally = serial(&problem, 20_000);
    let ends = tally.transmitted.count + tally.reflected.count + tally.absorbed.iter().sum::<u64>();
    assert_eq!(ends, tally.histories);
    let stayed: u128 = tally.deposits.iter().map(|bin| bin.sum).sum();
    let left = tally.transmitted.sum + tally.reflected.sum;
    assert_eq!(stayed + left, u128::from(problem.energy.units()) * u128::from(tally.histories));
}

#[test]
fn one_slab_in_two_pieces_is_the_same_slab() {
    let whole = serial(&problem(400.0, 10, &["water:6"]), 50_000);
    let pieces = serial(&problem(400.0, 10, &["water:2.5", "water:3.5"]), 50_000);
    let energy = |tally: &Tally| tally.transmitted.mean_over(tally.histories).scaled(KEV_PER_UNIT);
    // Both use the same random numbers, so nearly all histories are equal. Rounding changes a few.
    assert!(energy(&whole).deviation(energy(&pieces).value) < 0.1);
    assert!(whole.reflected.count.abs_diff(pieces.reflected.count) < 10);
}

#[test]
fn standard_errors_are_as_large_as_the_scatter_of_repetitions() {
    let repeat = |seed| {
        // One bin: most histories deposit in it several times.
        let problem = Problem { seed, ..problem(300.0, 1, &["water:6"]) };
        serial(&problem, 2000).deposits[0].mean_over(2000)
    };
    let repetitions: Vec<Estimate> = (100..300).map(repeat).collect();
    let mean = repetitions.iter().map(|one| one.value).sum::<f64>() / 200.0;
    let scatter = repetitions.iter().map(|one| (one.value - mean).powi(2)).sum::<f64>() / 199.0;
    let claimed = repetitions.iter().map(|one| one.standard_error.powi(2)).sum::<f64>() / 200.0;
    // A variance from 200 samples is known to a tenth.
    assert!((scatter / claimed - 1.0).abs() < 0.4, "{scatter} {claimed}");
}
