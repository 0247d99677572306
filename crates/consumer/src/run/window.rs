//! Tumbling windows: what is gathered of finished messages, and what is done with it at the end.
//!
//! Lambda keeps the state that it is answered with, and gives it to the next batch. After a partial answer everything from one
//! record on comes again, after a failed one all of it, with the state that was before. So exactly the messages that do not
//! come again are in the state of an answer, and none is in it twice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::Unfinished;
use super::batch::Batch;
use super::entry::Entry;
use crate::limits::WINDOW_STATE_BYTES_MAX;
use crate::message::{Attempt, Message};
use crate::outcome::cut;
use crate::report::Report;
use crate::sink::Reason;
use crate::task::Fold;

impl Batch<'_> {
    /// Gathers what is done so far to find out what cannot be gathered, and does what is to be done at the window's end.
    pub(super) async fn gather(&mut self, report: &mut Report) {
        let Some(window) = self.window.clone() else { return };
        let Some(fold) = self.settings.windows.fold.clone() else { return };
        let done = self.done(|_| true);
        let messages: Vec<&Message> = done.iter().map(|(_, message)| message).collect();
        let (state, refused) = fold_all(&fold, &window.state(), &messages);
        for (at, error) in refused {
            let entry = done.get(at).and_then(|(place, _)| self.entries.get(*place));
            if let Some(entry) = entry {
                entry.progress().verdict = Some((Reason::Rejected, format!("window: {error}")));
            }
        }
        if !window.ends() || self.entries.iter().any(|entry| self.is_open(entry)) {
            return;
        }
        let Some(end) = self.settings.windows.end.clone() else { return };
        self.end_window(&window, &end, state, report).await;
    }

    fn is_open(&self, entry: &Entry) -> bool {
        !entry.progress().is_settled(self.settings)
    }

    /// The state to answer with: as it came, and with what does not come again.
    pub(super) fn window_state(
        &self,
        unfinished: &Unfinished,
        report: &mut Report,
    ) -> Option<Box<RawValue>> {
        let window = self.window.as_ref()?;
        let Some(fold) = &self.settings.windows.fold else {
            return Some(window.state_as_it_came());
        };
        let done = self.done(|at| !unfinished.comes_again(at));
        if done.is_empty() {
            return Some(window.state_as_it_came());
        }
        let messages: Vec<&Message> = done.iter().map(|(_, message)| message).collect();
        let (state, refused) = fold_all(fold, &window.state(), &messages);
        if !refused.is_empty() {
            report.problem("the fold of the window does not do the same each time".into());
        }
        let state = to_raw_value(&state).unwrap_or_else(|_| window.state_as_it_came());
        if state.get().len() > WINDOW_STATE_BYTES_MAX {
            report.warn(format!(
                "the state of the window has {} bytes: Lambda ends it at {WINDOW_STATE_BYTES_MAX}",
                state.get().len()
            ));
        }
        Some(state)
    }

    /// The messages that all tasks are done for, in order.
    fn done(&self, wanted: impl Fn(usize) -> bool) -> Vec<(usize, Message)> {
        let name: Arc<str> = "window".into();
        let mut done = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(content) = entry.content().filter(|_| wanted(at)) else { continue };
            if entry.progress().is_done(self.settings) {
                let steps = std::collections::BTreeSet::new();
                let attempt = Attempt::new(&name, 1, &self.budget.time(), steps);
                done.push((at, Message::new(Arc::clone(content), attempt)));
            }
        }
        done.sort_by(|(_, a), (_, b)| a.order(b));
        done
    }
}

/// Adds messages to a state. Those for which the fold panics are left out, and named with the panic's text.
fn fold_all(fold: &Fold, state: &Value, messages: &[&Message]) -> (Value, Vec<(usize, String)>) {
    let add = |state: &mut Value, message: &Message| {
        catch_unwind(AssertUnwindSafe(|| fold(state, message)))
    };
    let mut folded = state.clone();
    if messages.iter().all(|message| add(&mut folded, message).is_ok()) {
        return (folded, Vec::new());
    }
    // One of them broke off in the middle: once more, with a copy before each.
    let (mut folded, mut refused) = (state.clone(), Vec::new());
    for (at, message) in messages.iter().enumerate() {
        let before = folded.clone();
        if let Err(payload) = add(&mut folded, message) {
            folded = before;
            let text = super::call::text(payload.as_ref());
            refused.push((at, cut(&format!("the fold panicked: {text}"))));
        }
    }
    (folded, refused)
}
