//! Moving what is in use out of a file that is mostly waste, in bounded steps.

use std::sync::Arc;

use bytes::Bytes;
use millpond_store::StoreError;

use super::place::{HEAD_BYTES, Place, decode_head};
use crate::engine::Table;
use crate::limits::ROW_KEY_BYTES_MAX;
use crate::record;
use crate::shared::Sight;

/// How far a file was looked through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    pub file: u64,
    pub at: u64,
}

/// A row that is to be moved, if it is still where it was.
#[derive(Debug)]
pub(crate) struct Moved {
    pub row_key: Bytes,
    pub from: Place,
    pub row: Bytes,
}

/// Which rows of a file are to be moved, from the cursor on, and where the next step begins; nothing when the file
/// was looked through. A step looks at `step_bytes` of the file, and at least at one record.
///
/// # Errors
/// [`StoreError::Corrupt`], which names the file.
pub(crate) fn survey(
    sight: &Sight,
    cursor: Cursor,
    step_bytes: u64,
) -> Result<Option<(Vec<Moved>, Cursor)>, StoreError> {
    let Some(file) = sight.files.get(cursor.file) else { return Ok(None) };
    let damaged = |at: u64, detail: &str| {
        StoreError::corrupt(file.path.display().to_string(), format!("at byte {at}: {detail}"))
    };
    let (mut at, end) = (cursor.at, file.end());
    if at >= end {
        return Ok(None);
    }
    let mut moved = Vec::new();
    while at < end && at - cursor.at < step_bytes.max(1) {
        let length = (HEAD_BYTES + ROW_KEY_BYTES_MAX).min(usize::try_from(end - at).unwrap_or(0));
        let head = file.read(at, length).map_err(|error| damaged(at, &error.to_string()))?;
        let (row_key, length) =
            decode_head(&head).ok_or_else(|| damaged(at, "a record's head makes no sense"))?;
        let row_at = at + (HEAD_BYTES + row_key.len()) as u64;
        at = row_at + u64::from(length);
        let from = place_of(sight, &row_key)?;
        if let Some(from) = from.filter(|from| (from.file, from.at) == (cursor.file, row_at)) {
            let row = sight.files.read(&row_key, from)?;
            moved.push(Moved { row_key, from, row });
        }
    }
    Ok(Some((moved, Cursor { at, ..cursor })))
}

/// Where the row of this key is, when that is a cargo file.
fn place_of(sight: &Sight, row_key: &Bytes) -> Result<Option<Place>, StoreError> {
    let row = sight.view.get(Table::Items, row_key).map_err(|error| StoreError::Unavailable {
        operation: "reclaim",
        detail: error.to_string(),
        cause: Some(Arc::new(error)),
    })?;
    let head = row.map(|row| record::decode_head(row_key, &row)).transpose()?;
    Ok(head.and_then(|head| head.place))
}
