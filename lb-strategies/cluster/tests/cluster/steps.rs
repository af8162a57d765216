//! Tests policies for supersteps on workers whose disturbances change in kind during the run.

use lb_strategies::SUPERSTEPS;
use lb_strategies::supersteps::Weights;
use lb_strategies::virtual_time::SplitMix64;
use virtual_cluster::{Computed, Computing, RunSteps, StepProgram, StepsRun};

const WORKERS: usize = 8;
/// Number of steps with one kind of disturbance, as in a run of Dobber et al., 2008. Noticing a change takes few.
const STRETCH: u64 = 2000;

/// The disturbance of a step: the factor by which a worker takes longer for a job that it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weather {
    Quiet,
    OneSlowHost,
    Bursts,
}

/// Stretches of disturbances one after another. A step has the same disturbance under any policy.
struct Changing {
    stretches: [Weather; 3],
    random: SplitMix64,
    step: u64,
}

impl Computing for Changing {
    fn begin(&mut self, step: u64) {
        (self.step, self.random) = (step, SplitMix64::new(step.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }

    fn compute(&mut self, worker: usize, work: f64, begin_s: f64) -> Computed {
        let noise = 1.0 + 0.01 * self.random.uniform();
        let longer = match self.stretches[(self.step / STRETCH) as usize] {
            Weather::OneSlowHost if worker == 3 => 3.0,
            Weather::Bursts if self.random.uniform() < 0.05 => 10.0,
            _ => 1.0,
        };
        let seconds = 1e-4 * work * noise * longer;
        Computed { end_s: begin_s + seconds, cpu_s: seconds }
    }
}

fn run(stretches: [Weather; 3], policy: &str) -> StepsRun {
    let program = StepProgram {
        steps: 3 * STRETCH,
        division_s: 0.1,
        notify_s: 1e-4,
        ..StepProgram::new(Weights::Equal(1000 * WORKERS as u64), WORKERS)
    };
    let policy = SUPERSTEPS.parse(policy).expect("it is listed");
    RunSteps::new(&program, &*policy, &mut Changing { stretches, random: SplitMix64::new(0), step: 0 }).run()
}

/// The time of each stretch, s.
fn stretches(run: &StepsRun) -> Vec<f64> {
    run.step_seconds.chunks(STRETCH as usize).map(|steps| steps.iter().sum()).collect()
}

#[test]
fn adaptive_is_as_good_as_the_best_fixed_policy_of_each_stretch() {
    use Weather::{Bursts, OneSlowHost, Quiet};
    let fixed = [
        "equal",
        "load-factor",
        "load-factor,every=100",
        "des",
        "replicate,copies=2",
        "replicate,copies=4",
        "replicate,copies=8",
    ];
    for weather in [
        [Quiet, OneSlowHost, Bursts],
        [Bursts, Quiet, OneSlowHost],
        [OneSlowHost, Bursts, OneSlowHost],
        [Bursts, OneSlowHost, Quiet],
    ] {
        let fixed: Vec<Vec<f64>> = fixed.iter().map(|policy| stretches(&run(weather, policy))).collect();
        let adaptive = stretches(&run(weather, "adaptive"));
        for (stretch, took) in adaptive.iter().enumerate() {
            let best = fixed.iter().map(|of| of[stretch]).fold(f64::INFINITY, f64::min);
            let all: Vec<String> = fixed.iter().map(|of| format!("{:.1}", of[stretch])).collect();
            println!(
                "{:?}: adaptive {took:.1} s, {:.3} of the best of {}",
                weather[stretch],
                took / best,
                all.join(", ")
            );
            assert!(
                *took <= 1.03 * best,
                "{:?} in {weather:?}: {took} s, the best fixed policy {best} s",
                weather[stretch]
            );
        }
    }
}
