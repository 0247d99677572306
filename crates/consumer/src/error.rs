//! What can go wrong, by what a caller does about it.

use crate::report::Report;

/// Why a consumer cannot be made. Correct the settings that are named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Something is missing.
    #[error("{setting} is not set: {remedy}")]
    Missing {
        /// The setting.
        setting: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A setting was made twice.
    #[error("{setting} is set twice: to {first} and to {second}")]
    Twice {
        /// The setting.
        setting: &'static str,
        /// As it was first set.
        first: String,
        /// As it was set again.
        second: String,
    },
    /// Two settings contradict each other.
    #[error("{first} and {second} contradict each other: {why}")]
    Conflict {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// Why.
        why: &'static str,
    },
    /// A setting makes no sense.
    #[error("{setting} {problem}")]
    Invalid {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// A batch did not finish, and the consumer answers with errors. Return it from the function, so that the source delivers
/// the batch again; what is finished is not repeated.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} of {} are not finished{}", .report.unfinished, .report.unfinished + .report.finished, first_problem(.report))]
pub struct BatchFailed {
    /// What became of the batch.
    pub report: Report,
}

fn first_problem(report: &Report) -> String {
    report.problems.first().map_or_else(String::new, |problem| format!(": {problem}"))
}
