//! Computes the size of the next grant of a central queue. Loop schedules differ in this rule.

/// A rule for the size of the next grant, from the number of waiting indices and of workers.
///
/// ```
/// use lb_strategies::pool::central::SizeRule;
/// let sizes = |mut rule: SizeRule| {
///     let (mut rest, mut sizes) = (100, Vec::new());
///     while rest > 0 {
///         sizes.push(rule.next(rest, 4, 30));
///         rest -= sizes[sizes.len() - 1];
///     }
///     sizes
/// };
/// assert_eq!(sizes(SizeRule::Fixed(40)), [40, 40, 20]);
/// assert_eq!(sizes(SizeRule::Guided { least: 5 }), [25, 19, 14, 11, 8, 6, 5, 5, 5, 2]);
/// assert_eq!(sizes(SizeRule::factoring(2.0, 6)), [13, 13, 13, 13, 6, 6, 6, 6, 6, 6, 6, 6]);
/// assert_eq!(sizes(SizeRule::Fitting)[..2], [25, 19], "30 fit, but others want some too");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeRule {
    /// A fixed number of iterations.
    Fixed(u64),
    /// As many as the worker runs in a given time, but at most one p-th of the waiting iterations for p workers.
    Fitting,
    /// One p-th of the waiting iterations for p workers, at least `least`: GSS(k) of Polychronopoulos and Kuck, 1987.
    Guided {
        /// k of that paper.
        least: u64,
    },
    /// Batches of p equal chunks for p workers. Each batch is one `x`-th of the waiting iterations: Hummel, Schonberg
    /// and Flynn, 1992.
    Factoring {
        /// A batch is one `x`-th of the waiting iterations; 2 is a half.
        x: f64,
        /// The smallest chunk.
        least: u64,
        /// The chunk size of the present batch.
        chunk: u64,
        /// Number of chunks left in the present batch.
        left: u64,
    },
}

impl SizeRule {
    /// The factoring rule, before its first batch.
    pub fn factoring(x: f64, least: u64) -> Self {
        Self::Factoring { x, least, chunk: 0, left: 0 }
    }

    /// The size of a grant, from 1 to `rest`. `rest` iterations wait, `workers` workers run, and `fitting` iterations
    /// fit into the given time of the worker.
    pub fn next(&mut self, rest: u64, workers: u64, fitting: u64) -> u64 {
        let part = rest.div_ceil(workers.max(1));
        let size = match self {
            Self::Fixed(size) => *size,
            Self::Fitting => fitting.min(part),
            Self::Guided { least } => part.max(*least),
            Self::Factoring { x, least, chunk, left } => {
                if *left == 0 {
                    *left = workers.max(1);
                    *chunk = ((rest as f64 / (*x * *left as f64)).ceil() as u64).max(*least);
                }
                *left -= 1;
                *chunk
            }
        };
        size.clamp(1, rest.max(1))
    }
}
