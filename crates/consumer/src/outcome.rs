//! What a handler says became of a message.

use std::fmt::Display;
use std::time::Duration;

use crate::limits::REASON_BYTES_MAX;

/// What became of a task for one message. A value: a handler never has to throw to say what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, and never runs again for this message.
    Done,
    /// It failed and is tried again when the source delivers the message again, but not before `after` has passed. At
    /// the limit of attempts the message goes to the dead messages.
    Retry {
        /// How long to wait at least. Default: not at all.
        after: Option<Duration>,
        /// What went wrong.
        error: String,
    },
    /// This message can never be processed: it goes to the dead messages in this run, and no further task sees it.
    Reject {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// It failed and is tried again.
    pub fn retry(error: impl Display) -> Self {
        Self::Retry { after: None, error: cut(&error.to_string()) }
    }

    /// It failed and is tried again after this long at the earliest.
    pub fn retry_after(after: Duration, error: impl Display) -> Self {
        Self::Retry { after: Some(after), error: cut(&error.to_string()) }
    }

    /// The message can never be processed.
    pub fn reject(reason: impl Display) -> Self {
        Self::Reject { reason: cut(&reason.to_string()) }
    }
}

/// What a handler may return: an [`Outcome`], nothing (done), or a result, whose error means that it is tried again.
pub trait IntoOutcome {
    /// The outcome.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => Outcome::retry(error),
        }
    }
}

/// What a handler of whole batches may return: one outcome for each message, in order, or a result of that, whose error
/// means that all are tried again.
pub trait IntoOutcomes {
    /// The outcomes. Messages that have none are tried again.
    fn into_outcomes(self, messages: usize) -> Vec<Outcome>;
}

impl IntoOutcomes for Vec<Outcome> {
    fn into_outcomes(self, _: usize) -> Vec<Outcome> {
        self
    }
}

impl<E: Display> IntoOutcomes for Result<Vec<Outcome>, E> {
    fn into_outcomes(self, messages: usize) -> Vec<Outcome> {
        match self {
            Ok(outcomes) => outcomes,
            Err(error) => vec![Outcome::retry(error); messages],
        }
    }
}

/// A text of bounded length, cut between letters.
pub(crate) fn cut(text: &str) -> String {
    let mut end = text.len().min(REASON_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_outcomes() {
        assert_eq!(().into_outcome(), Outcome::Done);
        assert_eq!(Ok::<(), String>(()).into_outcome(), Outcome::Done);
        assert_eq!(Err::<(), _>("no").into_outcome(), Outcome::retry("no"));
        let rejected = Ok::<_, String>(Outcome::reject("bad"));
        assert_eq!(rejected.into_outcome(), Outcome::reject("bad"));
        assert_eq!(Err::<Vec<Outcome>, _>("no").into_outcomes(2), vec![Outcome::retry("no"); 2]);
    }

    #[test]
    fn long_reasons_are_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        let cut = cut(&"ä".repeat(REASON_BYTES_MAX));
        assert!(cut.len() <= REASON_BYTES_MAX && cut.chars().all(|c| c == 'ä'));
    }
}
