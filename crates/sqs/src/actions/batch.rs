//! What all batches have in common.

use serde::Serialize;

use crate::error::{Code, Failure, Result};
use crate::limits::{BATCH_ENTRIES_MAX, ENTRY_ID_CHARS_MAX};

/// The answer to a batch: what became of each entry.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    successful: Vec<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed>,
}

/// An entry that was done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    pub id: String,
}

/// An entry that was not done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Failed {
    id: String,
    sender_fault: bool,
    code: &'static str,
    message: String,
}

impl<T> Answer<T> {
    /// Collects outcomes. When the queue is gone the whole batch fails.
    pub fn of(outcomes: Vec<(String, Result<T>)>) -> Result<Self> {
        let mut answer = Self { successful: Vec::new(), failed: Vec::new() };
        for (id, outcome) in outcomes {
            match outcome {
                Ok(done) => answer.successful.push(done),
                Err(failure) if failure.code == Code::QueueDoesNotExist => return Err(failure),
                Err(failure) => answer.failed.push(Failed {
                    id,
                    sender_fault: failure.code.is_sender_fault(),
                    code: failure.code.written().query,
                    message: failure.text,
                }),
            }
        }
        Ok(answer)
    }
}

/// Checks the entries of a batch: that there are some, not too many, and that each has an id of its own.
pub fn check<'a>(entry: &str, ids: impl ExactSizeIterator<Item = Option<&'a str>>) -> Result<()> {
    let count = ids.len();
    if count == 0 {
        let text = format!("There should be at least one {entry} in the request.");
        return Err(Failure::new(Code::EmptyBatchRequest, text));
    }
    if count > BATCH_ENTRIES_MAX {
        let text = format!(
            "Maximum number of entries per request are {BATCH_ENTRIES_MAX}. You have sent {count}."
        );
        return Err(Failure::new(Code::TooManyEntriesInBatchRequest, text));
    }
    let mut seen: Vec<&str> = Vec::with_capacity(count);
    for (number, id) in ids.enumerate() {
        let Some(id) = id else {
            return Err(Failure::missing(&format!("{entry}.{}.Id", number + 1)));
        };
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if !(1..=ENTRY_ID_CHARS_MAX).contains(&id.len()) || !id.bytes().all(is_allowed) {
            return Err(Failure::new(
                Code::InvalidBatchEntryId,
                "A batch entry id can only contain alphanumeric characters, hyphens and \
                 underscores. It can be at most 80 letters long.",
            ));
        }
        if seen.contains(&id) {
            return Err(Failure::new(Code::BatchEntryIdsNotDistinct, format!("Id {id} repeated.")));
        }
        seen.push(id);
    }
    Ok(())
}
