//! Simulates a crossbar switch with buffers at its crosspoints (CQ), slot by slot. The program spends its time in this
//! loop.
//!
//! In each slot at most one packet arrives at each input. It goes to the buffer between its input and its output, and
//! is lost if that buffer is full. Then each output takes one packet from one of its buffers, possibly one that has
//! just arrived. The delay of a packet is the number of slots between arrival and departure, 0 if they are in the same
//! slot.
//!
//! Arrival times are not stored. A waiting packet counts once in every slot, so the sum of all buffer lengths after
//! each slot is the sum of all delays. To make this exact, the switch is emptied when enough packets have come.

use rand::Rng;

use super::scheduler::Scheduler;
use super::traffic::Traffic;

/// Largest number of ports: the inputs that wait for an output are the bits of a word.
pub(crate) const PORTS_MAX: usize = 64;

/// The switch to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Switch {
    /// Inputs, and as many outputs.
    pub(crate) ports: usize,
    /// Packets that each crosspoint can hold.
    pub(crate) buffer: u32,
    /// The scheduler of outputs.
    pub(crate) scheduler: Scheduler,
}

/// What happened to the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Slots in which packets could arrive, without the slots in which the switch was emptied.
    pub(crate) slots: u64,
    /// Packets that arrived.
    pub(crate) offered: u64,
    /// Packets that found their buffer full.
    pub(crate) lost: u64,
    /// Sum of the delays of all other packets, in slots.
    pub(crate) delay_slots: u64,
}

impl Served {
    /// Packets that were not lost.
    #[must_use]
    pub(crate) fn served(&self) -> u64 {
        self.offered - self.lost
    }
}

/// The buffers of the crosspoints of one output.
struct Output {
    /// Packets from each input.
    lengths: Vec<u32>,
    /// A bit for each input with packets.
    waiting: u64,
    /// The input served last.
    last: usize,
}

impl Switch {
    /// Lets traffic arrive until at least `requests` packets have come, then empties the switch.
    ///
    /// # Panics
    /// Unless there are 1 to [`PORTS_MAX`] ports.
    pub(crate) fn serve(&self, requests: u64, mut traffic: Traffic, rng: &mut impl Rng) -> Served {
        assert!((1..=PORTS_MAX).contains(&self.ports), "the inputs of an output are the bits of a word");
        let output = || Output { lengths: vec![0; self.ports], waiting: 0, last: 0 };
        let mut outputs: Vec<Output> = (0..self.ports).map(|_| output()).collect();
        let (mut served, mut held) = (Served::default(), 0);
        while served.offered < requests {
            served.slots += 1;
            for input in 0..self.ports {
                if let Some(output) = traffic.arrival(input, rng) {
                    served.offered += 1;
                    let accepted = outputs[output].accept(input, self.buffer);
                    served.lost += u64::from(!accepted);
                    held += u64::from(accepted);
                }
            }
            held -= self.depart(&mut outputs, rng);
            served.delay_slots += held;
        }
        while held > 0 {
            held -= self.depart(&mut outputs, rng);
            served.delay_slots += held;
        }
        served
    }

    /// Lets each output send one packet if it has any. Returns the number of packets sent.
    fn depart(&self, outputs: &mut [Output], rng: &mut impl Rng) -> u64 {
        let mut sent = 0;
        for output in outputs.iter_mut().filter(|output| output.waiting != 0) {
            let input = self.scheduler.choose(output.waiting, &output.lengths, output.last, rng);
            output.send(input);
            sent += 1;
        }
        sent
    }
}

impl Output {
    /// Stores a packet from this input. Returns false if its buffer is full.
    fn accept(&mut self, input: usize, buffer: u32) -> bool {
        let length = &mut self.lengths[input];
        if *length == buffer {
            return false;
        }
        *length += 1;
        self.waiting |= 1 << input;
        true
    }

    fn send(&mut self, input: usize) {
        self.lengths[input] -= 1;
        if self.lengths[input] == 0 {
            self.waiting &= !(1 << input);
        }
        self.last = input;
    }
}
