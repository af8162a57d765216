//! Parses the options for what messages between ranks cost, and how much memory ranks have.

use lb_strategies::{LinkCost, LinkCosts, Memory, Snapshot};
use presentation::count_parser;

/// Largest cost of a message or byte, ns.
const NS_MAX: f64 = 1e12;

/// The cost of messages between ranks, and the memory of ranks.
#[derive(clap::Args)]
#[group(id = "model", multiple = true)]
#[command(next_help_heading = "Messages and memory")]
pub(super) struct Model {
    /// Time of the sender, and of the receiver, for each byte between ranks, ns: 8 for 1 Gbit/s. If neither this nor
    /// --message-ns is given, messages cost what the snapshot says, or nothing.
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    byte_ns: Option<f64>,
    /// The same for each message, ns.
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    message_ns: Option<f64>,
    /// --byte-ns between ranks of one host, if it differs.
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    byte_ns_within_host: Option<f64>,
    /// --message-ns between ranks of one host, if it differs.
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    message_ns_within_host: Option<f64>,
    /// Puts this number of consecutive ranks on each host, instead of the recorded hosts. In LB data a rank without a
    /// host has one of its own.
    #[arg(long, value_name = "RANKS", value_parser = count_parser(1..=u32::MAX))]
    ranks_per_host: Option<u32>,
    /// Memory of each rank in bytes, as in 8e9. A chunk needs what LB data says, or else its state.
    #[arg(long, value_name = "BYTES", value_parser = count_parser(1..=1_000_000_000_000_000_000u64))]
    memory_limit: Option<u64>,
}

fn nanoseconds(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| (0.0..=NS_MAX).contains(number));
    number.ok_or_else(|| format!("expected nanoseconds, a number from 0 to {NS_MAX:e}"))
}

impl Model {
    /// The memory of each rank, if it is limited.
    pub(super) fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// Limits the memory of all ranks of a snapshot.
    pub(super) fn limit_memory(&self, snapshot: &mut Snapshot) {
        if let Some(bytes) = self.memory_limit {
            let limits = vec![bytes; snapshot.ranks.len()];
            snapshot.memory.get_or_insert_with(Memory::default).limits = limits;
        }
    }

    /// True if an option sets the cost of messages.
    pub(super) fn prices_messages(&self) -> bool {
        let given = [self.byte_ns, self.message_ns, self.byte_ns_within_host, self.message_ns_within_host];
        given.iter().any(Option::is_some)
    }

    /// Sets the hosts of ranks and the cost of messages.
    pub(super) fn apply(&self, snapshot: &mut Snapshot) {
        if let Some(ranks) = self.ranks_per_host {
            (0..).zip(&mut snapshot.ranks).for_each(|(number, rank): (u32, _)| rank.host = number / ranks);
        }
        if !self.prices_messages() {
            return;
        }
        let (byte, message) = (self.byte_ns, self.message_ns);
        let (byte_within, message_within) = (self.byte_ns_within_host, self.message_ns_within_host);
        let link = |message: Option<f64>, byte: Option<f64>| LinkCost {
            ns_per_message: message.unwrap_or(0.0),
            ns_per_byte: byte.unwrap_or(0.0),
        };
        snapshot.links = LinkCosts {
            within_host: link(message_within.or(message), byte_within.or(byte)),
            between_hosts: link(message, byte),
        };
    }
}
