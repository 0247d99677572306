//! ListQueues.

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::Result;
use crate::limits::PAGE_RESULTS_MAX;
use crate::paging::{Page, page};
use crate::wire::Whole;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_name_prefix: Option<String>,
    next_token: Option<String>,
    max_results: Option<Whole>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let Page { after, most } = page(request.next_token.as_deref(), request.max_results.as_ref())?;
    let prefix = request.queue_name_prefix.unwrap_or_default();
    let of = call.place("");
    let limit = most.unwrap_or(PAGE_RESULTS_MAX);
    // One more than is shown tells whether there are more.
    let wanted = usize::try_from(limit + 1).unwrap_or(usize::MAX);
    let mut names = Vec::new();
    let mut after = after;
    loop {
        let found = call.inner.registry.list(&of, &prefix, after.as_deref(), wanted).await?;
        let whole = found.len() < wanted;
        after = found.last().map(|(place, _)| place.name.clone());
        let allowed =
            found.into_iter().map(|(place, _)| place).filter(|at| call.permit(at).is_ok());
        names.extend(allowed);
        if whole || names.len() >= wanted {
            break;
        }
    }
    let shown = wanted - 1;
    // Who does not ask for pages does not follow them.
    let next_token = match (most, names.get(shown.saturating_sub(1))) {
        (Some(_), Some(last)) if names.len() > shown => Some(crate::paging::token(&last.name)),
        _ => None,
    };
    names.truncate(shown);
    Ok(Answer { queue_urls: names.iter().map(|place| call.url(place)).collect(), next_token })
}
