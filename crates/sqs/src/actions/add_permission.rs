//! AddPermission.

use serde::Deserialize;

use super::{Action, Done};
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::{ENTRY_ID_CHARS_MAX, PERMISSION_ACTIONS_MAX};
use crate::options::AccountId;
use crate::policy;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    label: Option<String>,
    #[serde(rename = "AWSAccountIds")]
    accounts: Option<Vec<String>>,
    actions: Option<Vec<String>>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Done> {
    let (place, _) = call.place_at(request.queue_url.as_deref())?;
    let label = request.label.ok_or_else(|| Failure::missing("Label"))?;
    check_label(&label)?;
    let some = |list: Option<Vec<String>>, name| {
        list.filter(|list| !list.is_empty()).ok_or_else(|| Failure::missing(name))
    };
    let accounts = some(request.accounts, "PrincipalId")?;
    let actions = some(request.actions, "Actions")?;
    for account in &accounts {
        if AccountId::new(account).is_err() {
            return Err(Failure::value("PrincipalId", account, "Unable to verify."));
        }
    }
    for action in &actions {
        if action != "*" && Action::of_name(action).is_none() {
            let reason = "Only the queue owner is allowed to invoke this action.";
            return Err(Failure::value("ActionName", action, reason));
        }
    }
    if actions.len() > PERMISSION_ACTIONS_MAX {
        let count = actions.len();
        let text =
            format!("{count} Actions were found, maximum allowed is {PERMISSION_ACTIONS_MAX}.");
        return Err(Failure::new(Code::OverLimit, text));
    }
    let registry = &call.inner.registry;
    let changed = registry.change(&place, |record| {
        let policy = record.attributes.get("Policy").map(String::as_str);
        let policy = policy::add(&place, policy, &label, &accounts, &actions)?;
        record.attributes.insert("Policy".to_owned(), policy);
        record.modified_ms = call.now.as_millis();
        Ok(())
    });
    registry.learn(&place, changed.await?).await?;
    Ok(Done {})
}

fn check_label(label: &str) -> Result<()> {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if (1..=ENTRY_ID_CHARS_MAX).contains(&label.len()) && label.bytes().all(is_allowed) {
        return Ok(());
    }
    let shown: String = label.chars().take(ENTRY_ID_CHARS_MAX).collect();
    let reason =
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length";
    Err(Failure::value("Label", shown, reason))
}
