//! GetQueueUrl.

use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::{Failure, Result};
use crate::options::AccountId;
use crate::place::Place;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_name: Option<String>,
    #[serde(rename = "QueueOwnerAWSAccountId")]
    owner: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    queue_url: String,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let name = request.queue_name.ok_or_else(|| Failure::missing("QueueName"))?;
    let mut place = call.place(&name);
    if let Some(owner) = request.owner {
        let account = AccountId::new(&owner).map_err(|_| Failure::no_queue())?;
        place = Place { account, ..place };
    }
    call.check(&place)?;
    crate::place::check_name(&name).map_err(|_| Failure::no_queue())?;
    call.inner.registry.get(&place).await?;
    Ok(Answer { queue_url: call.url(&place) })
}
