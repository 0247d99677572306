//! The API in process, on memory and under a virtual clock. Every answer is checked against the OpenAPI document.

mod consumer;
mod document;
mod http;
mod log;
mod queue;
mod schema;
mod sequence;
mod workers;

use std::sync::Arc;

use ::http::{Method, Request, StatusCode};
use bytes::Bytes;
use millpond_lanes::Ground;
use millpond_store::{Environment, MemoryStore, Timestamp, VirtualClock};
use serde_json::{Value, json};

use super::{Api, Backend, openapi, routes};
use schema::check;

/// An API on memory, and its document.
pub struct World {
    pub api: Api,
    pub clock: VirtualClock,
    document: Value,
}

pub fn world() -> World {
    let clock = VirtualClock::automatic(Timestamp::from_millis(1_700_000_000_000));
    let environment = Environment::simulated(clock.clone(), 7);
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    World {
        api: Api::new(&ground, Backend::Other),
        clock,
        document: openapi::document(&routes::all()),
    }
}

impl World {
    pub async fn raw(&self, request: Request<Bytes>) -> (StatusCode, Value) {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = self.api.handle(request).await;
        let (status, body) = (answer.status(), answer.into_body());
        let value: Value = serde_json::from_slice(&body).expect("an answer is JSON");
        let route =
            self.api.0.routes.iter().find(|r| r.method == method && r.matches(&path).is_some());
        if let Some(route) = route {
            let operation = &self.document["paths"][route.path][method.as_str().to_lowercase()];
            let kind = if status.is_success() { "200" } else { "default" };
            let schema = &operation["responses"][kind]["content"]["application/json"]["schema"];
            if let Err(problem) = check(&self.document, schema, &value, "answer") {
                panic!("{} {path}: {problem}\n{value}", route.operation);
            }
        }
        (status, value)
    }

    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        self.raw(request.body(body).unwrap()).await
    }

    /// The answer to what must succeed.
    pub async fn good(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, value) = self.ask(method.clone(), path, body).await;
        assert!(status.is_success(), "{method} {path}: {status} {value}");
        value
    }

    pub async fn get(&self, path: &str) -> Value {
        self.good(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.good(Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        self.good(Method::PUT, path, Some(body)).await
    }

    /// Status, code and field of what must fail.
    pub async fn bad(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, String, String) {
        let (status, value) = self.ask(method.clone(), path, body).await;
        assert!(!status.is_success(), "{method} {path}: {value}");
        let error = &value["error"];
        assert!(!error["message"].as_str().unwrap().is_empty());
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (status.as_u16(), text("code"), text("field"))
    }
}

pub fn failure(status: u16, code: &str, field: &str) -> (u16, String, String) {
    (status, code.to_owned(), field.to_owned())
}

#[tokio::test]
async fn stats_count_what_is_there_and_a_check_reads_it() {
    let world = world();
    world.put("/v1/queues/q", json!({})).await;
    world.post("/v1/queues/q/messages", json!({ "messages": [{ "body": "a" }] })).await;
    world.put("/v1/topics/t", json!({ "settings": { "partitions": 1 } })).await;
    world.post("/v1/topics/t/records", json!({ "records": [{ "payload": "b" }] })).await;
    let message = json!({ "queue": "s", "seq": 0, "payload": "c" });
    world.post("/v1/sequencers/main/messages", json!({ "messages": [message] })).await;
    let stats = world.get("/v1/stats").await;
    assert_eq!((&stats["queues"], &stats["topics"]), (&json!(1), &json!(1)));
    let checked = world.post("/v1/check", json!({})).await;
    let wanted = json!({ "messages": 1, "records": 1, "sequenced": 1, "problems": [] });
    assert_eq!(checked, wanted);
    assert_eq!(world.post("/v1/sweep", json!({})).await["orphans"], 0);
}
