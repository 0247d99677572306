//! Making the queues that the configuration declares, through the protocol itself.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use millpond_lanes::Ground;
use millpond_sqs::{Sqs, SqsOptions};
use serde_json::{Value, json};

use super::error::ServeError;
use crate::config::DeclaredQueue;

/// Makes the queues that are not there, and sets the others to what is declared.
pub async fn declare(
    ground: &Ground,
    options: &SqsOptions,
    queues: &[DeclaredQueue],
) -> Result<(), ServeError> {
    if queues.is_empty() {
        return Ok(());
    }
    // The operator needs no key, and no pause after a deletion.
    let options = SqsOptions { keys: None, quiet_periods: false, ..options.clone() };
    let sqs = Sqs::open(ground, options).await?;
    for queue in queues {
        declare_one(&sqs, queue).await?;
        tracing::info!(queue = queue.name, "declared");
    }
    sqs.close();
    Ok(())
}

async fn declare_one(sqs: &Sqs, queue: &DeclaredQueue) -> Result<(), ServeError> {
    let refused = |answer: &Response<Bytes>| ServeError::Queue {
        name: queue.name.clone(),
        answer: message(answer),
    };
    let mut attributes = queue.wire_attributes();
    let body = json!({ "QueueName": queue.name, "Attributes": attributes, "tags": queue.tags });
    let answer = ask(sqs, "CreateQueue", &body).await;
    if answer.status().is_success() && queue.tags.is_empty() {
        return Ok(());
    }
    if !answer.status().is_success() && !says(&answer, "QueueNameExists") {
        return Err(refused(&answer));
    }
    let exists = !answer.status().is_success();
    let found = ask(sqs, "GetQueueUrl", &json!({ "QueueName": queue.name })).await;
    let url = parsed(&found).get("QueueUrl").cloned().ok_or_else(|| refused(&found))?;
    // What kind of queue it is cannot be changed, and need not be said again.
    attributes.remove("FifoQueue");
    if exists {
        let body = json!({ "QueueUrl": url, "Attributes": attributes });
        let answer = ask(sqs, "SetQueueAttributes", &body).await;
        if !answer.status().is_success() {
            return Err(refused(&answer));
        }
    }
    if !queue.tags.is_empty() {
        let answer = ask(sqs, "TagQueue", &json!({ "QueueUrl": url, "Tags": queue.tags })).await;
        if !answer.status().is_success() {
            return Err(refused(&answer));
        }
    }
    Ok(())
}

async fn ask(sqs: &Sqs, action: &str, body: &Value) -> Response<Bytes> {
    let request = Request::post("/")
        .header("host", "localhost")
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", format!("AmazonSQS.{action}"))
        .body(Bytes::from(body.to_string()));
    match request {
        Ok(request) => sqs.handle(request).await,
        Err(error) => {
            let mut answer = Response::new(Bytes::from(error.to_string()));
            *answer.status_mut() = StatusCode::BAD_REQUEST;
            answer
        }
    }
}

fn parsed(answer: &Response<Bytes>) -> Value {
    serde_json::from_slice(answer.body()).unwrap_or_default()
}

fn says(answer: &Response<Bytes>, code: &str) -> bool {
    let body = parsed(answer);
    body.get("__type").and_then(Value::as_str).is_some_and(|name| name.ends_with(code))
}

fn message(answer: &Response<Bytes>) -> String {
    let body = parsed(answer);
    let said = body.get("message").or_else(|| body.get("Message")).and_then(Value::as_str);
    said.map_or_else(|| String::from_utf8_lossy(answer.body()).into_owned(), str::to_owned)
}
