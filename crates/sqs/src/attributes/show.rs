//! Showing attributes.

use millpond_queue::Count;

use super::{FIFO_ONLY, NUMBERS, OPTIONAL, READ_ONLY, Texts};
use crate::error::{Failure, Result};
use crate::place::Place;
use crate::record::Record;

/// How many messages a queue has, if that was asked for.
pub type Counts = Option<Count>;

/// Whether counting is asked for, which costs.
pub fn wants_counts(names: &[String]) -> bool {
    names.iter().any(|name| name == "All" || name.starts_with("ApproximateNumberOf"))
}

/// The attributes of a queue that are asked for.
pub fn show(
    place: &Place,
    record: &Record,
    counts: Counts,
    names: &[String],
    prefix: &str,
) -> Result<Texts> {
    let all = all(place, record, counts, prefix);
    if names.iter().any(|name| name == "All") {
        return Ok(all);
    }
    let is_known = |name: &str| {
        NUMBERS.iter().any(|(known, ..)| *known == name)
            || FIFO_ONLY.iter().any(|(known, _)| *known == name)
            || READ_ONLY.contains(&name)
            || OPTIONAL.contains(&name)
            || matches!(name, "FifoQueue" | "SqsManagedSseEnabled")
            || name.starts_with(prefix)
    };
    let mut shown = Texts::new();
    for name in names {
        if !is_known(name) {
            return Err(Failure::unknown_attribute(name));
        }
        if let Some(value) = all.get(name) {
            shown.insert(name.clone(), value.clone());
        }
    }
    Ok(shown)
}

fn all(place: &Place, record: &Record, counts: Counts, prefix: &str) -> Texts {
    let mut all = Texts::new();
    let mut put = |name: &str, value: String| {
        all.insert(name.to_owned(), value);
    };
    let set = &record.attributes;
    for (name, .., default) in NUMBERS {
        // Without a key it says nothing.
        if *name != "KmsDataKeyReusePeriodSeconds" || set.contains_key("KmsMasterKeyId") {
            put(name, set.get(*name).cloned().unwrap_or_else(|| default.to_string()));
        }
    }
    for name in OPTIONAL.iter().copied().chain(set.keys().map(String::as_str)) {
        if let Some(value) =
            set.get(name).filter(|_| OPTIONAL.contains(&name) || name.starts_with(prefix))
        {
            put(name, value.clone());
        }
    }
    let managed = set.get("SqsManagedSseEnabled").map_or("true", String::as_str);
    put("SqsManagedSseEnabled", managed.to_owned());
    if place.is_fifo() {
        put("FifoQueue", "true".to_owned());
        for (name, default) in FIFO_ONLY {
            put(name, set.get(*name).map_or(*default, String::as_str).to_owned());
        }
    }
    put("QueueArn", place.arn());
    put("CreatedTimestamp", (record.created_ms / 1_000).to_string());
    put("LastModifiedTimestamp", (record.modified_ms / 1_000).to_string());
    if let Some(count) = counts {
        put("ApproximateNumberOfMessages", (count.available + count.held).to_string());
        put("ApproximateNumberOfMessagesNotVisible", count.leased.to_string());
        put("ApproximateNumberOfMessagesDelayed", count.delayed.to_string());
    }
    all
}
