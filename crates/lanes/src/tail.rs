//! What a writer knows of a sequenced lane's tail, and for how long that can be relied on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millpond_store::{Environment, Monotonic, Timestamp};

use crate::carry::Carry;
use crate::limits::{HUSK_KEPT, TAIL_AGE_MAX};

/// A sight of the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailView {
    /// The number behind the last message.
    pub next: u64,
    /// What the last row hands on.
    pub carry: Carry,
    /// When it was seen.
    pub seen: Monotonic,
    /// The same moment by the wall clock.
    wall: Timestamp,
}

#[derive(Debug)]
pub struct Tail {
    environment: Environment,
    view: Mutex<View>,
}

#[derive(Debug, Default)]
struct View {
    latest: Option<TailView>,
    /// The greatest tail ever seen: it never goes back.
    reached: Option<(u64, Carry)>,
}

impl Tail {
    pub fn new(environment: &Environment) -> Self {
        Self { environment: environment.clone(), view: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call before looking at the tail: what is seen is at least as fresh as this.
    pub fn start_look(&self) -> Monotonic {
        self.environment.clock.monotonic()
    }

    /// The tail was looked at, from `seen` on.
    pub fn looked(&self, next: u64, carry: Carry, seen: Monotonic) -> TailView {
        let mut view = self.lock();
        let (next, carry) = match view.reached {
            Some((reached, carry)) if reached > next => (reached, carry),
            _ => (next, carry),
        };
        let latest = TailView { next, carry, seen, wall: self.environment.now() };
        *view = View { latest: Some(latest), reached: Some((next, carry)) };
        latest
    }

    /// A row that ends at `next` was met just now.
    pub fn saw(&self, next: u64, carry: Carry) {
        self.looked(next, carry, self.start_look());
    }

    /// Look again before the next append.
    pub fn forget(&self) {
        self.lock().latest = None;
    }

    /// The greatest tail ever seen.
    pub fn reached(&self) -> Option<u64> {
        self.lock().reached.map(|(next, _)| next)
    }

    /// The last sight, if it can be relied on: recent, and with no jump of the wall clock since, which husks end by.
    pub fn fresh(&self) -> Option<TailView> {
        let view = self.lock().latest?;
        let age = self.environment.clock.monotonic().since(view.seen);
        let by_wall = self.environment.now().since(view.wall);
        let jumped = by_wall.abs_diff(age) > TAIL_AGE_MAX;
        (age <= TAIL_AGE_MAX && !jumped).then_some(view)
    }

    /// Whether a write that began with a sight of the tail at `seen` may have outlived a husk.
    pub fn is_stale(&self, seen: Monotonic) -> bool {
        const LONGEST: Duration = HUSK_KEPT.checked_div(2).expect("two is not zero");
        self.environment.clock.monotonic().since(seen) > LONGEST
    }
}
