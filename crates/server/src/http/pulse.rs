//! What one connection is doing, and since when: so that a slow client does not hold it for ever.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use millpond_store::{Clock, Monotonic};

use super::limits::{COUNTED_BYTES_MIN, WATCH_EVERY};
use super::speech::Speech;
use crate::config::Limits;

/// Why a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// A request's head did not come in time.
    Head,
    /// There was no request for long.
    Idle,
    /// The client did not take an answer in time.
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
    /// Answers that the client has not taken whole, and since when they are there, by their numbers.
    answers: BTreeMap<u64, Monotonic>,
    answers_made: u64,
    /// The streams of HTTP/2 share a connection: bytes that come need not be the beginning of a request.
    speech: Speech,
}

/// A request in work; it ends when this is dropped.
pub struct InWork(Arc<Pulse>);

/// The bytes of an answer; the client has taken them when this is dropped.
struct Taken {
    bytes: Bytes,
    number: u64,
    pulse: Arc<Pulse>,
}

impl Pulse {
    pub fn new(clock: &Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            requests: 0,
            idle_since: clock.monotonic(),
            head_since: None,
            blocked_since: None,
            answers: BTreeMap::new(),
            answers_made: 0,
            speech: Speech::Unknown(0),
        };
        Arc::new(Self { clock: Arc::clone(clock), state: Mutex::new(state) })
    }

    /// A request's head is complete.
    pub fn request(self: &Arc<Self>) -> InWork {
        let mut state = self.state();
        state.requests += 1;
        // Of HTTP/2, the head of another request may have begun since.
        if !matches!(state.speech, Speech::Http2(_)) {
            state.head_since = None;
        }
        InWork(Arc::clone(self))
    }

    /// Bytes came.
    pub fn received(&self, bytes: &[u8]) {
        let mut state = self.state();
        let before = state.speech.head_number();
        state.speech.received(bytes);
        let begins = if matches!(state.speech, Speech::Http2(_)) {
            let now = state.speech.head_number();
            if now.is_none() {
                state.head_since = None;
            }
            now.is_some() && now != before
        } else {
            state.is_free() && state.head_since.is_none()
        };
        if begins {
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
        let idle_since = Some(state.idle_since).filter(|_| state.is_free());
        // A client that takes an answer byte by byte is not blocked, and holds it nevertheless.
        let oldest = state.answers.first_key_value().map(|(_, since)| *since);
        let deadlines = [
            (oldest, limits.write_timeout, Late::Write),
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

impl State {
    fn is_free(&self) -> bool {
        self.requests == 0 && self.answers.is_empty()
    }
}

impl InWork {
    /// The answer is there: its bytes, which are under watch until the client has taken them. Few bytes are in the
    /// system's buffers at once, unless a window of HTTP/2 keeps them here.
    pub fn answered(self, bytes: Bytes, has_windows: bool) -> Bytes {
        if bytes.is_empty() || (bytes.len() < COUNTED_BYTES_MIN && !has_windows) {
            return bytes;
        }
        let pulse = Arc::clone(&self.0);
        let now = pulse.clock.monotonic();
        let number = {
            let mut state = pulse.state();
            state.answers_made += 1;
            let number = state.answers_made;
            state.answers.insert(number, now);
            number
        };
        Bytes::from_owner(Taken { bytes, number, pulse })
    }
}

impl AsRef<[u8]> for Taken {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let now = self.pulse.clock.monotonic();
        let mut state = self.pulse.state();
        state.answers.remove(&self.number);
        state.idle_since = now;
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
    fn an_answer_that_is_not_taken_whole_is_late_whatever_else_is_asked_and_taken() {
        let world = World::new();
        let large = Bytes::from(vec![7; COUNTED_BYTES_MIN]);
        let first = world.pulse.request().answered(large.clone(), false);
        let part = first.slice(..1);
        for _ in 0..9 {
            assert_eq!(world.after(1), None);
            world.pulse.blocked();
            world.pulse.sent();
            drop(world.pulse.request().answered(large.clone(), true));
        }
        drop(first);
        assert_eq!(world.after(1), Some(Late::Write));
        drop(part);
        assert_eq!(world.after(59), None, "when all is taken, idleness begins anew");
        assert_eq!(world.after(1), Some(Late::Idle));
    }

    #[test]
    fn small_answers_are_watched_where_windows_can_keep_them() {
        let world = World::new();
        let few = Bytes::from_static(b"alive");
        let _written = world.pulse.request().answered(few.clone(), false);
        assert_eq!(world.after(20), None);
        let _stalled = world.pulse.request().answered(few, true);
        assert_eq!(world.after(10), Some(Late::Write));
    }

    #[test]
    fn the_next_request_is_no_slow_head_while_an_answer_is_taken() {
        let world = World::new();
        world.pulse.received(b"GET / HTTP/1.1\r\n\r\n");
        let large = Bytes::from(vec![7; COUNTED_BYTES_MIN]);
        let answer = world.pulse.request().answered(large, false);
        world.pulse.received(b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(world.after(9), None);
        drop(answer);
        assert_eq!(world.after(9), None);
    }

    #[test]
    fn frames_of_http2_are_not_taken_for_a_head() {
        let world = World::new();
        world.pulse.received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        assert_eq!(world.after(30), None);
        world.pulse.received(b"\0\0\x08\x06\0\0\0\0\0a ping..");
        assert_eq!(world.after(30), Some(Late::Idle));
    }

    #[test]
    fn a_head_of_http2_must_end_also_while_other_requests_are_in_work() {
        let world = World::new();
        world.pulse.received(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let whole = b"\0\0\x01\x01\x04\0\0\0\x01x";
        for _ in 0..9 {
            // Each read ends within the next head.
            world.pulse.received(&[whole, &whole[..9]].concat());
            assert_eq!(world.after(9), None);
            world.pulse.received(&whole[9..]);
        }
        world.pulse.received(b"\0\0\x01\x01\0\0\0\0\x03x");
        let _request = world.pulse.request();
        for _ in 0..9 {
            assert_eq!(world.after(1), None);
            world.pulse.received(b"\0\0\x01\x09\0\0\0\0\x03x");
        }
        assert_eq!(world.after(1), Some(Late::Head));
    }
}
