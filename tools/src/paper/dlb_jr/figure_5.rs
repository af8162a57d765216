//! Figure 5: times of the best number of copies by ratio of communication to computation.

use presentation::format::decimal;

use super::figure_3::RISE;
use super::grids::{CONSTANTS, Grids, RATIO_NAMES, RATIOS, Series, least_at, rises};
use super::runs::What;
use super::sends::exponential;
use crate::paper::page::{Claim, Grid, Section};

/// Why copies pay at higher ratios than in the paper.
const MESSAGES: &str = "A few slow nodes determine a step with equal shares. Copies pay while the message that ends a job is short: \
                        [its time](#the-message-that-a-job-is-finished) decides. In the paper each node of a group has a message time of its own (equation 8).";

/// The numbers of nodes on which copies pay, of how many, and the most that they save, percent.
fn pays(grids: &Grids, set: usize, ratio: u32) -> (usize, usize, f64) {
    let parallel = grids.parallel(set);
    let gains = parallel.iter().map(|&of| grids.times.speedup(set, ratio, of, grids.best(set, ratio, of)));
    let gains: Vec<f64> = gains.collect();
    let most = gains.iter().map(|gain| 100.0 * (1.0 - 1.0 / gain)).fold(0.0, f64::max);
    (gains.iter().filter(|gain| **gain > 1.0).count(), parallel.len(), most)
}

/// The figure.
pub(super) fn section(grids: &Grids) -> Section {
    let mut table = Grid::new(
        "Hours with the best number of copies: means, in brackets the middle 90 % of the draws; and that number.",
        "set | nodes | 0.01 | R* | 0.25 | R* | 0.50 | R*",
    );
    grids.rows(&mut table, false, |set, processors| {
        let cells = RATIOS.map(|ratio| {
            let best = grids.times.best_copies(set, ratio, processors);
            [grids.times.hours(set, ratio, processors, What::Copies(best)).cell(2), best.to_string()]
        });
        cells.concat()
    });
    let series = RATIOS.iter().zip(RATIO_NAMES).map(|(&ratio, name)| -> Series<'_> {
        let hours = move |set, of| Some(grids.times.hours(set, ratio, of, grids.best(set, ratio, of)));
        (format!("ratio {name}"), Box::new(hours))
    });
    let panels = grids.hour_charts("best copies", &series.collect::<Vec<_>>());
    let [half_one, half_two] = [0, 1].map(|set| pays(grids, set, 500));
    let [quarter_one, quarter_two] = [0, 1].map(|set| pays(grids, set, 250));
    let hours = |longest: fn(usize) -> f64| grids.waiting_h(1, 500, |of| grids.best(1, 500, of), longest);
    let gain = |set, of, ratio| grids.times.speedup(set, ratio, of, grids.best(set, ratio, of));
    let settings = grids.settings().count();
    let fall = grids.settings().filter(|&(set, of)| {
        let [low, middle, high] = RATIOS.map(|ratio| gain(set, of, ratio));
        low > middle && middle >= high
    });
    let fall = fall.count();
    let [equal, waiting] = [hours(|_| 1.0), hours(exponential)];
    let [equal_least, waiting_least] = [&equal, &waiting].map(|hours| least_at(&grids.processors(1), hours));
    Section::new(
        "Figure 5: times of copies by ratio",
        "A step with R copies takes R jobs of a group, and a message after each. At higher ratios jobs are shorter, as in the paper.",
    )
    .picture("figure-5", "times with the best number of copies for three ratios and two sets", panels)
    .table(table)
    .claim(
        Claim::new("At 0.50 copies never pay.", "both sets")
            .here(format!(
                "pay in {} of {} and {} of {} numbers of nodes; save {} and {} % at most",
                half_one.0,
                half_one.1,
                half_two.0,
                half_two.1,
                decimal(half_one.2, 0),
                decimal(half_two.2, 0)
            ))
            .holds("never in set one", half_one.0 == 0)
            .holds("never in set two", half_two.0 == 0)
            .because(MESSAGES),
    )
    .claim(
        Claim::new("The gain of copies falls as communication takes a larger part.", "\"too small to compensate the overhead\"")
            .here(format!("the best speedup falls with each ratio in {fall} of {settings} settings"))
            .holds("in all settings", fall == settings)
            .because(MESSAGES),
    )
    .claim(
        Claim::new("At 0.25 copies do not pay in set one.", "plot only")
            .here(format!("pay in {} of {}; save {} % at most", quarter_one.0, quarter_one.1, decimal(quarter_one.2, 0)))
            .holds("never", quarter_one.0 == 0)
            .because(MESSAGES)
            .fitted(),
    )
    .claim(
        Claim::new("At 0.25 copies pay in many cases in set two.", "30 % less time")
            .here(format!("pay in {} of {}; save {} % at most", quarter_two.0, quarter_two.1, decimal(quarter_two.2, 0)))
            .holds("in at least half of the numbers of nodes", 2 * quarter_two.0 >= quarter_two.1)
            .because(CONSTANTS),
    )
    .claim(
        Claim::new("At 0.50 the times rise with the number of nodes.", "plot only: \"a consistent increase\"")
            .here(format!("set two, least on {equal_least} nodes if all sends are equal, on {waiting_least} if they are exponential"))
            .holds("if sends are exponential, they rise from the best number of nodes on, which is 4 at most", {
                let best = grids.processors(1).iter().position(|&of| of == waiting_least).unwrap_or(0);
                waiting_least <= 4 && rises(&waiting[best..])
            })
            .holds("they rise with each number of nodes", rises(&waiting))
            .holds("also if sends are equal", rises(&equal))
            .because(RISE),
    )
}
