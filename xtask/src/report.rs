//! How checks and steps end, and the lines that say so.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// How one check or step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It ran and found nothing wrong.
    Ok,
    /// It found problems; each line names one.
    Failed(Vec<String>),
    /// It could not run, and this is why.
    Skipped(String),
}

impl Outcome {
    /// A failure with one line.
    pub(crate) fn failed(problem: impl Into<String>) -> Self {
        Self::Failed(vec![problem.into()])
    }

    /// Ok when the list is empty.
    pub(crate) fn from_problems(problems: Vec<String>) -> Self {
        if problems.is_empty() { Self::Ok } else { Self::Failed(problems) }
    }

    /// Whether the run as a whole must fail.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// A check or step that ended.
pub(crate) struct Finished {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

impl Finished {
    /// Runs something and times it. An error counts as a failure.
    pub(crate) fn run(name: &'static str, work: impl FnOnce() -> Result<Outcome>) -> Self {
        let started = Instant::now();
        let outcome = work().unwrap_or_else(|error| Outcome::failed(format!("{error:#}")));
        Self { name, outcome, took: started.elapsed() }
    }

    /// `ok       format            0.4 s`, then a line for each problem or for the reason.
    pub(crate) fn lines(&self) -> String {
        let (word, details) = match &self.outcome {
            Outcome::Ok => ("ok", Vec::new()),
            Outcome::Failed(problems) => ("FAILED", problems.clone()),
            Outcome::Skipped(reason) => ("SKIPPED", vec![reason.clone()]),
        };
        let mut text = format!("{word:<8} {:<24} {:>7.1} s", self.name, self.took.as_secs_f64());
        for detail in details.iter().flat_map(|detail| detail.lines()) {
            text.push_str("\n           ");
            text.push_str(detail);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_failure_that_says_what_went_wrong() {
        let finished = Finished::run("thing", || anyhow::bail!("no such thing"));
        assert_eq!(finished.outcome, Outcome::failed("no such thing"));
        assert!(finished.outcome.is_failure());
        assert!(finished.lines().starts_with("FAILED   thing"));
        assert!(finished.lines().ends_with("no such thing"));
    }

    #[test]
    fn a_skip_shows_its_reason_and_is_no_failure() {
        let finished = Finished::run("thing", || Ok(Outcome::Skipped("no Java".into())));
        assert!(!finished.outcome.is_failure());
        assert!(finished.lines().contains("SKIPPED"));
        assert!(finished.lines().contains("no Java"));
    }
}
