//! Beyond the paper: the constants of the drawn job times, varied one at a time.

use virtual_cluster::grid_cluster::{JOBS, JobTimeModel, SETS};

use super::choice::lines;
use super::figure_2;
use super::runs::{Nodes, Task, Times, What, copies};
use crate::paper::Context;
use crate::paper::page::{Grid, Section};

/// Number of draws for each row: fewer than in the figures, because each of the rows takes as long as a set there.
pub(super) const DRAWS: usize = 60;

/// The constants of set two, one at a time, and in words what nodes that differ more change.
pub(super) fn section(context: &Context) -> (Section, String) {
    let two = SETS[1];
    let models = [
        ("as fitted", two),
        ("nodes differ by 0.8", JobTimeModel { between: 0.8, ..two }),
        ("nodes differ by 1.5", JobTimeModel { between: 1.5, ..two }),
        ("no slow changes", JobTimeModel { slow: (0.0, 1.0), ..two }),
        ("slow changes over 200 jobs", JobTimeModel { slow: (two.slow.0, 200.0), ..two }),
        ("fast changes half as large", JobTimeModel { within: two.within / 2.0, ..two }),
        ("fast changes without memory", JobTimeModel { memory: 0.0, ..two }),
        ("no bursts", JobTimeModel { burst: (0.0, 1.0, 1.0), ..two }),
    ];
    let steps = context.repetitions(JOBS as u64, 400);
    let draws = context.draws().min(DRAWS);
    let named = |(name, model): &(&str, JobTimeModel)| Nodes {
        name: (*name).to_owned(),
        ..Nodes::drawn(*model, steps)
    };
    let nodes: Vec<Nodes> = models.iter().map(named).collect();
    let wanted: &[usize] = if context.quick { &[4] } else { &[4, 16, 64] };
    let mut tasks = Vec::new();
    for &processors in wanted {
        for place in 0..nodes.len() {
            let task = |what| Task { nodes: place, ratio: 10, processors, what };
            tasks.extend(copies(processors).map(|copies| task(What::Copies(copies))));
            tasks.push(task(What::Balanced));
        }
    }
    let times = Times::run(context, "dlb-jr, constants", &nodes, &tasks, draws);
    let mut table = Grid::new(
        format!(
            "Means of {draws} draws each. Lines of figure 2 in ms. Speedups over equal shares by DLB, by 4 copies, and the best number of copies with \
             its speedup."
        ),
        "job times | DLB | 4 copies | Y* | 4 nodes | 16 nodes | 64 nodes",
    )
    .words(3);
    for (place, of) in nodes.iter().enumerate() {
        let lines = lines(&figure_2::runs(context, models[place].1, draws).concat()).expect("Y differs");
        let [balanced, copied] =
            lines.map(|line| format!("{:.2} Y {:+.0}", line.slope, 1e3 * line.intercept));
        let speedups = |processors: &usize| {
            let best = times.best_copies(place, 10, *processors);
            let [balanced, four, most] = [What::Balanced, What::Copies(4), What::Copies(best)]
                .map(|what| times.speedup(place, 10, *processors, what));
            format!("{balanced:.1}, {four:.1}, R = {best}: {most:.1}")
        };
        let threshold = 1e3 * figure_2::equal_at(&lines);
        let threshold = if threshold > 0.0 { format!("{threshold:.0}") } else { "none".to_owned() };
        table.row(
            [of.name.clone(), balanced, copied, threshold].into_iter().chain(wanted.iter().map(speedups)),
        );
    }
    let section = Section::new(
        "The constants of the drawn job times",
        "The job times of the paper are not public. These are those of set two, with one constant changed at a time. The paper has the lines \
         1.28 Y + 7157 and 2.05 Y + 1224, a threshold of 7708 ms, copies that win on 4 nodes, and DLB on more. The constants were searched on one \
         draw of the nodes. Other draws change speedups as much as any constant does (the brackets in [figure \
         7](#figure-7-speedups-of-dlb-and-copies)), because a few very slow nodes determine equal shares.",
    );
    let most = *wanted.last().unwrap_or(&4).min(&16);
    let (wide, speedup) = (2, |processors, what| times.speedup(2, 10, processors, what));
    let words = format!(
        "With nodes that differ by {} instead of {}, copies are {:.1} times as fast as equal shares on 4 nodes (DLB {:.1}), and {:.1} times on {most} \
         nodes: see [the constants](#the-constants-of-the-drawn-job-times). The line of copies is then less steep than in figure 2.",
        models[wide].1.between,
        two.between,
        speedup(4, What::Copies(4)),
        speedup(4, What::Balanced),
        speedup(most, What::Copies(times.best_copies(wide, 10, most)))
    );
    (section.table(table), words)
}
