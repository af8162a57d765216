//! The error of a run: one variant per cause, so that the caller can react to each.

use serde::{Deserialize, Serialize};

use crate::ids::Rank;

/// The reason why a run could not start or could not go on.
///
/// ```
/// use caribou::{Config, Error};
/// let error = Config::default().lb("refien").unwrap_err();
/// assert!(matches!(error, Error::Config { .. }));
/// assert!(error.to_string().contains("refine"), "it suggests the nearest name");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// A setting is wrong: correct it and start again.
    #[error("{setting}: {why}")]
    Config {
        /// The variable, field or flag.
        setting: String,
        /// The fault, and the value that was expected.
        why: String,
    },

    /// A handler panicked. The panic itself has printed its place on standard error.
    #[error("rank {rank}: chunk {chunk} panicked in its handler of `{message}` in phase {phase}: {panic}")]
    HandlerPanicked {
        /// The rank that ran the handler.
        rank: Rank,
        /// Array and index.
        chunk: String,
        /// Message kind: the enum variant, or `start`, `resume`, `reduced`.
        message: String,
        /// Number of syncs that the chunk had reached.
        phase: u64,
        /// The panic's text.
        panic: String,
    },

    /// A handler ended the run with [`Ctx::fail`](crate::Ctx::fail), or a message to many chunks could not be encoded.
    #[error("rank {rank}: chunk {chunk} ended the run: {why}")]
    Program {
        /// The rank that ran the handler.
        rank: Rank,
        /// Array and index.
        chunk: String,
        /// The reason that the program gave, or the encoding error.
        why: String,
    },

    /// The setup function, or a function that creates or places chunks, panicked. Its place is on standard error.
    #[error("rank {rank} panicked {doing}: {panic}")]
    SetupPanicked {
        /// The rank that ran the function.
        rank: Rank,
        /// The part of the setup: the setup function, or the chunk that was being made.
        doing: String,
        /// The panic's text.
        panic: String,
    },

    /// A function of the program panicked: an iteration or a merge of a pool, or a function of a program in supersteps.
    /// Or the runtime itself panicked while it handled a packet. The place is on standard error.
    #[error("rank {rank} panicked while {doing}: {panic}")]
    Panicked {
        /// The rank that ran the function.
        rank: Rank,
        /// What the rank was doing.
        doing: String,
        /// The panic's text.
        panic: String,
    },

    /// A policy for pools broke a rule of the trait [`Machine`](crate::lb::pool::Machine). The policy is at fault.
    #[error("rank {rank}: the policy `{policy}` {fault}")]
    PolicyFailed {
        /// The rank whose machine broke the rule.
        rank: Rank,
        /// The policy as chosen.
        policy: String,
        /// What the machine did wrong.
        fault: String,
    },

    /// A pool ended with iterations missing or executed twice. Its policy is at fault, and there is no valid result.
    #[error(
        "the pool executed {executed} iterations, expected each of {iterations} once: its policy is at fault"
    )]
    Miscounted {
        /// Iterations executed.
        executed: u64,
        /// Iterations of the pool.
        iterations: u64,
    },

    /// No message is in flight and no chunk has called `exit`, so no handler will ever run again. The runtime cannot
    /// see what a chunk waits for: see [`Chunk::waits_for`](crate::Chunk::waits_for).
    #[error("the run has stalled: no message is left and no chunk has called exit{}", list(waiting))]
    Stalled {
        /// The waiting chunks, one per line, each with what it waits for.
        waiting: Vec<String>,
    },

    /// A strategy panicked or returned an invalid placement. The strategy is at fault, not the program.
    #[error("the strategy `{strategy}` failed at sync {sync}: {why}")]
    StrategyFailed {
        /// Its name.
        strategy: String,
        /// The sync for which the strategy was called.
        sync: u64,
        /// The panic's text, or the fault of the placement.
        why: String,
    },

    /// A handler inserted a chunk under an index that another chunk has.
    #[error("rank {by} inserted {chunk}, but rank {rank} has a chunk of that index")]
    IndexInUse {
        /// Array and index.
        chunk: String,
        /// The rank of the chunk that has the index.
        rank: Rank,
        /// The rank of the handler that inserted the second chunk.
        by: Rank,
    },

    /// Contributions to one reduction do not agree, or do not combine.
    #[error("rank {rank}: {array}: {why}")]
    Reduction {
        /// The rank that found the fault.
        rank: Rank,
        /// The array's number and name.
        array: String,
        /// The disagreement.
        why: String,
    },

    /// A message or chunk could not be encoded or decoded: its serde implementation does not round-trip, or panics.
    #[error("rank {rank}: {what} cannot cross the wire: {why}")]
    Wire {
        /// The rank that found the fault.
        rank: Rank,
        /// Array and index, and the value that was encoded or decoded.
        what: String,
        /// The error of the codec.
        why: String,
    },

    /// The ranks did not set up the same arrays: `setup` must do the same on every rank.
    #[error(
        "rank {rank} set up other arrays than rank 0: the setup function must do the same on every rank; {what}"
    )]
    SetupDiffers {
        /// The rank that differs.
        rank: Rank,
        /// The first array that differs, and the difference.
        what: String,
    },

    /// The processes of a job do not run the same program.
    #[error("rank {rank} runs {its}, rank 0 {first}: it must be the same in all processes")]
    ProgramDiffers {
        /// The rank that differs.
        rank: Rank,
        /// The program of that rank.
        its: String,
        /// The program of rank 0.
        first: String,
    },

    /// A setting differs between processes of a job: some launchers do not pass all variables to other hosts.
    #[error("{setting}: rank {rank} has `{its}`, rank 0 `{first}`: it must be the same in all processes")]
    SettingDiffers {
        /// The name of the setting.
        setting: String,
        /// The rank that differs.
        rank: Rank,
        /// The value on that rank.
        its: String,
        /// The value on rank 0.
        first: String,
    },

    /// The run ended without a value, or with a value of another type than was requested.
    #[error("the value of the run: {why}")]
    Value {
        /// The type of the value, or why there is none.
        why: String,
    },

    /// A process of the job was killed or ended early. Its chunks are lost.
    #[error("rank {rank} is gone: {why}")]
    RankLost {
        /// The rank.
        rank: Rank,
        /// How the loss was detected.
        why: String,
    },

    /// A signal or a cloud ended the run, which saved its state first. A restart goes on from the checkpoint.
    #[error(
        "{by}: the run has ended early; its state is in {checkpoint}, from which CARIBOU_RESTART continues"
    )]
    Interrupted {
        /// The signal or the cloud, and the rank that got the notice.
        by: String,
        /// The directory of the checkpoint.
        checkpoint: String,
    },

    /// A signal or a cloud ended the run, and its state could not be saved. Older checkpoints remain.
    #[error("{by}: the run has ended early, and its state is not saved: {why}")]
    InterruptedUnsaved {
        /// The signal or the cloud, and the rank that got the notice.
        by: String,
        /// The reason.
        why: String,
    },

    /// The operating system refused a request that the run depends on.
    #[error("{what}: {why}")]
    System {
        /// The request.
        what: String,
        /// The reason of the refusal.
        why: String,
    },
}

impl Error {
    /// The exit code for a program that ends with this error: 2 if a setting is wrong, 1 for most others. If a notice
    /// ended a run that makes checkpoints, the code is 75 (`EX_TEMPFAIL` of `sysexits.h`: try again).
    ///
    /// ```
    /// let error = caribou::Config::default().lb("refien").unwrap_err();
    /// assert_eq!(error.exit_code(), 2);
    /// ```
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Interrupted { .. } | Error::InterruptedUnsaved { .. } => 75,
            Error::Config { .. } => 2,
            _ => 1,
        }
    }
}

/// As `Display`: if `main` returns the error, the program prints this.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}
