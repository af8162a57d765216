//! Everything that can end a run, in terms of what the caller can do.

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

    /// A handler panicked. Its message is in `panic`; the place is on standard error, printed by the panic itself.
    #[error("rank {rank}: chunk {chunk} panicked in its handler of `{message}` in phase {phase}: {panic}")]
    HandlerPanicked {
        /// The rank it ran on.
        rank: Rank,
        /// Array and index.
        chunk: String,
        /// Message kind: the enum variant, or `start`, `resume`, `reduced`.
        message: String,
        /// Syncs that the chunk had come to.
        phase: u64,
        /// The panic's text.
        panic: String,
    },

    /// A handler ended the run with [`Ctx::fail`](crate::Ctx::fail): the program found an error. Or a message to many
    /// chunks cannot be encoded.
    #[error("rank {rank}: chunk {chunk} ended the run: {why}")]
    Program {
        /// The rank it ran on.
        rank: Rank,
        /// Array and index.
        chunk: String,
        /// The program's words.
        why: String,
    },

    /// The setup function panicked, or a function that makes or places chunks. The place is on standard error.
    #[error("rank {rank} panicked {doing}: {panic}")]
    SetupPanicked {
        /// The rank it ran on.
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
        /// The rank it ran on.
        rank: Rank,
        /// Its work at that moment.
        doing: String,
        /// The panic's text.
        panic: String,
    },

    /// A policy for pools breaks a promise of its machines. It is at fault, not the program.
    #[error("rank {rank}: the policy `{policy}` {fault}")]
    PolicyFailed {
        /// The rank whose machine it is.
        rank: Rank,
        /// The policy as chosen.
        policy: String,
        /// The deed.
        fault: String,
    },

    /// A pool ended with iterations missing or done twice: its policy is at fault, and the result worth nothing.
    #[error(
        "the pool executed {executed} iterations rather than each of {iterations} once: its policy is at fault"
    )]
    Miscounted {
        /// Iterations executed.
        executed: u64,
        /// Iterations there were.
        iterations: u64,
    },

    /// No message is in flight and `exit` was not called, so nothing will ever happen again. Only a chunk itself knows
    /// that it waits for messages: see [`Chunk::waits_for`](crate::Chunk::waits_for).
    #[error("the run has stalled: nothing is left to do and nobody called exit{}", list(waiting))]
    Stalled {
        /// The waiting chunks, each with what it waits for, one line each.
        waiting: Vec<String>,
    },

    /// A strategy panicked, or answered with a placement that cannot be. It is at fault, not the program.
    #[error("the strategy `{strategy}` failed at sync {sync}: {why}")]
    StrategyFailed {
        /// Its name.
        strategy: String,
        /// The sync that it was to decide.
        sync: u64,
        /// The panic's text, or the fault in its answer.
        why: String,
    },

    /// A handler inserted a chunk under an index that another chunk has.
    #[error("rank {by} inserted {chunk}, but rank {rank} has a chunk of that index")]
    IndexInUse {
        /// Array and index.
        chunk: String,
        /// The rank of the chunk that is there.
        rank: Rank,
        /// The rank of the handler that inserted another.
        by: Rank,
    },

    /// Contributions to one reduction do not agree, or do not combine.
    #[error("rank {rank}: {array}: {why}")]
    Reduction {
        /// The rank that noticed.
        rank: Rank,
        /// The array's number and name.
        array: String,
        /// The disagreement.
        why: String,
    },

    /// A message or chunk could not be encoded or decoded: its serde implementation does not round-trip, or panics.
    #[error("rank {rank}: {what} cannot cross the wire: {why}")]
    Wire {
        /// The rank that noticed.
        rank: Rank,
        /// Array and index, and the value that was encoded or decoded.
        what: String,
        /// The codec's words.
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
        /// The program it runs.
        its: String,
        /// The program of rank 0.
        first: String,
    },

    /// A setting is not the same in all processes of a job; launchers do not hand all variables to other hosts.
    #[error("{setting}: rank {rank} has `{its}`, rank 0 `{first}`: it must be the same in all processes")]
    SettingDiffers {
        /// Its name.
        setting: String,
        /// The rank that differs.
        rank: Rank,
        /// Its value there.
        its: String,
        /// The value on rank 0.
        first: String,
    },

    /// The run ended without a value, or with one of another type than the one asked for.
    #[error("the value of the run: {why}")]
    Value {
        /// The type it has, or why there is none.
        why: String,
    },

    /// A process of the job is gone, killed or ended early; its chunks are gone with it.
    #[error("rank {rank} is gone: {why}")]
    RankLost {
        /// The rank.
        rank: Rank,
        /// The signs of its end.
        why: String,
    },

    /// The run was told to end, by a signal or a cloud, and has saved its state first: a restart goes on from the checkpoint.
    #[error(
        "{by}: the run has ended early; its state is in {checkpoint}, and CARIBOU_RESTART goes on from there"
    )]
    Interrupted {
        /// The signal or the cloud, and the rank that got the notice.
        by: String,
        /// The directory of the checkpoint.
        checkpoint: String,
    },

    /// The run was told to end, by a signal or a cloud, and its state could not be saved. Older checkpoints are still there.
    #[error("{by}: the run has ended early, and its state is not saved: {why}")]
    InterruptedUnsaved {
        /// The signal or the cloud, and the rank that got the notice.
        by: String,
        /// The reason.
        why: String,
    },

    /// The operating system refused something the run cannot do without.
    #[error("{what}: {why}")]
    System {
        /// The request.
        what: String,
        /// Its answer.
        why: String,
    },
}

impl Error {
    /// The exit code for a program that ends with this error. It is 75 (`EX_TEMPFAIL` of `sysexits.h`: try again) if a
    /// notice ended a run that makes checkpoints, 2 if a setting is wrong, 1 otherwise.
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
