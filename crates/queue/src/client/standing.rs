//! Whether a backlog stands: the oldest message has been waiting for longer than a target, all through an interval.

use std::time::Duration;

use millpond_store::Timestamp;

/// What was seen of the oldest message's age.
#[derive(Debug, Default)]
pub struct Standing {
    /// Since when the oldest message has been older than the target.
    above_since: Option<Timestamp>,
}

impl Standing {
    /// The oldest waiting message was sent at `oldest`; nothing waits when there is none. Says whether a backlog
    /// stands.
    pub fn judge(
        &mut self,
        oldest: Option<Timestamp>,
        target: Duration,
        interval: Duration,
        now: Timestamp,
    ) -> bool {
        if oldest.is_none_or(|oldest| now.since(oldest) <= target) {
            self.above_since = None;
            return false;
        }
        let since = *self.above_since.get_or_insert(now);
        now.since(since) >= interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_stands_when_it_was_never_short_for_an_interval() {
        let (target, interval) = (Duration::from_millis(100), Duration::from_millis(500));
        let at = Timestamp::from_millis;
        let mut standing = Standing::default();
        let mut judge = |oldest, now| standing.judge(oldest, target, interval, now);
        assert!(!judge(Some(at(1_000)), at(1_100)));
        assert!(!judge(Some(at(1_000)), at(1_101)));
        assert!(!judge(Some(at(1_300)), at(1_600)));
        assert!(judge(Some(at(1_300)), at(1_601)));
        assert!(!judge(None, at(1_700)));
        assert!(!judge(Some(at(1_300)), at(1_701)));
    }
}
