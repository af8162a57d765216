//! Compares the readings of Algorithm 1 that the text of the paper allows.

use virtual_cluster::cloud_cluster::{Cloud, Program};

use super::runs::{ALWAYS, all};
use super::{Context, PAPER};
use crate::paper::page::{Claim, Grid, Section};
use crate::paper::text;

/// The text with equal times.
pub(super) const LITERAL: &str = "refine-paper,tolerance=0.05,receivers=light";

/// The authors' program, but ticks become equal instead of times.
const TICKS: &str = "refine-paper,equal=ticks";

/// The readings: words, and the specification.
const READINGS: [(&str, &str); 6] = [
    ("the text with equal times: epsilon 5 %, receivers stay underloaded", LITERAL),
    ("the least epsilon, receivers stay underloaded", "refine-paper,receivers=light"),
    ("epsilon 5 %, all but overloaded VMs receive", "refine-paper,tolerance=0.05"),
    ("the text with equal ticks (equation 3)", "refine-paper,tolerance=0.05,receivers=light,equal=ticks"),
    ("the authors' program with equal ticks", TICKS),
    ("the authors' program: the least epsilon, all but overloaded VMs receive", PAPER),
];
/// Places of readings that claims name.
const TEXT_WITH_TICKS: usize = 3;
const EQUAL_TICKS: usize = 4;
const AUTHORS: usize = 5;

const VMS: [u32; 4] = [8, 16, 32, 64];
/// Of the experiments, those beside a neighbour on 16 or more VMs.
const BESIDE_16_AND_MORE: [usize; 6] = [1, 2, 3, 5, 6, 7];

/// The section.
pub(super) fn section(context: &Context) -> Section {
    let slow = VMS.map(|vms| Cloud { slow: 4, ..Cloud::new(Program::Stencil2d, vms) });
    let beside = VMS.map(|vms| Cloud { interferes: ALWAYS, ..Cloud::new(Program::Stencil2d, vms) });
    // In a guest of KVM the time that another VM takes counts as CPU time of the guest.
    let hidden = beside.map(|cloud| Cloud { hidden: true, ..cloud });
    let clouds = [beside, hidden, slow].concat();
    let strategies: Vec<&str> = std::iter::once("none").chain(READINGS.map(|(_, spec)| spec)).collect();
    let runs = all(context, "cloud-refine, readings", &clouds, &strategies);
    let saved = |cloud: usize, reading: usize| runs[cloud][reading + 1].saved(&runs[cloud][0]);
    let heads = "reading | neighbour 8 | 16 | 32 | 64 | hidden 8 | 16 | 32 | 64 | slow 8 | 16 | 32 | 64";
    let caption = "Saved by Stencil2D, percent, by number of VMs. Neighbour: the background load is measured (equation 2). Hidden: it \
                   is in the CPU time of the chunks, as KVM shows it. The neighbour takes half of the vCPU in both cases. Slow: four slow VMs.";
    let mut table = Grid::new(caption, heads);
    for (place, (words, spec)) in READINGS.iter().enumerate() {
        let cells = (0..clouds.len()).map(|cloud| format!("{:.1}", saved(cloud, place)));
        table.row(std::iter::once(format!("{words} (`{spec}`)")).chain(cells));
    }
    table
        .row(["the paper", "", "", "", "", "up to", "45", "", "", "", "20.5", "18.8", ""].map(str::to_owned));
    let literal: u64 = BESIDE_16_AND_MORE.iter().map(|&cloud| runs[cloud][1].moves).sum();
    let least = (0..clouds.len()).map(|cloud| saved(cloud, AUTHORS)).fold(f64::INFINITY, f64::min);
    let [visible_saved, hidden_saved] = [0, VMS.len()]
        .map(|first| std::array::from_fn::<f64, { VMS.len() }, _>(|place| saved(first + place, AUTHORS)));
    let within = visible_saved.iter().zip(hidden_saved).all(|(visible, hidden)| hidden > visible - 5.0);
    // The last four experiments have slow VMs.
    let slow = || clouds.len() - VMS.len()..clouds.len();
    let ticks = slow().map(|cloud| saved(cloud, EQUAL_TICKS)).fold(f64::NEG_INFINITY, f64::max);
    let times = slow().map(|cloud| saved(cloud, AUTHORS)).fold(f64::INFINITY, f64::min);
    Section::new(
        "Algorithm 1: which reading the authors ran",
        "The text leaves three things open: the value of epsilon, whether an underloaded VM may come nearer to the average than \
         epsilon, and whether ticks or times are equalised. The authors published their program \
         (`github.com/guptaabhish/cloud-loadbalancer-charm`, `src/ck-ldb/Refiner.C`). In it a VM is overloaded if its ticks exceed \
         its part of all ticks, by speed, by a factor of 1 + epsilon; every other VM receives, as long as no chunk makes it \
         overloaded; and a search finds the least epsilon that leaves no VM overloaded. `refine-paper` does the same.",
    )
    .table(table)
    .claim(
        Claim::new("Algorithm 1 balances Stencil2D beside a neighbour and with slow VMs.", "figure 6, 8 to 64 VMs")
            .here(format!(
                "{least:.1} % saved at least; the text with equal times moves {literal} chunks beside a neighbour on 16 or more VMs, \
                 with equal ticks it saves {} % on 8, 16, 32 and 64",
                text(std::array::from_fn::<f64, { VMS.len() }, _>(|place| saved(place, TEXT_WITH_TICKS)), 1)
            ))
            .holds("as the authors programmed it, it saves more than 10 % in each of the twelve cases", least > 10.0)
            .holds("the text with equal times moves chunks beside a neighbour on 16 or more VMs", literal > 0)
            .because("The other VMs are nearer to the average than epsilon there, so none of them is underloaded."),
    )
    .claim(
        Claim::new(
            "The balancer also works where the CPU time of a VM includes what a neighbour takes from it.",
            "section IV: \"good load balance is achieved after a few steps\"",
        )
        .here(format!("hidden: {} % saved on 8, 16, 32 and 64 VMs; measured: {} %", text(hidden_saved, 1), text(visible_saved, 1)))
        .holds("a hidden neighbour costs at most 5 points more than a measured one", within)
        .holds("more than 30 % saved on each number of VMs", hidden_saved.iter().all(|&it| it > 30.0))
        .because("The authors' program compares the loads of whole VMs, and needs no cause of a load."),
    )
    .claim(
        Claim::new("Loads in ticks make the balancer aware of the speeds of vCPUs (equations 1 and 3).", "figure 6b, 8 to 64 VMs")
            .here(format!(
                "with four slow VMs equal ticks {}, equal times (the authors' program) save at least {times:.1} %",
                if ticks < 0.0 { format!("cost at least {:.1} %", -ticks) } else { format!("save at most {ticks:.1} %") }
            ))
            .holds("equal times save more than 10 % with slow VMs on each number of VMs", times > 10.0)
            .holds("equal ticks, as equation 3 says, save more than 5 % on some number of VMs", ticks > 5.0)
            .because(
                "Equal ticks give a slow VM as much work as a fast one, which is how the program begins. So the authors' program divides ticks \
                 in proportion to speed.",
            ),
    )
}
