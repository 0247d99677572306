//! Randomness as a component: nothing else in Millpond draws random numbers.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// A source of random numbers.
pub trait Rng: Debug + Send + Sync {
    /// The next number.
    fn next_u64(&self) -> u64;

    /// A number below `bound`; zero when `bound` is zero.
    fn below(&self, bound: u64) -> u64 {
        // The high half of a 128-bit product is uniform to within bound / 2^64.
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the high half of a product of two 64-bit numbers")
    }

    /// Whether something of probability `chance` (0 to 1) happens now.
    fn chance(&self, chance: f64) -> bool {
        // 53 random bits make a uniform fraction in [0, 1).
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
        let fraction = (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        fraction < chance
    }
}

/// Unpredictable numbers, seeded by the operating system.
#[derive(Debug, Default)]
pub struct SystemRng;

impl Rng for SystemRng {
    #[expect(clippy::disallowed_methods, reason = "the one place that draws from the system")]
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }
}

/// The same numbers for the same seed.
#[derive(Debug)]
pub struct SeededRng(Mutex<StdRng>);

impl SeededRng {
    /// A source that depends only on `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Rng for SeededRng {
    fn next_u64(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers() {
        let draw = |seed| {
            let rng = SeededRng::new(seed);
            (0..4).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn below_and_chance_keep_their_bounds() {
        let rng = SeededRng::new(1);
        assert!((0..1_000).all(|_| rng.below(10) < 10));
        assert_eq!(rng.below(0), 0);
        assert!(!rng.chance(0.0) && rng.chance(1.0));
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_200..2_800).contains(&hits), "{hits} of 10,000");
    }
}
