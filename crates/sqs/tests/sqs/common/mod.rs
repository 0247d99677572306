//! A server in the test's own process: virtual time, both encodings, and a store that [`Kind::chosen`] chooses.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code: a broken expectation ends the test, and not every test uses everything"
)]

pub mod store;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use millpond_lanes::Ground;
use millpond_sqs::{Sqs, SqsOptions};
use millpond_store::{
    Clock as _, Environment, Faulty, Latency, MemoryStore, Slow, Store, SystemClock, Timestamp,
    VirtualClock,
};
use millpond_testing::Watched;
use serde_json::{Value, json};

pub use store::Kind;

/// When every test begins.
pub const BEGIN_MS: u64 = 1_800_000_000_000;

/// A store that fails when it is told to.
pub type Failing = Faulty<Arc<dyn Store>>;

/// A server and its clock.
#[derive(Clone)]
pub struct World {
    pub clock: VirtualClock,
    pub ground: Ground,
    pub sqs: Sqs,
    /// The store, where it is more than memory.
    pub watched: Option<Watched>,
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    /// The name and text of an error, in either encoding.
    pub fn error(&self) -> (String, String) {
        assert!(self.status >= 400, "not an error: {}", self.text);
        if self.text.starts_with('<') {
            return (self.element("Code"), self.element("Message"));
        }
        let json = self.json();
        let name = json["__type"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
        (name, json["message"].as_str().unwrap().to_owned())
    }

    /// The text of the first element of this name.
    pub fn element(&self, name: &str) -> String {
        let (_, rest) = self.text.split_once(&format!("<{name}>")).unwrap_or_else(|| {
            panic!("no {name} in {}", self.text);
        });
        rest.split_once(&format!("</{name}>")).unwrap().0.to_owned()
    }

    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.text);
        self
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with(SqsOptions::default()).await
    }

    pub async fn with(options: SqsOptions) -> Self {
        let clock = VirtualClock::new(Timestamp::from_millis(BEGIN_MS));
        let environment = Environment::simulated(clock.clone(), 7);
        let opened = store::open(Kind::chosen(), &environment).await;
        let ground = Ground::new(opened.store, &environment);
        let sqs = Sqs::open(&ground, options).await.unwrap();
        Self { clock, ground, sqs, watched: opened.watched, kept: opened.kept }
    }

    /// A world whose store takes ten milliseconds for each request.
    pub async fn slow() -> Self {
        Self::slow_over().await.0
    }

    /// The same, with the store below, which takes no time.
    pub async fn slow_over() -> (Self, Arc<MemoryStore>) {
        let clock = VirtualClock::new(Timestamp::from_millis(BEGIN_MS));
        let environment = Environment::simulated(clock.clone(), 7);
        let latency = Latency { base: Duration::from_millis(10), jitter: Duration::ZERO };
        let below = Arc::new(MemoryStore::new(&environment));
        let store = Slow::new(Arc::clone(&below), &environment, latency);
        let ground = Ground::new(Arc::new(store), &environment);
        let opening = Sqs::open(&ground, SqsOptions::default());
        let sqs = while_time_passes(&clock, opening).await.unwrap();
        (Self { clock, ground, sqs, watched: None, kept: None }, below)
    }

    /// So many times five milliseconds pass, and whatever can go on goes on before each.
    pub async fn steps(&self, count: usize) {
        for _ in 0..count {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.clock.advance(Duration::from_millis(5));
        }
    }

    /// Another node over the same store, which fails there as it is told to.
    pub async fn failing_node(&self, options: SqsOptions) -> (Self, Arc<Failing>) {
        let environment = self.ground.environment.clone();
        let store = Arc::new(Faulty::new(Arc::clone(&self.ground.store), &environment));
        let ground = Ground::new(Arc::clone(&store) as _, &environment);
        let sqs = Sqs::open(&ground, options).await.unwrap();
        (Self { ground, sqs, ..self.clone() }, store)
    }

    /// Another node over the same store.
    pub async fn another_node(&self) -> Self {
        let sqs = Sqs::open(&self.ground, SqsOptions::default()).await.unwrap();
        Self { sqs, ..self.clone() }
    }

    /// Time passes; in steps, so that queues whose clocks follow slowly keep up.
    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub async fn raw(&self, request: Request<Bytes>) -> Answer {
        answer(self.sqs.handle(request).await)
    }

    pub async fn ask(&self, action: &str, body: Value) -> Answer {
        self.raw(json_request(action, &body)).await
    }

    /// An answer that must not be an error.
    pub async fn json(&self, action: &str, body: Value) -> Value {
        self.ask(action, body).await.ok().json()
    }

    pub async fn form(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        self.raw(form_request(path, form)).await
    }

    pub async fn create(&self, name: &str, attributes: Value) -> String {
        let body = json!({"QueueName": name, "Attributes": attributes});
        let created = self.json("CreateQueue", body).await;
        created["QueueUrl"].as_str().unwrap().to_owned()
    }

    pub async fn queue(&self, name: &str) -> String {
        self.create(name, json!({})).await
    }

    pub async fn fifo(&self, name: &str, attributes: Value) -> String {
        let mut all = json!({"FifoQueue": "true"});
        for (name, value) in attributes.as_object().unwrap() {
            all[name] = value.clone();
        }
        self.create(name, all).await
    }

    pub async fn send(&self, url: &str, body: &str) -> Value {
        self.json("SendMessage", json!({"QueueUrl": url, "MessageBody": body})).await
    }

    /// Sends to a FIFO queue.
    pub async fn send_to(&self, url: &str, group: &str, body: &str) -> Value {
        let message = json!({
            "QueueUrl": url, "MessageBody": body, "MessageGroupId": group,
            "MessageDeduplicationId": format!("{group}-{body}"),
        });
        self.json("SendMessage", message).await
    }

    /// Receives up to `max` messages with all that is said about them.
    pub async fn receive(&self, url: &str, max: u32) -> Vec<Value> {
        self.receive_with(url, json!({"MaxNumberOfMessages": max})).await
    }

    pub async fn receive_with(&self, url: &str, how: Value) -> Vec<Value> {
        let mut body = json!({
            "QueueUrl": url, "MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"],
        });
        for (name, value) in how.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = self.json("ReceiveMessage", body).await;
        answer["Messages"].as_array().cloned().unwrap_or_default()
    }

    pub async fn bodies(&self, url: &str, max: u32) -> Vec<String> {
        bodies(&self.receive(url, max).await)
    }

    pub async fn delete(&self, url: &str, message: &Value) -> Answer {
        let body = json!({"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]});
        self.ask("DeleteMessage", body).await
    }

    pub async fn visibility(&self, url: &str, message: &Value, seconds: i64) -> Answer {
        let body = json!({
            "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": seconds,
        });
        self.ask("ChangeMessageVisibility", body).await
    }

    pub async fn attributes(&self, url: &str) -> Value {
        let body = json!({"QueueUrl": url, "AttributeNames": ["All"]});
        self.json("GetQueueAttributes", body).await["Attributes"].clone()
    }

    pub async fn set(&self, url: &str, attributes: Value) -> Answer {
        let body = json!({"QueueUrl": url, "Attributes": attributes});
        self.ask("SetQueueAttributes", body).await
    }

    /// Visible, not visible, delayed.
    pub async fn counts(&self, url: &str) -> (u64, u64, u64) {
        let all = self.attributes(url).await;
        let count = |name: &str| all[name].as_str().unwrap().parse().unwrap();
        (
            count("ApproximateNumberOfMessages"),
            count("ApproximateNumberOfMessagesNotVisible"),
            count("ApproximateNumberOfMessagesDelayed"),
        )
    }

    /// A call that goes on in the background.
    pub fn spawn(&self, action: &str, body: &Value) -> tokio::task::JoinHandle<Answer> {
        let (sqs, request) = (self.sqs.clone(), json_request(action, body));
        tokio::spawn(async move { answer(sqs.handle(request).await) })
    }

    /// Lets everything that can go on go on. A store that works elsewhere is waited for.
    pub async fn settle(&self) {
        let Some(store) = &self.watched else {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            return;
        };
        // What the store's own threads have done is seen a little later.
        for _ in 0..3 {
            let mut quiet = 0;
            while quiet < 100 {
                tokio::task::yield_now().await;
                quiet = if store.is_at_rest() { quiet + 1 } else { 0 };
            }
            SystemClock::new().sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Does something while time passes, five milliseconds at a time.
pub async fn while_time_passes<T>(clock: &VirtualClock, work: impl Future<Output = T>) -> T {
    let pass = async {
        loop {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            clock.advance(Duration::from_millis(5));
        }
    };
    tokio::select! {
        biased;
        done = work => done,
        () = pass => unreachable!("time does not end"),
    }
}

pub fn answer(response: Response<Bytes>) -> Answer {
    let (parts, body) = response.into_parts();
    let text = String::from_utf8(body.to_vec()).unwrap();
    Answer { status: parts.status.as_u16(), headers: parts.headers, text }
}

pub fn json_request(action: &str, body: &Value) -> Request<Bytes> {
    Request::post("http://queue.test:9324/")
        .header("host", "queue.test:9324")
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", format!("AmazonSQS.{action}"))
        .header("x-amzn-query-mode", "true")
        .body(Bytes::from(body.to_string()))
        .unwrap()
}

pub fn form_request(path: &str, form: &[(&str, &str)]) -> Request<Bytes> {
    let body: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    Request::post(path)
        .header("host", "queue.test:9324")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::from(body))
        .unwrap()
}

pub fn bodies(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| message["Body"].as_str().unwrap().to_owned()).collect()
}

pub fn arn(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:000000000000:{name}")
}

/// A redrive policy, as text.
pub fn redrive(name: &str, receives_max: u32) -> String {
    json!({"deadLetterTargetArn": arn(name), "maxReceiveCount": receives_max}).to_string()
}

/// Compares with a file in `tests/fixtures`, except for what is different each time: request ids.
pub fn matches_fixture(name: &str, answer: &Answer) {
    compare(name, &answer_text(answer));
}

/// An answer as it is on the wire, except for its id.
pub fn answer_text(answer: &Answer) -> String {
    let id = answer.headers["x-amzn-requestid"].to_str().unwrap();
    assert_eq!(id.len(), 36, "{id}");
    let mut seen = format!("HTTP {}\n", answer.status);
    for header in ["content-type", "x-amzn-query-error"] {
        if let Some(value) = answer.headers.get(header) {
            seen.push_str(&format!("{header}: {}\n", value.to_str().unwrap()));
        }
    }
    seen.push_str(&format!("\n{}\n", answer.text.replace(id, "REQUEST-ID")));
    seen
}

/// Compares a text with a file in `tests/fixtures`.
pub fn compare(name: &str, seen: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    if std::env::var_os("MILLPOND_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, seen).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}. Write it with MILLPOND_WRITE_FIXTURES=1, then read it.",
            path.display()
        )
    });
    assert_eq!(seen, expected, "{name}");
}
