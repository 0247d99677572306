//! Handlers that work in steps, and whether a step is repeated only where a kill may do that.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_consumer::Message;
use millpond_consumer::limits::STEPS_SAVED_EVERY;

use super::invoke::Function;
use super::plan::Plan;
use super::settings::Settings;
use super::truth::{Process, Step, Truth};

/// The time of a write.
const WRITE: Duration = Duration::from_secs(1);

impl Function {
    /// Takes the first `count` steps.
    pub async fn take_steps(&self, message: &Message, (n, task): (u64, &str), count: u64) {
        for step in 0..count {
            let work = async {
                let (process, at) = (self.process, self.environment.now());
                self.truth.note(format_args!("  {task} {n} step {step}"));
                self.truth.stepped(Step { n, task: task.to_owned(), step, process, at });
                Ok::<_, String>(())
            };
            message.step(&step.to_string(), work).await.expect("it cannot fail");
        }
    }

    /// Takes as many steps as a call is to take that fails, and begins the next in vain. Says how long to wait then.
    pub async fn fail_in_steps(
        &self,
        plan: &Plan,
        message: &Message,
        (n, task, call): (u64, &str, u32),
    ) -> Duration {
        let (count, wait) = plan.fails_at(n, task, call);
        self.take_steps(message, (n, task), count).await;
        if count < plan.steps(n, task) {
            let in_vain = message.step(&count.to_string(), async { Err::<(), _>("planned") }).await;
            // An earlier attempt may have come further.
            self.truth.note(format_args!("  {task} {n} step {count} in vain: {in_vain:?}"));
        }
        wait
    }
}

/// A step is repeated only when the process that took it was killed, and then only if its task had ended, or it was taken just
/// before; and never when that process ran carefully, since the one before it was killed with the same batch.
pub fn check(settings: &Settings, truth: &Truth) {
    let processes = truth.processes();
    let mut last: BTreeMap<(u64, String, u64), Step> = BTreeMap::new();
    for again in truth.steps() {
        let before = last.insert((again.n, again.task.clone(), again.step), again.clone());
        let Some(before) = before else { continue };
        // A step whose save failed is repeated, kill or no kill.
        let excuse = settings.faults().is_some()
            // Who has the same work at the same time repeats it.
            || settings.stale
            || processes[before.process].killed.is_some_and(|killed| {
                let ended = truth.has_ended(before.process, before.n, &before.task);
                let recent = killed.since(before.at) <= STEPS_SAVED_EVERY + WRITE;
                !is_careful(&processes, before.process) && (ended || recent)
            });
        assert!(
            before.process != again.process && excuse,
            "{before:?} was repeated by {again:?} in {settings:?}\n{}",
            truth.trace()
        );
    }
}

/// Whether a process must have run carefully: the one before it in its lane had the same batch, and was killed.
fn is_careful(processes: &[Process], process: usize) -> bool {
    let lane = |process: &Process| process.label.split(['D', '[']).next().map(str::to_owned);
    let this = &processes[process];
    let before = processes[..process].iter().rev().find(|before| lane(before) == lane(this));
    before.is_some_and(|before| before.label == this.label && before.killed.is_some())
}
