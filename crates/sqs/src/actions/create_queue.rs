//! CreateQueue.

use millpond_queue::QueueError;
use millpond_store::{Expect, StoreError, Version, Write};
use serde::{Deserialize, Serialize};

use super::set_queue_attributes::check_others;
use crate::attributes::{Settings, Texts, apply, check_idempotent};
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::{QUIET_PERIOD, ROW_CONFLICTS_MAX, TAGS_MAX};
use crate::place::{FIFO, Place, check_name};
use crate::record::{Record, key};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_name: Option<String>,
    attributes: Option<Texts>,
    // In JSON it has a small letter.
    #[serde(rename = "tags")]
    tags: Option<Texts>,
    #[serde(rename = "Tags")]
    query_tags: Option<Texts>,
}

impl Request {
    /// A request that does not come from a client.
    pub fn new(name: String, attributes: Texts, tags: Texts) -> Self {
        let (queue_name, attributes) = (Some(name), Some(attributes));
        Self { queue_name, attributes, tags: Some(tags), query_tags: None }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    pub queue_url: String,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let name = request.queue_name.ok_or_else(|| Failure::missing("QueueName"))?;
    let asked = request.attributes.unwrap_or_default();
    check_kind(&name, &asked)?;
    let place = call.place(&name);
    call.check(&place)?;
    let mut attributes = Texts::new();
    apply(&mut attributes, &asked, place.is_fifo(), &call.inner.registry.prefix)?;
    let settings = Settings::of(&place, &attributes, &call.inner.registry.prefix)?;
    let tags = request.tags.or(request.query_tags).unwrap_or_default();
    if tags.len() > TAGS_MAX {
        return Err(Failure::parameter(format!("Too many tags added for queue {name}.")));
    }
    let record = Record {
        created_ms: call.now.as_millis(),
        modified_ms: call.now.as_millis(),
        attributes,
        tags,
        ..Record::default()
    };
    for _ in 0..ROW_CONFLICTS_MAX {
        let expect = match call.inner.registry.row(&place).await? {
            Some((existing, _)) if existing.deleted_ms.is_none() => {
                check_idempotent(&existing.attributes, &record.attributes)?;
                call.inner.registry.read(&place).await?;
                return Ok(Answer { queue_url: call.url(&place) });
            }
            Some((deleted, version)) => {
                check_quiet(call, &deleted)?;
                Expect::Version(version)
            }
            None => Expect::Absent,
        };
        check_others(call, &place, &settings).await?;
        let version = call.inner.registry.ground.environment.version();
        match put(call, &place, &record, expect, version).await {
            Ok(()) => return Ok(Answer { queue_url: call.url(&place) }),
            Err(Put::Conflict) => {}
            Err(Put::Failed(failure)) => return Err(failure),
        }
    }
    Err(Failure::too_many_changes())
}

/// Whether the name is that of the kind of queue that the attributes ask for.
fn check_kind(name: &str, asked: &Texts) -> Result<()> {
    check_name(name)?;
    match (name.ends_with(FIFO), asked.get("FifoQueue").map(String::as_str)) {
        (false, Some("true")) => Err(Failure::parameter(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or \
             underscores, must end with .fifo suffix and be 1 to 80 in length.",
        )),
        (_, Some("true")) | (false, None) => Ok(()),
        (_, Some("false")) => Err(Failure::unknown_attribute("FifoQueue")),
        (_, Some(_)) => Err(Failure::attribute_value("FifoQueue")),
        (true, None) => Err(Failure::parameter(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        )),
    }
}

/// A queue that was deleted a moment ago cannot be created again yet.
fn check_quiet(call: &Call<'_>, deleted: &Record) -> Result<()> {
    let at = deleted.deleted().unwrap_or_default();
    if call.inner.options.quiet_periods && call.now.since(at) < QUIET_PERIOD && at <= call.now {
        return Err(Failure::new(
            Code::QueueDeletedRecently,
            "You must wait 60 seconds after deleting a queue before you can create another with \
             the same name.",
        ));
    }
    Ok(())
}

/// Why a row was not put.
enum Put {
    /// Another was faster.
    Conflict,
    Failed(Failure),
}

/// Puts the row, and then the queue. One that exists without a row was not made here: it must be what is asked for.
async fn put(
    call: &Call<'_>,
    place: &Place,
    record: &Record,
    expect: Expect,
    version: Version,
) -> Result<(), Put> {
    let registry = &call.inner.registry;
    let failed = |error: StoreError| Put::Failed(error.into());
    let write = record.put(place, expect, version).map_err(failed)?;
    match registry.ground.store.write(write).await {
        Ok(()) => {}
        Err(error) if error.is_conflict() => return Err(Put::Conflict),
        Err(error) => return Err(Put::Failed(error.into())),
    }
    let settings =
        Settings::of(place, &record.attributes, &registry.prefix).map_err(Put::Failed)?;
    match registry.queues.create(&place.stored_name(), settings.config).await {
        Ok(_) => {}
        Err(error) => {
            if let QueueError::Exists { .. } | QueueError::Invalid { .. } = &error {
                // The row promises what cannot be kept.
                let delete = key(place).map(|key| Write::delete(key, Expect::Version(version)));
                registry.ground.store.write(delete.map_err(failed)?).await.map_err(failed)?;
            }
            return Err(Put::Failed(match error {
                QueueError::Exists { field, .. } => Failure::new(
                    Code::QueueNameExists,
                    format!(
                        "A queue that was not made through SQS exists with the same name and another {field}"
                    ),
                ),
                other => other.into(),
            }));
        }
    }
    registry.learn(place, record.clone()).await.map_err(Put::Failed)?;
    Ok(())
}
