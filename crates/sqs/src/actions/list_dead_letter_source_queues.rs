//! ListDeadLetterSourceQueues.

use serde::{Deserialize, Serialize};

use crate::attributes::Redrive;
use crate::call::Call;
use crate::error::Result;
use crate::paging::{Page, page, token};
use crate::place::Place;
use crate::registry::Registry;
use crate::wire::Whole;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    next_token: Option<String>,
    max_results: Option<Whole>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    // The service writes it with a small letter, and always.
    #[serde(rename = "queueUrls")]
    queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let (known, _) = call.queue_at(request.queue_url.as_deref()).await?;
    let Page { after, most } = page(request.next_token.as_deref(), request.max_results.as_ref())?;
    let mut found = sources(&call.inner.registry, &known.place).await?;
    found.retain(|place| after.as_ref().is_none_or(|after| place.name > *after));
    found.retain(|place| call.permit(place).is_ok());
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let last = found.get(most.saturating_sub(1)).filter(|_| found.len() > most);
    let next_token = last.map(|last| token(&last.name));
    found.truncate(most);
    Ok(Answer { queue_urls: found.iter().map(|place| call.url(place)).collect(), next_token })
}

/// The queues that have their dead letters here.
pub async fn sources(registry: &Registry, dead: &Place) -> Result<Vec<Place>> {
    let all = registry.all(dead).await?;
    let is_source = |record: &crate::record::Record| {
        let policy = record.attributes.get("RedrivePolicy");
        policy.and_then(|text| Redrive::read(text).ok()).is_some_and(|policy| policy.to == *dead)
    };
    Ok(all.into_iter().filter(|(_, record)| is_source(record)).map(|(place, _)| place).collect())
}
