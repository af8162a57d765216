//! Figures 6 and 7: three programs on 8 to 64 VMs, with a neighbour, slow VMs, or both.

use presentation::bars::Bars;
use virtual_cluster::cloud_cluster::{Cloud, Program};

use super::runs::{ALWAYS, Run, saved};
use super::{Context, PAPER};
use crate::paper::page::{Claim, Grid, Panel, Section};
use crate::paper::picture;
use crate::statistics::mean;

/// Numbers of VMs.
pub(super) const VMS: [u32; 4] = [8, 16, 32, 64];

/// What disturbs the VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Figure 6a: a neighbour beside one VM.
    Interference,
    /// Figure 6b: four slow VMs.
    Slow,
    /// Figure 6c: four slow VMs, and a neighbour from iteration 50 on.
    Both,
    /// Figure 7, `Homo`: nothing.
    Quiet,
}

impl Case {
    const DISTURBED: [Self; 3] = [Self::Interference, Self::Slow, Self::Both];
    const ALL: [Self; 4] = [Self::Interference, Self::Slow, Self::Both, Self::Quiet];

    fn name(self) -> &'static str {
        match self {
            Self::Interference => "6a, neighbour",
            Self::Slow => "6b, slow VMs",
            Self::Both => "6c, both",
            Self::Quiet => "quiet",
        }
    }

    /// The figure alone.
    fn figure(self) -> &'static str {
        self.name().split(',').next().unwrap_or_default()
    }

    fn cloud(self, program: Program, vms: u32) -> Cloud {
        let cloud = Cloud::new(program, vms);
        match self {
            Self::Interference => Cloud { interferes: ALWAYS, ..cloud },
            Self::Slow => Cloud { slow: 4, ..cloud },
            Self::Both => Cloud { slow: 4, interferes: Some((50.0, 1e9)), ..cloud },
            Self::Quiet => cloud,
        }
    }
}

/// The runs of one experiment.
struct Runs {
    none: Run,
    paper: Run,
    default: Run,
    bound_s: f64,
}

impl Runs {
    fn paper_saved(&self) -> f64 {
        self.paper.saved(&self.none)
    }

    fn default_saved(&self) -> f64 {
        self.default.saved(&self.none)
    }

    /// The best achievable gain: what no placement can exceed, percent of the time without balancing.
    fn best_gain(&self) -> f64 {
        saved(self.bound_s, self.none.seconds)
    }
}

/// All runs: by program, case and number of VMs.
pub(super) struct Programs {
    runs: Vec<Runs>,
}

impl Programs {
    pub(super) fn all(context: &Context) -> Self {
        let mut clouds = Vec::new();
        for program in Program::ALL {
            for case in Case::ALL {
                clouds.extend(VMS.map(|vms| case.cloud(program, vms)));
            }
        }
        let runs = context.each("cloud-refine, figures 6 and 7", clouds.len(), |index| {
            let cloud = &clouds[index];
            Runs {
                none: Run::of(cloud, "none"),
                paper: Run::of(cloud, PAPER),
                default: Run::of_default(cloud),
                bound_s: cloud.bound_s(),
            }
        });
        Self { runs }
    }

    fn at(&self, program: usize, case: Case, vms: u32) -> &Runs {
        let place = |found: Option<usize>| found.expect("it is one of the experiments");
        let case = place(Case::ALL.iter().position(|&it| it == case));
        let vms = place(VMS.iter().position(|&it| it == vms));
        &self.runs[(program * Case::ALL.len() + case) * VMS.len() + vms]
    }

    /// The disturbed experiments.
    fn disturbed(&self) -> impl Iterator<Item = &Runs> {
        let cases = (0..Program::ALL.len()).flat_map(|program| Case::DISTURBED.map(|case| (program, case)));
        cases.flat_map(|(program, case)| VMS.map(|vms| self.at(program, case, vms)))
    }

    /// The disturbed experiments with their names, as in `Mol3D 6c on 64 VMs`, their number of VMs, and the time of quiet, fast
    /// VMs without balancing.
    fn named(&self) -> impl Iterator<Item = (String, u32, &Runs, f64)> {
        let cases = (0..Program::ALL.len()).flat_map(|program| Case::DISTURBED.map(|case| (program, case)));
        cases.flat_map(|(program, case)| {
            VMS.map(|vms| {
                let name = format!("{} {} on {vms} VMs", Program::ALL[program].name(), case.figure());
                (name, vms, self.at(program, case, vms), self.none_s(program, Case::Quiet, vms))
            })
        })
    }

    pub(super) fn none_s(&self, program: usize, case: Case, vms: u32) -> f64 {
        self.at(program, case, vms).none.seconds
    }

    pub(super) fn paper_saved(&self, program: usize, case: Case, vms: u32) -> f64 {
        self.at(program, case, vms).paper_saved()
    }

    /// The most that the paper's strategy saves in this case, percent.
    pub(super) fn greatest_saved(&self, case: Case) -> f64 {
        let all =
            (0..Program::ALL.len()).flat_map(|program| VMS.map(|vms| self.paper_saved(program, case, vms)));
        all.fold(0.0, f64::max)
    }

    /// What the default saves of the best achievable gain, percent: least and mean of all disturbed experiments.
    pub(super) fn parts_of_best_gain(&self) -> [f64; 2] {
        let parts: Vec<f64> =
            self.disturbed().map(|runs| 100.0 * runs.default_saved() / runs.best_gain()).collect();
        [parts.iter().copied().fold(f64::INFINITY, f64::min), mean(&parts)]
    }

    pub(super) fn figure_6(&self) -> Section {
        let panels = Case::DISTURBED.map(|case| {
            let names = VMS.map(|vms| format!("{vms} VMs"));
            let bars = Program::ALL.iter().enumerate().fold(
                Bars::new(case.name(), "saved (%)", names),
                |bars, (place, program)| {
                    bars.series(program.name(), VMS.map(|vms| self.paper_saved(place, case, vms)))
                },
            );
            Panel::from(bars)
        });
        let heads = "figure | program | VMs | none s | the paper % | refine-paper % | moves | default % | moves | best achievable gain % | default, of it %";
        let mut table = Grid::new(
            "Saved of the time without balancing. Default: `refine` in windows. Best achievable gain: of the best placement of whole \
             chunks from the first iteration on.",
            heads,
        )
        .words(2);
        for case in Case::DISTURBED {
            for (place, program) in Program::ALL.iter().enumerate() {
                for vms in VMS {
                    let runs = self.at(place, case, vms);
                    let paper = match (case, place, vms) {
                        (Case::Slow, 0, 16) => "20.5",
                        (Case::Slow, 0, 32) => "18.8",
                        _ => "",
                    };
                    table.row([
                        case.name().to_owned(),
                        program.name().to_owned(),
                        vms.to_string(),
                        format!("{:.2}", runs.none.seconds),
                        paper.to_owned(),
                        format!("{:.1}", runs.paper_saved()),
                        runs.paper.moves.to_string(),
                        format!("{:.1}", runs.default_saved()),
                        runs.default.moves.to_string(),
                        format!("{:.1}", runs.best_gain()),
                        format!("{:.1}", 100.0 * runs.default_saved() / runs.best_gain()),
                    ]);
                }
            }
        }
        let most = self.disturbed().map(Runs::paper_saved).fold(0.0, f64::max);
        let least = self.disturbed().map(Runs::paper_saved).fold(f64::INFINITY, f64::min);
        let [slow_16, slow_32] = [16, 32].map(|vms| self.at(0, Case::Slow, vms));
        let cpu_s = |runs: &Runs, vms: f64| vms * (runs.none.seconds - runs.paper.seconds);
        let (cpu_16, cpu_32) = (cpu_s(slow_16, 16.0), cpu_s(slow_32, 32.0));
        let molecules = [8, 16].map(|vms| self.paper_saved(2, Case::Interference, vms));
        let falls = (0..3).flat_map(|program| Case::DISTURBED.map(|case| (program, case)));
        let falls = falls
            .filter(|&(program, case)| {
                self.paper_saved(program, case, 64) < self.paper_saved(program, case, 32)
            })
            .count();
        let few: Vec<String> = self
            .named()
            .filter(|(_, vms, runs, _)| *vms == 64 && runs.paper_saved() <= 10.0)
            .map(|(name, _, runs, _)| format!("{name} saves {:.1} %", runs.paper_saved()))
            .collect();
        let [least_part, mean_part] = self.parts_of_best_gain();
        let reached = self.disturbed().filter(|runs| runs.default_saved() >= 0.95 * runs.best_gain()).count();
        let moves = |of: fn(&Runs) -> u64| self.disturbed().map(of).sum::<u64>();
        let (ours, theirs) = (moves(|runs| runs.default.moves), moves(|runs| runs.paper.moves));
        let sensitive = [8, 16, 32, 64].map(|vms| {
            let of = |program| self.at(program, Case::Slow, vms).best_gain();
            of(2) > of(0)
        });
        let saves_most = VMS
            .iter()
            .filter(|&&vms| {
                let saved = |program| self.paper_saved(program, Case::Slow, vms);
                saved(2) > saved(0) && saved(2) > saved(1)
            })
            .count();
        Section::new(
            "Figure 6: what balancing saves",
            "Three programs on 8 to 64 VMs, of the same size on any number of VMs (strong scaling).",
        )
        .picture("figure-6", "percent of the time saved by refine-paper, by program and number of VMs", panels)
        .table(table)
        .claim(
            Claim::new("Stencil2D with slow VMs takes 86.77 s on 16 VMs and 48.09 s on 32 without balancing.", "86.77, 48.09 s")
                .here(format!("{:.2}, {:.2} s", slow_16.none.seconds, slow_32.none.seconds))
                .holds("both within 1 %", (slow_16.none.seconds / 86.77 - 1.0).abs() < 0.01 && (slow_32.none.seconds / 48.09 - 1.0).abs() < 0.01)
                .fitted(),
        )
        .claim(
            Claim::new("Balancing saves 20.5 % of them on 16 VMs and 18.8 % on 32.", "20.5, 18.8 %")
                .here(format!("{:.1}, {:.1} %", slow_16.paper_saved(), slow_32.paper_saved()))
                .holds("both within 2 points", (slow_16.paper_saved() - 20.5).abs() < 2.0 && (slow_32.paper_saved() - 18.8).abs() < 2.0),
        )
        .claim(
            Claim::new("Balancing saves up to 45 % of the time.", "45 %")
                .here(format!("{least:.1} to {most:.1} %"))
                .holds("the most is within 3 points", (most - 45.0).abs() < 3.0)
                .holds("every experiment gains more than 5 %", least > 5.0),
        )
        .claim(
            Claim::new("Both effects together are handled too.", "plot only")
                .here(format!("up to {:.1} %", self.greatest_saved(Case::Both)))
                .holds("each program saves more than 20 % on 32 VMs", (0..3).all(|program| self.paper_saved(program, Case::Both, 32) > 20.0)),
        )
        .claim(
            Claim::new("Mol3D is the most sensitive to the speed of vCPUs.", "plot only")
                .here(format!("with slow VMs, the best achievable gain of Mol3D exceeds that of Stencil2D on {} of 4 numbers of VMs; Mol3D saves most of the three on {} of 4", sensitive.iter().filter(|it| **it).count(), saves_most))
                .holds("the best achievable gain is larger than that of Stencil2D on all numbers of VMs", sensitive.iter().all(|&it| it))
                .holds("it saves most of the three on all numbers of VMs", saves_most == VMS.len())
                .because("All programs scale with the clock here, and Mol3D only computes more than Stencil2D; what else the slow nodes lack, such as cache, is not modelled."),
        )
        .claim(
            Claim::new("On more VMs the work of the disturbed one goes to more others, which saves more (Mol3D, 8 and 16 VMs, 6a).", "plot only")
                .here(format!("{:.1}, {:.1} %", molecules[0], molecules[1]))
                .holds("16 VMs save more than 8", molecules[1] > molecules[0])
                .because(
                    "The additive model of the neighbour moves too many of the small chunks of Mol3D at each sync; see the \
                     two models of a neighbour below.",
                ),
        )
        .claim(
            Claim::new("On still more VMs communication dominates, and the savings fall, but remain substantial.", "plot only")
                .here(format!("64 VMs save less than 32 in {falls} of 9 cases"))
                .holds("in at least 7 of 9", falls >= 7)
                .holds("more than 10 % each on 64 VMs", (0..3).all(|program| Case::DISTURBED.iter().all(|&case| self.paper_saved(program, case, 64) > 10.0)))
                .because(format!("{}.", few.join(", "))),
        )
        .claim(
            Claim::new("The savings of all VMs together grow with their number.", "284.32, 289.28 CPU s")
                .here(format!("{cpu_16:.1}, {cpu_32:.1} CPU s"))
                .holds("32 VMs save more than 16", cpu_32 > cpu_16)
                .holds("at least 1 % more", cpu_32 >= 1.01 * cpu_16)
                .because(format!(
                    "They save {:.1} % more, in the paper {:.1} %.",
                    100.0 * (cpu_32 / cpu_16 - 1.0),
                    100.0 * (289.28 / 284.32 - 1.0)
                )),
        )
        .best(format!(
            "the default reaches {least_part:.1} % of the best achievable gain at least, {mean_part:.1} % on average, and 95 % or more in \
             {reached} of 36 experiments. It moves {ours} chunks in all of them together, `refine-paper` {theirs}. It needs no period, \
             and chunks do not wait for a decision."
        ))
    }

    /// The cases in which the paper's strategy leaves at least half of the distance to quiet, fast VMs, in words.
    fn distant(&self) -> String {
        let (mut names, mut ours) = (Vec::new(), 0);
        let mut times = [const { Vec::new() }; 2];
        for (name, _, runs, quiet_s) in self.named() {
            let half = 0.5 * (runs.none.seconds / quiet_s - 1.0);
            let [paper, default] = [&runs.paper, &runs.default].map(|run| run.seconds / quiet_s);
            ours += usize::from(default - 1.0 < half);
            if paper - 1.0 >= half {
                names.push(name);
                times[0].push(paper);
                times[1].push(default);
            }
        }
        let [paper, default] = times.map(|times| {
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            format!("{least:.2} to {:.2}", times.into_iter().fold(0.0, f64::max))
        });
        format!(
            "At least half remains in {} cases: {}. There `refine-paper` takes {paper} of the quiet time, the default {default}. With the \
             default more than half is gone in {ours} of {} cases.",
            names.len(),
            names.join(", "),
            self.disturbed().count()
        )
    }

    pub(super) fn figure_7(&self) -> Section {
        let panels = Program::ALL.iter().enumerate().map(|(place, program)| {
            let line = |name: &str, seconds: fn(&Runs) -> f64, case: Case| {
                picture::line(name, VMS.map(|vms| (f64::from(vms), seconds(self.at(place, case, vms)))))
            };
            let none = |runs: &Runs| runs.none.seconds;
            let paper = |runs: &Runs| runs.paper.seconds;
            let chart = picture::chart(
                program.name(),
                "VMs",
                "time (s)",
                vec![
                    line("both, none", none, Case::Both),
                    line("both, refine-paper", paper, Case::Both),
                    line("slow VMs, none", none, Case::Slow),
                    line("slow VMs, refine-paper", paper, Case::Slow),
                    line("quiet and fast, none", none, Case::Quiet),
                ],
            );
            Panel::from(chart)
        });
        let mut table = Grid::new(
            "Time over that of quiet, fast VMs without balancing.",
            "program | VMs | quiet s | 6a none | refine-paper | default | 6b none | refine-paper | default | 6c none | refine-paper | default",
        );
        let mut far = Vec::new();
        for (place, program) in Program::ALL.iter().enumerate() {
            for vms in VMS {
                let quiet_s = self.at(place, Case::Quiet, vms).none.seconds;
                let mut cells = vec![program.name().to_owned(), vms.to_string(), format!("{quiet_s:.2}")];
                for case in Case::DISTURBED {
                    let runs = self.at(place, case, vms);
                    cells.extend(
                        [&runs.none, &runs.paper, &runs.default]
                            .map(|run| format!("{:.2}", run.seconds / quiet_s)),
                    );
                    far.push((runs.none.seconds / quiet_s - 1.0, runs.paper.seconds / quiet_s - 1.0));
                }
                table.row(cells);
            }
        }
        let below = far.iter().filter(|(_, paper)| *paper < 0.0).count();
        let closer = far.iter().filter(|(none, paper)| *paper < 0.5 * none).count();
        let shrinks = (0..3).all(|program| {
            Case::DISTURBED.iter().all(|&case| {
                VMS.windows(2).all(|pair| {
                    self.at(program, case, pair[1]).paper.seconds
                        < self.at(program, case, pair[0]).paper.seconds
                })
            })
        });
        let parts: Vec<f64> = (0..Program::ALL.len())
            .flat_map(|program| Case::DISTURBED.map(|case| (program, case)))
            .map(|(program, case)| {
                self.at(program, case, 64).paper.seconds / self.at(program, case, 8).paper.seconds
            })
            .collect();
        let on_64 = mean(&parts);
        Section::new(
            "Figure 7: time by number of VMs",
            "The same runs, and runs on quiet VMs that are all fast (`Homo`).",
        )
        .picture("figure-7", "time by number of VMs, with and without balancing", panels)
        .table(table)
        .claim(
            Claim::new("Balancing brings the disturbed runs close to the quiet ones.", "plot only")
                .here(format!("more than half of the distance is gone in {closer} of {} cases", far.len()))
                .holds("in at least nine of ten", 10 * closer >= 9 * far.len())
                .holds("in at least three quarters", 4 * closer >= 3 * far.len())
                .because(self.distant()),
        )
        .claim(
            Claim::new(
                "At some points the balanced runs are faster than the quiet ones.",
                "plot only; the two kinds of fast nodes differ",
            )
            .here(format!("{below} of {} balanced runs are", far.len()))
            .holds("at least one is", below > 0)
            .because("All fast VMs are equal in these runs; figure 4 has two kinds."),
        )
        .claim(
            Claim::new("More VMs take less time.", "plot only")
                .here(format!("64 VMs take {on_64:.2} of the time of 8, mean of nine balanced runs"))
                .holds("in all cases", shrinks),
        )
    }
}
