//! Provides what the benchmarks share: contenders that are timed in turn, the spread of their times, and what the
//! runtime measures meanwhile.
//!
//! A time means little on a machine with a speed that changes from second to second. A ratio of two times in turn does.
#![forbid(unsafe_code)]

pub mod distance;
pub mod figures;
pub mod job;
pub mod nomad;
pub mod programs;

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

use caribou::Config;

/// What the runtime measures in a run. Both parts share one clock reading per message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whether the cost of chunks is measured.
    pub measure: bool,
    /// Whether a profile of each worker's time is kept.
    pub profile: bool,
}

impl Setting {
    /// The setting of a user who changes nothing.
    pub const DEFAULT: Setting = Setting { measure: true, profile: true };
    /// Nothing is measured at all.
    pub const BARE: Setting = Setting { measure: false, profile: false };
    /// All settings.
    pub const ALL: [Setting; 4] = [
        Setting::DEFAULT,
        Setting { measure: true, profile: false },
        Setting { measure: false, profile: true },
        Setting::BARE,
    ];

    /// The name of the setting.
    #[must_use]
    pub fn name(self) -> &'static str {
        match (self.measure, self.profile) {
            (true, true) => "default",
            (true, false) => "measured",
            (false, true) => "profiled",
            (false, false) => "bare",
        }
    }

    /// The options of `ring` for exactly this setting.
    #[must_use]
    pub fn options(self) -> String {
        let switch = |on| if on { "on" } else { "off" };
        format!("--measure {} --profile {}", switch(self.measure), switch(self.profile))
    }

    /// `config` with exactly this setting.
    #[must_use]
    pub fn of(self, config: Config) -> Config {
        config.measure(self.measure).profile(self.profile)
    }
}

/// Seconds that `work` takes.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]
pub fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64()
}

/// One contender: runs once and returns what it measured, usually a time.
pub type Contender<'c> = Box<dyn FnMut() -> f64 + 'c>;

/// Runs all contenders in turn, `rounds` times, after one round that does not count.
///
/// # Panics
/// If `rounds` is 0.
pub fn in_turn<const N: usize>(rounds: usize, mut contenders: [Contender<'_>; N]) -> [Quartiles; N] {
    all_in_turn(rounds, &mut contenders).try_into().expect("each contender has a spread")
}

/// The same for any number of contenders.
///
/// # Panics
/// If `rounds` is 0.
pub fn all_in_turn(rounds: usize, contenders: &mut [Contender<'_>]) -> Vec<Quartiles> {
    assert!(rounds > 0, "a median needs a value");
    let mut measured = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, values) in contenders.iter_mut().zip(&mut measured) {
            let value = contender();
            if round > 0 {
                values.push(value);
            }
        }
    }
    measured.into_iter().map(Quartiles::of).collect()
}

/// Runs two contenders in pairs, and alternates which one is first. What one leaves behind, such as pages to be
/// written, then falls on both.
///
/// # Panics
/// If `rounds` is 0.
pub fn in_pairs(rounds: usize, mut one: Contender<'_>, mut other: Contender<'_>) -> Pairs {
    assert!(rounds > 0, "a median needs a value");
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (a, b) = if round % 2 == 0 {
            let a = one();
            (a, other())
        } else {
            let b = other();
            (one(), b)
        };
        if round > 0 {
            ones.push(a);
            others.push(b);
        }
    }
    let mut ratios: Vec<f64> = ones.iter().zip(&others).map(|(one, other)| other / one).collect();
    ratios.sort_by(f64::total_cmp);
    // The order statistics that hold the true median in 19 of 20 cases, whatever the distribution.
    let away = (0.98 * (rounds as f64).sqrt()).ceil() as usize;
    let (below, above) = ((rounds / 2).saturating_sub(away), (rounds / 2 + away).min(rounds - 1));
    Pairs {
        one: Quartiles::of(ones),
        other: Quartiles::of(others),
        ratio: ratios[rounds / 2],
        between: (ratios[below], ratios[above]),
    }
}

/// The result of [`in_pairs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// The first contender.
    pub one: Quartiles,
    /// The second contender.
    pub other: Quartiles,
    /// The median of the second over the first of a pair.
    pub ratio: f64,
    /// The interval that has the true median in 19 of 20 cases.
    pub between: (f64, f64),
}

/// The median of some measurements, and their quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// The middle one.
    pub median: f64,
    /// A quarter of the values is below.
    pub low: f64,
    /// A quarter of the values is above.
    pub high: f64,
    /// The least. Of times, it shows the machine while its other users rest.
    pub least: f64,
}

impl Quartiles {
    /// The median and the quartiles of `values`.
    ///
    /// # Panics
    /// If `values` is empty.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Quartiles {
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
        Quartiles { median: at(2), low: at(1), high: at(3), least: values[0] }
    }

    /// Every number divided by `unit`.
    #[must_use]
    pub fn per(self, unit: f64) -> Quartiles {
        let per = |value: f64| value / unit;
        Quartiles {
            median: per(self.median),
            low: per(self.low),
            high: per(self.high),
            least: per(self.least),
        }
    }
}

/// The median, then the quartiles in brackets.
impl fmt::Display for Quartiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quartiles { median, low, high, .. } = self;
        let digits = f.precision().unwrap_or(1);
        write!(f, "{median:>8.digits$} [{low:.digits$} .. {high:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_switches_on_what_its_name_says() {
        let switched = Setting::ALL.map(|setting| {
            let config = setting.of(Config::default());
            (setting.name(), config.measures(), config.profiles(), setting.options())
        });
        let all = [
            ("default", true, true, "--measure on --profile on"),
            ("measured", true, false, "--measure on --profile off"),
            ("profiled", false, true, "--measure off --profile on"),
            ("bare", false, false, "--measure off --profile off"),
        ]
        .map(|(name, measures, profiles, options)| (name, measures, profiles, options.to_owned()));
        assert_eq!(switched, all);
    }

    #[test]
    fn contenders_run_in_turn_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let contender = |name: usize| -> Contender<'_> {
            let mut runs = 0.0;
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(name);
                runs += 1.0;
                runs
            })
        };
        let [first, second] = in_turn(5, [contender(0), contender(1)]);
        assert_eq!(order.borrow()[..4], [0, 1, 0, 1]);
        assert_eq!(first, Quartiles { median: 4.0, low: 3.0, high: 5.0, least: 2.0 });
        assert_eq!((first, first.per(2.0).median), (second, 2.0));
    }

    #[test]
    fn pairs_take_turns_and_noise_that_both_share_is_no_difference() {
        let order = std::cell::RefCell::new(String::new());
        // Each pair is slower than the one before, the second of it by a tenth, but for one burst.
        let contender = |name: char, times: f64, burst: usize| -> Contender<'_> {
            let (order, mut runs) = (&order, 0);
            Box::new(move || {
                order.borrow_mut().push(name);
                runs += 1;
                let base = f64::from(runs) * times;
                if runs as usize == burst { base * 100.0 } else { base }
            })
        };
        let pairs = in_pairs(101, contender('a', 1.0, 0), contender('b', 1.1, 9));
        assert!(order.borrow().starts_with("abbaabba"));
        assert!((pairs.ratio - 1.1).abs() < 1e-9 && (pairs.between.1 - 1.1).abs() < 1e-9, "{pairs:?}");
        assert_eq!((pairs.one.median, pairs.between.0 <= pairs.ratio), (52.0, true));
    }
}
