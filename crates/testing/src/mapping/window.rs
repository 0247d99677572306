//! Tumbling windows: which batch is of which, and what is carried on.

use millpond_consumer::{Message, Window};
use serde_json::{Value, json};

use super::invoke::{Function, number_of};
use super::settings::Settings;

/// What is delivered at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    pub records: Vec<u64>,
    /// It is the last of its window.
    pub is_final: bool,
    /// The window is cut short.
    pub is_early: bool,
}

/// The window of a lane.
#[derive(Debug)]
pub struct Windows {
    size: Option<u64>,
    lane: u64,
    /// The window that has begun, and its state.
    open: Option<u64>,
    state: Value,
}

impl Windows {
    pub fn new(settings: &Settings, lane: u64) -> Self {
        Self { size: settings.window(), lane, open: None, state: json!({}) }
    }

    /// Whether the end of the open window is all that is left of it before this record.
    pub fn is_over(&self, next: Option<u64>) -> bool {
        let (Some(size), Some(open)) = (self.size, self.open) else { return false };
        next.is_none_or(|next| next / size != open)
    }

    /// How many of these records are of one window.
    pub fn stretch(&self, mut records: impl Iterator<Item = u64>) -> usize {
        let Some(size) = self.size else { return usize::MAX };
        let Some(first) = records.next() else { return 0 };
        1 + records.take_while(|n| n / size == first / size).count()
    }

    /// A delivery begins: the fields of its event.
    pub fn begin(&mut self, delivery: &Delivery, event: &mut Value) {
        let Some(size) = self.size else { return };
        if let Some(first) = delivery.records.first() {
            self.open = Some(first / size);
        }
        let index = self.open.expect("a window that began");
        event["window"] = json!({"start": index.to_string(), "end": (index + 1).to_string()});
        event["state"] = self.state.clone();
        event["shardId"] = format!("lane-{}", self.lane).into();
        event["isFinalInvokeForWindow"] = delivery.is_final.into();
        event["isWindowTerminatedEarly"] = delivery.is_early.into();
    }

    /// Whether an answer is one: without a state it is a failed invocation.
    pub const fn accepts(&self, state: Option<&Value>) -> bool {
        self.size.is_none() || state.is_some()
    }

    /// A delivery was answered. What comes again as a whole leaves the state as it was: an answer may say so, and need not.
    pub fn answered(&mut self, function: &Function, state: Option<Value>, whole: bool) {
        if whole && function.rng.chance(0.5) {
            return;
        }
        if let (Some(_), Some(state)) = (self.size, state) {
            self.state = state;
        }
    }

    /// A delivery is finished, or given up. Says what is to be delivered next, if anything is.
    pub fn ended(
        &mut self,
        function: &Function,
        delivery: &Delivery,
        well: bool,
    ) -> Option<Delivery> {
        self.size?;
        let index = self.open?;
        if delivery.is_final || delivery.is_early {
            // Records that are given up leave the window to its end.
            if !well && !delivery.records.is_empty() {
                return None;
            }
            let gathered = self.state["n"].as_array().cloned().unwrap_or_default();
            let gathered = gathered.iter().map(|n| n.as_u64().unwrap()).collect();
            function.truth.closed(self.lane, index, well.then_some(gathered));
            self.state = json!({});
            if delivery.is_final {
                self.open = None;
            }
            return None;
        }
        let cut_short = well && function.rng.chance(0.1);
        cut_short.then(|| Delivery { is_early: true, ..Delivery::default() })
    }
}

/// Gathers the numbers of messages.
pub fn fold(state: &mut Value, message: &Message) {
    let state = state.as_object_mut().expect("an object");
    let numbers = state.entry("n").or_insert_with(|| json!([]));
    numbers.as_array_mut().expect("a list").push(number_of(message).into());
}

pub fn index_of(window: &Window) -> u64 {
    window.start.parse().expect("planned windows")
}
