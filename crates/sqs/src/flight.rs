//! What is in flight, as far as this node has handed it out: for the limit of a queue, and to see which tenants of a
//! standard queue take more than their share.
//!
//! It is a hint. Other nodes' messages are not counted, and what is settled elsewhere counts until its time is over.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use millpond_queue::{MessageId, Receive};
use millpond_store::Timestamp;

use crate::limits::{
    IN_FLIGHT_MAX, NOISY_IN_FLIGHT_MIN, NOISY_PART, QUIET_LOOK_EVERY, TENANT_TIME_MIN,
    TENANT_WINDOW, TENANTS_MAX,
};

/// With more tenants than this, they are not judged for each receive...
const JUDGED_EACH_TIME_MAX: usize = 256;

/// ...but this often.
const JUDGED_EVERY: Duration = Duration::from_millis(100);

/// Messages in flight, and their tenants.
#[derive(Debug, Default)]
pub struct Flight {
    held: HashMap<MessageId, Held>,
    ends: BTreeSet<(Timestamp, MessageId)>,
    tenants: HashMap<Arc<str>, Tenant>,
    /// Of all messages, also of those without a tenant.
    spent: Spent,
    /// Whether messages of quiet tenants may wait: some were sent, or it was not looked for a while.
    quiet_waits: bool,
    looked: Timestamp,
    judged: Timestamp,
    /// When tenants that have nothing in flight were last forgotten to make room.
    swept: Timestamp,
    noisy: Vec<String>,
}

#[derive(Debug, Clone)]
struct Held {
    until: Timestamp,
    since: Timestamp,
    tenant: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Tenant {
    in_flight: usize,
    spent: Spent,
    seen: Timestamp,
}

/// Time that was spent of late: in this window, and in the one before.
#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    window: u64,
    now: Duration,
    before: Duration,
}

impl Spent {
    fn turn(&mut self, at: Timestamp) {
        let window = at.as_millis() / millis(TENANT_WINDOW);
        if window != self.window {
            self.before = if window == self.window + 1 { self.now } else { Duration::ZERO };
            self.now = Duration::ZERO;
            self.window = window;
        }
    }

    fn add(&mut self, at: Timestamp, time: Duration) {
        self.turn(at);
        self.now += time;
    }

    /// What was spent within the last window, as if it had been spread evenly over the one before.
    fn recent(mut self, at: Timestamp) -> Duration {
        self.turn(at);
        let passed = at.as_millis() % millis(TENANT_WINDOW);
        let left = u32::try_from(millis(TENANT_WINDOW) - passed).unwrap_or(u32::MAX);
        let whole = u32::try_from(millis(TENANT_WINDOW)).unwrap_or(u32::MAX).max(1);
        self.now + self.before * left / whole
    }
}

impl Flight {
    /// Whether so many messages are in flight that no more may be.
    pub fn is_full(&mut self, now: Timestamp) -> bool {
        self.tick(now);
        self.held.len() >= IN_FLIGHT_MAX
    }

    /// Messages that were handed out just now.
    pub fn handed_out(
        &mut self,
        id: MessageId,
        group: Option<&str>,
        now: Timestamp,
        until: Timestamp,
    ) {
        self.end(&id, now);
        let tenant = group.and_then(|group| self.tenant(group, now));
        if let Some(tenant) = &tenant {
            let known = self.tenants.entry(Arc::clone(tenant)).or_default();
            known.in_flight += 1;
            known.seen = now;
            if self.noisy.iter().any(|noisy| **noisy == **tenant) {
                // It was looked for others first, and there were none.
                self.quiet_waits = false;
                self.looked = now;
            }
        }
        self.ends.insert((until, id));
        self.held.insert(id, Held { until, since: now, tenant });
    }

    /// The tenant of a group; none when there are too many already to tell another apart.
    fn tenant(&mut self, group: &str, now: Timestamp) -> Option<Arc<str>> {
        if let Some((known, _)) = self.tenants.get_key_value(group) {
            return Some(Arc::clone(known));
        }
        // All of them are looked through, which would take too long for each message.
        if self.tenants.len() >= TENANTS_MAX && now.since(self.swept) >= JUDGED_EVERY {
            self.swept = now;
            self.tenants.retain(|_, known| known.in_flight > 0);
        }
        (self.tenants.len() < TENANTS_MAX).then(|| Arc::from(group))
    }

    /// There was nothing to hand out: whoever has nothing in flight has no backlog either.
    pub fn emptied(&mut self, now: Timestamp) {
        if now.since(self.swept) >= JUDGED_EVERY {
            self.swept = now;
            self.tenants.retain(|_, known| known.in_flight > 0);
        }
    }

    /// A message's timeout has changed.
    pub fn changed(&mut self, id: &MessageId, until: Timestamp) {
        if let Some(held) = self.held.get_mut(id) {
            self.ends.remove(&(held.until, *id));
            held.until = until;
            self.ends.insert((until, *id));
        }
    }

    /// A message is not in flight any more.
    pub fn end(&mut self, id: &MessageId, now: Timestamp) {
        let Some(held) = self.held.remove(id) else { return };
        self.ends.remove(&(held.until, *id));
        let time = now.min(held.until).since(held.since);
        self.spent.add(now, time);
        if let Some(tenant) = held.tenant.and_then(|tenant| self.tenants.get_mut(&tenant)) {
            tenant.in_flight = tenant.in_flight.saturating_sub(1);
            tenant.spent.add(now, time);
        }
    }

    /// Nothing is in flight any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// A message was sent.
    pub fn sent(&mut self, group: Option<&str>) {
        if group.is_none_or(|group| !self.noisy.iter().any(|noisy| noisy == group)) {
            self.quiet_waits = true;
        }
    }

    fn tick(&mut self, now: Timestamp) {
        while let Some(&(_, id)) = self.ends.first().filter(|(until, _)| *until <= now) {
            self.end(&id, now);
        }
    }

    /// Puts tenants that take more than their share behind the others, where that may make a difference.
    pub fn be_fair(&mut self, ask: Receive, now: Timestamp) -> Receive {
        self.tick(now);
        self.judge(now);
        let due = now.since(self.looked) >= QUIET_LOOK_EVERY;
        if self.noisy.is_empty() || !(self.quiet_waits || due) {
            return ask;
        }
        Receive { behind: self.noisy.clone(), ..ask }
    }

    /// Which tenants are noisy, those with the fewest messages in flight first.
    fn judge(&mut self, now: Timestamp) {
        if self.tenants.len() > JUDGED_EACH_TIME_MAX && now.since(self.judged) < JUDGED_EVERY {
            return;
        }
        self.judged = now;
        self.tenants
            .retain(|_, tenant| tenant.in_flight > 0 || now.since(tenant.seen) < TENANT_WINDOW);
        let all_in_flight = self.held.len();
        let all_time = self.spent.recent(now);
        let part = usize::try_from(NOISY_PART).unwrap_or(usize::MAX);
        let is_noisy = |tenant: &Tenant| {
            // By its time also when it has nothing in flight: a worker that finishes what it has before it receives again
            // never has.
            (tenant.in_flight >= NOISY_IN_FLIGHT_MIN
                && tenant.in_flight.saturating_mul(part) > all_in_flight)
                || (all_time >= TENANT_TIME_MIN && tenant.spent.recent(now) * NOISY_PART > all_time)
        };
        let mut noisy: Vec<(usize, &Arc<str>)> = self
            .tenants
            .iter()
            .filter(|(_, tenant)| is_noisy(tenant))
            .map(|(name, tenant)| (tenant.in_flight, name))
            .collect();
        noisy.sort_unstable();
        self.noisy = noisy.into_iter().map(|(_, name)| name.to_string()).collect();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> MessageId {
        format!("{number:016x}-00").parse().unwrap()
    }

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + seconds * 1_000)
    }

    fn hand_out(flight: &mut Flight, numbers: std::ops::Range<u64>, group: &str) {
        for number in numbers {
            flight.handed_out(id(number), Some(group), at(0), at(30));
        }
    }

    #[test]
    fn a_tenant_is_noisy_from_thirty_in_flight_and_a_tenth_of_all_on() {
        let mut flight = Flight::default();
        hand_out(&mut flight, 0..29, "a");
        flight.sent(Some("b"));
        assert!(flight.be_fair(Receive::default(), at(1)).behind.is_empty());
        hand_out(&mut flight, 29..30, "a");
        flight.sent(Some("b"));
        assert_eq!(flight.be_fair(Receive::default(), at(1)).behind, ["a"]);
        hand_out(&mut flight, 1_000..1_031, "b");
        flight.sent(None);
        assert_eq!(flight.be_fair(Receive::default(), at(1)).behind, ["a", "b"]);
        for n in 0..300 {
            flight.handed_out(id(2_000 + n), None, at(1), at(30));
        }
        flight.sent(None);
        assert!(flight.be_fair(Receive::default(), at(1)).behind.is_empty(), "less than a tenth");
        assert!(!flight.is_full(at(29)) && flight.held.len() == 361);
        assert!(!flight.is_full(at(30)) && flight.held.is_empty());
    }

    #[test]
    fn a_queue_is_full_with_a_hundred_and_twenty_thousand_in_flight() {
        let mut flight = Flight::default();
        hand_out(&mut flight, 0..119_999, "a");
        assert!(!flight.is_full(at(1)));
        hand_out(&mut flight, 119_999..120_000, "a");
        assert!(flight.is_full(at(1)));
        flight.changed(&id(7), at(60));
        flight.end(&id(8), at(2));
        assert!(!flight.is_full(at(2)));
        assert!(!flight.is_full(at(30)) && flight.held.len() == 1, "the one that was extended");
    }

    #[test]
    fn a_tenant_is_noisy_when_it_takes_most_of_the_time() {
        let mut flight = Flight::default();
        for n in 0..20 {
            flight.handed_out(id(n), Some("slow"), at(0), at(100));
            flight.handed_out(id(100 + n), Some("fast"), at(0), at(100));
            flight.end(&id(100 + n), at(1));
            flight.end(&id(n), at(60));
        }
        flight.handed_out(id(500), Some("slow"), at(61), at(100));
        flight.handed_out(id(501), Some("fast"), at(61), at(100));
        flight.sent(Some("fast"));
        assert_eq!(flight.be_fair(Receive::default(), at(61)).behind, ["slow"]);
        // Ten minutes later nobody remembers.
        assert!(flight.be_fair(Receive::default(), at(700)).behind.is_empty());
    }

    #[test]
    fn a_tenant_is_noisy_by_its_time_though_nothing_is_in_flight() {
        let mut flight = Flight::default();
        for n in 0..2 {
            flight.handed_out(id(n), Some("slow"), at(n * 60), at(n * 60 + 100));
            flight.end(&id(n), at(n * 60 + 50));
            flight.handed_out(id(10 + n), Some("fast"), at(n * 60 + 50), at(n * 60 + 100));
            flight.end(&id(10 + n), at(n * 60 + 51));
        }
        flight.sent(Some("fast"));
        assert_eq!(flight.be_fair(Receive::default(), at(112)).behind, ["slow"]);
        // Nothing waits any more, so that nobody has a backlog.
        flight.emptied(at(112));
        assert!(flight.be_fair(Receive::default(), at(112)).behind.is_empty());
    }

    #[test]
    fn no_more_tenants_are_told_apart_than_there_is_room_for() {
        let mut flight = Flight::default();
        let crowd = u64::try_from(TENANTS_MAX).unwrap() + 100;
        for n in 0..crowd {
            flight.handed_out(id(n), Some(&n.to_string()), at(0), at(30));
        }
        assert_eq!((flight.tenants.len(), flight.held.len()), (TENANTS_MAX, TENANTS_MAX + 100));
        // Those that have ended make room.
        flight.end(&id(7), at(1));
        flight.handed_out(id(crowd), Some("new"), at(1), at(30));
        assert!(flight.tenants.contains_key("new") && !flight.tenants.contains_key("7"));
    }

    #[test]
    fn it_is_not_looked_for_quiet_tenants_again_and_again_in_vain() {
        let mut flight = Flight::default();
        hand_out(&mut flight, 0..40, "a");
        flight.sent(Some("b"));
        assert_eq!(flight.be_fair(Receive::default(), at(1)).behind, ["a"]);
        flight.handed_out(id(90), Some("a"), at(1), at(30));
        assert!(flight.be_fair(Receive::default(), at(1)).behind.is_empty());
        assert_eq!(flight.be_fair(Receive::default(), at(2)).behind, ["a"], "after a second");
        flight.handed_out(id(91), Some("a"), at(2), at(30));
        flight.sent(Some("a"));
        assert!(flight.be_fair(Receive::default(), at(2)).behind.is_empty());
        flight.sent(Some("b"));
        assert_eq!(flight.be_fair(Receive::default(), at(2)).behind, ["a"]);
    }
}
