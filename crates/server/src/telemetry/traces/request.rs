//! The span of a request, and those inside it.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode, Version};
use millpond_sqs::{Part, Watch};
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::Span;

use super::limits::{STORE_SPANS_MAX, TEXT_CHARS_MAX};
use super::parent;
use super::tracer::Traces;

tokio::task_local! {
    /// The request that a task works for.
    static CURRENT: Traced;
}

/// A request whose trace is kept. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Traced(Arc<State>);

struct State {
    traces: Traces,
    method: &'static str,
    told: Mutex<Told>,
}

/// What is known so far.
struct Told {
    /// Of the request.
    span: Span,
    /// Names the request's span as a parent.
    context: Context,
    /// What it asks for, once that is known.
    action: Option<Action>,
    /// The part that it is in.
    part: Option<Span>,
    /// Requests to the store.
    stored: u64,
    is_over: bool,
}

struct Action {
    name: &'static str,
    span: Span,
    context: Context,
    queue: Option<String>,
    messages: Option<usize>,
    error: Option<Cow<'static, str>>,
}

impl Traced {
    pub fn new(traces: Traces, span: Span, method: &'static str) -> Self {
        let context = context_of(&span);
        let told = Told { span, context, action: None, part: None, stored: 0, is_over: false };
        Self(Arc::new(State { traces, method, told: Mutex::new(told) }))
    }

    /// For [`millpond_sqs::Sqs`], which tells it what a request is about.
    pub fn watch(&self) -> Arc<dyn Watch> {
        Arc::new(self.clone())
    }

    /// Does work of the request: spans of the store's requests that are made meanwhile are inside its span.
    pub async fn over<T>(&self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), work).await
    }

    /// An operation of the native API begins.
    pub fn operation(&self, name: &'static str, route: &'static str, about: Option<&str>) {
        self.begin_action(name);
        let mut told = self.told();
        told.span.update_name(format!("{} {route}", self.0.method));
        told.span.set_attribute(KeyValue::new("http.route", route));
        drop(told);
        if let Some(about) = about {
            self.queue(about);
        }
    }

    /// An operation of the native API failed.
    pub fn failed(&self, code: &str) {
        if let Some(action) = &mut self.told().action {
            action.error = Some(shown(code).into());
        }
    }

    /// The request was answered by this door, or refused by the server itself.
    pub fn answered(&self, door: &'static str, status: StatusCode, refusal: Option<&'static str>) {
        let mut told = self.told();
        let failure = told.end_action();
        told.span.set_attribute(KeyValue::new("millpond.door", door));
        let code = i64::from(status.as_u16());
        told.span.set_attribute(KeyValue::new("http.response.status_code", code));
        let failure = match refusal {
            Some(refusal) => Some(refusal.into()),
            None if status.is_server_error() => {
                Some(failure.unwrap_or_else(|| status.as_str().to_owned().into()))
            }
            None => None,
        };
        if let Some(failure) = failure {
            told.span.set_attribute(KeyValue::new("error.type", failure));
        }
        if status.is_server_error() {
            told.span.set_status(Status::error(""));
        }
        told.end();
    }

    /// The span of a request to the store, if this task works for a request and that has not too many of them.
    pub fn store_span(name: &'static str, kind: SpanKind) -> Option<Span> {
        CURRENT.try_with(|traced| traced.inside(name, kind)).ok().flatten()
    }

    fn inside(&self, name: &'static str, kind: SpanKind) -> Option<Span> {
        let mut told = self.told();
        told.stored += 1;
        if told.is_over || told.stored > STORE_SPANS_MAX {
            return None;
        }
        let context = told.innermost();
        drop(told);
        Some(self.0.traces.inside(&context, name, kind))
    }

    fn begin_action(&self, name: &'static str) {
        let mut told = self.told();
        let span = self.0.traces.inside(&told.context, name, SpanKind::Internal);
        let context = context_of(&span);
        let action = Action { name, span, context, queue: None, messages: None, error: None };
        told.action = Some(action);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Traced {
    fn action(&self, name: &'static str) {
        if name == UNKNOWN {
            return;
        }
        self.begin_action(name);
        self.told().span.update_name(format!("{} {name}", self.0.method));
    }

    fn queue(&self, name: &str) {
        if let Some(action) = &mut self.told().action {
            action.queue = Some(shown(name));
        }
    }

    fn messages(&self, count: usize) {
        if let Some(action) = &mut self.told().action {
            action.messages = Some(count);
        }
    }

    fn trace_header(&self, header: &str) {
        let Some(sender) = parent::of_text(header, |_| true) else { return };
        if let Some(action) = &mut self.told().action {
            action.span.add_link(sender, Vec::new());
        }
    }

    fn began(&self, part: Part) {
        let mut told = self.told();
        let context = told.action.as_ref().map_or(&told.context, |action| &action.context);
        let name = match part {
            Part::Wait => "wait",
            Part::Commit => "commit",
        };
        told.part = Some(self.0.traces.inside(context, name, SpanKind::Internal));
    }

    fn ended(&self, _: Part) {
        if let Some(mut part) = self.told().part.take() {
            part.end();
        }
    }

    fn refused(&self, code: &'static str) {
        if let Some(action) = &mut self.told().action {
            action.error = Some(code.into());
        }
    }

    fn carry(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        Box::pin(CURRENT.scope(self.clone(), work))
    }
}

/// What a request asks for that asks for nothing known.
const UNKNOWN: &str = "Unknown";

impl Told {
    /// What a request to the store is made for.
    fn innermost(&self) -> Context {
        match (&self.part, &self.action) {
            (Some(part), _) => context_of(part),
            (None, Some(action)) => action.context.clone(),
            (None, None) => self.context.clone(),
        }
    }

    /// Ends what is inside the request's span. Returns why the action failed, if it did.
    fn end_action(&mut self) -> Option<Cow<'static, str>> {
        if let Some(mut part) = self.part.take() {
            part.end();
        }
        let mut action = self.action.take()?;
        if let Some(queue) = &action.queue {
            action.span.update_name(format!("{} {queue}", action.name));
        }
        let attributes = action.attributes();
        self.span.set_attributes(attributes.iter().cloned());
        action.span.set_attributes(attributes);
        if let Some(error) = &action.error {
            action.span.set_attribute(KeyValue::new("error.type", error.clone()));
            action.span.set_status(Status::error(error.clone()));
        }
        action.span.end();
        action.error
    }

    fn end(&mut self) {
        if self.stored > 0 {
            let stored = i64::try_from(self.stored).unwrap_or(i64::MAX);
            self.span.set_attribute(KeyValue::new("millpond.store.requests", stored));
        }
        self.is_over = true;
        self.span.end();
    }
}

impl Action {
    fn attributes(&self) -> Vec<KeyValue> {
        let mut all = vec![
            KeyValue::new("messaging.system", "millpond"),
            KeyValue::new("messaging.operation.name", self.name),
        ];
        if let Some(kind) = kind_of(self.name) {
            all.push(KeyValue::new("messaging.operation.type", kind));
        }
        if let Some(queue) = &self.queue {
            all.push(KeyValue::new("messaging.destination.name", queue.clone()));
        }
        if let Some(count) = self.messages {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            all.push(KeyValue::new("messaging.batch.message_count", count));
        }
        all
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        if told.is_over {
            return;
        }
        // Nobody answered: the client has hung up.
        told.end_action();
        told.span.set_attribute(KeyValue::new("error.type", "client_gone"));
        told.end();
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced").finish_non_exhaustive()
    }
}

/// What the conventions call an action.
fn kind_of(action: &str) -> Option<&'static str> {
    match action {
        "SendMessage" | "SendMessageBatch" | "append_records" | "put_messages"
        | "send_messages" => Some("send"),
        "ReceiveMessage" | "read_records" | "read_sequence" | "receive_messages" => Some("receive"),
        "DeleteMessage"
        | "DeleteMessageBatch"
        | "ChangeMessageVisibility"
        | "ChangeMessageVisibilityBatch"
        | "ack_messages"
        | "extend_messages"
        | "finish_task"
        | "nack_messages"
        | "release_messages" => Some("settle"),
        _ => None,
    }
}

/// A context that names a span as the parent of others.
fn context_of(span: &Span) -> Context {
    Context::new().with_remote_span_context(span.span_context().clone())
}

/// What a method is called in a span's name.
pub fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "HTTP",
    }
}

/// What a request's head says, without what may be secret: its query is not told, and no header but where it is for.
pub fn describe(span: &mut Span, head: &Parts, peer: SocketAddr, tls: bool) {
    let method = match method_name(&head.method) {
        "HTTP" => "_OTHER",
        known => known,
    };
    let version = match head.version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    span.set_attributes([
        KeyValue::new("http.request.method", method),
        KeyValue::new("url.path", shown(head.uri.path())),
        KeyValue::new("url.scheme", if tls { "https" } else { "http" }),
        KeyValue::new("network.protocol.version", version),
        KeyValue::new("client.address", peer.ip().to_canonical().to_string()),
    ]);
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host.and_then(|host| host.parse::<Authority>().ok()) else { return };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    span.set_attribute(KeyValue::new("server.address", shown(name)));
    if let Some(port) = host.port_u16() {
        span.set_attribute(KeyValue::new("server.port", i64::from(port)));
    }
}

/// As much of a text as is shown.
fn shown(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
