//! Clock and randomness together, as every component takes them.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock, VirtualClock};
use crate::ids::UniqueId;
use crate::item::Version;
use crate::rng::{Rng, SeededRng, SystemRng};
use crate::time::Timestamp;

/// What a component may know of the world: time and chance. Under a virtual clock and a seed, everything
/// built on it is repeatable.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub rng: Arc<dyn Rng>,
}

impl Environment {
    /// The machine's clock and unpredictable numbers.
    #[must_use]
    pub fn system() -> Self {
        Self { clock: Arc::new(SystemClock::new()), rng: Arc::new(SystemRng) }
    }

    /// A virtual clock and numbers from a seed.
    #[must_use]
    pub fn simulated(clock: VirtualClock, seed: u64) -> Self {
        Self { clock: Arc::new(clock), rng: Arc::new(SeededRng::new(seed)) }
    }

    /// The wall-clock time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A fresh version for a write.
    #[must_use]
    pub fn version(&self) -> Version {
        Version::from_u64(self.rng.next_u64())
    }

    /// A fresh id of this moment.
    #[must_use]
    pub fn unique_id(&self) -> UniqueId {
        let random = (u128::from(self.rng.next_u64()) << 64) | u128::from(self.rng.next_u64());
        UniqueId::from_parts(self.now(), random)
    }
}
