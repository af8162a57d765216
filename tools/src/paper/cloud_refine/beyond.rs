//! Beyond the paper: the two models of a neighbour side by side, and what the paper leaves to future work.

use lb_strategies::Period;
use virtual_cluster::cloud_cluster::{Cloud, Program, Syncs};

use super::runs::{ALWAYS, Run, all, saved};
use super::{Context, PAPER};
use crate::paper::page::{Grid, Section};

/// Numbers of VMs beside one of which a neighbour runs.
const VMS: [u32; 5] = [2, 4, 8, 16, 32];

/// Equation 1 adds the background load to a VM, whatever its work; here a neighbour takes a share of the time.
pub(super) fn neighbour_models(context: &Context) -> Section {
    let strategies =
        ["none", "refine-paper,tolerance=0.001", PAPER, "refine-paper,background=share", "refine"];
    let clouds = VMS.map(|vms| {
        let syncs = Syncs { decision_s: 0.0, move_s: 0.0, error: 0.0 };
        Cloud { interferes: ALWAYS, syncs, ..Cloud::new(Program::Grid { side: 4096, block: 128 }, vms) }
    });
    let runs = all(context, "cloud-refine, models of a neighbour", &clouds, &strategies);
    let heads = "VMs | additive, epsilon 0.001 | additive, least epsilon | share, least epsilon | refine | best achievable gain | 1 - P / (2 (P - 0.5))";
    let mut table = Grid::new(
        "Saved of the compute time, percent, by a grid of 4096 x 4096 cells in 1024 chunks. Syncs and moves cost nothing.",
        heads,
    );
    let mut worst: f64 = 0.0;
    for ((vms, cloud), runs) in VMS.into_iter().zip(&clouds).zip(&runs) {
        let barriers = 499.0 * virtual_cluster::cloud_cluster::BARRIER_S;
        let computing = |run: &Run| run.seconds - barriers;
        let cells = (1..strategies.len()).map(|place| saved(computing(&runs[place]), computing(&runs[0])));
        let best_gain = saved(cloud.bound_s() - barriers, computing(&runs[0]));
        worst = worst.max(best_gain - saved(computing(&runs[strategies.len() - 1]), computing(&runs[0])));
        let p = f64::from(vms);
        let least = 100.0 * (1.0 - p / (2.0 * (p - 0.5)));
        let numbers = cells.chain([best_gain, least]).map(|it| format!("{it:.1}"));
        table.row(std::iter::once(vms.to_string()).chain(numbers));
    }
    Section::new(
        "Beyond: two models of a neighbour",
        "Equation 1 treats the time that a neighbour takes as a constant load of the VM. A neighbour that always wants to run takes \
         less from a VM with less work. `refine` assumes that it takes a share of the time. The neighbours here are other VMs, which \
         are not seen while a VM is idle. So each sync corrects a part of the error of the last one, and the additive model saves \
         a little less, with more moves. A neighbour in the same operating system counts also while the VM is idle: then the additive model \
         stops at three quarters of the best achievable gain on two vCPUs (`it_stalls_at_three_quarters` in the tests of `refine-paper`). The \
         last column is the bound for a neighbour that takes half of one of P vCPUs.",
    )
    .table(table)
    .best(format!(
        "`refine` comes within {worst:.1} points of the best achievable gain; the iterations before the first sync are not balanced."
    ))
}

/// The list at the end of the paper.
pub(super) fn future_work(context: &Context) -> Section {
    let large = Cloud { interferes: ALWAYS, ..Cloud::new(Program::Grid { side: 32768, block: 256 }, 512) };
    let short = Cloud { interferes: Some((100.0, 130.0)), ..Cloud::new(Program::Stencil2d, 32) };
    let mut runs = context.each("cloud-refine, future work", 6, |index| match index {
        0 => Run::of(&large, "none"),
        1 => Run::of(&Cloud { period: Period::Steps(20), ..large }, PAPER),
        2 => Run::of_default(&large),
        3 => Run::of(&short, "none"),
        4 => Run::of(&short, PAPER),
        _ => Run::of_default(&short),
    });
    let mut row_of = |cloud: &Cloud, name: &str| {
        let [none, paper, default] = std::array::from_fn(|_| runs.remove(0));
        [
            name.to_owned(),
            format!("{:.2}", none.seconds),
            format!("{:.1}", paper.saved(&none)),
            paper.moves.to_string(),
            format!("{:.1}", default.saved(&none)),
            default.moves.to_string(),
            format!("{:.1}", saved(cloud.bound_s(), none.seconds)),
        ]
    };
    let mut table = Grid::new(
        "",
        "experiment | none s | refine-paper saves % | moves | default saves % | moves | best achievable gain %",
    );
    table.row(row_of(&large, "512 VMs, 16,384 chunks, a neighbour"));
    table.row(row_of(&short, "32 VMs, a neighbour for 30 iterations"));
    Section::new(
        "Beyond: the paper's future work",
        "The paper ends with a list. *Migrate only if the gain exceeds the cost*: every plan of the default must pay (`refine-paper,pay=on` \
         adds this to the paper's). *Steal time*: it is a part of the wait that the runtime measures. *Irregular interference*: a \
         neighbour that stays for less than two periods is below. *Larger scale by simulation*: 512 VMs are below. *Automatic \
         period*: the default decides when a balance pays, and has no period. *Automatic granularity*: `caribou advise` compares \
         sizes of chunks for a recorded run.",
    )
    .table(table)
}
