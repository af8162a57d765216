//! Repeats figures 4 and 5 of the paper on load factors (Al-Ameedi and Fanfakh, 2021) on its four kinds of nodes.
//!
//! The paper plots times and speedups, and states in numbers only the three greatest speedups. The delay of a message
//! is fitted to one of these speedups (see `virtual_cluster::jacobi_cluster`). The other two speedups, the order of the
//! three exchanges, and the number of nodes beyond which more nodes gain nothing are not fitted.

use std::io::Write;

use lb_strategies::SUPERSTEPS;
use presentation::Table;
use virtual_cluster::jacobi_cluster::{NODES, SIZES, SPEEDUPS, STEPS, scenario, serial_s};
use virtual_cluster::{Exchange, StepsRun};

use crate::Error;

/// The paper's policy: divides once, after the first iteration, at any cost.
const POLICY: &str = "load-factor,look=0,by=wall,tolerance=0,ahead=0";

fn run(size: u64, nodes: usize, policy: &str, exchange: Exchange) -> StepsRun {
    let policy = SUPERSTEPS.parse(policy).expect("it is listed");
    scenario(size, nodes, exchange).run(&*policy)
}

/// Percent of the run in which the average worker does not compute.
fn idle_percent(run: &StepsRun) -> f64 {
    let computing = run.computing_s.iter().sum::<f64>() / run.computing_s.len() as f64;
    100.0 * (1.0 - computing / run.makespan_s())
}

/// Writes the tables.
pub(super) fn write(out: &mut dyn Write) -> Result<(), Error> {
    writeln!(
        out,
        "Load factors, figures 4 and 5: speedups over the serial program on a node of 40 GFlop/s, {STEPS} iterations"
    )?;
    for (size, paper) in SIZES.into_iter().zip(SPEEDUPS) {
        let serial = serial_s(size);
        writeln!(out, "\n{size} rows, serial {serial:.2} s; the paper's greatest speedup {paper}")?;
        let heads = "nodes | equal, send/recv | idle % | send/recv | idle % | sendrecv | allgatherv | idle % | \
                     direct | gather";
        let mut table = Table::new(heads.split(" | "));
        let mut greatest = [0.0_f64; 5];
        for nodes in NODES {
            let equal = run(size, nodes, "equal", Exchange::Blocking);
            let [blocking, ring, doubling, direct, gather] =
                [Exchange::Blocking, Exchange::Ring, Exchange::Doubling, Exchange::Direct, Exchange::Gather]
                    .map(|exchange| run(size, nodes, POLICY, exchange));
            let speedup = |run: &StepsRun| serial / run.makespan_s();
            let all = [&blocking, &ring, &doubling, &direct, &gather].map(speedup);
            greatest.iter_mut().zip(all).for_each(|(most, speedup)| *most = most.max(speedup));
            table.row([
                nodes.to_string(),
                format!("{:.2}", speedup(&equal)),
                format!("{:.0}", idle_percent(&equal)),
                format!("{:.2}", all[0]),
                format!("{:.0}", idle_percent(&blocking)),
                format!("{:.2}", all[1]),
                format!("{:.2}", all[2]),
                format!("{:.0}", idle_percent(&doubling)),
                format!("{:.2}", all[3]),
                format!("{:.2}", all[4]),
            ]);
        }
        write!(out, "{table}")?;
        let [blocking, ring, doubling, direct, gather] = greatest.map(|speedup| format!("{speedup:.2}"));
        writeln!(
            out,
            "greatest: send/recv {blocking}, sendrecv {ring}, allgatherv {doubling}; the paper {paper}; as in production: direct {direct}, gather {gather}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_by_load_factors_leave_half_as_much_idle_and_allgatherv_is_the_fastest_of_the_papers() {
        let speedup = |run: &StepsRun| serial_s(8000) / run.makespan_s();
        let equal = run(8000, 16, "equal", Exchange::Doubling);
        let [blocking, ring, doubling] = [Exchange::Blocking, Exchange::Ring, Exchange::Doubling]
            .map(|exchange| run(8000, 16, POLICY, exchange));
        // Computing alone explains this: the slowest of four kinds of nodes (40 to 70 GFlop/s) delays all.
        assert!(speedup(&doubling) > 1.15 * speedup(&equal), "{} {}", speedup(&doubling), speedup(&equal));
        assert!(speedup(&blocking) < speedup(&ring) && speedup(&ring) < speedup(&doubling));
        assert_eq!((doubling.divisions.len(), doubling.divisions[0].step), (1, 1), "once, after the first");
        assert!(idle_percent(&doubling) < idle_percent(&equal));
    }

    #[test]
    fn all_sizes_are_told_beside_the_paper() {
        let mut text = Vec::new();
        write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let fitted = text
            .lines()
            .find(|line| line.starts_with("greatest") && line.contains("the paper 12.38"))
            .unwrap();
        assert!(fitted.contains("allgatherv 12.3") || fitted.contains("allgatherv 12.4"), "{fitted}");
        assert_eq!(text.lines().filter(|line| line.starts_with("64 ")).count(), SIZES.len(), "{text}");
    }
}
