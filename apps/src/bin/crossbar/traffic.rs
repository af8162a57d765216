//! Generates the packets that arrive at the inputs of the switch: bursts of packets, and gaps between them.
//!
//! In a burst one packet arrives in every slot, all for one output. The lengths of bursts and gaps are geometric; a gap
//! may be empty. With a mean burst of one packet this is the uniform Bernoulli traffic of theory: in each slot a packet
//! arrives with a probability that is the load, for any output alike.

use rand::distr::{Bernoulli, Distribution};
use rand::{Rng, RngExt};

use harness::error::Error;

/// Smallest load: with less, nearly all slots are empty, and a simulation takes minutes.
const LOAD_MIN: f64 = 0.001;

/// Largest mean burst, packets: the gaps after longer bursts take equally long.
const BURST_MAX: f64 = 1e6;

/// The inputs of a switch, and the burst of each.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    begins: Bernoulli,
    ends: Bernoulli,
    /// The output that the burst of each input is for.
    bursts: Vec<Option<usize>>,
}

impl Traffic {
    /// Inputs that each bring `load` packets per slot, in bursts of `burst` packets on average; all begin in a gap.
    ///
    /// # Errors
    /// [`Error::Usage`] unless the load is from 0.001 to 1, and bursts have from 1 to 10^6 packets.
    pub(crate) fn new(ports: usize, load: f64, burst: f64) -> Result<Self, Error> {
        if !(LOAD_MIN..=1.0).contains(&load) {
            return Err(Error::Usage(format!("--load {load}: expected loads from {LOAD_MIN} up to 1")));
        }
        if !(1.0..=BURST_MAX).contains(&burst) {
            let words = format!("--burst {burst}: expected a mean of 1 packet or more, up to {BURST_MAX}");
            return Err(Error::Usage(words));
        }
        // Mean gap, slots, that leaves the load to the bursts. A gap may end in its first slot, hence 1 + gap below.
        let gap = burst * (1.0 - load) / load;
        let probability =
            |mean: f64| Bernoulli::new(1.0 / mean).expect("a mean of 1 or more, whatever was asked for");
        Ok(Self { begins: probability(1.0 + gap), ends: probability(burst), bursts: vec![None; ports] })
    }

    /// The output for which a packet arrives at this input in this slot, if any. Called once per slot for each input.
    pub(crate) fn arrival(&mut self, input: usize, rng: &mut impl Rng) -> Option<usize> {
        let ports = self.bursts.len();
        let burst = &mut self.bursts[input];
        if burst.is_none() && self.begins.sample(rng) {
            *burst = Some(rng.random_range(0..ports));
        }
        let output = *burst;
        if output.is_some() && self.ends.sample(rng) {
            *burst = None;
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caribou::random::stream;
    use caribou_apps::estimate::Estimate;

    /// The arrivals at one input of four in `slots` slots.
    fn arrivals(load: f64, burst: f64, slots: usize) -> Vec<Option<usize>> {
        let (mut traffic, mut rng) = (Traffic::new(4, load, burst).unwrap(), stream(1, 0));
        (0..slots).map(|_| traffic.arrival(0, &mut rng)).collect()
    }

    #[test]
    fn single_packets_come_as_often_as_the_load_says_and_for_any_output_alike() {
        let all = arrivals(0.7, 1.0, 100_000);
        let share = |wanted: &dyn Fn(&Option<usize>) -> bool, of: &[Option<usize>]| {
            Estimate::fraction(of.iter().filter(|arrival| wanted(arrival)).count() as u64, of.len() as u64)
        };
        assert!(share(&|arrival| arrival.is_some(), &all).deviation(0.7) < 4.0);
        for output in 0..4 {
            assert!(share(&|arrival| *arrival == Some(output), &all).deviation(0.175) < 4.0);
        }
        // Slots are independent of each other.
        let followers: Vec<_> = all.windows(2).filter(|pair| pair[0].is_some()).map(|pair| pair[1]).collect();
        assert!(share(&|arrival| arrival.is_some(), &followers).deviation(0.7) < 4.0);
    }

    #[test]
    fn bursts_have_their_mean_length_and_keep_the_load() {
        let all = arrivals(0.4, 8.0, 400_000);
        let packets = all.iter().flatten().count() as f64;
        // Two bursts without a gap and with the same output look like one burst: at most one in twenty here.
        let changes = all.windows(2).filter(|pair| pair[0] != pair[1] && pair[1].is_some()).count() as f64;
        assert!((packets / 400_000.0 - 0.4).abs() < 0.01, "{packets}");
        assert!((packets / changes - 8.0).abs() < 0.4, "{}", packets / changes);
    }

    #[test]
    fn a_full_load_leaves_no_gap() {
        for burst in [1.0, 5.0] {
            assert!(arrivals(1.0, burst, 1000).iter().all(Option::is_some));
        }
    }

    #[test]
    fn impossible_traffic_is_refused() {
        for (load, burst) in
            [(0.0, 1.0), (1e-4, 1.0), (1.1, 1.0), (f64::NAN, 1.0), (0.5, 0.5), (0.5, 1e7), (0.5, f64::NAN)]
        {
            assert!(Traffic::new(4, load, burst).is_err(), "{load} {burst}");
        }
    }
}
