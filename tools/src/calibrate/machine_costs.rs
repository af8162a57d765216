//! The costs of the runtime on one machine, as `caribou calibrate` writes and simulations read them.

use std::fmt::Write;
use std::path::Path;

use lb_strategies::MoveCost;
use serde::{Deserialize, Serialize};
use virtual_cluster::{ArrayScenario, DecisionCost};

use crate::Error;
use crate::toml_file::Document;

/// Time for which an idle worker spins, ns, if waits are usually shorter.
const SPIN_NS: u64 = 250_000;

/// A file of costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineCosts {
    /// The machine on which the costs were measured.
    pub machine: Machine,
    /// The costs.
    pub costs: RuntimeCosts,
}

/// The machine on which costs were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Processor and system.
    pub name: String,
    /// Number of vCPUs that the process may use.
    pub vcpus: u32,
    /// Number of ranks with which costs between ranks were measured.
    pub ranks: u32,
    /// Day of the measurement, as in 2026-11-30.
    pub date: String,
    /// Version of Caribou.
    pub caribou: String,
}

/// Costs of the runtime; a cost that is not given is 0. All but the latencies are CPU time of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeCosts {
    /// To find a ready chunk and run it, per iteration of a chunk, ns.
    pub iteration_ns: f64,
    /// Per message to a chunk of the same rank, sending and receiving together, ns.
    pub local_message_ns: f64,
    /// Per message to another rank of the process, to send it and again to receive it, ns.
    pub remote_message_ns: f64,
    /// Per byte of such a message, to send it and again to receive it, ns: the bytes are in the other vCPU's cache.
    pub remote_byte_ns: f64,
    /// Per message to another process, to encode and send it, and again to receive it, without the network, ns.
    pub encoded_message_ns: f64,
    /// Per byte of such a message, to send it and again to receive it, ns.
    pub encoded_byte_ns: f64,
    /// Latency of a message between ranks of a process whose workers are awake, ns.
    pub latency_ns: f64,
    /// Latency added by a worker that sleeps, ns.
    pub wake_ns: f64,
    /// A rank's part in a sync or window, whatever its number of chunks, ns.
    pub report_ns: f64,
    /// Per chunk that a rank reports, at a sync or window, ns.
    pub report_chunk_ns: f64,
    /// Per chunk that comes to a sync and is resumed, in addition, ns.
    pub sync_chunk_ns: f64,
    /// Per chunk of all ranks, on rank 0, to collect the reports and predict loads, at a sync or window, ns.
    pub collect_chunk_ns: f64,
    /// Per packet on the rank that gets it, both ends together, ns. Messages that come together are one packet.
    pub packet_ns: f64,
    /// Of a decision of `refine`, whatever the number of chunks and ranks, ns.
    pub decision_ns: f64,
    /// Per chunk, of a decision of `refine`, ns.
    pub decision_chunk_ns: f64,
    /// Per rank, of a decision of `refine`, ns.
    pub decision_rank_ns: f64,
    /// Per chunk that moves within a process, on the rank that it leaves and again on the rank that it comes to, ns.
    pub move_ns: f64,
    /// Per byte of a chunk that moves between processes, to encode and again to decode it, without the network, ns.
    pub move_byte_ns: f64,
    /// Per byte of the state of a chunk, in its first iteration after a move, ns: the caches are cold.
    pub reload_byte_ns: f64,
}

impl MachineCosts {
    /// Reads a file.
    ///
    /// # Errors
    /// One line with the file, the line, the field, and the nearest valid name.
    pub(crate) fn read(file: &Path) -> Result<MachineCosts, Error> {
        Self::of(&Document::open(file)?)
    }

    fn of(document: &Document) -> Result<MachineCosts, Error> {
        let costs: MachineCosts = document.read()?;
        let is_wrong = |cost: &&Cost| !(0.0..=cost.most_ns()).contains(&cost.of(costs.costs));
        match COSTS.iter().find(is_wrong) {
            None => Ok(costs),
            Some(cost) => {
                let (value, most_ns) = (cost.of(costs.costs), cost.most_ns());
                let what = format!("{value}, expected a number of ns from 0 to {most_ns:e}");
                Err(document.wrong(&format!("costs.{}", cost.field), &what))
            }
        }
    }

    /// Gives a scenario these costs.
    pub fn apply(&self, scenario: &mut ArrayScenario) {
        self.costs.apply(scenario);
    }

    /// The file, with the meaning of each value.
    pub(crate) fn to_toml(&self) -> String {
        let Machine { name, vcpus, ranks, date, caribou } = &self.machine;
        let quoted = |text: &str| text.replace(['"', '\\', '\n'], " ");
        let mut text = format!(
            "# What the runtime costs on one machine, measured by `caribou calibrate`.\n\
             # Read by `caribou simulate array --costs FILE`. A cost that is left out is 0.\n\n\
             [machine]\nname = \"{}\"\nvcpus = {vcpus}\nranks = {ranks}\ndate = \"{}\"\ncaribou = \"{}\"\n\n[costs]\n",
            quoted(name),
            quoted(date),
            quoted(caribou)
        );
        for cost in &COSTS {
            let (Cost { field, meaning, .. }, value) = (cost, cost.of(self.costs));
            // Writing into a string does not fail.
            let _ = writeln!(text, "# {meaning}\n{field} = {}", rounded(value));
        }
        text
    }
}

impl RuntimeCosts {
    /// Gives a scenario these costs. Ranks of one host are threads of a process. With several hosts all ranks are
    /// processes: what crosses ranks is encoded, and the network of the scenario stays as it is.
    pub fn apply(&self, scenario: &mut ArrayScenario) {
        let ranks = scenario.array.workers.len() as u32;
        let is_process = scenario.overheads.bandwidths.host(ranks.saturating_sub(1)) == 0;
        let is_crowded = scenario.crowding() > 1;
        let overheads = &mut scenario.overheads;
        let (message_ns, message_byte, move_byte) = if is_process {
            (self.remote_message_ns, self.remote_byte_ns, 0.0)
        } else {
            (self.encoded_message_ns, self.encoded_byte_ns, self.move_byte_ns)
        };
        overheads.message_cpu = message_ns.round() as u64;
        // Workers that share vCPUs do not spin.
        overheads.spin = if is_crowded { 0 } else { SPIN_NS };
        overheads.wake = self.wake_ns.round() as u64;
        overheads.decision = DecisionCost::Linear {
            fixed: self.decision_ns,
            per_chunk: self.decision_chunk_ns,
            per_rank: self.decision_rank_ns,
        };
        let cpu = &mut overheads.cpu;
        cpu.iteration = self.iteration_ns;
        cpu.local_message = self.local_message_ns;
        cpu.message_byte = message_byte;
        cpu.report = self.report_ns;
        cpu.report_chunk = self.report_chunk_ns;
        cpu.sync_chunk = self.sync_chunk_ns;
        cpu.collect_chunk = self.collect_chunk_ns;
        cpu.packet = self.packet_ns;
        (cpu.pack_chunk, cpu.unpack_chunk) = (self.move_ns, self.move_ns);
        (cpu.pack_byte, cpu.unpack_byte) = (move_byte, move_byte);
        cpu.reload_byte = self.reload_byte_ns;
        if is_process {
            scenario.network.rtt = (2.0 * self.latency_ns).round() as u64;
        }
        // Moves are paid by workers, and by the bandwidth of links.
        scenario.move_cost = MoveCost { per_chunk_ns: 0, bytes_per_second: 0.0 };
    }

    /// Sets the cost of this field of [`COSTS`].
    pub(crate) fn set(&mut self, field: &str, value: f64) {
        let cost = COSTS.iter().find(|cost| cost.field == field).expect("it is the field of a cost");
        *(cost.value)(self) = value;
    }
}

/// A cost: how it is named and reached.
pub(crate) struct Cost {
    pub(crate) field: &'static str,
    pub(crate) meaning: &'static str,
    value: fn(&mut RuntimeCosts) -> &mut f64,
}

impl Cost {
    const fn new(
        field: &'static str,
        meaning: &'static str,
        value: fn(&mut RuntimeCosts) -> &mut f64,
    ) -> Self {
        Self { field, meaning, value }
    }

    /// The value of this cost, ns.
    pub(crate) fn of(&self, mut costs: RuntimeCosts) -> f64 {
        *(self.value)(&mut costs)
    }

    /// The largest value that is read, ns. More is a slip of the unit, and would overflow times.
    fn most_ns(&self) -> f64 {
        if self.field.ends_with("_byte_ns") { 1e6 } else { 1e9 }
    }
}

/// All costs, in the order of the file.
pub(crate) static COSTS: [Cost; 19] = [
    Cost::new("iteration_ns", "to run a ready chunk, per iteration, ns", |costs| &mut costs.iteration_ns),
    Cost::new("local_message_ns", "a message within a rank, both ends together, ns", |costs| {
        &mut costs.local_message_ns
    }),
    Cost::new("remote_message_ns", "a message between ranks of a process, each end, ns", |costs| {
        &mut costs.remote_message_ns
    }),
    Cost::new("remote_byte_ns", "each byte of it, each end, ns", |costs| &mut costs.remote_byte_ns),
    Cost::new("encoded_message_ns", "a message between processes, each end, ns", |costs| {
        &mut costs.encoded_message_ns
    }),
    Cost::new("encoded_byte_ns", "each byte of it, each end, ns", |costs| &mut costs.encoded_byte_ns),
    Cost::new("latency_ns", "from a worker to another that is awake, ns", |costs| &mut costs.latency_ns),
    Cost::new("wake_ns", "more, to a worker that sleeps, ns", |costs| &mut costs.wake_ns),
    Cost::new("report_ns", "a rank's part in a sync or window, ns", |costs| &mut costs.report_ns),
    Cost::new("report_chunk_ns", "each chunk of the rank in it, ns", |costs| &mut costs.report_chunk_ns),
    Cost::new("sync_chunk_ns", "each chunk that comes to a sync, besides, ns", |costs| {
        &mut costs.sync_chunk_ns
    }),
    Cost::new("collect_chunk_ns", "each chunk of all ranks, on rank 0, ns", |costs| {
        &mut costs.collect_chunk_ns
    }),
    Cost::new("packet_ns", "a packet, both ends together, besides its messages, ns", |costs| {
        &mut costs.packet_ns
    }),
    Cost::new("decision_ns", "a decision of `refine`, ns", |costs| &mut costs.decision_ns),
    Cost::new("decision_chunk_ns", "each chunk in it, ns", |costs| &mut costs.decision_chunk_ns),
    Cost::new("decision_rank_ns", "each rank in it, ns", |costs| &mut costs.decision_rank_ns),
    Cost::new("move_ns", "a chunk that moves, on each of both ranks, ns", |costs| &mut costs.move_ns),
    Cost::new("move_byte_ns", "each byte of it between processes, on each of both, ns", |costs| {
        &mut costs.move_byte_ns
    }),
    Cost::new("reload_byte_ns", "each byte of it in the first iteration after, ns", |costs| {
        &mut costs.reload_byte_ns
    }),
];

/// Three digits are more than a measurement has.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<MachineCosts, Error> {
        MachineCosts::of(&Document::parse("c.toml", text)?)
    }

    #[test]
    fn what_is_written_is_read_and_applied() {
        let mut written = MachineCosts::default();
        written.machine.name = "a \"machine\"".to_owned();
        for (number, cost) in (1..).zip(&COSTS) {
            written.costs.set(cost.field, f64::from(number));
        }
        let read = parsed(&written.to_toml()).expect("it is valid");
        assert_eq!(read.costs, written.costs);
        // Each field is the one that serde reads and writes by this name.
        let fields = serde_json::to_value(read.costs).unwrap();
        for (number, cost) in (1_u32..).zip(&COSTS) {
            let by_name = fields[cost.field].as_f64().map(|value| value as u32);
            assert_eq!((cost.of(read.costs) as u32, by_name), (number, Some(number)), "{}", cost.field);
        }
        assert_eq!(fields.as_object().unwrap().len(), COSTS.len());
    }

    #[test]
    fn a_mistake_is_one_line_with_its_place() {
        let error = |text: &str| parsed(text).unwrap_err().to_string();
        assert_eq!(
            error("[costs]\n\nwake_n = 3"),
            "c.toml:3: costs.wake_n: unknown field, did you mean wake_ns?"
        );
        assert_eq!(
            error("[costs]\nmove_ns = -3"),
            "c.toml:2: costs.move_ns: -3, expected a number of ns from 0 to 1e9"
        );
        assert_eq!(
            error("[costs]\nmove_byte_ns = 2e6"),
            "c.toml:2: costs.move_byte_ns: 2000000, expected a number of ns from 0 to 1e6"
        );
        assert!(parsed("[costs]\nmove_byte_ns = 1e6\nmove_ns = 1e9").is_ok());
        assert!(error("[costs]\nmove_ns = nan").starts_with("c.toml:2: costs.move_ns: NaN, expected"));
        assert!(error("[costs]\nmove_ns = \"3\"").starts_with("c.toml:2: costs.move_ns: "));
        assert!(error("[costs").starts_with("c.toml:1: "));
    }
}
