//! What one connection is doing, and since when: so that a slow client does not hold it for ever.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millpond_store::{Clock, Monotonic};

use super::limits::WATCH_EVERY;
use crate::config::Limits;

/// Why a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// A request's head did not come in time.
    Head,
    /// There was no request for long.
    Idle,
    /// The client did not take its answer.
    Write,
}

impl Late {
    /// What metrics and logs call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "slow_head",
            Self::Idle => "idle",
            Self::Write => "slow_reader",
        }
    }
}

/// The state of one connection, kept by its stream and by its requests, and read by its watch.
#[derive(Debug)]
pub struct Pulse {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    requests: usize,
    idle_since: Monotonic,
    head_since: Option<Monotonic>,
    blocked_since: Option<Monotonic>,
    /// The streams of HTTP/2 share a connection: bytes that come need not be the beginning of a request.
    multiplexed: bool,
    began: bool,
}

/// A request in work; it ends when this is dropped.
pub struct InWork(Arc<Pulse>);

impl Pulse {
    pub fn new(clock: &Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            requests: 0,
            idle_since: clock.monotonic(),
            head_since: None,
            blocked_since: None,
            multiplexed: false,
            began: false,
        };
        Arc::new(Self { clock: Arc::clone(clock), state: Mutex::new(state) })
    }

    /// A request's head is complete.
    pub fn request(self: &Arc<Self>) -> InWork {
        let mut state = self.state();
        state.requests += 1;
        state.head_since = None;
        InWork(Arc::clone(self))
    }

    /// Bytes came.
    pub fn received(&self, bytes: &[u8]) {
        let mut state = self.state();
        if !state.began {
            state.began = true;
            state.multiplexed = bytes.starts_with(b"PRI");
        }
        if state.requests == 0 && state.head_since.is_none() && !state.multiplexed {
            state.head_since = Some(self.clock.monotonic());
        }
    }

    /// The client took bytes of an answer.
    pub fn sent(&self) {
        let mut state = self.state();
        if state.blocked_since.is_some() {
            state.blocked_since = None;
        }
    }

    /// The client takes nothing for now.
    pub fn blocked(&self) {
        let mut state = self.state();
        if state.blocked_since.is_none() {
            state.blocked_since = Some(self.clock.monotonic());
        }
    }

    /// Comes back when the client is late with something.
    pub async fn watch(&self, limits: &Limits) -> Late {
        loop {
            match self.look(limits) {
                Ok(next) => self.clock.sleep(next).await,
                Err(late) => return late,
            }
        }
    }

    /// How long until it is worth looking again, or what the client is late with.
    fn look(&self, limits: &Limits) -> Result<Duration, Late> {
        let now = self.clock.monotonic();
        let state = self.state();
        let idle_since = Some(state.idle_since).filter(|_| state.requests == 0);
        let deadlines = [
            (state.blocked_since, limits.write_timeout, Late::Write),
            (state.head_since, limits.header_timeout, Late::Head),
            (idle_since.filter(|_| state.head_since.is_none()), limits.idle_timeout, Late::Idle),
        ];
        let mut next = WATCH_EVERY.min(limits.header_timeout).min(limits.write_timeout);
        for (since, most, late) in deadlines {
            let Some(since) = since else { continue };
            match most.checked_sub(now.since(since)) {
                Some(left) if !left.is_zero() => next = next.min(left),
                _ => return Err(late),
            }
        }
        Ok(next)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        let now = self.0.clock.monotonic();
        let mut state = self.0.state();
        state.requests = state.requests.saturating_sub(1);
        state.idle_since = now;
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::{Timestamp, VirtualClock};

    use super::*;

    struct World {
        time: VirtualClock,
        pulse: Arc<Pulse>,
        limits: Limits,
    }

    impl World {
        fn new() -> Self {
            let time = VirtualClock::new(Timestamp::from_millis(0));
            let clock: Arc<dyn Clock> = Arc::new(time.clone());
            Self { time, pulse: Pulse::new(&clock), limits: Limits::example() }
        }

        /// What the client is late with after so many more seconds.
        fn after(&self, seconds: u64) -> Option<Late> {
            self.time.advance(Duration::from_secs(seconds));
            self.pulse.look(&self.limits).err()
        }
    }

    #[test]
    fn a_connection_without_requests_may_be_idle_for_a_while() {
        let world = World::new();
        assert_eq!(world.after(59), None);
        assert_eq!(world.after(1), Some(Late::Idle));
    }

    #[test]
    fn a_head_that_has_begun_must_end_however_many_bytes_come() {
        let world = World::new();
        assert_eq!(world.after(50), None);
        world.pulse.received(b"GET ");
        for _ in 0..9 {
            assert_eq!(world.after(1), None);
            world.pulse.received(b"/");
        }
        assert_eq!(world.after(1), Some(Late::Head));
    }

    #[test]
    fn a_request_in_work_may_take_its_time_and_then_idleness_begins_anew() {
        let world = World::new();
        world.pulse.received(b"GET / HTTP/1.1");
        let first = world.pulse.request();
        let second = world.pulse.request();
        assert_eq!(world.after(1_000), None);
        world.pulse.received(b"more of its body");
        drop(first);
        assert_eq!(world.after(1_000), None);
        drop(second);
        assert_eq!(world.after(59), None);
        assert_eq!(world.after(1), Some(Late::Idle));
    }

    #[test]
    fn a_client_that_takes_nothing_is_late_also_while_a_request_is_in_work() {
        let world = World::new();
        let _request = world.pulse.request();
        world.pulse.blocked();
        assert_eq!(world.after(9), None);
        world.pulse.sent();
        world.pulse.blocked();
        assert_eq!(world.after(9), None);
        assert_eq!(world.after(1), Some(Late::Write));
    }

    #[test]
    fn frames_of_http2_are_not_taken_for_a_head() {
        let world = World::new();
        world.pulse.received(b"PRI * HTTP/2.0");
        assert_eq!(world.after(30), None);
        world.pulse.received(b"a ping");
        assert_eq!(world.after(30), Some(Late::Idle));
    }
}
