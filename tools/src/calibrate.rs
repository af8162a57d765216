//! Implements `caribou calibrate`.

mod clock;
mod nomads;
mod ring;

#[cfg(test)]
mod explore {
    use super::nomads::*;
    use super::ring::*;
    use caribou::{Config, Placement, config::Period};
    use std::time::Duration;

    fn config(ranks: u32, lb: &str) -> Config {
        Config::default().ranks(ranks).lb(lb).unwrap().period(0)
    }

    #[test]
    fn explore() {
        let show = |r: &caribou::Report, per: f64| {
            for p in &r.run.profiles {
                let rows: Vec<String> = p.workers[0].rows.iter().map(|row| format!("{:?} {:.0}/{}", row.activity, row.ns.iter().sum::<u64>() as f64 / per, row.calls.iter().sum::<u64>())).collect();
                println!("      rank {}: {}", p.rank, rows.join(", "));
            }
        };
        for round in 0..2 {
            println!("--- {round}");
            let ring = Ring { chunks: 64, reach: 1, numbers: 0, warm: 200, timed: 5000 };
            let (n, r) = ring.run(config(2, "none"), Placement::RoundRobin).unwrap();
            println!("remote {} {}", n.wall_ns, n.cpu_ns);
            show(&r, 5000.0 * 32.0);
            for ranks in [1, 2] {
            for chunks in [32, 1024] {
                let ring = Ring { chunks, reach: 1, numbers: 0, warm: 20, timed: 100_000 / chunks as u64 };
                let (n, r) = ring.run(config(ranks, "none"), Placement::Block).unwrap();
                println!("{ranks} {chunks} none {:.1} ms", n.wall_ns / 1e6);
                show(&r, ring.timed as f64);
                let (s, r) = ring.run(config(ranks, "refine").period(1), Placement::Block).unwrap();
                println!("{ranks} {chunks} sync {:.1} ms {}", s.wall_ns / 1e6, r.sync_totals.syncs);
                show(&r, ring.timed as f64);
                let (s, r) = Ring { timed: ring.timed * 10, ..ring }.run(config(ranks, "refine").balance(Period::Every(Duration::from_micros(1000))), Placement::Block).unwrap();
                println!("{ranks} {chunks} window {:.1} ms {}", s.wall_ns / 1e6, r.sync_totals.syncs);
                show(&r, ring.timed as f64 * 10.0);
            } }
            for (chunks, bytes) in [(512, 64), (64, 65536), (16, 1<<20)] {
                for wire in [false, true] {
                    let (_, r) = Nomads { chunks, bytes, syncs: 20, computes: false }.run(config(2, "rotate").wire_always(wire)).unwrap();
                    println!("move {chunks} of {bytes} wire {wire}");
                    show(&r, 20.0 * chunks as f64 / 2.0);
                }
            }
        }
    }
}
