//! How a command ends: its exit code, and what it says about a failure.

use std::process::ExitCode;

use millpond_store::StoreError;

use crate::api::{ApiError, ErrorBody};

/// What exit codes mean, as `--help` and `docs/cli.md` say it.
pub const EXIT_CODES: &str = "Exit codes:
  0    done
  1    failed: something is broken, damaged or set up wrongly, or some of several entries failed
  2    asked for what makes no sense: a wrong option, value or input
  3    not found
  4    refused: it conflicts with what is there (exists, lease lost, out of range, not allowed)
  5    unavailable for now: try again
  6    not allowed by the server: access key
  130  interrupted";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The API refused it.
    #[error("{}", .0.message)]
    Refused(ErrorBody),
    /// The server cannot be reached.
    #[error("{0}")]
    Unavailable(String),
    /// Something is broken.
    #[error("{0}")]
    Broken(String),
    /// Some entries failed; each was reported.
    #[error("{failed} of {of} {what} failed{}", said(first.as_ref()))]
    Partly {
        /// How many failed.
        failed: usize,
        /// How many there were.
        of: usize,
        /// What they are.
        what: &'static str,
        /// The first failure, which also gives the exit code when all failed.
        first: Option<ErrorBody>,
    },
    /// Whoever read the output is gone.
    #[error("nobody reads the output")]
    Unread,
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
}

fn said(first: Option<&ErrorBody>) -> String {
    first.map(|first| format!(": {}", first.message)).unwrap_or_default()
}

impl Failure {
    /// The same, with advice for who is told `about` something.
    pub fn advise(self, about: &str, advice: &str) -> Self {
        match self {
            Self::Refused(mut error) if error.message.contains(about) => {
                error.message = format!("{}; {advice}", error.message);
                Self::Refused(error)
            }
            other => other,
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused(error) => code_of(&error.code),
            Self::Unavailable(_) => 5,
            Self::Broken(_) => 1,
            Self::Partly { failed, of, first: Some(first), .. } if failed == of => {
                code_of(&first.code)
            }
            Self::Partly { .. } => 1,
            Self::Unread => 0,
            Self::Interrupted => 130,
        }
    }

    /// Says what went wrong, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Self::Unread | Self::Interrupted) {
            eprintln!("millpond: {self}");
        }
        ExitCode::from(self.code())
    }
}

/// The exit code for an error of the API.
fn code_of(code: &str) -> u8 {
    match code {
        "invalid" | "too_large" | "receipt_invalid" | "media_type" | "method" => 2,
        "not_found" | "no_route" => 3,
        "exists" | "conflict" | "lease_lost" | "late" | "not_started" | "not_allowed"
        | "out_of_range" | "not_joined" | "fenced" | "out_of_sequence" | "already_appended"
        | "lagged" => 4,
        "throttled" | "unavailable" | "unknown_outcome" | "stopped" | "resetting"
        | "window_full" | "not_tried" | "overloaded" => 5,
        "unauthorized" | "forbidden" | "access_denied" => 6,
        _ => 1,
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Refused(*error.body)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Broken(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_in_the_help() {
        let codes = ["invalid", "not_found", "exists", "unavailable", "forbidden", "corrupt"];
        for code in codes.map(code_of).into_iter().chain([0, Failure::Interrupted.code()]) {
            assert!(EXIT_CODES.contains(&format!("\n  {code} ")), "{code}");
        }
    }

    #[test]
    fn when_all_entries_fail_the_first_gives_the_code() {
        let lost = ErrorBody { code: "lease_lost".into(), message: String::new(), field: None };
        let failure =
            |failed| Failure::Partly { failed, of: 2, what: "receipts", first: Some(lost.clone()) };
        assert_eq!((failure(2).code(), failure(1).code()), (4, 1));
    }
}
