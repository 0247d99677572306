//! Whether settings make sense, alone and together.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::builder::Builder;
use crate::error::BuildError;
use crate::identity::Ids;
use crate::limits::{
    ATTEMPTS_MAX, CONCURRENCY_MAX, DUPLICATES_WINDOW_MAX, NAME_BYTES_MAX, TASK_BYTES_MAX,
    TASKS_MAX, TIMEOUT_SHARE_RANGE,
};
use crate::settings::{Duplicates, Order};

pub(crate) fn check(builder: &Builder) -> Result<(), BuildError> {
    if let Some((setting, first, second)) = builder.twice.first().cloned() {
        return Err(BuildError::Twice { setting, first, second });
    }
    name("name", &builder.name, NAME_BYTES_MAX)?;
    tasks(builder)?;
    aliases(builder)?;
    numbers(builder)?;
    order(builder)?;
    duplicates(builder)?;
    if builder.sources.as_ref().is_some_and(std::collections::BTreeSet::is_empty) {
        return Err(invalid("sources", "is empty: no record could be consumed"));
    }
    if builder.windows.end.is_some() && builder.windows.fold.is_none() {
        let remedy = "`window_end` gets what it gathers: add the fold with `window`";
        return Err(BuildError::Missing { setting: "a fold of windows", remedy });
    }
    if builder.hash_ranges.values().any(|range| range.first > range.last) {
        return Err(invalid("hash_range", "ends before it begins"));
    }
    Ok(())
}

fn invalid(setting: &'static str, problem: impl Into<String>) -> BuildError {
    BuildError::Invalid { setting, problem: problem.into() }
}

fn conflict(first: impl Into<String>, second: impl Into<String>, why: &'static str) -> BuildError {
    BuildError::Conflict { first: first.into(), second: second.into(), why }
}

/// Names are parts of keys, and are read by people.
fn name(setting: &'static str, name: &str, bytes_max: usize) -> Result<(), BuildError> {
    if name.is_empty() {
        return Err(invalid(setting, "is empty"));
    }
    if name.len() > bytes_max {
        return Err(invalid(
            setting,
            format!("has {} bytes, at most {bytes_max} are accepted", name.len()),
        ));
    }
    if name.chars().any(|c| c == '/' || c.is_control()) {
        return Err(invalid(setting, format!("{name:?} has a slash or a control character")));
    }
    Ok(())
}

fn tasks(builder: &Builder) -> Result<(), BuildError> {
    if builder.tasks.is_empty() {
        let remedy = "add at least one with `one` or `all`";
        return Err(BuildError::Missing { setting: "a handler", remedy });
    }
    if builder.tasks.len() > TASKS_MAX {
        let problem = format!("are {}, at most {TASKS_MAX} are accepted", builder.tasks.len());
        return Err(invalid("handlers", problem));
    }
    let mut known = BTreeMap::new();
    for task in &builder.tasks {
        name("a handler's name", &task.name, TASK_BYTES_MAX)?;
        if let Some(first) = known.insert(&task.name, task) {
            let (first, second) = (format!("{first:?}"), format!("{task:?}"));
            return Err(BuildError::Twice { setting: "a handler's name", first, second });
        }
    }
    Ok(())
}

fn aliases(builder: &Builder) -> Result<(), BuildError> {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (former, now) in &builder.aliases {
        let alias = format!("alias {former:?} of {now:?}");
        name("an alias", former, TASK_BYTES_MAX)?;
        if !builder.tasks.iter().any(|task| *task.name == **now) {
            return Err(invalid("an alias", format!("names {now:?}, which is no handler")));
        }
        if let Some(task) = builder.tasks.iter().find(|task| *task.name == **former) {
            let why = "a handler's own name cannot be a former name too";
            return Err(conflict(alias, format!("{task:?}"), why));
        }
        if let Some(other) = known.insert(former, now) {
            let other = format!("alias {former:?} of {other:?}");
            return Err(conflict(other, alias, "a former name is that of one handler"));
        }
    }
    Ok(())
}

fn numbers(builder: &Builder) -> Result<(), BuildError> {
    let range = |setting, number: usize, most: usize| {
        if (1..=most).contains(&number) {
            return Ok(());
        }
        Err(invalid(setting, format!("is {number}, from 1 to {most} are accepted")))
    };
    if let Some(attempts) = builder.attempts {
        range("attempts", attempts as usize, ATTEMPTS_MAX as usize)?;
    }
    if let Some(concurrency) = builder.concurrency {
        range("concurrency", concurrency, CONCURRENCY_MAX)?;
    }
    if let Some(share) = builder.timeout_share {
        let (least, most) = TIMEOUT_SHARE_RANGE;
        if !(least..=most).contains(&share) {
            let problem = format!("is {share}, from {least} to {most} are accepted");
            return Err(invalid("timeout_share", problem));
        }
    }
    if builder.age_max == Some(Duration::ZERO) {
        return Err(invalid("age_max", "is zero: every message would be too old"));
    }
    Ok(())
}

fn order(builder: &Builder) -> Result<(), BuildError> {
    for (setting, properties) in [("keys", &builder.keys), ("sequence", &builder.sequence)] {
        let Some(properties) = properties else { continue };
        if properties.is_empty() || properties.iter().any(String::is_empty) {
            return Err(invalid(setting, "has no property, or an empty one"));
        }
        let mut sorted = properties.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() < properties.len() {
            return Err(invalid(setting, "names a property twice"));
        }
    }
    let order = builder.order.unwrap_or_default();
    if let Some(keys) = &builder.keys
        && order != Order::PerKey
    {
        let why = "keys are only for order per key";
        return Err(conflict(format!("keys {keys:?}"), format!("order {order:?}"), why));
    }
    if let Some(sequence) = &builder.sequence
        && order == Order::None
    {
        let why = "without an order, nothing goes by a sequence";
        return Err(conflict(format!("sequence {sequence:?}"), format!("order {order:?}"), why));
    }
    Ok(())
}

fn duplicates(builder: &Builder) -> Result<(), BuildError> {
    if let Some(Ids::Properties(properties)) = &builder.ids
        && (properties.is_empty() || properties.iter().any(String::is_empty))
    {
        return Err(invalid("ids", "has no property, or an empty one"));
    }
    let Some(Duplicates::Skip { window }) = builder.duplicates else {
        return Ok(());
    };
    if window.is_zero() || window > DUPLICATES_WINDOW_MAX {
        let problem = format!("is {window:?}, up to {DUPLICATES_WINDOW_MAX:?} are accepted");
        return Err(invalid("the window of duplicates", problem));
    }
    let ids = builder.ids.clone().unwrap_or_default();
    if ids == Ids::Source {
        let why = "no two messages have one id of the source, so that none would be skipped";
        return Err(conflict(
            format!("duplicates {:?}", builder.duplicates.unwrap_or_default()),
            format!("ids {ids:?}"),
            why,
        ));
    }
    Ok(())
}
