//! A step as a process of its own, beside another one: what it says is kept in a file until it has ended, and how it ended is in
//! another.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::count::Counts;
use super::steps::{self, Step};
use crate::report::{Finished, Outcome};
use crate::workspace::Workspace;

/// Where both files are, below the root. Who wonders what a step does can look at its log while it runs.
const DIRECTORY: &str = "target/steps";

/// Run one step of `cargo xtask test`, and write down how it ended.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its name in the summary.
    name: String,
    /// The file to write to.
    #[arg(long)]
    ending: PathBuf,
}

/// What a step leaves to the process that started it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ending {
    outcome: Outcome,
    counts: Counts,
}

/// A step that ran beside another one.
pub(super) struct Done {
    pub(super) finished: Finished,
    pub(super) counts: Counts,
    /// All that it said.
    pub(super) said: String,
}

impl Done {
    /// A step that did not have to run.
    pub(super) fn without_running(name: &'static str, outcome: Outcome) -> Self {
        let finished = Finished::run(name, || Ok(outcome));
        Self { finished, counts: Counts::default(), said: String::new() }
    }
}

/// The process for a step: runs it, and leaves its ending. `false` when it failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let Some(step) = steps::named(&args.name) else {
        bail!("there is no step `{}`", args.name);
    };
    let mut counts = Counts::default();
    let outcome = Finished::run(step.name, || step.run(workspace, &mut counts)).outcome;
    let well = !outcome.is_failure();
    fs::write(&args.ending, serde_json::to_vec(&Ending { outcome, counts })?)?;
    Ok(well)
}

/// Starts a process for the step and waits for its end. `program` is this tool.
pub(super) fn run_step(workspace: &Workspace, program: &Path, step: &Step) -> Done {
    let place = Place::of(workspace, step.name);
    let mut command = workspace.command(program);
    // The process finds the root by it, as this one did.
    command.env("CARGO_MANIFEST_DIR", workspace.path("xtask"));
    command.args(["step", step.name, "--ending"]).arg(&place.ending);
    place.run(step.name, &mut command)
}

/// The two files of a step.
struct Place {
    log: PathBuf,
    ending: PathBuf,
}

impl Place {
    fn of(workspace: &Workspace, name: &str) -> Self {
        let directory = workspace.path(DIRECTORY);
        Self { log: directory.join(format!("{name}.log")), ending: directory.join(name) }
    }

    fn run(&self, name: &'static str, command: &mut Command) -> Done {
        let mut counts = Counts::default();
        let finished = Finished::run(name, || {
            let ending = self.end(command)?;
            counts = ending.counts;
            Ok(ending.outcome)
        });
        // A file rather than a pipe: whatever the step has left running cannot hold it open.
        let said = fs::read(&self.log).unwrap_or_default();
        Done { finished, counts, said: String::from_utf8_lossy(&said).into_owned() }
    }

    fn end(&self, command: &mut Command) -> Result<Ending> {
        if let Some(directory) = self.log.parent() {
            fs::create_dir_all(directory)?;
        }
        // What an earlier run has left must not be taken for this one's.
        if self.ending.exists() {
            fs::remove_file(&self.ending)?;
        }
        let log = File::create(&self.log)
            .with_context(|| format!("cannot write {}", self.log.display()))?;
        command.stdin(std::process::Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let status = command.status().context("cannot run the step")?;
        let Ok(left) = fs::read(&self.ending) else {
            bail!("the step ended without saying how: {status}");
        };
        let ending: Ending = serde_json::from_slice(&left).context("the step's ending")?;
        if status.success() == ending.outcome.is_failure() {
            bail!("the step says {:?}, but its process ended otherwise: {status}", ending.outcome);
        }
        Ok(ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script as a step; `$0` is the file for its ending.
    fn step(name: &'static str, script: &str) -> Done {
        let directory =
            std::env::temp_dir().join(format!("millpond-steps-{}", std::process::id())).join(name);
        let place = Place { log: directory.join("log"), ending: directory.join("ending") };
        // Something from an earlier run.
        fs::create_dir_all(&directory).unwrap();
        fs::write(&place.ending, ending(&Outcome::Ok, "test result: ok. 9 passed")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&place.ending);
        let done = place.run("thing", &mut command);
        fs::remove_dir_all(&directory).unwrap();
        done
    }

    fn ending(outcome: &Outcome, counted: &str) -> String {
        let mut counts = Counts::default();
        counts.add(counted);
        serde_json::to_string(&Ending { outcome: outcome.clone(), counts }).unwrap()
    }

    #[test]
    fn what_a_step_says_and_counts_and_why_it_was_skipped_come_through() {
        let reason = Outcome::Skipped("no Java, it's \"missing\"".to_owned());
        let left = ending(&reason, "test result: ok. 3 passed; 0 failed; 1 ignored")
            .replace('\'', "'\\''");
        let done = step("skipped", &format!("echo out; echo err >&2; echo '{left}' > $0"));
        assert_eq!(done.finished.outcome, reason);
        assert_eq!(done.counts.to_string(), "3 passed, 0 failed, 1 skipped");
        assert_eq!(done.said, "out\nerr\n");
    }

    #[test]
    fn a_failure_names_its_problems() {
        let failed = Outcome::Failed(vec!["one".to_owned(), "two".to_owned()]);
        let left = ending(&failed, "test result: FAILED. 3 passed; 2 failed");
        let done = step("failed", &format!("echo '{left}' > $0; exit 1"));
        assert_eq!(done.finished.outcome, failed);
        assert_eq!(done.counts.to_string(), "3 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn a_step_that_dies_is_a_failure_whatever_an_earlier_one_left() {
        let done = step("died", "echo before; kill -9 $$");
        assert!(done.finished.outcome.is_failure(), "{:?}", done.finished.outcome);
        assert!(done.finished.lines().contains("without saying how"));
        assert_eq!(done.said, "before\n");
        assert_eq!(done.counts, Counts::default());
    }

    #[test]
    fn an_ending_that_the_process_contradicts_is_a_failure() {
        let left = ending(&Outcome::Ok, "");
        let done = step("contradicted", &format!("echo '{left}' > $0; exit 1"));
        assert!(done.finished.outcome.is_failure(), "{:?}", done.finished.outcome);
    }

    #[test]
    fn what_a_step_leaves_running_does_not_hold_up_the_others() {
        let left = ending(&Outcome::Ok, "");
        let done = step("daemon", &format!("sleep 30 & echo $!; echo '{left}' > $0"));
        assert_eq!(done.finished.outcome, Outcome::Ok);
        assert!(done.finished.took.as_secs() < 25, "{:?}", done.finished.took);
        Command::new("kill").arg(done.said.trim()).status().unwrap();
    }
}
