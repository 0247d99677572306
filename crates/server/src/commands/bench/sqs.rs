//! As much of an SQS client as a load needs: the JSON protocol, batches, one connection for each caller at a time.

use std::path::Path;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::field;
use super::super::http_client::HttpClient;

/// A queue of an SQS endpoint.
#[derive(Debug)]
pub struct SqsQueue {
    client: HttpClient,
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
        let mut queue = Self { client, url: String::new() };
        let answer = queue.call("CreateQueue", &json!({ "QueueName": name })).await?;
        match field(&answer, "QueueUrl").as_str() {
            Some(url) => queue.url = url.to_owned(),
            None => return Err(strange("CreateQueue", &answer)),
        }
        Ok(queue)
    }

    /// Sends messages.
    pub async fn send(&self, bodies: &[Vec<u8>]) -> Result<(), Failure> {
        if let [body] = bodies {
            let ask = json!({ "QueueUrl": self.url, "MessageBody": String::from_utf8_lossy(body) });
            self.call("SendMessage", &ask).await?;
            return Ok(());
        }
        let entry = |(id, body)| {
            let id: usize = id;
            let body: &Vec<u8> = body;
            json!({ "Id": id.to_string(), "MessageBody": String::from_utf8_lossy(body) })
        };
        self.batch("SendMessageBatch", bodies.iter().enumerate().map(entry).collect()).await
    }

    /// Receives messages; their receipts and bodies.
    pub async fn receive(&self, max: usize) -> Result<Vec<(String, Bytes)>, Failure> {
        let ask = json!({ "QueueUrl": self.url, "MaxNumberOfMessages": max });
        let answer = self.call("ReceiveMessage", &ask).await?;
        let messages = field(&answer, "Messages").as_array().into_iter().flatten();
        let text = |one: &Value, name| field(one, name).as_str().map(str::to_owned);
        messages
            .map(|one| Some((text(one, "ReceiptHandle")?, Bytes::from(text(one, "Body")?))))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| strange("ReceiveMessage", &answer))
    }

    /// Deletes messages.
    pub async fn delete(&self, receipts: &[String]) -> Result<(), Failure> {
        if let [receipt] = receipts {
            let ask = json!({ "QueueUrl": self.url, "ReceiptHandle": receipt });
            self.call("DeleteMessage", &ask).await?;
            return Ok(());
        }
        let entry = |(id, receipt)| {
            let id: usize = id;
            let receipt: &String = receipt;
            json!({ "Id": id.to_string(), "ReceiptHandle": receipt })
        };
        self.batch("DeleteMessageBatch", receipts.iter().enumerate().map(entry).collect()).await
    }

    /// Deletes the queue.
    pub async fn remove(&self) -> Result<(), Failure> {
        self.call("DeleteQueue", &json!({ "QueueUrl": self.url })).await.map(|_| ())
    }

    async fn batch(&self, action: &str, entries: Vec<Value>) -> Result<(), Failure> {
        let count = entries.len();
        let answer =
            self.call(action, &json!({ "QueueUrl": self.url, "Entries": entries })).await?;
        match field(&answer, "Successful").as_array() {
            Some(successful) if successful.len() == count => Ok(()),
            _ => Err(strange(action, &answer)),
        }
    }

    async fn call(&self, action: &str, ask: &Value) -> Result<Value, Failure> {
        let request = Request::post("/")
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("AmazonSQS.{action}"))
            .body(Bytes::from(ask.to_string()))
            .map_err(|error| Failure::Broken(error.to_string()))?;
        let (status, bytes) = self.client.send(request).await?;
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        let said = String::from_utf8_lossy(&bytes);
        Err(Failure::Broken(format!("the endpoint answered {action} with {status}: {said}")))
    }
}

fn strange(action: &str, answer: &Value) -> Failure {
    Failure::Broken(format!("the endpoint did not do all of {action}: {answer}"))
}
