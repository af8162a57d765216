//! What happens during a run: the introduction's example, figure 3 and figure 4.

use presentation::bars::Bars;
use presentation::chart::Band;
use virtual_cluster::cloud_cluster::{BARRIER_S, Cloud, Program};

use super::runs::{ALWAYS, Run};
use super::{Context, DEFAULT, PAPER};
use crate::paper::page::{Claim, Grid, Section};
use crate::paper::picture;
use crate::statistics::mean;

/// The introduction: one slow processor of a hundred.
pub(super) fn slow_processor(context: &Context) -> Section {
    let cloud = |slow| Cloud { slow, ..Cloud::new(Program::Grid { side: 12800, block: 128 }, 100) };
    let clouds = [(cloud(0), "none"), (cloud(1), "none"), (cloud(1), PAPER)];
    let mut runs = context.each("cloud-refine, introduction", 4, |index| match clouds.get(index) {
        Some((cloud, strategy)) => Run::of(cloud, strategy),
        None => Run::of_default(&cloud(1)),
    });
    let [equal, slow, paper, ours] = std::array::from_fn(|_| runs.remove(0).seconds - 499.0 * BARRIER_S);
    let longer = |seconds: f64| 100.0 * (seconds / equal - 1.0);
    let mut table =
        Grid::new("Compute time of 500 iterations on 100 VMs.", "VMs | balancing | s | longer %").words(2);
    for (vms, balancing, seconds) in [
        ("all fast", "none", equal),
        ("one slow", "none", slow),
        ("one slow", PAPER, paper),
        ("one slow", "the default", ours),
    ] {
        table.row([
            vms.to_owned(),
            balancing.to_owned(),
            format!("{seconds:.2}"),
            format!("{:.1}", longer(seconds)),
        ]);
    }
    Section::new(
        "Introduction: one slow processor of a hundred",
        "The paper's example for a tightly coupled program. The slow VM has the clock of the paper's slow nodes, 29 % below the fast \
         ones, so an iteration takes it 41 % longer.",
    )
    .table(table)
    .claim(
        Claim::new("One slower processor slows the whole program down by as much as it is slower.", "30 %")
            .here(format!("{:.1} % longer, as the slow VM is", longer(slow)))
            .holds("the program takes as long as the slow VM alone", (longer(slow) - 100.0 * (3.0 / 2.13 - 1.0)).abs() < 1.0)
            .fitted(),
    )
    .best(format!("with the default it takes {:.1} % longer than with all VMs fast, with `refine-paper` {:.1} %.", longer(ours), longer(paper)))
}

/// Iterations of figure 3 in which the neighbour is there.
const PRESENT: (f64, f64) = (100.0, 300.0);

/// Figure 3: the time of each iteration.
pub(super) fn figure_3(context: &Context) -> Section {
    let cloud = Cloud { slow: 4, interferes: Some(PRESENT), ..Cloud::new(Program::Stencil2d, 32) };
    let runs = context.each("cloud-refine, figure 3", 3, |index| match index {
        0 => Run::of(&cloud, "none"),
        1 => Run::of(&cloud, PAPER),
        _ => Run::of_default(&cloud),
    });
    let times: Vec<Vec<f64>> = runs.iter().map(Run::iterations_s).collect();
    // Without the syncs, which are spikes.
    let between = |times: &[f64], from: usize, to: usize| {
        let inside =
            times.iter().enumerate().skip(from).take(to - from).filter(|(number, _)| number % 20 != 0);
        mean(&inside.map(|(_, &seconds)| seconds).collect::<Vec<_>>())
    };
    // The runs are faster than the one without balancing, so the neighbour comes and leaves at other iterations.
    let arrival = |times: &[f64]| {
        let quiet = between(times, 40, 80);
        times
            .iter()
            .enumerate()
            .skip(80)
            .find(|(number, seconds)| number % 20 != 0 && **seconds > 1.3 * quiet)
            .map_or(0, |(number, _)| number)
    };
    let came = arrival(&times[1]);
    let settled = between(&times[1], came + 80, came + 140);
    let steps = (0..10)
        .position(|step| {
            let begin = (came / 20 + 1 + step) * 20;
            between(&times[1], begin + 1, begin + 20) < 1.05 * settled
        })
        .map_or(10, |step| step + 1);
    let [none_early, paper_early] = [0, 1].map(|run| between(&times[run], 40, 95));
    let none_late = between(&times[0], 320, 480);
    let paper_after = between(&times[1], 465, 495);
    let peak = between(&times[0], 120, 290);
    let spikes: Vec<f64> = times[1].iter().skip(20).step_by(20).copied().collect();
    let mut table = Grid::new(
        "Mean time of an iteration between syncs, ms.",
        "iterations | none | refine-paper | the default",
    );
    for (name, from, to) in [
        ("40 to 95, before the neighbour", 40, 95),
        ("200 to 290, beside it", 200, 290),
        ("465 to 495, after it", 465, 495),
    ] {
        let cells = (0..3).map(|run| format!("{:.1}", 1e3 * between(&times[run], from, to)));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    table.row(
        std::iter::once("whole run, s".to_owned())
            .chain(runs.iter().map(|run| format!("{:.2}", run.seconds))),
    );
    let lines = ["none", "refine-paper", "the default"]
        .into_iter()
        .zip(&times)
        .map(|(name, times)| picture::line(name, (0..).map(f64::from).zip(times.iter().copied())));
    let mut chart = picture::chart(
        "Stencil2D on 32 VMs, four of them slow",
        "iteration",
        "time of an iteration (s)",
        lines.collect(),
    );
    chart.bands =
        vec![Band { label: "neighbour (without balancing)".into(), from: PRESENT.0, to: PRESENT.1 }];
    Section::new(
        "Figure 3: the time of each iteration",
        "Four slow VMs of 32. The neighbour comes and leaves at the times of iterations 100 and 300 of the run without balancing.",
    )
    .picture("figure-3", "the time of each iteration under three strategies", [chart.into()])
    .table(table)
    .claim(
        Claim::new("Balancing gains before iteration 100, by speed awareness alone.", "plot only")
            .here(format!("{:.1} ms instead of {:.1} ms", 1e3 * paper_early, 1e3 * none_early))
            .holds("an iteration is more than 10 % shorter", paper_early < 0.9 * none_early),
    )
    .claim(
        Claim::new("After the neighbour has come, the time of an iteration falls within about three balancing steps.", "about 3")
            .here(format!("within {steps} steps"))
            .holds("within 5 % of its new level after three steps at most", steps <= 3),
    )
    .claim(
        Claim::new("When the neighbour leaves, the time without balancing falls, and the one with balancing falls little.", "plot only")
            .here(format!("none from {:.1} to {:.1} ms, refine-paper from {:.1} to {:.1} ms", 1e3 * peak, 1e3 * none_late, 1e3 * settled, 1e3 * paper_after))
            .holds("none falls by more than 20 %", none_late < 0.8 * peak)
            .holds("balanced iterations fall by less than 5 %", paper_after > 0.95 * settled),
    )
    .claim(
        Claim::new("Syncs are spikes every 20 iterations.", "plot only")
            .here(format!("an iteration with a sync takes {:.1} ms", 1e3 * mean(&spikes)))
            .holds("it takes longer than the others", mean(&spikes) > 1.2 * paper_early),
    )
    .best(format!(
        "{} in windows takes {:.2} s, `refine-paper` {:.2} s; the bound is {:.2} s. It has no spikes, since chunks do not wait for a decision.",
        format_args!("`{}`", DEFAULT.0),
        runs[2].seconds,
        runs[1].seconds,
        cloud.bound_s()
    ))
}

/// Figure 4: the utilisation of each VM.
pub(super) fn figure_4(context: &Context) -> Section {
    // By the paper's figure, half of the fast VMs need 70 % of an iteration and the others 50 %.
    let cloud = Cloud { second_half: 1.4, interferes: ALWAYS, ..Cloud::new(Program::Stencil2d, 32) };
    let runs = context.each("cloud-refine, figure 4", 3, |index| match index {
        0 => Run::of(&cloud, "none"),
        1 => Run::of(&cloud, PAPER),
        _ => Run::of_default(&cloud),
    });
    let used: Vec<Vec<f64>> = runs.iter().map(Run::utilisation).collect();
    let [before, after, ours] = [0, 1, 2].map(|run| mean(&used[run]));
    let clusters = [mean(&used[0][16..31]), mean(&used[0][..16]), used[0][31]];
    let spread = |used: &[f64]| {
        let (least, most) =
            used.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &it| (least.min(it), most.max(it)));
        most - least
    };
    let bars = ["none", "refine-paper"].into_iter().zip(&used).fold(
        Bars::new(
            "sorted, the mean first",
            "computing (%)",
            std::iter::once("mean".to_owned()).chain((0..32).map(|_| String::new())),
        ),
        |bars, (name, used)| {
            let mut sorted = used.clone();
            sorted.sort_by(f64::total_cmp);
            bars.series(name, std::iter::once(mean(used)).chain(sorted))
        },
    );
    let mut table = Grid::new(
        "Part of the run in which a VM computes or waits for its vCPU, percent.",
        "VMs | the paper, none | none | the paper, balanced | refine-paper | the default",
    );
    for (name, range, paper) in [
        ("the faster fast ones", 16..31, "50"),
        ("the slower fast ones", 0..16, "70"),
        ("beside the neighbour", 31..32, "90"),
    ] {
        let cells = [0, 1, 2].map(|run| format!("{:.0}", mean(&used[run][range.clone()])));
        let [none, paper_run, default] = cells;
        table.row([name.to_owned(), paper.to_owned(), none, String::new(), paper_run, default]);
    }
    table.row([
        "all".to_owned(),
        "60".into(),
        format!("{before:.0}"),
        "82".into(),
        format!("{after:.0}"),
        format!("{ours:.0}"),
    ]);
    Section::new(
        "Figure 4: utilisation of the VMs",
        "32 fast VMs, one of them beside a neighbour. The paper's fast nodes are of two kinds; the ratio of their speeds, 1.4, is \
         read off the paper's two clusters of 50 % and 70 %.",
    )
    .picture("figure-4", "utilisation of each VM without balancing and with refine-paper", [bars.into()])
    .table(table)
    .claim(
        Claim::new("Without balancing there are three clusters of utilisation.", "50, 70, 90 %")
            .here(clusters.map(|it| format!("{it:.0}")).join(", ") + " %")
            .holds("the three differ by more than 10 points each", clusters[1] > clusters[0] + 10.0 && clusters[2] > clusters[1] + 10.0)
            .fitted(),
    )
    .claim(
        Claim::new("Balancing raises the mean utilisation.", "60 to 82 %")
            .here(format!("{before:.0} to {after:.0} %"))
            .holds("by more than 15 points", after > before + 15.0)
            .holds("both within 10 points of the paper's", (before - 60.0).abs() < 10.0 && (after - 82.0).abs() < 10.0)
            .because("The barrier is fitted to figure 6b, and is a larger part of an iteration than figure 4 shows, before and after balancing."),
    )
    .claim(
        Claim::new("After balancing, the idle time is that of communication, and the same on all VMs.", "plot only")
            .here(format!("utilisations differ by {:.0} points, {:.0} without balancing", spread(&used[1]), spread(&used[0])))
            .holds("they differ by less than a third of the points", spread(&used[1]) < spread(&used[0]) / 3.0),
    )
}
