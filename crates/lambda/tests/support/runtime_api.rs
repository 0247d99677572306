//! Lambda's Runtime API, with real deadlines: what a function's process asks for its next event, and answers to.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millpond_store::{Environment, Timestamp};
use serde_json::Value;
use tokio::sync::Notify;

use super::http::{Request, Response, Server};
use super::until;

pub const FUNCTION_ARN: &str = "arn:aws:lambda:eu-central-1:123456789012:function:under-test";

/// What a function answered, and when.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The answer, or the error.
    pub result: Result<Value, Value>,
    /// How long before the deadline it came; nothing when it came late.
    pub early: Option<Duration>,
}

impl Answer {
    pub fn ok(&self) -> &Value {
        self.result.as_ref().unwrap_or_else(|error| panic!("the function failed: {error}"))
    }

    /// The names in a partial batch response.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.ok()["batchItemFailures"].as_array().unwrap();
        failures.iter().map(|one| one["itemIdentifier"].as_str().unwrap().to_owned()).collect()
    }
}

#[derive(Debug)]
struct Invocation {
    id: String,
    event: Vec<u8>,
    deadline: Timestamp,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Invocation>,
    deadlines: HashMap<String, Timestamp>,
    answers: HashMap<String, Answer>,
    count: usize,
}

/// The API for one function.
#[derive(Debug)]
pub struct RuntimeApi {
    state: Arc<Mutex<State>>,
    arrived: Arc<Notify>,
    environment: Environment,
    server: Server,
}

impl RuntimeApi {
    pub async fn start() -> Self {
        let environment = Environment::system();
        let state = Arc::<Mutex<State>>::default();
        let arrived = Arc::<Notify>::default();
        let server = Server::start({
            let (state, arrived, environment) =
                (Arc::clone(&state), Arc::clone(&arrived), environment.clone());
            move |request| {
                let (state, arrived) = (Arc::clone(&state), Arc::clone(&arrived));
                let now = environment.now();
                async move { answer(&state, &arrived, now, request).await }
            }
        })
        .await;
        Self { state, arrived, environment, server }
    }

    /// What `AWS_LAMBDA_RUNTIME_API` is set to.
    pub fn address(&self) -> String {
        self.server.address.to_string()
    }

    /// Has an event delivered, with so long until its deadline, and returns its id.
    pub fn send(&self, event: &Value, timeout: Duration) -> String {
        let deadline = self.environment.now().plus(timeout);
        let mut state = self.state.lock().unwrap();
        state.count += 1;
        let id = format!("request-{}", state.count);
        let event = event.to_string().into();
        state.deadlines.insert(id.clone(), deadline);
        state.waiting.push_back(Invocation { id: id.clone(), event, deadline });
        self.arrived.notify_waiters();
        id
    }

    /// The answer to an event, once it is there.
    pub async fn answer(&self, id: &str) -> Answer {
        until("the function answers", async || self.peek(id).is_some()).await;
        self.peek(id).unwrap()
    }

    pub fn peek(&self, id: &str) -> Option<Answer> {
        self.state.lock().unwrap().answers.get(id).cloned()
    }

    /// Has an event delivered, and waits for the answer.
    pub async fn invoke(&self, event: &Value, timeout: Duration) -> Answer {
        let id = self.send(event, timeout);
        self.answer(&id).await
    }
}

async fn answer(
    state: &Mutex<State>,
    arrived: &Notify,
    now: Timestamp,
    request: Request,
) -> Response {
    let path = request.path.trim_start_matches("/2018-06-01/runtime/");
    if path == "invocation/next" {
        loop {
            let notified = arrived.notified();
            if let Some(next) = state.lock().unwrap().waiting.pop_front() {
                let headers = vec![
                    ("Lambda-Runtime-Aws-Request-Id", next.id),
                    ("Lambda-Runtime-Deadline-Ms", next.deadline.as_millis().to_string()),
                    ("Lambda-Runtime-Invoked-Function-Arn", FUNCTION_ARN.to_owned()),
                    ("Lambda-Runtime-Trace-Id", "Root=1-0-0".to_owned()),
                    ("content-type", "application/json".to_owned()),
                ];
                return Response { status: 200, headers, body: next.event };
            }
            notified.await;
        }
    }
    let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let (result, id) = match path.strip_prefix("invocation/").and_then(|path| path.split_once('/'))
    {
        Some((id, "response")) => (Ok(body), id),
        Some((id, "error")) => (Err(body), id),
        _ => return Response { status: 404, ..Response::default() },
    };
    let mut state = state.lock().unwrap();
    let deadline = state.deadlines.get(id).copied().unwrap();
    let early = (now < deadline).then(|| deadline.since(now));
    state.answers.insert(id.to_owned(), Answer { result, early });
    Response { status: 202, ..Response::default() }
}
