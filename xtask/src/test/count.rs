//! Runs `cargo test`, shows all it says, and counts what it reports.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::report::Outcome;

/// Tests over all runs of `cargo test` so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    /// Runs one `cargo test`, passing its output on as it comes, and adds up its `test result:` lines.
    /// Having run no test at all is a failure: it is what a wrong filter looks like.
    pub(crate) fn run(&mut self, cargo: &mut Command) -> Result<Outcome> {
        self.run_showing(cargo, &mut std::io::stdout().lock())
    }

    fn run_showing(&mut self, cargo: &mut Command, shown: &mut impl Write) -> Result<Outcome> {
        let before = *self;
        let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo test")?;
        let output = child.stdout.take().context("cargo test has no output")?;
        for line in BufReader::new(output).split(b'\n') {
            let line = line.context("cannot read the output of cargo test")?;
            shown.write_all(&line)?;
            shown.write_all(b"\n")?;
            self.add(&String::from_utf8_lossy(&line));
        }
        let status = child.wait()?;
        Ok(if !status.success() {
            Outcome::failed(format!(
                "{} tests failed; cargo test: {status}",
                self.failed - before.failed
            ))
        } else if self.passed == before.passed {
            Outcome::failed("no test ran")
        } else {
            Outcome::Ok
        })
    }

    /// Adds what a line reports, if it is a `test result:`.
    pub(super) fn add(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix("test result:") else {
            return;
        };
        let figure = |word: &str| {
            result
                .split([';', '.'])
                .filter_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
                .sum::<u64>()
        };
        self.passed += figure("passed");
        self.failed += figure("failed");
        self.skipped += figure("ignored");
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up_and_other_lines_do_not_count() {
        let mut counts = Counts::default();
        counts.add("running 3 tests");
        counts.add("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s");
        counts.add("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s");
        counts.add("7 passed; 7 failed");
        assert_eq!(counts, Counts { passed: 7, failed: 2, skipped: 1 });
        assert_eq!(counts.to_string(), "7 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn a_run_without_tests_and_a_failing_run_are_failures() {
        let mut counts = Counts::default();
        let mut shown = Vec::new();
        let mut nothing = Command::new("true");
        let outcome = counts.run_showing(&mut nothing, &mut shown).expect("a program that runs");
        assert_eq!(outcome, Outcome::failed("no test ran"));

        let mut failing = Command::new("sh");
        let said = "test result: FAILED. 1 passed; 1 failed; 0 ignored";
        failing.args(["-c", &format!("echo '{said}'; exit 101")]);
        let outcome = counts.run_showing(&mut failing, &mut shown).expect("a program that runs");
        assert!(outcome.is_failure());
        assert_eq!(counts, Counts { passed: 1, failed: 1, skipped: 0 });
        assert_eq!(String::from_utf8_lossy(&shown), format!("{said}\n"));
    }
}
