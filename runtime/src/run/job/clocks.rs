//! Aligns the clocks of all hosts: measures the offset of each process' clock from rank 0's clock.
//!
//! The monotonic clock of each host counts from the start of the host. Rank 0 and one process of each other host
//! exchange a short message several times. The shortest round trip bounds the error best (Cristian 1989): if it takes
//! `d` ns, and the answer is assumed to come from its middle, the offset is right to within `d / 2`. Processes of rank
//! 0's host read the same clock. The offsets are measured at the beginning and end of a run, so that a trace can be
//! corrected for drift.

use std::sync::Arc;

use crate::measure::topology::plan::Plan;
use crate::threads::clock::{Clock, monotonic_ns};
use crate::trace::ClockOffset;
use crate::transport::mpi::Links;
use crate::transport::mpi::raw::{Channel, Communicator, MpiError};

/// Number of round trips with each process.
const ROUNDS: usize = 16;
/// The tag of the messages.
const CLOCK_CHANNEL: Channel = Channel::new(4);

/// The readings of all clocks at one moment.
pub(crate) struct ClockAlignment {
    /// Reading of this process' clock at that moment, ns.
    origin_ns: u64,
    /// Each rank's clock minus rank 0's, and the error of this difference, ns.
    offsets_ns: Vec<(i64, u64)>,
}

impl ClockAlignment {
    /// Compares all clocks. Collective; rank 0 makes [`ROUNDS`] round trips with one process after the other.
    pub(crate) fn measure(links: &Links, plan: &Plan) -> Result<ClockAlignment, MpiError> {
        let communicator = links.communicator();
        let me = communicator.rank();
        let far: Vec<u32> = (0..)
            .zip(&plan.placements)
            .filter(|(_, seats)| seats.host != plan.placements[0].host)
            .map(|(rank, _)| rank)
            .collect();
        let mut offsets_ns = vec![(0, 0); plan.placements.len()];
        for &rank in &far {
            if me == 0 {
                let rounds = (0..ROUNDS).map(|_| ask(communicator, rank)).collect::<Result<Vec<_>, _>>()?;
                offsets_ns[rank as usize] = offset(&rounds);
            } else if me == rank {
                (0..ROUNDS).try_for_each(|_| answer(communicator))?;
            }
        }
        let mut said = Vec::new();
        if me == 0 {
            said.extend_from_slice(&monotonic_ns().to_le_bytes());
            for (offset_ns, error_ns) in &offsets_ns {
                said.extend_from_slice(&offset_ns.to_le_bytes());
                said.extend_from_slice(&error_ns.to_le_bytes());
            }
        }
        let said = communicator.allgather(&said)?;
        let numbers: Vec<u64> =
            said[0].as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let moment_ns = numbers[0];
        let offsets_ns: Vec<(i64, u64)> =
            numbers[1..].as_chunks::<2>().0.iter().map(|&[offset, error]| (offset as i64, error)).collect();
        let origin_ns = moment_ns.saturating_add_signed(offsets_ns[me as usize].0);
        Ok(ClockAlignment { origin_ns, offsets_ns })
    }

    /// A clock that shows, on every rank, the time since that moment.
    pub(crate) fn clock(&self) -> Clock {
        Clock::Machine { origin_ns: self.origin_ns }
    }
}

/// The offsets of all clocks, for the report.
pub(crate) fn offsets(begin: &ClockAlignment, end: &ClockAlignment) -> Vec<ClockOffset> {
    let both = begin.offsets_ns.iter().zip(&end.offsets_ns);
    let offset = |(&(begin_ns, begin_error_ns), &(end_ns, end_error_ns)): (&(i64, u64), &(i64, u64))| {
        ClockOffset { begin_ns, drift_ns: end_ns - begin_ns, error_ns: begin_error_ns.max(end_error_ns) }
    };
    both.map(offset).collect()
}

/// One round trip, ns: the time of the request, the other clock, the time of the answer.
struct Round {
    asked_ns: u64,
    shown_ns: u64,
    answered_ns: u64,
}

fn ask(communicator: &Communicator, rank: u32) -> Result<Round, MpiError> {
    let asked_ns = monotonic_ns();
    send(communicator, rank, 0)?;
    let shown_ns = receive(communicator, rank)?;
    Ok(Round { asked_ns, shown_ns, answered_ns: monotonic_ns() })
}

fn answer(communicator: &Communicator) -> Result<(), MpiError> {
    receive(communicator, 0)?;
    send(communicator, 0, monotonic_ns())
}

fn send(communicator: &Communicator, to: u32, number: u64) -> Result<(), MpiError> {
    let mut sending = communicator.send(to, CLOCK_CHANNEL, Arc::new(vec![number]))?;
    communicator.until("MPI_Isend", || sending.test())
}

fn receive(communicator: &Communicator, from: u32) -> Result<u64, MpiError> {
    let mut receiving = communicator.receive(from, CLOCK_CHANNEL, 8, 8)?;
    communicator.until("MPI_Irecv", || receiving.test())?;
    let (_, block) = receiving.take();
    let numbers: Vec<u64> = block.into_numbers().expect("it was received as one");
    Ok(numbers[0])
}

/// The other clock minus rank 0's, and the error of the difference, from the shortest round, ns.
fn offset(rounds: &[Round]) -> (i64, u64) {
    let length = |round: &&Round| round.answered_ns - round.asked_ns;
    let shortest = rounds.iter().min_by_key(length).expect("there are rounds");
    let middle_ns = shortest.asked_ns + length(&shortest) / 2;
    (shortest.shown_ns.wrapping_sub(middle_ns) as i64, length(&shortest).div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_error(
            truth_ns in -1_000_000_000_000i64..1_000_000_000_000,
            ways in prop::collection::vec((1u64..500_000, 1u64..500_000), 1..20),
        ) {
            let mut now_ns = 2_000_000_000_000u64;
            let round = |&(there_ns, back_ns): &(u64, u64)| {
                now_ns += 1_000;
                let asked_ns = now_ns;
                let shown_ns = (now_ns + there_ns).saturating_add_signed(truth_ns);
                now_ns += there_ns + back_ns;
                Round { asked_ns, shown_ns, answered_ns: now_ns }
            };
            let rounds: Vec<Round> = ways.iter().map(round).collect();
            let (offset_ns, error_ns) = offset(&rounds);
            prop_assert!((offset_ns - truth_ns).unsigned_abs() <= error_ns);
            let shortest = ways.iter().map(|(there, back)| there + back).min().expect("not empty");
            prop_assert_eq!(error_ns, shortest.div_ceil(2));
        }
    }
}
