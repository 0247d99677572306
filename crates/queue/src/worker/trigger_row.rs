//! The row that says whether a run is under way.
//!
//! In the partition `<client>#trigger`, under `run`:
//!
//! | attribute | |
//! |---|---|
//! | `state` | `idle`, `wanted` (somebody was told to start a run) or `running` |
//! | `generation` | rises with each wake-up that the run under way must notice |
//! | `seen` | the generation that the run under way has noticed: it looks at the queue after that |
//! | `runner` | who runs, in hexadecimal |
//! | `until` | when the state goes stale, in milliseconds since 1970: whoever was told or runs is then taken for dead |

use millpond_store::{Attributes, Item, Result, StoreError, Timestamp};

use crate::rows::Step;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RunState {
    #[default]
    Idle,
    Wanted,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TriggerRow {
    pub state: RunState,
    pub generation: i64,
    pub seen: i64,
    pub runner: u64,
    pub until: Timestamp,
}

impl TriggerRow {
    pub fn of(item: Option<&Item>) -> Result<Self> {
        item.map_or_else(|| Ok(Self::default()), Self::read)
    }

    fn read(item: &Item) -> Result<Self> {
        let corrupt = |what| StoreError::corrupt(format!("trigger {}", item.key), what);
        let attributes = &item.attributes;
        let state = match attributes.text("state")? {
            "idle" => RunState::Idle,
            "wanted" => RunState::Wanted,
            "running" => RunState::Running,
            _ => return Err(corrupt("its state is unknown")),
        };
        let runner = u64::from_str_radix(attributes.text("runner")?, 16);
        let until = u64::try_from(attributes.number("until")?);
        Ok(Self {
            state,
            generation: attributes.number("generation")?,
            seen: attributes.number("seen")?,
            runner: runner.map_err(|_| corrupt("its runner cannot be read"))?,
            until: Timestamp::from_millis(until.map_err(|_| corrupt("its time makes no sense"))?),
        })
    }

    /// Puts the row; it never ends by itself, since a generation must not come again.
    pub fn put<T>(&self, answer: T) -> Step<T> {
        let state = match self.state {
            RunState::Idle => "idle",
            RunState::Wanted => "wanted",
            RunState::Running => "running",
        };
        let attributes = Attributes::new()
            .with("state", state)
            .with("generation", self.generation)
            .with("seen", self.seen)
            .with("runner", format!("{:016x}", self.runner))
            .with("until", i64::try_from(self.until.as_millis()).unwrap_or(i64::MAX));
        Step::Put(attributes, None, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::{Key, Version};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn rows_round_trip(state in 0..3_u8, generation in any::<i64>(), seen in any::<i64>(), runner in any::<u64>(), until in 0..=i64::MAX.unsigned_abs()) {
            let state = [RunState::Idle, RunState::Wanted, RunState::Running][usize::from(state)];
            let until = Timestamp::from_millis(until);
            let row = TriggerRow { state, generation, seen, runner, until };
            let Step::Put(attributes, expiry, ()) = row.put(()) else { unreachable!() };
            let key = Key::new("p", b"s".to_vec()).unwrap();
            let item = Item { key, attributes, version: Version::from_u64(1), expiry };
            prop_assert_eq!(TriggerRow::of(Some(&item)).unwrap(), row);
        }
    }
}
