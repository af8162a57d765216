//! Figure 5: the size of chunks, the period, and the size of the problem.

use lb_strategies::Period;
use virtual_cluster::cloud_cluster::{CACHE_BYTES, Cloud, Program, Syncs, UNCACHED};

use super::runs::{ALWAYS, Run, all, at_periods};
use super::{Context, PAPER};
use crate::paper::page::{Claim, Grid, Section};
use crate::paper::picture;
use crate::paper::text;

const VMS: u32 = 32;

fn beside(program: Program) -> Cloud {
    Cloud { interferes: ALWAYS, ..Cloud::new(program, VMS) }
}

/// The place of the least value.
fn least(values: &[f64]) -> usize {
    (0..values.len()).min_by(|&one, &other| values[one].total_cmp(&values[other])).unwrap_or(0)
}

/// The three runs of each experiment: none, the paper's, the default.
fn three(context: &Context, what: &str, clouds: &[Cloud]) -> Vec<[Run; 3]> {
    context.each(what, clouds.len(), |index| {
        let cloud = &clouds[index];
        [Run::of(cloud, "none"), Run::of(cloud, PAPER), Run::of_default(cloud)]
    })
}

/// Cells of a side of a chunk.
const BLOCKS: [u32; 5] = [128, 256, 512, 1024, 2048];

pub(super) fn figure_5a(context: &Context) -> Section {
    let clouds = BLOCKS.map(|block| beside(Program::Grid { side: 8192, block }));
    let runs = three(context, "cloud-refine, figure 5a", &clouds);
    let times = |which: usize| runs.iter().map(|runs| runs[which].seconds).collect::<Vec<_>>();
    let residual: Vec<f64> = runs.iter().map(|runs| runs[1].residual_imbalance()).collect();
    let (none, paper) = (times(0), times(1));
    let best = [least(&none), least(&paper)].map(|place| BLOCKS[place]);
    let mut table = Grid::new(
        "Stencil2D on 32 fast VMs, one beside a neighbour. Residual imbalance: maximum over average load with background, mean of \
         all phases.",
        "side of a chunk | chunks per VM | none s | refine-paper s | residual imbalance | default s | bound s",
    );
    for (place, block) in BLOCKS.into_iter().enumerate() {
        let chunks = f64::from(Program::Grid { side: 8192, block }.chunks()) / f64::from(VMS);
        table.row([
            block.to_string(),
            format!("{chunks}"),
            format!("{:.2}", none[place]),
            format!("{:.2}", paper[place]),
            format!("{:.2}", residual[place]),
            format!("{:.2}", runs[place][2].seconds),
            format!("{:.2}", clouds[place].bound_s()),
        ]);
    }
    let line = |name: &str, values: &[f64]| {
        picture::line(
            name,
            BLOCKS.map(|block| f64::from(block).log2()).into_iter().zip(values.iter().copied()),
        )
    };
    let mut chart = picture::chart(
        "Stencil2D, 8K x 8K, 32 VMs",
        "log2 of the side of a chunk",
        "time (s)",
        vec![line("none", &none), line("refine-paper", &paper), line("the default", &times(2))],
    );
    chart.horizontal.from = 7.0;
    // Decisions, and the moves one after the other: the most that they can take.
    let balancing: Vec<f64> = runs
        .iter()
        .zip(&clouds)
        .map(|([_, paper, _], cloud)| {
            let Syncs { decision_s, move_s, .. } = cloud.syncs;
            100.0 * (paper.run.syncs.len() as f64 * decision_s + paper.moves as f64 * move_s) / paper.seconds
        })
        .collect();
    let faster = runs.iter().filter(|[_, paper, default]| default.seconds < paper.seconds).count();
    let few = runs.iter().zip(&residual).zip(BLOCKS).filter(|(_, block)| *block >= 512);
    let coarse = few.map(|((_, residual), _)| *residual).fold(0.0, f64::max);
    Section::new(
        "Figure 5a: the size of chunks",
        format!(
            "Small chunks cost a turn of the scheduler and messages each. Large ones exceed the second-level cache of {:.0} MB, which \
             makes a cell {:.0} % slower here, and balance worse. Both costs are assumptions, and decide which size is the fastest.",
            CACHE_BYTES / 1e6,
            100.0 * (UNCACHED - 1.0)
        ),
    )
    .picture("figure-5a", "time by size of chunks", [chart.into()])
    .table(table)
    .claim(
        Claim::new("With balancing, chunks of 256 x 256 are the fastest, without balancing 512 x 512.", "256, 512")
            .here(format!("{}, {}", best[1], best[0]))
            .holds("256 with balancing", best[1] == 256)
            .holds("512 without", best[0] == 512)
            .fitted()
            .because("The costs of a chunk and of the cache are assumed."),
    )
    .claim(
        Claim::new("Smaller chunks balance better: the residual imbalance at 128 x 128 is 1.09.", "1.09")
            .here(residual.iter().map(|it| format!("{it:.2}")).collect::<Vec<_>>().join(", "))
            .holds("each smaller size of the table balances better", residual.windows(2).all(|pair| pair[0] < pair[1]))
            .holds("each size from 256 on balances better than the next larger one", residual[1..].windows(2).all(|pair| pair[0] < pair[1]))
            .holds("at 128 it is within 0.05 of 1.09", (residual[0] - 1.09).abs() < 0.05)
            .because(format!(
                "Chunks of 128 x 128 leave a residual imbalance of {:.3}, those of 256 x 256 one of {:.3}.",
                residual[0], residual[1]
            )),
    )
    .claim(
        Claim::new("Balance is good with more than 20 chunks on a VM.", "> 20")
            .here(format!("32 per VM: {:.2}; 8 and fewer: up to {coarse:.2}", residual[1]))
            .holds("8 chunks per VM leave 5 % more", residual[2] > residual[1] + 0.05)
            .because("The least epsilon makes even 8 chunks per VM balance well beside one neighbour."),
    )
    .claim(
        Claim::new("The total time of load balancing is negligible.", "figure 5a")
            .here(format!("{} % of the time, by size", text(balancing.iter().copied(), 1)))
            .holds("less than 5 % for chunks of 256 x 256", balancing[1] < 5.0)
            .holds("for all sizes", balancing.iter().all(|&part| part < 5.0))
            .because(
                "A sync of half an iteration and 2 ms per move are assumed. Small chunks are many, and each move counts.",
            ),
    )
    .best(format!(
        "the default needs no sync, and is faster than `refine-paper` for {faster} of {} sizes.",
        BLOCKS.len()
    ))
}

const PERIODS: [u64; 8] = [2, 5, 10, 15, 20, 30, 50, 100];
/// Times of a sync, s.
const SYNCS_S: [f64; 4] = [0.0, 0.02, 0.05, 0.2];

pub(super) fn figure_5b(context: &Context) -> Section {
    let cloud = beside(Program::Stencil2d);
    let mut clouds = Vec::new();
    for decision_s in SYNCS_S {
        let syncs = Syncs { decision_s, ..Syncs::default() };
        clouds.extend(at_periods(&Cloud { syncs, ..cloud }, &PERIODS));
    }
    let on_64 = at_periods(&Cloud { vms: 64, ..cloud }, &PERIODS);
    clouds.extend(on_64);
    let runs = all(context, "cloud-refine, figure 5b", &clouds, &[PAPER]);
    let rows: Vec<Vec<f64>> =
        runs.chunks(PERIODS.len()).map(|row| row.iter().map(|runs| runs[0].seconds).collect()).collect();
    let default_s = Run::of_default(&cloud).seconds;
    let best: Vec<u64> = rows.iter().map(|row| PERIODS[least(row)]).collect();
    let heads =
        format!("seconds of a sync | {} | best period", PERIODS.map(|period| period.to_string()).join(" | "));
    let mut table = Grid::new(
        "Seconds under `refine-paper`, by period in iterations. 32 VMs, in the last row 64.",
        &heads,
    );
    let names = SYNCS_S
        .map(|seconds| format!("{seconds}"))
        .into_iter()
        .chain([format!("{} on 64 VMs", Syncs::default().decision_s)]);
    for ((name, row), best) in names.zip(&rows).zip(&best) {
        let cells = row.iter().map(|seconds| format!("{seconds:.2}"));
        table.row(std::iter::once(name).chain(cells).chain([best.to_string()]));
    }
    let lines = SYNCS_S.iter().zip(&rows).map(|(seconds, row)| {
        picture::line(
            format!("{seconds} s a sync"),
            PERIODS.map(|period| period as f64).into_iter().zip(row.iter().copied()),
        )
    });
    let mut chart =
        picture::chart("Stencil2D, 32 VMs, refine-paper", "period (iterations)", "time (s)", lines.collect());
    chart.level = Some(default_s);
    let usual =
        SYNCS_S.iter().position(|&seconds| (seconds - Syncs::default().decision_s).abs() < 1e-9).unwrap_or(0);
    let row = &rows[usual];
    // On 64 VMs: the best time, and the time with the best period of 32 VMs.
    let row_64 = &rows[SYNCS_S.len()];
    let (best_64_s, shorter_64_s) = (row_64[least(row_64)], row_64[least(row)]);
    let residual = |period: u64| {
        let place = PERIODS.iter().position(|&it| it == period).expect("it is tried");
        runs[usual * PERIODS.len() + place][0].residual_imbalance()
    };
    Section::new(
        "Figure 5b: the period",
        "A short period reacts soon and pays for many syncs; a long one leaves the neighbour alone for long. The paper does not \
         state what a sync costs, so the table varies it. The grey line is the default, which has no period.",
    )
    .picture("figure-5b", "time by period, for several costs of a sync", [chart.into()])
    .table(table)
    .claim(
        Claim::new("There is a best period, neither the shortest nor the longest.", "about 20 iterations (2 s)")
            .here(format!("{} iterations at {} s a sync", best[usual], Syncs::default().decision_s))
            .holds("between 10 and 30 iterations", (10..=30).contains(&best[usual]))
            .holds("the shortest and the longest are 3 % slower", row[0] > 1.03 * row[least(row)] && row[PERIODS.len() - 1] > 1.03 * row[least(row)])
            .fitted(),
    )
    .claim(
        Claim::new("The best period is longer where iterations are shorter: 50 on 64 VMs.", "50")
            .here(format!("{} on 64 VMs", best[SYNCS_S.len()]))
            .holds("longer than on 32 VMs", best[SYNCS_S.len()] > best[usual])
            .holds(
                format!("on 64 VMs the best period of 32 VMs, {}, is more than 0.5 % slower", best[usual]),
                shorter_64_s > 1.005 * best_64_s,
            )
            .holds("50 is the best period on 64 VMs", best[SYNCS_S.len()] == 50)
            .because(format!(
                "On 64 VMs, periods of {} and {} are within {:.2} %: {shorter_64_s:.2} and {best_64_s:.2} s.",
                best[usual],
                best[SYNCS_S.len()],
                100.0 * (shorter_64_s / best_64_s - 1.0)
            )),
    )
    .claim(
        Claim::new("Very frequent balancing spends its time on syncs, and measures too little to decide well.", "text")
            .here(format!(
                "with a period of 2: {:.2} s if syncs are free, {:.2} s at {} s a sync; residual imbalance {:.2}, with a period of 20 {:.2}",
                rows[0][0], row[0], SYNCS_S[usual], residual(2), residual(20)
            ))
            .holds("the residual imbalance is larger with a period of 2 than of 20", residual(2) > residual(20))
            .holds("with costs a period of 2 is more than 10 % slower than the best", row[0] > 1.1 * row[least(row)])
            .because("Loads are measured with an error of 3 % in two iterations here, which is enough to decide by."),
    )
    .best(format!("the default takes {default_s:.2} s without a period to choose; the best period takes {:.2} s.", row[least(row)]))
}

/// Cells of a side of the grid.
const SIDES: [u32; 4] = [4096, 8192, 12288, 16384];

pub(super) fn figure_5c(context: &Context) -> Section {
    let clouds =
        SIDES.map(|side| Cloud { period: Period::Steps(20), ..beside(Program::Grid { side, block: 256 }) });
    let runs = three(context, "cloud-refine, figure 5c", &clouds);
    let saved: Vec<f64> = runs.iter().map(|[none, paper, _]| paper.saved(none)).collect();
    let residual: Vec<f64> = runs.iter().map(|runs| runs[1].residual_imbalance()).collect();
    let mut table = Grid::new(
        "Stencil2D on 32 fast VMs, one beside a neighbour.",
        "side of the grid | none s | refine-paper s | saved % | residual imbalance | default s | saved % | best achievable gain %",
    );
    for (place, side) in SIDES.into_iter().enumerate() {
        let [none, paper, default] = &runs[place];
        table.row([
            side.to_string(),
            format!("{:.2}", none.seconds),
            format!("{:.2}", paper.seconds),
            format!("{:.1}", saved[place]),
            format!("{:.2}", residual[place]),
            format!("{:.2}", default.seconds),
            format!("{:.1}", default.saved(none)),
            format!("{:.1}", super::runs::saved(clouds[place].bound_s(), none.seconds)),
        ]);
    }
    let line =
        |name: &str, values: Vec<f64>| picture::line(name, SIDES.map(f64::from).into_iter().zip(values));
    let chart = picture::chart(
        "Stencil2D, 32 VMs, chunks of 256 x 256",
        "side of the grid (cells)",
        "saved (%)",
        vec![
            line("refine-paper", saved.clone()),
            line("the default", runs.iter().map(|[none, _, default]| default.saved(none)).collect()),
        ],
    );
    Section::new(
        "Figure 5c: the size of the problem",
        "Chunks of 256 x 256 cells, a sync every 20 iterations.",
    )
    .picture("figure-5c", "percent saved by size of the grid", [chart.into()])
    .table(table)
    .claim(
        Claim::new("The savings grow with the size of the problem.", "plot only")
            .here(saved.iter().map(|it| format!("{it:.1}")).collect::<Vec<_>>().join(", ") + " %")
            .holds(
                "each size saves more than the smaller one",
                saved.windows(2).all(|pair| pair[0] < pair[1]),
            ),
    )
    .claim(
        Claim::new(
            "The balance is better on larger grids: a residual imbalance of 1.05 at 16K x 16K.",
            "1.05",
        )
        .here(residual.iter().map(|it| format!("{it:.2}")).collect::<Vec<_>>().join(", "))
        .holds("the largest grid has the least", least(&residual) == SIDES.len() - 1)
        .holds("within 0.05 of 1.05", (residual[SIDES.len() - 1] - 1.05).abs() < 0.05)
        .because("The mean over all phases includes the first one, which is not balanced yet."),
    )
}
