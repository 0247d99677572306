//! Tumbling windows: which batch is of which, and what is carried on.

use std::collections::BTreeMap;

use millpond_consumer::{DeadLetter, Message, Reason, Window};
use serde_json::{Value, json};

use super::invoke::{Function, number_of};
use super::plan::{Behaviour, Plan};
use super::settings::Settings;
use super::truth::Truth;

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
    arn: &'static str,
    /// The window that has begun, and its state.
    open: Option<u64>,
    state: Value,
}

impl Windows {
    pub fn new(settings: &Settings, lane: u64) -> Self {
        let (size, arn) = (settings.window(), super::stream::arn(settings));
        Self { size, lane, arn, open: None, state: json!({}) }
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
        event["eventSourceARN"] = self.arn.into();
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

/// What the end of a window is called: each part of one that is cut short has its own.
pub fn end_name(window: &Window) -> String {
    format!("end of {}", window.idempotency_key())
}

/// Windows whose end never works are put aside, each with what was gathered in it, and others are not.
pub fn check_ends(settings: &Settings, plan: &Plan, truth: &Truth, letters: &[DeadLetter]) {
    let mut put_aside: BTreeMap<(u64, u64), Vec<Value>> = BTreeMap::new();
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    let say = |what: &str| format!("{what} of {settings:?}\n{}", truth.trace());
    for letter in letters {
        let window: Value = serde_json::from_slice(&letter.payload().unwrap()).unwrap();
        let index: u64 = window["window"]["start"].as_str().unwrap().parse().unwrap();
        let lane = window["shardId"].as_str().unwrap().trim_start_matches("lane-").parse().unwrap();
        let fails =
            matches!(plan.end(index, settings.kills()), Behaviour::Never | Behaviour::Kills);
        assert!(fails, "{}", say(&format!("the end of window {index} works")));
        assert_eq!(letter.reason, Reason::Exhausted, "{}", say("a window"));
        let attempts = letter.tasks["window/end"].attempts;
        let enough = attempts == settings.attempts
            || settings.faults().is_some() && attempts > settings.attempts;
        assert!(enough, "{}", say(&format!("{attempts} attempts at window {index}")));
        *ids.entry(letter.dedupe_id.clone()).or_default() += 1;
        put_aside.entry((lane, index)).or_default().push(window["state"]["n"].clone());
    }
    if settings.is_sound() {
        assert!(ids.values().all(|letters| *letters == 1), "{}", say("letters that came twice"));
    }
    let mut calls: BTreeMap<(u64, String), u32> = BTreeMap::new();
    for call in truth.calls().into_iter().filter(|(_, name)| name.starts_with("end of ")) {
        *calls.entry(call).or_default() += 1;
    }
    for ((index, name), calls) in calls {
        let fails =
            matches!(plan.end(index, settings.kills()), Behaviour::Never | Behaviour::Kills);
        let exact = !fails || !settings.is_sound() || calls == settings.attempts;
        assert!(exact, "{}", say(&format!("{calls} calls of {name}")));
    }
    for ((lane, index), parts) in truth.windows() {
        if !matches!(plan.end(index, settings.kills()), Behaviour::Never | Behaviour::Kills) {
            continue;
        }
        let letters = put_aside.get(&(lane, index)).map(Vec::as_slice).unwrap_or_default();
        for gathered in parts.into_iter().flatten() {
            let found = letters.iter().any(|letter| {
                let letter = letter.as_array().map(Vec::as_slice).unwrap_or_default();
                letter.iter().filter_map(Value::as_u64).eq(gathered.iter().copied())
            });
            assert!(found, "{}", say(&format!("{gathered:?} of window {index} at {lane} is lost")));
        }
    }
}
