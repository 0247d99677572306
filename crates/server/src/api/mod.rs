//! The native API: what SQS cannot say, as JSON over HTTP under `/v1`.
//!
//! [`Api::handle`] takes a whole request and answers it; it knows no sockets. `serve` mounts it, and the command line
//! calls it in process when it works on a store directly, so that both ways give the same answers.
//!
//! - Names in a path are percent-encoded. A client of a queue is the query parameter `client`; without it, the main one.
//! - Bytes are text where they are text (`body`), else base64 (`body_base64`). Times and durations are milliseconds.
//! - An error is `{"error": {"code", "message", "field"}}` with a fitting status. In batches, each entry has its own.
//! - To wait, give `wait_ms`, up to a minute: the answer comes as soon as there is something.
//! - `GET /v1/openapi.json` describes all of it; `docs/openapi.json` is the same document.

mod admin;
mod backend;
mod consumer;
mod content;
mod error;
mod handles;
pub mod limits;
mod log;
mod members;
mod mount;
mod openapi;
mod queue;
mod route;
mod routes;
mod sequence;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use millpond_lanes::Ground;
use millpond_queue::Queues;
use millpond_store::Environment;
use serde_json::{Value, json};
use tokio::sync::watch;

pub use backend::Backend;
pub use consumer::LetterOutput;
pub use error::{ApiError, ErrorBody};
use handles::Handles;
use members::Members;
pub use mount::{PREFIX, authorize_by};
use route::{Input, Route};

use crate::telemetry::Traced;

/// The sequencer that is used when none is named.
pub const MAIN_SEQUENCER: &str = "main";

/// Decides whether a request may be answered: its head, its body, the name of the operation and of the queue, topic or
/// sequencer that it is about.
pub type Authorize =
    dyn Fn(&http::request::Parts, &Bytes, &str, Option<&str>) -> Result<(), ApiError> + Send + Sync;

/// The native API of one store. Cheap to clone.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    ground: Ground,
    backend: Backend,
    handles: Handles,
    members: Members,
    routes: Vec<Route>,
    document: Bytes,
    authorize: Option<Box<Authorize>>,
    closed: watch::Sender<bool>,
}

impl Api {
    /// The API of the store on this ground.
    pub fn new(ground: &Ground, backend: Backend) -> Self {
        Self::with_queues(ground, backend, Queues::new(ground))
    }

    /// The same over queues that others in this process use too.
    pub fn with_queues(ground: &Ground, backend: Backend, queues: Queues) -> Self {
        let routes = routes::all();
        let document = Bytes::from(openapi::document(&routes).to_string());
        Self(Arc::new(Inner {
            ground: ground.clone(),
            backend,
            handles: Handles::new(ground, queues),
            members: Members::default(),
            routes,
            document,
            authorize: None,
            closed: watch::channel(false).0,
        }))
    }

    /// The same with a check of each request. To be called before it is shared.
    pub fn with_authorize(self, authorize: Box<Authorize>) -> Self {
        let mut api = self;
        if let Some(inner) = Arc::get_mut(&mut api.0) {
            inner.authorize = Some(authorize);
        }
        api
    }

    /// Answers one request, whole; its body is already bounded by the caller.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let traced = request.extensions().get::<Traced>().cloned();
        match Box::pin(self.answer(request)).await {
            Ok(response) => response,
            Err(error) => {
                if let Some(traced) = traced {
                    traced.failed(&error.body.code);
                }
                if error.status.is_server_error() {
                    let code = error.body.code.as_str();
                    tracing::warn!(code, error = %error, "a request failed");
                }
                json_response(error.status, &json!({ "error": error.body }))
            }
        }
    }

    /// Whether the request may wait, so that the caller can count it apart. It is read as the operation will read it:
    /// names can be written in more than one way.
    pub fn may_wait(&self, request: &Request<Bytes>) -> bool {
        let (path, method) = (request.uri().path(), request.method());
        let mut waiting = self.0.routes.iter().filter(|route| route.may_wait);
        let route = waiting.find(|route| route.method == *method && route.matches(path).is_some());
        route.is_some_and(|route| {
            let body = route.has_body().then(|| request.body().clone());
            Input { values: query(request.uri()), body }.waits()
        })
    }

    /// Ends all waits with what they have, and lets no other request wait: for a graceful stop.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
    }

    /// Does what must be done now and then for the queues that were used here: what has ended is removed, what is too
    /// much is shed, counters are stored; and workers that are silent leave their groups. To be called every few seconds,
    /// and before the end.
    pub async fn maintain(&self) {
        members::leave(self.0.members.take_silent()).await;
        let handles = &self.0.handles;
        // What goes to another queue is counted there too.
        for client in handles.clients() {
            let Ok(config) = client.config().await else { continue };
            let dead = config.dead_letters.as_ref().map(|dead| &dead.queue);
            let side = config.shedding.as_ref().and_then(|shedding| shedding.side_queue.as_ref());
            for queue in dead.into_iter().chain(side) {
                // One that was deleted counts nothing.
                let _ = handles.client(queue, client.id().as_str()).await;
            }
        }
        for client in handles.clients() {
            if let Err(error) = Box::pin(client.maintain()).await {
                tracing::debug!(queue = %client.queue(), %error, "maintenance is left to later");
            }
        }
    }

    /// The same as the last thing that is done.
    pub async fn retire(&self) {
        members::leave(self.0.members.take_all()).await;
        self.maintain().await;
        for client in self.0.handles.clients() {
            if let Err(error) = client.retire().await {
                tracing::debug!(queue = %client.queue(), %error, "some counts are lost");
            }
        }
    }

    /// Returns when waits are to end.
    async fn until_closed(&self) {
        // The sender lives as long as this.
        let _ = self.0.closed.subscribe().wait_for(|closed| *closed).await;
    }

    fn ground(&self) -> &Ground {
        &self.0.ground
    }

    fn environment(&self) -> &Environment {
        &self.0.ground.environment
    }

    /// Handles of what is in the store, shared with requests.
    pub(crate) fn handles(&self) -> &Handles {
        &self.0.handles
    }

    fn members(&self) -> &Members {
        &self.0.members
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        if path == openapi::PATH && parts.method == Method::GET {
            return Ok(response(StatusCode::OK, self.0.document.clone()));
        }
        let fitting = |route: &&Route| route.matches(&path).is_some();
        let routes: Vec<&Route> = self.0.routes.iter().filter(fitting).collect();
        let Some(route) = routes.iter().find(|route| route.method == parts.method) else {
            return wrong_route(&routes, &path, &parts.method);
        };
        let mut input = Input { values: route.matches(&path).unwrap_or_default(), body: None };
        let about = ["queue", "topic", "sequencer"].iter().find_map(|name| input.value(name));
        if let Some(traced) = parts.extensions.get::<Traced>() {
            traced.operation(route.operation, route.path, about);
        }
        if let Some(authorize) = &self.0.authorize {
            authorize(&parts, &body, route.operation, about)?;
        }
        input.values.extend(query(&parts.uri));
        if route.has_body() {
            check_content_type(&parts)?;
            input.body = Some(body);
        }
        let answer = route.run(self.clone(), input).await?;
        Ok(json_response(StatusCode::OK, &answer))
    }
}

/// The parameters after the path.
fn query(uri: &Uri) -> Vec<(String, String)> {
    let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.map(|(name, value)| (name.into(), value.into())).collect()
}

/// A page of another site can make a browser send a form or plain text here, but not JSON: so only JSON is taken.
fn check_content_type(parts: &http::request::Parts) -> Result<(), ApiError> {
    let given = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = given.and_then(|value| value.split(';').next()).map(str::trim);
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let message = "send the header `content-type: application/json`";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", message))
}

fn wrong_route(
    routes: &[&Route],
    path: &str,
    method: &Method,
) -> Result<Response<Bytes>, ApiError> {
    if routes.is_empty() {
        let message = format!("there is nothing at {path}; GET {} lists what is", openapi::PATH);
        return Err(ApiError::new(StatusCode::NOT_FOUND, "no_route", message));
    }
    let methods: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
    let methods = methods.join(", ");
    let message = format!("{path} does not take {method}, but {methods}");
    let body = ErrorBody { code: "method".to_owned(), message, field: None };
    let mut answer = json_response(StatusCode::METHOD_NOT_ALLOWED, &json!({ "error": body }));
    if let Ok(methods) = HeaderValue::from_str(&methods) {
        answer.headers_mut().insert(ALLOW, methods);
    }
    Ok(answer)
}

fn json_response(status: StatusCode, body: &Value) -> Response<Bytes> {
    response(status, Bytes::from(body.to_string()))
}

fn response(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
