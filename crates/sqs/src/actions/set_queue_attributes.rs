//! SetQueueAttributes.

use serde::Deserialize;

use super::Done;
use crate::attributes::{Allow, Settings, Texts, apply};
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::place::Place;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    attributes: Option<Texts>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let given = request.attributes.ok_or_else(|| Failure::missing("Attribute.Name"))?;
    set(call, &place, &given).await?;
    Ok(Done {})
}

/// Sets attributes of a queue that exists.
pub async fn set(call: &Call<'_>, place: &Place, given: &Texts) -> Result<()> {
    let registry = &call.inner.registry;
    let before = registry.read(place).await?;
    // What names other queues is checked before anything is written.
    let mut planned = before.record.attributes.clone();
    apply(&mut planned, given, place.is_fifo(), &registry.prefix)?;
    let settings = Settings::of(place, &planned, &registry.prefix)?;
    let fixed = [
        ("Priorities", settings.config.priorities != before.settings.config.priorities),
        ("Lanes", settings.config.lanes != before.settings.config.lanes),
    ];
    if let Some((name, _)) = fixed.iter().find(|(_, changes)| *changes) {
        let text = format!(
            "The attribute {}{name} can be set only when a queue is created.",
            registry.prefix
        );
        return Err(Failure::new(Code::InvalidAttributeValue, text));
    }
    let shed = format!("{}ShedQueue", registry.prefix);
    if given.contains_key("RedrivePolicy") || given.contains_key(&shed) {
        check_others(call, place, &settings).await?;
    }
    let changed = registry.change(place, |record| {
        apply(&mut record.attributes, given, place.is_fifo(), &registry.prefix)?;
        record.modified_ms = call.now.as_millis();
        Ok(())
    });
    registry.learn(place, changed.await?).await?;
    Ok(())
}

/// Checks the queues that a queue's attributes name.
pub async fn check_others(call: &Call<'_>, place: &Place, settings: &Settings) -> Result<()> {
    let shedding = settings.config.shedding.as_ref();
    let side = shedding.and_then(|shedding| Place::of_stored(shedding.side_queue.as_deref()?));
    if let Some(side) = side {
        let name = format!("{}ShedQueue", call.inner.registry.prefix);
        let exists = call.inner.registry.read(&side).await.is_ok();
        if side == *place || side.is_fifo() || !exists {
            let text = format!(
                "Invalid value for the parameter {name}. It is the name of another standard queue."
            );
            return Err(Failure::new(Code::InvalidAttributeValue, text));
        }
    }
    check_redrive(call, place, settings).await
}

/// Checks that a queue may have its dead letters where it says.
async fn check_redrive(call: &Call<'_>, place: &Place, settings: &Settings) -> Result<()> {
    let Some(redrive) = &settings.redrive else { return Ok(()) };
    let invalid = |reason: &str| Failure::value("RedrivePolicy", redrive.text(), reason);
    if redrive.to.region != place.region {
        return Err(invalid("Dead-letter target must be in same region as the source."));
    }
    if redrive.to.account != place.account {
        return Err(invalid("Dead-letter target owner should be same as the source."));
    }
    if redrive.to.is_fifo() != place.is_fifo() {
        return Err(invalid("Dead-letter queue must be same type of queue as the source."));
    }
    let target = match call.inner.registry.read(&redrive.to).await {
        Err(failure) if failure.code == Code::QueueDoesNotExist => {
            return Err(invalid("Dead letter target does not exist."));
        }
        other => other?,
    };
    if target.settings.allow != Allow::All && !target.settings.allow.permits(place) {
        return Err(invalid(
            "The dead-letter queue's RedriveAllowPolicy doesn't permit this source queue.",
        ));
    }
    Ok(())
}
