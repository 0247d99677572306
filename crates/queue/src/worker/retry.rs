//! How long failed messages wait before they are tried again.

use std::time::Duration;

use millpond_store::Rng;

use crate::config::within;
use crate::error::{QueueError, Result};
use crate::limits::DELAY_MAX;

/// Exponential backoff with jitter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// How long a message waits after its first failure. Default: 1 second.
    pub first: Duration,
    /// How many times as long after each further one. Default: 2.
    pub factor: f64,
    /// How long at most. Default: 15 minutes.
    pub longest: Duration,
    /// What part of the wait is left to chance, so that what failed together is not tried together: 0 for none, 1 for
    /// all. Default: 0.5, which is a wait of half to all of the time.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            factor: 2.0,
            longest: Duration::from_secs(15 * 60),
            jitter: 0.5,
        }
    }
}

impl RetryPolicy {
    /// Failed messages are tried again at once.
    pub const AT_ONCE: Self =
        Self { first: Duration::ZERO, factor: 1.0, longest: Duration::ZERO, jitter: 0.0 };

    /// How long a message waits that was received this often.
    #[must_use]
    pub fn wait(&self, receives: u32, rng: &dyn Rng) -> Duration {
        let exponent = i32::try_from(receives.saturating_sub(1)).unwrap_or(i32::MAX);
        let longest = self.longest.as_secs_f64();
        let full = (self.first.as_secs_f64() * self.factor.powi(exponent)).min(longest);
        let bits = 1_u64 << 32;
        #[expect(clippy::cast_precision_loss, reason = "32 bits fit a double exactly")]
        let chance = rng.below(bits) as f64 / bits as f64;
        Duration::try_from_secs_f64(full * (1.0 - self.jitter * chance)).unwrap_or(self.longest)
    }

    pub(super) fn check(&self) -> Result<()> {
        within("retry.first", self.first, Duration::ZERO, DELAY_MAX)?;
        within("retry.longest", self.longest, Duration::ZERO, DELAY_MAX)?;
        if !(1.0..=1_000.0).contains(&self.factor) {
            return Err(QueueError::invalid("retry.factor", "is not between 1 and 1,000"));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(QueueError::invalid("retry.jitter", "is not between 0 and 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::SeededRng;

    #[test]
    fn waits_double_up_to_the_longest_with_jitter() {
        let rng = SeededRng::new(1);
        let policy = RetryPolicy::default();
        let range = |receives| {
            let waits: Vec<_> = (0..500).map(|_| policy.wait(receives, &rng)).collect();
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            (least.as_secs_f64(), most.as_secs_f64())
        };
        for (receives, full) in [(1, 1.0), (2, 2.0), (5, 16.0), (11, 900.0), (u32::MAX, 900.0)] {
            let (least, most) = range(receives);
            assert!(least >= full / 2.0 && least < full * 0.6, "{receives}: {least}");
            assert!(most <= full && most > full * 0.9, "{receives}: {most}");
        }
        assert_eq!(RetryPolicy::AT_ONCE.wait(3, &rng), Duration::ZERO);
    }
}
