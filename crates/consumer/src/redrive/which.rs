//! Which letters are meant.

use crate::sink::{DeadLetter, Kind, LetterError, Reason};

/// Which letters are meant. Default: all.
#[derive(Debug, Clone, Default)]
pub struct Which {
    /// Only these reasons; all when empty.
    pub reasons: Vec<Reason>,
    /// Only dead messages, or only dead records.
    pub kind: Option<Kind>,
    /// Only those of this consumer.
    pub consumer: Option<String>,
    /// Only those of this source.
    pub arn: Option<String>,
}

impl Which {
    /// Whether a letter is meant.
    #[must_use]
    pub fn matches(&self, letter: &DeadLetter) -> bool {
        let arn = letter.source.as_ref().map(|source| &source.arn);
        (self.reasons.is_empty() || self.reasons.contains(&letter.reason))
            && self.kind.is_none_or(|kind| kind == letter.kind)
            && self.consumer.as_ref().is_none_or(|name| *name == letter.consumer)
            && self.arn.as_ref().is_none_or(|wanted| arn == Some(wanted))
    }

    /// Whether what was found is listed: what is no letter always is.
    #[must_use]
    pub fn lists(&self, found: &Result<DeadLetter, LetterError>) -> bool {
        found.as_ref().map_or(true, |letter| self.matches(letter))
    }
}
