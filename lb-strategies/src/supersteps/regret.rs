//! What another way would have saved: a cumulative sum test.
//!
//! Source: Page, Continuous inspection schemes, Biometrika 41 (1954). What the other way would have saved in each step is
//! added up, and begins at nothing again when it falls below: a great change is found soon and a small one at last. It
//! counts when it is more than chance makes of it.

/// Steps of which the usual difference is the mean.
const MEMORY: f64 = 50.0;

/// By how much another way took less than the one in force, s, since it last did not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Regret {
    pub(crate) seconds: f64,
    /// Mean of the squares of the differences of the two.
    square: f64,
}

impl Regret {
    /// Adds a step in which the other would have saved so much, s, of which `tolerance` is not worth a change.
    pub(crate) fn add(&mut self, saved: f64, tolerance: f64) {
        self.square += (saved * saved - self.square) / MEMORY;
        self.seconds = (self.seconds + saved - tolerance).max(0.0);
    }

    /// Adds what is known of the steps so far besides, s.
    pub(crate) fn correct(&mut self, saved: f64) {
        self.seconds = (self.seconds + saved).max(0.0);
    }

    /// Tells whether it is more than going the other way takes, and than `patience` steps of the usual difference.
    pub(crate) fn exceeds(&self, price: f64, patience: f64) -> bool {
        self.seconds > patience * self.square.sqrt() + price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first step at which what is saved in each is worth 10 s.
    fn found(saved: impl Fn(u32) -> f64) -> Option<u32> {
        let mut regret = Regret::default();
        (0..1000).find(|&step| {
            regret.add(saved(step), 0.1);
            regret.exceeds(10.0, 5.0)
        })
    }

    #[test]
    fn a_great_change_is_found_soon_a_small_one_at_last_and_chance_never() {
        assert_eq!(found(|_| 20.0), Some(1));
        assert_eq!(
            found(|step| if step < 500 { -20.0 } else { 20.0 }),
            Some(505),
            "what was before is forgotten"
        );
        assert!((20..60).contains(&found(|_| 0.5).expect("it is more than tolerated")));
        assert_eq!(found(|_| 0.1), None);
        assert_eq!(found(|step| if step % 2 == 0 { 20.0 } else { -20.0 }), None, "chance");
    }
}
