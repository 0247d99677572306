//! `cargo xtask test`: everything that CI runs, as a list of steps.

pub(crate) mod beside;
pub(crate) mod count;
mod steps;

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::{Context, Result};

use self::beside::Done;
use self::count::Counts;
use self::steps::{BESIDE, FIRST, SHOWN, Step};
use crate::metadata::Metadata;
use crate::report::Finished;
use crate::workspace::Workspace;
use crate::{clients, dynamodb_local, moto};

/// Run everything that CI runs: tidy, all tests (those of cost among them), long histories against models, the second
/// DynamoDB engine, the AWS emulator, real SQS clients, crashes and simulated worlds.
///
/// Every step runs, also after another failed. Once all is built, what mostly waits (the second engine, the emulator, clients,
/// crashes) runs beside the rest; what such a step said is printed whole when it has ended, and is in `target/steps` meanwhile.
/// The summary at the end says how each one went; what could not run here is SKIPPED with the reason. The last line counts tests.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs all steps; `true` when none failed.
pub(crate) fn run(workspace: &Workspace, _: &Args) -> Result<bool> {
    let started = Instant::now();
    // Asked now: a build in the meantime may put another file in its place.
    let program = std::env::current_exe().context("where is this program?")?;
    let metadata = Metadata::load(workspace)?;
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch(workspace));
        for step in FIRST {
            report.run(workspace, &metadata, step);
        }
        let (sender, ended) = mpsc::channel();
        let (metadata, program) = (&metadata, &program);
        scope.spawn(move || run_beside(workspace, metadata, program, fetching, &sender));
        for step in SHOWN {
            report.run(workspace, metadata, step);
            // Only between the steps that are shown as they run: what belongs together stays together.
            ended.try_iter().for_each(|done| report.add(done, &mut std::io::stdout()));
        }
        ended.iter().for_each(|done| report.add(done, &mut std::io::stdout()));
    });
    println!("\n=== summary ===");
    for step in &report.finished {
        println!("{}", step.lines());
    }
    println!("{:.1} s in all, with steps side by side", started.elapsed().as_secs_f64());
    println!("{}", report.counts);
    Ok(!report.finished.iter().any(|step| step.outcome.is_failure()))
}

/// Fetches what the later steps need, while the first ones keep the processors busy. What fails here fails again in the
/// step that needs it, which says so.
fn fetch(workspace: &Workspace) {
    clients::fetch(workspace);
    let _ = moto::fetch(workspace);
    let _ = dynamodb_local::fetch(workspace);
}

/// Runs the steps that others do not wait for, each as a process of its own.
fn run_beside(
    workspace: &Workspace,
    metadata: &Metadata,
    program: &Path,
    fetching: ScopedJoinHandle<'_, ()>,
    ended: &Sender<Done>,
) {
    let mut fetching = Some(fetching);
    for step in BESIDE {
        if step.is_fetched {
            // A panic there has been printed; the step itself fetches again what is missing.
            fetching.take().map(|thread| thread.join().is_ok());
        }
        let done = match step.missing(metadata) {
            Some(outcome) => Done::without_running(step.name, outcome),
            None => beside::run_step(workspace, program, step),
        };
        // Who listens stays until the last step.
        let _ = ended.send(done);
    }
}

/// What is known so far.
#[derive(Default)]
struct Report {
    finished: Vec<Finished>,
    counts: Counts,
}

impl Report {
    /// Runs a step in this process.
    fn run(&mut self, workspace: &Workspace, metadata: &Metadata, step: &Step) {
        println!("\n=== {} ===", step.name);
        self.finished.push(Finished::run(step.name, || match step.missing(metadata) {
            Some(outcome) => Ok(outcome),
            None => step.run(workspace, &mut self.counts),
        }));
    }

    /// Takes in a step that ran beside others, and shows what it said.
    fn add(&mut self, done: Done, shown: &mut impl Write) {
        // A terminal that is gone is no failure of the step.
        let _ = writeln!(shown, "\n=== {} ===\n{}", done.finished.name, done.said.trim_end());
        self.counts += done.counts;
        self.finished.push(done.finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    #[test]
    fn a_step_that_ran_beside_others_is_shown_whole_counted_and_in_the_summary() {
        let mut report = Report::default();
        report.counts.add("test result: ok. 2 passed; 0 failed; 1 ignored");
        let mut done = Done::without_running("clients", Outcome::Skipped("no Python".to_owned()));
        done.counts.add("test result: FAILED. 3 passed; 4 failed; 5 ignored");
        done.said = "first\nsecond\n".to_owned();
        let mut shown = Vec::new();
        report.add(done, &mut shown);
        assert_eq!(String::from_utf8_lossy(&shown), "\n=== clients ===\nfirst\nsecond\n");
        assert_eq!(report.counts.to_string(), "5 passed, 4 failed, 6 skipped");
        let lines: Vec<String> = report.finished.iter().map(Finished::lines).collect();
        assert!(lines[0].starts_with("SKIPPED  clients") && lines[0].ends_with("no Python"));
    }
}
