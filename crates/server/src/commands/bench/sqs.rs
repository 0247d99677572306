//! As much of an SQS client as a load needs: the JSON protocol, batches, one connection for each caller at a time.

use std::path::Path;

use bytes::Bytes;
use http::Request;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::Failure;
use super::super::http_client::{HttpClient, HttpLink};

/// A queue of an SQS endpoint.
#[derive(Debug)]
pub struct SqsQueue {
    client: HttpClient,
    url: String,
}

/// One caller's way to it.
#[derive(Debug)]
pub struct SqsLink {
    http: HttpLink,
    url: String,
}

impl SqsQueue {
    /// Makes a queue.
    pub async fn create(
        endpoint: &str,
        key: Option<(String, String)>,
        ca_file: Option<&Path>,
        name: &str,
    ) -> Result<Self, Failure> {
        let client = HttpClient::new(endpoint.trim_end_matches('/'), key, ca_file)?;
        let mut link = SqsLink { http: client.connect().await?, url: String::new() };
        let answer = link.call("CreateQueue", written(&json!({ "QueueName": name }))?).await?;
        let created: Created = read("CreateQueue", &answer)?;
        Ok(Self { client, url: created.queue_url })
    }

    /// A connection to it.
    pub async fn link(&self) -> Result<SqsLink, Failure> {
        Ok(SqsLink { http: self.client.connect().await?, url: self.url.clone() })
    }

    /// Deletes the queue.
    pub async fn remove(&self) -> Result<(), Failure> {
        let mut link = self.link().await?;
        link.call("DeleteQueue", written(&json!({ "QueueUrl": self.url }))?).await.map(|_| ())
    }
}

impl SqsLink {
    /// Sends messages.
    pub async fn send(&mut self, bodies: &[Vec<u8>]) -> Result<(), Failure> {
        let queue_url = &self.url;
        if let [body] = bodies {
            let ask = written(&SendMessage { queue_url, message_body: text(body)? })?;
            self.call("SendMessage", ask).await?;
            return Ok(());
        }
        let mut entries = Vec::with_capacity(bodies.len());
        for (id, body) in bodies.iter().enumerate() {
            entries.push(SendEntry { id: id.to_string(), message_body: text(body)? });
        }
        let ask = written(&Batch { queue_url, entries })?;
        self.batch("SendMessageBatch", ask, bodies.len()).await
    }

    /// Receives messages; their receipts and bodies.
    pub async fn receive(&mut self, max: usize) -> Result<Vec<(String, Bytes)>, Failure> {
        let ask = ReceiveMessage { queue_url: &self.url, max_number_of_messages: max };
        let ask = written(&ask)?;
        let answer = self.call("ReceiveMessage", ask).await?;
        let received: Received = read("ReceiveMessage", &answer)?;
        let received = received.messages.into_iter();
        Ok(received.map(|one| (one.receipt_handle, Bytes::from(one.body))).collect())
    }

    /// Deletes messages.
    pub async fn delete<'a>(&mut self, receipts: &'a [String]) -> Result<(), Failure> {
        let queue_url = &self.url;
        if let [receipt_handle] = receipts {
            let ask = written(&DeleteMessage { queue_url, receipt_handle })?;
            self.call("DeleteMessage", ask).await?;
            return Ok(());
        }
        let entry = |(id, receipt): (usize, &'a String)| DeleteEntry {
            id: id.to_string(),
            receipt_handle: receipt,
        };
        let entries = receipts.iter().enumerate().map(entry).collect();
        let ask = written(&Batch { queue_url, entries })?;
        self.batch("DeleteMessageBatch", ask, receipts.len()).await
    }

    async fn batch(&mut self, action: &str, ask: Bytes, count: usize) -> Result<(), Failure> {
        let answer = self.call(action, ask).await?;
        let done: Done = read(action, &answer)?;
        if done.successful.len() == count { Ok(()) } else { Err(strange(action, &answer)) }
    }

    async fn call(&mut self, action: &str, ask: Bytes) -> Result<Bytes, Failure> {
        let request = Request::post("/")
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("AmazonSQS.{action}"))
            .body(ask)
            .map_err(|error| Failure::Broken(error.to_string()))?;
        let (status, answer) = self.http.send(request).await?;
        if status.is_success() {
            return Ok(answer);
        }
        let said = String::from_utf8_lossy(&answer);
        Err(Failure::Broken(format!("the endpoint answered {action} with {status}: {said}")))
    }
}

/// What is asked for, as JSON.
fn written(ask: &impl Serialize) -> Result<Bytes, Failure> {
    let written = serde_json::to_vec(ask).map_err(|error| Failure::Broken(error.to_string()))?;
    Ok(Bytes::from(written))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessage<'a> {
    queue_url: &'a str,
    message_body: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendEntry<'a> {
    id: String,
    message_body: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveMessage<'a> {
    queue_url: &'a str,
    max_number_of_messages: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteMessage<'a> {
    queue_url: &'a str,
    receipt_handle: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DeleteEntry<'a> {
    id: String,
    receipt_handle: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Batch<'a, E> {
    queue_url: &'a str,
    entries: Vec<E>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Created {
    queue_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Received {
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    receipt_handle: String,
    body: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Done {
    #[serde(default)]
    successful: Vec<IgnoredAny>,
}

fn text(body: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(body)
        .map_err(|error| Failure::Broken(format!("a body is no text: {error}")))
}

fn read<T: DeserializeOwned>(action: &str, answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).map_err(|_| strange(action, answer))
}

fn strange(action: &str, answer: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(answer);
    Failure::Broken(format!("the endpoint did not do all of {action}: {said}"))
}
