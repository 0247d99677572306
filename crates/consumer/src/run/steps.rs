//! Steps of tasks that are still running: when they are saved.
//!
//! A task's end is saved with its batch. So that a kill does not repeat all steps of long tasks, steps are saved every few
//! seconds while their tasks run, of all messages together; a batch that is done sooner pays nothing. After a kill, when
//! messages run one by one and are written anyway, each step is saved as it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};

use super::batch::Batch;
use super::entry::Entry;
use super::load::place;
use crate::limits::STEPS_SAVED_EVERY;
use crate::source::Scope;
use crate::state::Change;
use crate::task::Task;

/// Where a call asks that its steps be saved.
pub(super) type Asked = mpsc::Receiver<oneshot::Sender<()>>;

impl Batch<'_> {
    /// Waits for a call, and saves its steps when it asks for that. Nothing when all its messages were lost to others.
    pub(super) async fn attend<T>(
        &self,
        task: &Task,
        entries: &[&Entry],
        work: impl Future<Output = T>,
        mut asked: Option<Asked>,
    ) -> Option<T> {
        tokio::pin!(work);
        loop {
            let next = async {
                match &mut asked {
                    Some(asked) => asked.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.lost.all_of(entries) => return None,
                Some(saved) = next => {
                    for entry in entries {
                        self.save_steps(task, entry).await;
                    }
                    let _ = saved.send(());
                }
            }
        }
    }

    /// Saves the steps of a call in a careful run. The row still says that it runs.
    async fn save_steps(&self, task: &Task, entry: &Entry) {
        {
            let mut progress = entry.progress();
            let Some(attempt) = progress.running.clone() else { return };
            progress.task(&task.name).steps = attempt.heard().steps;
            progress.state.running = Some(task.name.to_string());
            progress.state.lost = progress.lost_noted;
        }
        self.save_one(entry).await;
        let mut progress = entry.progress();
        (progress.state.running, progress.state.lost) = (None, false);
    }

    /// Saves the steps of running calls now and then, for as long as it is let.
    pub(super) async fn save_steps_now_and_then(&self) {
        loop {
            self.settings.environment.clock.sleep(STEPS_SAVED_EVERY).await;
            let mut changes: BTreeMap<Arc<Scope>, Vec<(usize, Change)>> = BTreeMap::new();
            for (at, entry) in self.entries.iter().enumerate() {
                if let (Some((scope, _)), Some(change)) = (place(entry), new_steps(entry)) {
                    changes.entry(scope).or_default().push((at, change));
                }
            }
            for (scope, changes) in changes {
                let (places, changes): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
                let sent: Vec<_> = changes.iter().map(|change| change.now.clone()).collect();
                let saved = self.settings.state.save(&self.address(&scope), changes).await;
                for ((entry, sent), saved) in self.pick(&places).zip(sent).zip(saved) {
                    // What another wrote meanwhile is met again, and merged, when the message is saved as a whole.
                    if let Ok(stored) = saved
                        && stored.state == sent
                    {
                        self.saved.fetch_add(1, Ordering::Relaxed);
                        entry.progress().base = Some(stored);
                    }
                }
            }
        }
    }
}

/// What was stored of a message, and with it the steps of its running call that are not. Nothing else of this run goes in:
/// should nobody learn that it was written, an attempt would be counted twice.
fn new_steps(entry: &Entry) -> Option<Change> {
    let position = entry.content()?.position.clone();
    let progress = entry.progress();
    let attempt = progress.running.as_ref()?;
    let base = progress.base.clone();
    let mut now = base.as_ref().map(|base| base.state.clone()).unwrap_or_default();
    let steps = attempt.heard().steps;
    now.many = progress.state.many;
    let task = now.tasks.entry(attempt.task.to_string()).or_default();
    if steps.is_subset(&task.steps) {
        return None;
    }
    task.steps = steps;
    Some(Change { position, base, now })
}
