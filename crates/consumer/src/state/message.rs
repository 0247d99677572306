//! The state of one message: which tasks are done, and how often the others were tried.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::sink::Reason;

/// How far a task has come for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not done yet.
    #[default]
    Pending,
    /// Done: never run again.
    Done,
    /// Its handler rejected the message.
    Rejected,
    /// It failed as often as it may.
    Exhausted,
    /// It was removed from the consumer before it was done.
    Abandoned,
}

impl Status {
    /// Whether it is not run any more.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        !matches!(self, Self::Pending)
    }
}

/// The state of a task for one message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskState {
    /// How far it has come.
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    pub status: Status,
    /// How often it was tried in vain.
    #[serde(rename = "n", default, skip_serializing_if = "is_default")]
    pub attempts: u32,
    /// The last error, or the reason of its end.
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    pub error: Option<String>,
    /// Steps that are done.
    #[serde(rename = "p", default, skip_serializing_if = "is_default")]
    pub steps: BTreeSet<String>,
    /// Not to be tried before this time, in milliseconds since 1970.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub due_ms: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The state of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageState {
    /// Its tasks, by name.
    pub tasks: BTreeMap<String, TaskState>,
    /// The task that was about to run when this was written: if it still says so on the next delivery, the process was
    /// killed by it.
    pub running: Option<String>,
    /// An earlier delivery of its batch was killed, and nobody knows by which message.
    pub lost: bool,
    /// How often it is known to have killed its process: then it runs alone.
    pub kills: u32,
    /// It is finished, and with the dead letters.
    pub dead: Option<Reason>,
    /// The last delivery that ended as it should, where the source counts deliveries.
    pub seen: u32,
    /// The extractor found other messages beside it in the same bytes: its end is not theirs.
    pub many: bool,
}

impl MessageState {
    /// What becomes of this run's work when another has written since it began: nobody's work is undone, and every
    /// attempt counts.
    #[must_use]
    pub fn merge(current: &Self, base: &Self, now: &Self) -> Self {
        let mut merged = current.clone();
        for (name, ours) in &now.tasks {
            let before = base.tasks.get(name).map_or(0, |task| task.attempts);
            let made = ours.attempts.saturating_sub(before);
            let theirs = merged.tasks.entry(name.clone()).or_default();
            theirs.attempts = theirs.attempts.saturating_add(made);
            theirs.steps.extend(ours.steps.iter().cloned());
            let settled = theirs.status == Status::Done
                || (theirs.status.is_ended() && ours.status != Status::Done);
            if !settled {
                theirs.status = ours.status;
                theirs.error.clone_from(&ours.error);
                theirs.due_ms = ours.due_ms;
            }
        }
        merged.running.clone_from(&now.running);
        merged.lost = now.lost;
        merged.kills = current.kills.max(now.kills);
        merged.dead = current.dead.or(now.dead);
        merged.seen = current.seen.max(now.seen);
        merged.many = current.many || now.many;
        merged
    }

    /// Whether it says nothing that is worth a row.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { many: self.many, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: Status, attempts: u32) -> MessageState {
        let state = TaskState { status, attempts, ..TaskState::default() };
        MessageState { tasks: BTreeMap::from([("t".to_owned(), state)]), ..Default::default() }
    }

    #[test]
    fn a_stale_writer_undoes_nothing_and_every_attempt_counts() {
        let base = task(Status::Pending, 1);
        let merged =
            MessageState::merge(&task(Status::Pending, 2), &base, &task(Status::Pending, 2));
        assert_eq!(merged.tasks["t"].attempts, 3);
        let merged = MessageState::merge(&task(Status::Done, 1), &base, &task(Status::Pending, 2));
        assert_eq!(merged.tasks["t"].status, Status::Done);
        let merged = MessageState::merge(&task(Status::Rejected, 1), &base, &task(Status::Done, 1));
        assert_eq!(merged.tasks["t"].status, Status::Done);
        let dead = MessageState { dead: Some(Reason::Rejected), ..task(Status::Rejected, 1) };
        let merged = MessageState::merge(&dead, &base, &task(Status::Pending, 2));
        assert_eq!(merged.dead, Some(Reason::Rejected));
        assert_eq!(merged.tasks["t"].status, Status::Rejected);
    }
}
