//! How long to wait before trying again, and when to give up.

use std::time::Duration;

use crate::rng::Rng;

/// Exponential backoff with full jitter, and a bound on attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The first wait is up to this long; each next one up to twice the last.
    pub base: Duration,
    /// No wait is longer.
    pub longest: Duration,
    /// How many attempts in all, the first one included.
    pub attempts_max: u32,
}

impl Backoff {
    /// Up to 8 attempts: waits up to 25, 50, 100 … 1,600 ms, 3.2 s at most in all.
    pub const STANDARD: Self =
        Self { base: Duration::from_millis(25), longest: Duration::from_secs(2), attempts_max: 8 };

    /// How long to wait after `attempts` failed ones; nothing when no more should be made.
    #[must_use]
    pub fn wait(&self, attempts: u32, rng: &dyn Rng) -> Option<Duration> {
        if attempts >= self.attempts_max {
            return None;
        }
        let doublings = attempts.saturating_sub(1).min(30);
        let bound = self.base.saturating_mul(1 << doublings).min(self.longest);
        let micros = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
        Some(Duration::from_micros(rng.below(micros.saturating_add(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SeededRng;

    #[test]
    fn waits_grow_up_to_the_bound_and_attempts_end() {
        let rng = SeededRng::new(3);
        let backoff = Backoff { attempts_max: 40, ..Backoff::STANDARD };
        let longest_of =
            |attempt| (0..200).filter_map(|_| backoff.wait(attempt, &rng)).max().expect("a wait");
        assert!(longest_of(1) <= Duration::from_millis(25));
        assert!(longest_of(3) > Duration::from_millis(50));
        assert!(longest_of(39) <= Duration::from_secs(2));
        assert_eq!(backoff.wait(40, &rng), None);
    }
}
