//! Time that no jump of a clock can hurry.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use millpond_store::{Environment, Monotonic, Timestamp};

use crate::limits::CLOCK_SLEW_PERCENT;

/// What clocks differ by in ordinary reading.
const SMALL: Duration = Duration::from_millis(2);

/// How often the reckoning starts anew: seldom enough that what is lost in rounding does not add up.
const ANCHOR_EVERY: Duration = Duration::from_secs(1);

/// The wall clock as leases see it: it never goes back, and where the wall clock jumps, it follows slowly. So a jump
/// does not end the leases that this process has given or seen.
#[derive(Debug)]
pub struct SteadyTime {
    environment: Environment,
    last: Mutex<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    anchor: Timestamp,
    at: Monotonic,
    told: Timestamp,
}

impl SteadyTime {
    pub fn new(environment: &Environment) -> Self {
        let now = environment.now();
        let last = Last { anchor: now, at: environment.clock.monotonic(), told: now };
        Self { environment: environment.clone(), last: Mutex::new(last) }
    }

    pub fn now(&self) -> Timestamp {
        let (wall, monotonic) = (self.environment.now(), self.environment.clock.monotonic());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = monotonic.since(last.at);
        let slew = passed * CLOCK_SLEW_PERCENT / 100;
        let slowest = last.anchor.plus(passed.saturating_sub(slew));
        let fastest = last.anchor.plus(passed + slew + SMALL);
        last.told = wall.clamp(slowest, fastest).max(last.told);
        if passed >= ANCHOR_EVERY {
            (last.anchor, last.at) = (last.told, monotonic);
        }
        last.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::VirtualClock;

    #[test]
    fn jumps_are_followed_slowly_and_time_never_goes_back() {
        let start = Timestamp::from_millis(1_000_000_000);
        let clock = VirtualClock::new(start);
        let time = SteadyTime::new(&Environment::simulated(clock.clone(), 1));
        clock.advance(Duration::from_secs(10));
        assert_eq!(time.now(), start.plus(Duration::from_secs(10)));
        clock.set_wall(start.plus(Duration::from_secs(3_600)));
        let jumped = time.now();
        assert!(jumped <= start.plus(Duration::from_secs(11)), "{jumped:?}");
        clock.advance(Duration::from_secs(30));
        let later = time.now();
        assert!(later.since(jumped) <= Duration::from_millis(33_100), "{later:?}");
        clock.set_wall(start);
        assert!(time.now() >= later);
        clock.advance(Duration::from_secs(100));
        let slow = time.now();
        assert!(slow.since(later) >= Duration::from_secs(90), "{slow:?}");
        assert!(slow.since(later) <= Duration::from_secs(91), "{slow:?}");
    }

    #[test]
    fn it_keeps_up_with_the_clock_however_often_it_is_read() {
        let start = Timestamp::from_millis(1_000_000_000);
        let clock = VirtualClock::new(start);
        let time = SteadyTime::new(&Environment::simulated(clock.clone(), 1));
        for _ in 0..10_000 {
            clock.advance(Duration::from_micros(300));
            let _ = time.now();
        }
        let behind = clock_now(&clock).since(time.now());
        assert!(behind <= Duration::from_millis(5), "{behind:?}");
    }

    fn clock_now(clock: &VirtualClock) -> Timestamp {
        millpond_store::Clock::now(clock)
    }
}
