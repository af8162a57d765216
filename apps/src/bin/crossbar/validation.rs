//! Compares the simulated switch with exact results.

use super::scheduler::Scheduler;
use super::switch::{Served, Switch};
use super::traffic::Traffic;
use caribou::random::stream;
use caribou_apps::estimate::Moments;

/// More packets than any of these simulations stores.
const UNLIMITED: u32 = u32::MAX;

fn serve(ports: usize, buffer: u32, scheduler: Scheduler, load: f64, seed: u64) -> Served {
    let traffic = Traffic::new(ports, load, 1.0).unwrap();
    Switch { ports, buffer, scheduler }.serve(200_000, traffic, &mut stream(seed, 0))
}

#[test]
fn without_losses_packets_wait_as_at_an_output_queue() {
    // Karol, Hluchyj and Morgan (1987), equation 5: n inputs, each with a packet for this output with probability load / n.
    // Which packet goes first does not change the mean.
    for (ports, load) in [(16, 0.5), (16, 0.8), (4, 0.8), (64, 0.7)] {
        let expected = (ports as f64 - 1.0) / ports as f64 * load / (2.0 * (1.0 - load));
        for scheduler in Scheduler::ALL {
            let mut delays = Moments::default();
            for seed in 0..12 {
                let served = serve(ports, UNLIMITED, scheduler, load, seed);
                assert_eq!(served.lost, 0);
                delays.add(served.delay_slots * 1_000_000 / served.served());
            }
            let delay = delays.mean().scaled(1e-6);
            // From twelve samples the standard error itself is known to a quarter.
            assert!(delay.deviation(expected) < 5.0, "{ports} {load} {scheduler:?}: {delay}, not {expected}");
            assert!((delay.value / expected - 1.0).abs() < 0.03, "{delay}, not {expected}");
        }
    }
}

#[test]
fn without_losses_the_throughput_is_the_load() {
    let served = serve(16, UNLIMITED, Scheduler::RoundRobin, 0.6, 1);
    let throughput = served.served() as f64 / (served.slots * 16) as f64;
    // Four standard errors of one coin toss per slot and input.
    assert!((throughput - 0.6).abs() < 4.0 * (0.24 / (served.slots * 16) as f64).sqrt(), "{throughput}");
}

#[test]
fn two_ports_with_single_buffers_at_full_load_are_a_small_markov_chain() {
    // An output gets a packet from each of its two inputs with probability 1/2 per slot. After service at most one
    // packet is left, on either side. From empty, one is left if both arrive (1/4). With one left, one is left again if
    // the other side arrives (1/2); a packet that arrives on the full side is lost. So p = (1 - p) / 4 + p / 2 = 1/3 is
    // the probability of one left. Of the mean arrival of one packet per slot, p / 2 = 1/6 is lost.
    for scheduler in Scheduler::ALL {
        let served = serve(2, 1, scheduler, 1.0, 3);
        let loss = served.lost as f64 / served.offered as f64;
        let delay = served.delay_slots as f64 / served.served() as f64;
        assert!((loss - 1.0 / 6.0).abs() < 0.005, "{scheduler:?}: {loss}");
        assert!((delay - (1.0 / 3.0) / (5.0 / 6.0)).abs() < 0.01, "{scheduler:?}: {delay}");
    }
}

#[test]
fn larger_buffers_lose_less_and_longest_queue_least() {
    let loss = |scheduler, buffer| serve(16, buffer, scheduler, 1.0, 2).lost;
    for scheduler in Scheduler::ALL {
        let losses = [1, 2, 4, 8, 16].map(|buffer| loss(scheduler, buffer));
        assert!(losses.windows(2).all(|pair| pair[0] > pair[1]), "{scheduler:?}: {losses:?}");
        assert!(losses[0] < 200_000 / 4 && losses[4] > 0, "{losses:?}");
    }
    assert!(loss(Scheduler::LongestQueue, 4) < loss(Scheduler::Random, 4));
}

#[test]
fn bursts_make_packets_wait() {
    let delay = |burst| {
        let traffic = Traffic::new(8, 0.6, burst).unwrap();
        let switch = Switch { ports: 8, buffer: UNLIMITED, scheduler: Scheduler::RoundRobin };
        switch.serve(100_000, traffic, &mut stream(1, 0)).delay_slots
    };
    assert!(delay(16.0) > 5 * delay(1.0));
}

#[test]
fn a_switch_of_one_port_never_holds_a_packet() {
    let served = serve(1, 1, Scheduler::Random, 1.0, 1);
    assert_eq!((served.lost, served.delay_slots, served.slots), (0, 0, 200_000));
}
