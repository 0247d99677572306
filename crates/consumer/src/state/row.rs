//! The row of a message's state.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `fmt` | number | the format, 1 |
//! | `at` | number | when it was written, ms since 1970 |
//! | `tasks` | text | JSON: for each task by name `s` status (missing: pending), `n` attempts, `e` last error, `p` steps done, `d` due, ms since 1970 |
//! | `run` | text | the task that was about to run, in a careful run |
//! | `lost` | number | 1: an earlier delivery was killed by nobody knows which message |
//! | `kills` | number | how often it is known to have killed its process |
//! | `dead` | text | why the message is with the dead letters |
//! | `seen` | number | the last delivery that ended as it should (queues) |
//! | `many` | number | 1: the extractor found other messages in the same bytes |

use std::collections::BTreeMap;

use millpond_store::{Attributes, Timestamp, Value};

use super::message::MessageState;
use crate::sink::Reason;

const FORMAT: i64 = 1;

pub(super) fn encode(state: &MessageState, now: Timestamp) -> Attributes {
    let tasks = serde_json::to_string(&state.tasks).unwrap_or_else(|_| "{}".into());
    let at = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let mut attributes = Attributes::new().with("fmt", FORMAT).with("at", at).with("tasks", tasks);
    if let Some(running) = &state.running {
        attributes.set("run", running.as_str());
    }
    for (name, is_so) in [("lost", state.lost), ("many", state.many)] {
        if is_so {
            attributes.set(name, 1);
        }
    }
    if let Some(reason) = state.dead {
        attributes.set("dead", reason.name());
    }
    for (name, number) in [("kills", state.kills), ("seen", state.seen)] {
        if number > 0 {
            attributes.set(name, i64::from(number));
        }
    }
    attributes
}

pub(super) fn decode(attributes: &Attributes) -> Result<MessageState, String> {
    match attributes.get("fmt") {
        Some(Value::Number(FORMAT)) => {}
        Some(Value::Number(other)) => {
            return Err(format!("its format is {other}, this version reads {FORMAT}"));
        }
        _ => return Err("it has no format".into()),
    }
    let tasks = attributes.text("tasks").map_err(|error| error.to_string())?;
    let tasks: BTreeMap<_, _> =
        serde_json::from_str(tasks).map_err(|error| format!("its tasks are not JSON: {error}"))?;
    let text = |name| match attributes.get(name) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name:?} is not text")),
    };
    let dead = match text("dead")? {
        None => None,
        Some(name) => Some(Reason::from_name(&name).ok_or("its reason is unknown")?),
    };
    let number = |name| match attributes.get(name) {
        None => Ok(0),
        Some(Value::Number(number)) => {
            u32::try_from(*number).map_err(|_| format!("{name:?} is out of range"))
        }
        Some(_) => Err(format!("{name:?} is not a number")),
    };
    let (kills, seen) = (number("kills")?, number("seen")?);
    let (lost, many) = (attributes.get("lost").is_some(), attributes.get("many").is_some());
    Ok(MessageState { tasks, running: text("run")?, lost, kills, dead, seen, many })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, proptest};

    use super::*;
    use crate::state::message::{Status, TaskState};

    fn states() -> impl Strategy<Value = MessageState> {
        let status = (0..5_usize).prop_map(|at| {
            [Status::Pending, Status::Done, Status::Rejected, Status::Exhausted, Status::Abandoned]
                [at]
        });
        let steps = proptest::collection::btree_set("[a-z]{1,8}", 0..4);
        let error = proptest::option::of(".{0,20}");
        let task = (status, any::<u32>(), error, steps, any::<Option<u64>>()).prop_map(
            |(status, attempts, error, steps, due_ms)| TaskState {
                status,
                attempts,
                error,
                steps,
                due_ms,
            },
        );
        let tasks = proptest::collection::btree_map(".{1,12}", task, 0..4);
        let dead = (0..6_usize).prop_map(|at| Reason::ALL.get(at).copied());
        (tasks, proptest::option::of("[a-z]{1,9}"), any::<[bool; 2]>(), dead, any::<[u32; 2]>())
            .prop_map(|(tasks, running, [lost, many], dead, [kills, seen])| MessageState {
                tasks,
                running,
                lost,
                kills,
                dead,
                seen,
                many,
            })
    }

    proptest! {
        #[test]
        fn rows_come_back(state in states()) {
            let row = encode(&state, Timestamp::from_millis(7));
            assert_eq!(decode(&row), Ok(state));
        }
    }

    #[test]
    fn a_finished_message_takes_little() {
        let done = TaskState { status: Status::Done, ..TaskState::default() };
        let tasks = ["index", "notify", "archive"].map(|name| (name.to_owned(), done.clone()));
        let state = MessageState { tasks: tasks.into(), ..MessageState::default() };
        let size = encode(&state, Timestamp::from_millis(1_700_000_000_000)).size();
        assert!(size < 120, "{size} bytes");
    }

    #[test]
    fn strange_rows_are_refused() {
        let row = encode(&MessageState::default(), Timestamp::default());
        assert!(decode(&row.clone().with("fmt", 2)).unwrap_err().contains("format is 2"));
        assert!(decode(&row.clone().with("tasks", "[")).unwrap_err().contains("not JSON"));
        assert!(decode(&row.clone().with("dead", "bored")).is_err());
        assert!(decode(&row.with("seen", -1)).is_err());
        assert!(decode(&Attributes::new()).is_err());
    }
}
