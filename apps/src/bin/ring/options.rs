//! The options of `ring` and its result.

use std::path::PathBuf;

use caribou::{Config, Launch, Report};
use harness::machine::Machine;
use harness::{Error, Trace, launch, memory};
use presentation::count_parser;
use serde::Serialize;

/// Tokens travel around a ring of chunks: the cost of a message.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "ring", version, after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Chunks in the ring
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = count_parser(1..=10_000_000u32))]
    pub(crate) chunks: u32,
    /// Tokens in flight at once, started at evenly spaced chunks
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = count_parser(1..=1_000_000u32))]
    pub(crate) tokens: u32,
    /// Hops of each token: tokens x hops messages in all
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = count_parser(1..=u32::MAX))]
    pub(crate) hops: u32,
    /// Bytes that each token carries; up to 8 travel inside the message, more in a vector
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = count_parser(0..=usize::MAX))]
    pub(crate) payload: usize,
    /// Work of each hop: iterations of Task Bench's compute-bound kernel, of 128 operations each
    #[arg(long, value_name = "ITERATIONS", default_value_t = 0, value_parser = count_parser(0..=u32::MAX))]
    pub(crate) work: u32,
    /// Ranks [default: 1; under mpirun each process is one]
    #[arg(long, value_name = "COUNT", value_parser = count_parser(1..=u32::MAX))]
    pub(crate) ranks: Option<u32>,
    /// Worker threads of each rank
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = count_parser(1..=u32::MAX))]
    pub(crate) workers: u32,
    /// Measure the cost of each chunk [default: CARIBOU_MEASURE, then on]
    #[arg(long, value_name = "ON|OFF")]
    pub(crate) measure: Option<OnOff>,
    /// Keep a profile of each worker's time [default: CARIBOU_PROFILE, then on]
    #[arg(long, value_name = "ON|OFF")]
    pub(crate) profile: Option<OnOff>,
    /// Placement of chunks: neighbours together, or neighbours apart
    #[arg(long, value_name = "KIND", default_value = "block")]
    pub(crate) placement: PlacementOption,
    /// Write the result
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
The clock starts when every chunk has started and stops when the last token has made its last hop. Measuring and the
profile share one clock reading per message, which is saved only with both off.

One message at a time:  ring --chunks 16 --tokens 1
From rank to rank:      ring --chunks 2 --ranks 2 --placement round-robin
Tasks of about a us:    ring --chunks 2 --ranks 2 --placement round-robin --work 64
Many under way:         ring --chunks 8192 --tokens 256 --hops 100000 --ranks 2 --placement round-robin";

/// Maximum bytes of a token, and of all tokens together.
const PAYLOAD_MAX: usize = 1 << 30;
const IN_FLIGHT_MAX: u64 = 4 << 30;

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnOff {
    /// On.
    On,
    /// Off.
    Off,
}

impl From<bool> for OnOff {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// The placement of chunks, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlacementOption {
    /// The first chunks on the first rank: nearly every hop stays on its rank.
    Block,
    /// Consecutive chunks on consecutive ranks: every hop changes rank.
    RoundRobin,
}

/// Measurements.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// The measured time over the messages.
    pub(crate) ns_per_message: f64,
    /// Messages sent: tokens x hops.
    pub(crate) messages: u64,
    /// From all chunks started to the last token's end, in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// Chunks in the ring.
    pub(crate) chunks: u32,
    /// Tokens in flight at once.
    pub(crate) tokens: u32,
    /// Bytes that each token carried.
    pub(crate) payload: usize,
    /// Iterations of the kernel at each hop.
    pub(crate) work: u32,
    /// Ranks.
    pub(crate) ranks: u32,
    /// Workers per rank.
    pub(crate) workers: u32,
    /// Whether chunks were measured.
    pub(crate) measure: OnOff,
    /// Whether a profile was kept.
    pub(crate) profile: OnOff,
    /// The placement of chunks.
    pub(crate) placement: PlacementOption,
    /// Hosts, ranks, workers and their vCPUs, in one line.
    pub(crate) seats: String,
    /// The trace of the run.
    pub(crate) trace: Trace,
    /// The machine.
    pub(crate) machine: Machine,
}

impl Options {
    /// Checks what clap cannot, and fills in the ranks.
    ///
    /// # Errors
    /// [`Error::Usage`] if there cannot be as many ranks, if the ring has fewer chunks (some ranks would have no work),
    /// or if the tokens do not fit the memory.
    pub(crate) fn settle(self, launch: Launch) -> Result<Self, Error> {
        let ranks = launch::ranks(launch, self.ranks, 1, self.workers)?;
        if self.chunks < ranks {
            return Err(Error::Usage(format!(
                "--chunks {} on --ranks {ranks}: every rank needs a chunk",
                self.chunks
            )));
        }
        let chunks = u64::from(self.chunks) * memory::CHUNK_BYTES;
        memory::check(&format!("--chunks {}", self.chunks), chunks, launch)?;
        // A message has 2 GiB at most, and all tokens are in memory at once.
        if self.payload > PAYLOAD_MAX || self.payload as u64 * u64::from(self.tokens) > IN_FLIGHT_MAX {
            return Err(Error::Usage(format!(
                "--payload {} of --tokens {}: expected {PAYLOAD_MAX} bytes at most each, and {IN_FLIGHT_MAX} together",
                self.payload, self.tokens
            )));
        }
        Ok(Self { ranks: Some(ranks), ..self })
    }

    /// Applies the options to `config`, which comes from the environment.
    #[must_use]
    pub(crate) fn configure(&self, mut config: Config) -> Config {
        if let Some(measure) = self.measure {
            config = config.measure(measure == OnOff::On);
        }
        if let Some(profile) = self.profile {
            config = config.profile(profile == OnOff::On);
        }
        config.ranks(self.ranks.unwrap_or(1)).workers(self.workers)
    }

    /// Messages sent in all.
    #[must_use]
    pub(crate) fn messages(&self) -> u64 {
        u64::from(self.tokens) * u64::from(self.hops)
    }

    /// The chunk at which a token starts.
    #[must_use]
    pub(crate) fn start_of(&self, token: u32) -> u32 {
        (u64::from(token) * u64::from(self.chunks) / u64::from(self.tokens)) as u32
    }

    /// The result of a run under `config` in which the tokens took `elapsed_ns`.
    #[must_use]
    pub(crate) fn outcome(&self, config: &Config, elapsed_ns: u64, report: &Report) -> Outcome {
        Outcome {
            ns_per_message: elapsed_ns as f64 / self.messages() as f64,
            messages: self.messages(),
            elapsed_ns,
            chunks: self.chunks,
            tokens: self.tokens,
            payload: self.payload,
            work: self.work,
            ranks: self.ranks.unwrap_or(1),
            workers: self.workers,
            measure: config.measures().into(),
            profile: config.profiles().into(),
            placement: self.placement,
            seats: report.run.placement.clone(),
            trace: Trace::of(&report.run),
            machine: Machine::detect(),
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ns_per_message, messages, elapsed_ns, seats, .. } = self;
        let switched_on = match (self.measure, self.profile) {
            (OnOff::On, OnOff::On) => "measured, with a profile",
            (OnOff::On, OnOff::Off) => "measured, without a profile",
            (OnOff::Off, OnOff::On) => "not measured, with a profile",
            (OnOff::Off, OnOff::Off) => "not measured, without a profile",
        };
        let elapsed_s = *elapsed_ns as f64 / 1e9;
        // A simulated run has no placement.
        let place = if seats.is_empty() { String::new() } else { format!("; {seats}") };
        writeln!(
            f,
            "{ns_per_message:.1} ns per message, {switched_on} ({messages} messages in {elapsed_s:.3} s{place})"
        )?;
        f.write_str(&self.trace.line("none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(arguments: &str) -> Options {
        Options::try_parse_from(arguments.split(' ')).unwrap()
    }

    #[test]
    fn tokens_start_evenly_spaced() {
        let starts =
            |options: &Options| (0..options.tokens).map(|token| options.start_of(token)).collect::<Vec<_>>();
        assert_eq!(starts(&options("ring --chunks 8 --tokens 4")), [0, 2, 4, 6]);
        assert_eq!(starts(&options("ring --chunks 2 --tokens 5")), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn the_outcome_is_time_over_all_hops() {
        let options = options("ring --tokens 4 --hops 25 --placement round-robin --measure off");
        let mut report = Report::default();
        report.run.placement = "1 host, 1 rank".to_owned();
        report.run.record.trace = "traces/run-1".to_owned();
        let config = options.configure(Config::default());
        let outcome = options.outcome(&config, 8_000, &report);
        assert!((outcome.ns_per_message - 80.0).abs() < 1e-9);
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!([&json["placement"], &json["measure"], &json["profile"]], ["round-robin", "off", "on"]);
        let said = "80.0 ns per message, not measured, with a profile (100 messages in 0.000 s; 1 host, 1 rank)\n\
            Trace of `none`: traces/run-1 (`caribou trace summary traces/run-1`)\n";
        assert_eq!(outcome.to_string(), said);
    }

    #[test]
    fn an_option_wins_over_the_configuration_and_nothing_else_does() {
        let profile_off = || Config::default().profile(false);
        let switched = |arguments: &str| {
            let config = options(arguments).configure(profile_off());
            (config.measures(), config.profiles())
        };
        assert_eq!(switched("ring --chunks 4"), (true, false));
        assert_eq!(switched("ring --measure off"), (false, false));
        assert_eq!(switched("ring --measure off --profile on"), (false, true));
    }

    #[test]
    fn a_rank_without_a_chunk_is_refused() {
        assert!(options("ring --chunks 1 --ranks 2").settle(Launch::Alone).is_err());
        assert!(options("ring --chunks 2 --ranks 2").settle(Launch::Alone).is_ok());
    }

    #[test]
    fn there_is_one_rank_or_one_a_process() {
        let second = Launch::Together { process: 1, processes: 2 };
        assert_eq!(options("ring --chunks 2").settle(Launch::Alone).unwrap().ranks, Some(1));
        assert_eq!(options("ring --chunks 2").settle(second).unwrap().ranks, Some(2));
        assert!(options("ring --ranks 3").settle(second).is_err());
        assert!(options("ring --chunks 1").settle(second).is_err());
    }
}
