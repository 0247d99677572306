//! What a check of the table found.

use std::fmt;

use millpond_store::{Result, StoreError};

/// What one check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// It is as it should be.
    Passed,
    /// It is not.
    Failed {
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What was looked at.
    pub what: String,
    /// What was found.
    pub finding: Finding,
}

impl Check {
    /// The check whose result is `outcome`. A wrong set-up is a finding; any other error means that the check
    /// could not be made.
    pub(super) fn of(what: impl Into<String>, outcome: Result<()>) -> Result<Self> {
        let finding = match outcome {
            Ok(()) => Finding::Passed,
            Err(StoreError::Misconfigured { problem, remedy }) => {
                Finding::Failed { problem, remedy }
            }
            Err(other) => return Err(other),
        };
        let what = what.into();
        Ok(Self { what, finding })
    }
}

/// What [`verify`](super::DynamoDbAdmin::verify) found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableReport {
    /// The table.
    pub table: String,
    /// Everything that was looked at.
    pub checks: Vec<Check>,
}

impl TableReport {
    /// Whether all is as it should be.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.checks.iter().all(|check| check.finding == Finding::Passed)
    }

    /// Nothing when all is as it should be.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] with everything that is wrong, and what to do about each.
    pub fn require(&self) -> Result<()> {
        let (problems, remedies): (Vec<&str>, Vec<&str>) = self
            .checks
            .iter()
            .filter_map(|check| match &check.finding {
                Finding::Passed => None,
                Finding::Failed { problem, remedy } => Some((problem.as_str(), remedy.as_str())),
            })
            .unzip();
        if problems.is_empty() {
            return Ok(());
        }
        Err(StoreError::misconfigured(problems.join("; "), remedies.join("; ")))
    }
}

impl fmt::Display for TableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {}", self.table)?;
        for Check { what, finding } in &self.checks {
            match finding {
                Finding::Passed => writeln!(f, "  ok      {what}")?,
                Finding::Failed { problem, remedy } => {
                    writeln!(f, "  FAILED  {what}: {problem}\n          {remedy}")?;
                }
            }
        }
        Ok(())
    }
}
