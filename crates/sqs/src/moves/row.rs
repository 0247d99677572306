//! The row of a move task.
//!
//! | partition | sort key | attribute |
//! |---|---|---|
//! | `sqs-moves/REGION/ACCOUNT/NAME` of the source | when it began, ms since 1970, 8 bytes, and 8 of chance | `row`: JSON, the fields below |
//! | `sqs-moves` | `REGION/ACCOUNT/NAME` of a source that has a running task | nothing: an index |

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use millpond_store::{
    Attributes, Expect, Expiry, Item, Key, StoreError, Timestamp, Version, Write,
};
use serde::{Deserialize, Serialize};

use crate::limits::MOVE_KEPT;
use crate::place::Place;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Running,
    Completed,
    Cancelling,
    Cancelled,
    Failed,
}

impl Status {
    /// Whether somebody works on it.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Cancelling)
    }
}

/// A move task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub status: Status,
    pub started_ms: u64,
    /// Tells tasks of the same moment apart.
    pub chance: u64,
    /// The ARN that messages go to; none when each goes back to where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Most messages a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    pub moved: u64,
    pub to_move: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The node that works on it, and when it was last heard of.
    pub node: u64,
    pub heard_ms: u64,
}

impl Task {
    pub fn key(&self, source: &Place) -> Result<Key, StoreError> {
        let mut sort = self.started_ms.to_be_bytes().to_vec();
        sort.extend(self.chance.to_be_bytes());
        Key::new(partition(source), sort)
    }

    pub fn put(
        &self,
        source: &Place,
        expect: Expect,
        version: Version,
    ) -> Result<Write, StoreError> {
        let text = serde_json::to_string(self).expect("a task is plain data");
        let put = Write::put(
            self.key(source)?,
            Attributes::new().with("row", text.as_str()),
            expect,
            version,
        );
        Ok(if self.status.is_active() {
            put
        } else {
            put.expires(Expiry::at(Timestamp::from_millis(self.heard_ms).plus(MOVE_KEPT)))
        })
    }

    pub fn read(item: &Item) -> Result<Self, StoreError> {
        serde_json::from_str(item.attributes.text("row")?).map_err(|error| {
            StoreError::corrupt(format!("move task {}", item.key), error.to_string())
        })
    }
}

/// The partition with the tasks of a source.
pub fn partition(source: &Place) -> String {
    format!("{INDEX}/{}/{}/{}", source.region, source.account, source.name)
}

/// The partition that lists sources with a running task.
pub const INDEX: &str = "sqs-moves";

/// Where a source is listed.
pub fn index_key(source: &Place) -> Result<Key, StoreError> {
    Key::new(INDEX, source.arn().into_bytes())
}

/// What a client shows to cancel a task.
pub fn handle_of(source: &Place, task: &Task) -> String {
    let text = format!("{}/{:016x}/{}", task.started_ms, task.chance, source.arn());
    URL_SAFE_NO_PAD.encode(text)
}

/// The source and the task that a handle is for: when it began, and its chance.
pub fn place_of_handle(handle: &str) -> Option<(Place, u64, u64)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(handle).ok()?).ok()?;
    let (started, rest) = text.split_once('/')?;
    let (chance, arn) = rest.split_once('/')?;
    let chance = u64::from_str_radix(chance, 16).ok()?;
    Some((Place::of_arn(arn)?, started.parse().ok()?, chance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn tasks_and_handles_round_trip(
            numbers in any::<[u64; 6]>(), rate in any::<Option<u64>>(), failure in any::<Option<String>>(),
        ) {
            let [started_ms, chance, moved, to_move, node, heard_ms] = numbers;
            let place = Place::of_stored("dead").unwrap();
            let status = Status::Running;
            let destination = Some(place.arn());
            let task = Task {
                status, started_ms, chance, destination, rate, moved, to_move, failure, node, heard_ms,
            };
            let put = task.put(&place, Expect::Absent, Version::from_u64(1)).unwrap();
            prop_assert_eq!(Task::read(&put.item().unwrap()).unwrap(), task.clone());
            prop_assert_eq!(place_of_handle(&handle_of(&place, &task)), Some((place, started_ms, chance)));
        }

        #[test]
        fn any_other_handle_is_refused(text in ".{0,60}") {
            let _ = place_of_handle(&text);
        }
    }
}
