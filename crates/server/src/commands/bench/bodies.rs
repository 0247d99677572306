//! Bodies of a load: each carries its number, and the rest follows from it, so that what comes back can be checked.
//!
//! The load clients of other servers, in `compare/`, include this file: all servers get the same bytes.

use std::sync::atomic::{AtomicU64, Ordering};

/// A body begins with the run and the number of the message, eight hexadecimal digits each.
const MARK_BYTES: usize = 16;

/// What bodies are cut from. Longer than what compressors look back on, so that a body does not shrink by those before it.
const NOISE_BYTES: usize = 512 * 1_024;

/// A text that can be sent by every protocol.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Makes bodies, and knows which ones came back.
#[derive(Debug)]
pub struct Bodies {
    noise: Vec<u8>,
    bytes: usize,
    run: u32,
    next: AtomicU64,
    /// A bit for each message.
    seen: Vec<AtomicU64>,
    again: AtomicU64,
}

/// What a body that came back is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// Sent by this run, here for the first time; or of another run, or too short to tell.
    New,
    /// Sent by this run, and it was here before.
    Again,
}

impl Bodies {
    /// Bodies of so many bytes, for up to `most` messages.
    pub fn new(bytes: usize, most: u64, run: u32) -> Self {
        // An xorshift generator: the same noise in every run.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut letter = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state >> 58).unwrap_or_default();
            LETTERS.get(at).copied().unwrap_or(b'x')
        };
        let noise = (0..NOISE_BYTES + bytes).map(|_| letter()).collect();
        let words = usize::try_from(most.div_ceil(64)).unwrap_or(usize::MAX);
        let seen = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { noise, bytes, run, next: AtomicU64::new(0), seen, again: AtomicU64::new(0) }
    }

    /// The next body.
    pub fn next(&self) -> Vec<u8> {
        self.body(self.run, self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn body(&self, run: u32, number: u64) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.bytes);
        if self.bytes >= MARK_BYTES {
            body.extend_from_slice(format!("{run:08x}{:08x}", number & 0xFFFF_FFFF).as_bytes());
        }
        // A prime step, so that neighbours do not overlap in the same places.
        let from = usize::try_from(number.wrapping_mul(7_919)).unwrap_or_default() % NOISE_BYTES;
        let rest = self.bytes.saturating_sub(body.len());
        let from = if self.bytes >= MARK_BYTES { from } else { 0 };
        body.extend_from_slice(self.noise.get(from..from + rest).unwrap_or_default());
        body
    }

    /// Notes that a body came back; an error says what is wrong with it.
    pub fn came(&self, body: &[u8]) -> Result<Came, String> {
        let strange = || {
            let start = body.get(..body.len().min(40)).unwrap_or_default();
            let start = String::from_utf8_lossy(start).into_owned();
            format!("a body of {} bytes came back that was never sent: {start:?}", body.len())
        };
        if self.bytes < MARK_BYTES {
            return if body == self.body(0, 0) { Ok(Came::New) } else { Err(strange()) };
        }
        let digits = |from: usize| {
            let digits = std::str::from_utf8(body.get(from..from + 8)?).ok()?;
            u32::from_str_radix(digits, 16).ok()
        };
        let (Some(run), Some(number)) = (digits(0), digits(8)) else { return Err(strange()) };
        if body != self.body(run, u64::from(number)) {
            return Err(strange());
        }
        if run != self.run {
            return Ok(Came::New);
        }
        let word = usize::try_from(number / 64).ok().and_then(|at| self.seen.get(at));
        let Some(word) = word else { return Err(strange()) };
        let bit = 1 << (number % 64);
        if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            return Ok(Came::New);
        }
        self.again.fetch_add(1, Ordering::Relaxed);
        Ok(Came::Again)
    }

    /// How many came more than once.
    pub fn again(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bodies, Came};

    #[test]
    fn a_body_is_known_again_and_a_changed_one_is_refused() {
        let bodies = Bodies::new(1_024, 100, 7);
        let first = bodies.next();
        let mut second = bodies.next();
        assert_eq!(first.len(), 1_024);
        assert_ne!(first, second);
        assert_eq!(bodies.came(&first), Ok(Came::New));
        assert_eq!(bodies.came(&first), Ok(Came::Again));
        assert_eq!(bodies.again(), 1);
        if let Some(last) = second.last_mut() {
            *last = b'!';
        }
        assert!(bodies.came(&second).is_err());
        assert!(bodies.came(b"something else").is_err());
    }

    #[test]
    fn messages_of_an_earlier_run_are_taken_for_new_and_short_ones_too() {
        let (bodies, others) = (Bodies::new(64, 1, 1), Bodies::new(64, 1, 2));
        assert_eq!(bodies.came(&others.next()), Ok(Came::New));
        let short = Bodies::new(3, 1, 1);
        let body = short.next();
        assert_eq!((short.came(&body), short.came(&body)), (Ok(Came::New), Ok(Came::New)));
        assert!(short.came(b"abc").is_err());
    }
}
