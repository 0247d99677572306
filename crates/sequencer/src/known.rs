//! What a handle remembers of queues. All of it is hints: what is stored decides.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond_store::Monotonic;

use crate::cursor::Stored;
use crate::limits::{KNOWN_QUEUES_MAX, SUSPECTS_MAX};
use crate::names::QueueName;

/// What is remembered of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hint {
    /// The cursor when it was last seen.
    pub(crate) cursor: Option<Stored>,
    /// The number behind the greatest that was put through this handle.
    pub(crate) highest: u64,
    /// When the queue's row in the index of unsettled queues was written last, and for which awaited number.
    pub(crate) touched: Option<(Monotonic, u64)>,
    /// The cursor's place when retention last looked.
    pub(crate) retained: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    hints: Mutex<Hints>,
    suspects: Mutex<HashSet<QueueName>>,
}

#[derive(Debug, Default)]
struct Hints {
    queues: HashMap<QueueName, (u64, Hint)>,
    /// Queues by when they were used last.
    ages: BTreeMap<u64, QueueName>,
    uses: u64,
}

impl Known {
    fn hints(&self) -> MutexGuard<'_, Hints> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hint(&self, queue: &QueueName) -> Hint {
        self.hints().queues.get(queue).map(|(_, hint)| hint.clone()).unwrap_or_default()
    }

    /// Changes what is remembered; the queue that was not used for longest is forgotten when there are too many.
    pub(crate) fn update(&self, queue: &QueueName, change: impl FnOnce(&mut Hint)) {
        let mut hints = self.hints();
        hints.uses += 1;
        let now = hints.uses;
        let (used, hint) = hints.queues.entry(queue.clone()).or_default();
        change(hint);
        let before = std::mem::replace(used, now);
        hints.ages.remove(&before);
        hints.ages.insert(now, queue.clone());
        if hints.queues.len() > KNOWN_QUEUES_MAX
            && let Some((_, oldest)) = hints.ages.pop_first()
        {
            hints.queues.remove(&oldest);
        }
    }

    pub(crate) fn saw(&self, queue: &QueueName, cursor: &Stored) {
        self.update(queue, |hint| hint.cursor = Some(cursor.clone()));
    }

    pub(crate) fn forget(&self, queue: &QueueName) {
        let mut hints = self.hints();
        if let Some((used, _)) = hints.queues.remove(queue) {
            hints.ages.remove(&used);
        }
    }

    /// Something failed halfway: the sweeper should look.
    pub(crate) fn suspect(&self, queue: &QueueName) {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        if suspects.len() < SUSPECTS_MAX {
            suspects.insert(queue.clone());
        }
    }

    pub(crate) fn take_suspects(&self) -> Vec<QueueName> {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<QueueName> = suspects.drain().collect();
        taken.sort();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_that_was_not_used_for_longest_is_forgotten() {
        let known = Known::default();
        let name = |n: usize| QueueName::new(format!("q{n}")).unwrap();
        for n in 0..=KNOWN_QUEUES_MAX {
            known.update(&name(n), |hint| hint.highest = 7);
            known.update(&name(0), |hint| hint.highest = 7);
        }
        let highest = |n| known.hint(&name(n)).highest;
        assert_eq!((highest(0), highest(1), highest(KNOWN_QUEUES_MAX)), (7, 0, 7));
        assert_eq!(known.hints().ages.len(), KNOWN_QUEUES_MAX);
    }
}
