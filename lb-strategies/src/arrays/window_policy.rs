//! Decides when rank 0 opens a balancing window: when the time lost by imbalance reaches the price of a balance. It
//! does no IO and reads no clock.
//!
//! Ranks report every few ms which part of the time they were busy. The *loss* so far is the time by which the busiest
//! rank was busy longer than the mean. A balanced run would have saved at most the loss.
//!
//! | state | the loss | what follows |
//! |---|---|---|
//! | watching, the window is between `SPAN_NS` and `OLD_NS` long | reaches the price of a balance | a window is opened, and decided |
//! | watching, the window is longer | reaches the price of a balance | a window is opened without a decision, which starts *measuring*, because old loads and shares would hide the change |
//! | watching, the window is [`REFRESH_NS`] long | does not | a window is opened, and decided |
//! | measuring, for `SPAN_NS` | is at least 2 % of the time | a window is opened, and decided |
//! | measuring, for `SPAN_NS` | is less | back to watching; the price doubles |
//!
//! - If the set of active ranks changes, a window is opened and decided as soon as possible.
//! - A decision that moves nothing doubles the price. A decision that moves chunks, or a higher loss per second, resets
//!   it. So any program spends a small part of the achievable gain on balancing.
//! - Windows of a fixed length shorter than `SPAN_NS` are *collected*, unless the strategy's plans need not pay: their
//!   measurements are added up, and decided once in `SPAN_NS`.
//! - Workers that share a vCPU (*crowding*) run in turn, and in a short time the turns decide which rank is busier. So
//!   all times of the table are multiplied by the number of workers per vCPU.

/// The shortest window that is decided, ns. Loads and shares of a shorter window are mostly chance.
const SPAN_NS: u64 = 40_000_000;
/// A window counts as old after this time, ns.
const OLD_NS: u64 = 80_000_000;
/// The longest window, ns.
pub const REFRESH_NS: u64 = 1_000_000_000;
/// The assumed price of a balance before the first one, and the least price later, ns.
const PRICE_NS: u64 = 300_000;
/// The largest factor by which decisions without moves raise the price.
const PATIENCE_MAX: u64 = 256;
/// The least excess that counts, as a part of the time. Of two ranks that exchange data, one is often a little ahead.
const EXCESS_MIN: f64 = 0.02;
/// Longest interval of the reports, ns.
const SIGNAL_NS: u64 = 5_000_000;
/// The largest number of windows that only begin a measurement before one is decided, because their reports are kept.
const BEGUN_MAX: u32 = 8;
/// Growth of the excess, as a part of the time, that resets the price.
const GROWTH: f64 = 0.05;

/// How busy ranks have been since the last window was opened.
///
/// ```
/// use lb_strategies::window_policy::Signal;
/// let both = Signal::of(1.0).and(Signal::of(0.5));
/// assert_eq!(both.excess(2), 0.25);
/// assert_eq!(both.excess(4), 0.625, "two ranks have done nothing yet");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Signal {
    /// Sum over ranks of the part of the time in which their workers were not idle.
    sum: f64,
    /// The largest such part of one rank.
    max: f64,
}

impl Signal {
    /// The signal of one rank that was busy for this part of the time.
    pub fn of(busy: f64) -> Signal {
        let busy = busy.clamp(0.0, 1.0);
        Signal { sum: busy, max: busy }
    }

    /// The signal of these ranks and others together.
    #[must_use]
    pub fn and(self, others: Signal) -> Signal {
        Signal { sum: self.sum + others.sum, max: self.max.max(others.max) }
    }

    /// The signal if the ranks have been idle since it was measured. `part` is the part of the time that it covers.
    #[must_use]
    pub fn diluted(self, part: f64) -> Signal {
        let part = part.clamp(0.0, 1.0);
        Signal { sum: self.sum * part, max: self.max * part }
    }

    /// The excess of the busiest rank's busy time over the mean of `ranks` ranks, as a part of the time.
    pub fn excess(&self, ranks: u32) -> f64 {
        (self.max - self.sum / f64::from(ranks.max(1))).max(0.0)
    }
}

/// What rank 0 does about a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Look {
    /// Opens none.
    Wait,
    /// Opens one and decides nothing, so that a new measurement begins.
    Begin,
    /// Opens one, and adds the measurements since the last one to the next decision.
    Collect,
    /// Opens one, and decides by the measurements since the last one.
    Decide,
}

/// The policy of one run; rank 0 has it.
#[derive(Clone, Debug)]
pub struct WindowPolicy {
    /// The fixed length of windows, ns; none if windows open when it pays.
    fixed_ns: Option<u64>,
    /// With a fixed length, the shortest time between two decisions, ns.
    apart_ns: u64,
    /// Number of workers that share a vCPU.
    crowding: u64,
    /// When the last window was opened, ns.
    opened_ns: u64,
    /// When the last decided window was opened, ns.
    decided_ns: u64,
    measuring: bool,
    /// Number of windows since the last decision that only began a measurement.
    begun: u32,
    price_ns: u64,
    patience: u64,
    /// The excess when the last window was opened.
    opened_excess: f64,
    /// The part of the time that a better placement of communicating chunks would save.
    avoidable: f64,
    /// When a decision is due whatever it gains, ns.
    due_ns: Option<u64>,
}

impl WindowPolicy {
    /// Windows of a fixed length, ns, or windows that open when it pays. If plans need not pay, each window of a fixed
    /// length is decided, because chance in loads does no harm.
    pub fn new(fixed_ns: Option<u64>, must_pay: bool) -> WindowPolicy {
        WindowPolicy {
            fixed_ns,
            apart_ns: if must_pay { SPAN_NS } else { 0 },
            crowding: 1,
            opened_ns: 0,
            decided_ns: 0,
            measuring: false,
            begun: 0,
            price_ns: PRICE_NS,
            patience: 1,
            opened_excess: 0.0,
            avoidable: 0.0,
            due_ns: None,
        }
    }

    /// From now on, ranks lose at least this part of the time by messages that another placement would avoid. The ranks
    /// are not busy in this time, so they do not report it.
    pub fn expects(&mut self, avoidable: f64) {
        self.avoidable = avoidable.clamp(0.0, 1.0);
    }

    /// Opens and decides a window as soon as possible after this time, because the set of active ranks changes.
    pub fn decide_at(&mut self, due_ns: u64) {
        self.due_ns = Some(due_ns);
    }

    /// The policy where `crowding` workers share a vCPU.
    #[must_use]
    pub fn crowded(self, crowding: u32) -> WindowPolicy {
        WindowPolicy { crowding: u64::from(crowding.max(1)), ..self }
    }

    /// The interval at which ranks report how busy they are, ns.
    pub fn signal_ns(&self) -> u64 {
        self.fixed_ns.unwrap_or(SIGNAL_NS).min(SIGNAL_NS)
    }

    /// Decides on the newest reports of ranks. `may_open` is false while a window is open or chunks move.
    pub fn look(&mut self, signal: &Signal, ranks: u32, may_open: bool, now_ns: u64) -> Look {
        let open_ns = now_ns.saturating_sub(self.opened_ns);
        let excess = signal.excess(ranks).max(self.avoidable);
        let look = match self.fixed_ns {
            _ if !may_open => Look::Wait,
            _ if self.due_ns.is_some_and(|due_ns| now_ns >= due_ns) => Look::Decide,
            Some(fixed_ns) if open_ns < fixed_ns => Look::Wait,
            Some(_) if now_ns.saturating_sub(self.decided_ns) < self.apart_ns * self.crowding => {
                Look::Collect
            }
            Some(_) => Look::Decide,
            None => self.look_if_it_pays(excess, open_ns),
        };
        if look != Look::Wait {
            self.opened_ns = now_ns;
            if look == Look::Decide {
                self.decided_ns = now_ns;
                self.due_ns = None;
            }
            self.measuring = look == Look::Begin;
            self.begun = if self.measuring { self.begun + 1 } else { 0 };
            self.opened_excess = excess;
        }
        look
    }

    fn look_if_it_pays(&mut self, excess: f64, open_ns: u64) -> Look {
        let [span_ns, old_ns, refresh_ns] = [SPAN_NS, OLD_NS, REFRESH_NS].map(|ns| ns * self.crowding);
        if excess > self.opened_excess + GROWTH {
            self.patience = 1;
        }
        let loses = excess >= EXCESS_MIN;
        let pays = loses && excess * open_ns as f64 >= (self.price_ns * self.patience) as f64;
        match self.measuring {
            true if open_ns < span_ns => Look::Wait,
            true if loses => Look::Decide,
            true => {
                self.measuring = false;
                self.fruitless();
                Look::Wait
            }
            false if pays && open_ns > old_ns && self.begun < BEGUN_MAX => Look::Begin,
            false if pays && open_ns >= span_ns => Look::Decide,
            false if open_ns >= refresh_ns => Look::Decide,
            false => Look::Wait,
        }
    }

    /// Notes that a window was decided, and whether chunks `moved`. `took_ns` is the time of the decision and the
    /// expected time of the moves, ns. The measured time of a migration would include handlers that end late and delay
    /// nothing else.
    pub fn decided(&mut self, moved: bool, took_ns: u64) {
        // The price is smoothed, because other load may have delayed a balance.
        self.price_ns = ((3 * self.price_ns).saturating_add(took_ns) / 4).clamp(PRICE_NS, 100 * PRICE_NS);
        if moved {
            self.patience = 1;
        } else {
            self.fruitless();
        }
    }

    fn fruitless(&mut self) {
        self.patience = (2 * self.patience).min(PATIENCE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Reports every 5 ms for `for_ms` ms. Returns the times at which windows were opened, ms.
    fn windows(
        policy: &mut WindowPolicy,
        from_ms: u64,
        for_ms: u64,
        busy: [f64; 2],
        moves: bool,
    ) -> Vec<(u64, Look)> {
        let signal = Signal::of(busy[0]).and(Signal::of(busy[1]));
        let mut opened = Vec::new();
        for ms in (from_ms..from_ms + for_ms).step_by(5) {
            let look = policy.look(&signal, 2, true, ms * MS);
            if look == Look::Decide {
                policy.decided(moves, MS / 5);
            }
            opened.extend((look != Look::Wait).then_some((ms, look)));
        }
        opened
    }

    #[test]
    fn a_neighbour_is_noticed_within_50_ms_also_long_after_the_last_window() {
        let mut policy = WindowPolicy::new(None, true);
        windows(&mut policy, 0, 5_500, [0.99, 0.99], false);
        let opened = windows(&mut policy, 5_500, 50, [1.0, 0.5], true);
        assert_eq!(opened, [(5_500, Look::Begin), (5_540, Look::Decide)]);
    }

    #[test]
    fn bursts_that_end_when_a_window_begins_are_decided_in_the_end() {
        let mut policy = WindowPolicy::new(None, true);
        let (busy, quiet) = (Signal::of(1.0).and(Signal::of(0.0)), Signal::of(1.0).and(Signal::of(1.0)));
        let mut looks = Vec::new();
        for ms in (0..10_000).step_by(5) {
            let is_old = ms * MS >= policy.opened_ns + 2 * OLD_NS;
            looks.push(policy.look(if is_old { &busy } else { &quiet }, 2, true, ms * MS));
        }
        looks.retain(|&look| look != Look::Wait);
        assert_eq!(looks[..10], [[Look::Begin; 8].as_slice(), &[Look::Decide, Look::Begin]].concat());
    }

    #[test]
    fn where_nothing_can_be_gained_windows_become_rare() {
        let mut policy = WindowPolicy::new(None, true);
        windows(&mut policy, 0, 10_000, [1.0, 0.8], false);
        let opened = windows(&mut policy, 10_000, 10_000, [1.0, 0.8], false);
        assert!(opened.len() <= 26, "about one a second, and one before each: {opened:?}");
    }

    #[test]
    fn messages_that_can_be_avoided_count_as_loss() {
        let mut policy = WindowPolicy::new(None, true);
        policy.expects(0.5);
        let opened = windows(&mut policy, 0, 200, [0.3, 0.3], true);
        let decided = |ms| (ms, Look::Decide);
        assert_eq!(opened, [40, 80, 120, 160].map(decided));
        policy.expects(0.0);
        assert_eq!(windows(&mut policy, 200, 500, [0.3, 0.3], true), []);
    }

    #[test]
    fn an_equal_run_is_looked_at_once_a_second() {
        let opened = windows(&mut WindowPolicy::new(None, true), 0, 10_001, [0.9, 0.9], false);
        assert_eq!(opened.len(), 10, "{opened:?}");
    }

    #[test]
    fn windows_of_a_fixed_length_open_whatever_ranks_tell() {
        let opened = windows(&mut WindowPolicy::new(Some(50 * MS), true), 0, 201, [0.5, 0.5], false);
        assert_eq!(opened, [50, 100, 150, 200].map(|ms| (ms, Look::Decide)));
        assert_eq!(WindowPolicy::new(Some(1), true).look(&Signal::default(), 2, false, 9), Look::Wait);
    }

    #[test]
    fn a_decision_that_is_due_comes_at_once_and_once() {
        let mut policy = WindowPolicy::new(None, true);
        assert_eq!(windows(&mut policy, 0, 200, [0.9, 0.9], false), []);
        policy.decide_at(210 * MS);
        assert_eq!(policy.look(&Signal::default(), 2, false, 210 * MS), Look::Wait, "chunks move");
        assert_eq!(windows(&mut policy, 200, 200, [0.9, 0.9], false), [(210, Look::Decide)]);
    }

    #[test]
    fn short_windows_are_collected_and_decided_once_in_40_ms() {
        let opened = windows(&mut WindowPolicy::new(Some(10 * MS), true), 0, 81, [0.5, 0.5], false);
        let looks: Vec<Look> = opened.iter().map(|&(_, look)| look).collect();
        let four = [Look::Collect, Look::Collect, Look::Collect, Look::Decide];
        assert_eq!(looks, [four, four].concat(), "{opened:?}");
        let mut each = WindowPolicy::new(Some(10 * MS), false);
        assert!(windows(&mut each, 0, 81, [0.5, 0.5], false).iter().all(|&(_, look)| look == Look::Decide));
    }
}
