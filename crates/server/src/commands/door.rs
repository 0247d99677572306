//! Where requests go: to a store that is opened here, or to a server.

use std::fmt::Display;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::Failure;
use super::http_client::HttpClient;
use super::open::{Make, open};
use super::target::{Target, access_key};
use crate::api::{Api, Backend, ErrorBody};

/// What stays as it is in a path or a query.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request of the API.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    path: String,
    query: Vec<String>,
    body: Option<Value>,
}

impl Ask {
    fn new(method: Method, path: &[&str], body: Option<Value>) -> Self {
        let parts = path.iter().map(|part| utf8_percent_encode(part, KEPT).to_string());
        let path = format!("/v1/{}", parts.collect::<Vec<_>>().join("/"));
        Self { method, path, query: Vec::new(), body }
    }

    /// Reads something.
    pub fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path, None)
    }

    /// Does something.
    pub fn post(path: &[&str], body: Value) -> Self {
        Self::new(Method::POST, path, Some(body))
    }

    /// Makes something.
    pub fn put(path: &[&str], body: Value) -> Self {
        Self::new(Method::PUT, path, Some(body))
    }

    /// Changes something.
    pub fn patch(path: &[&str], body: Value) -> Self {
        Self::new(Method::PATCH, path, Some(body))
    }

    /// Deletes something.
    pub fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path, None)
    }

    /// The same with a parameter.
    pub fn with(mut self, name: &str, value: impl Display) -> Self {
        let value = value.to_string();
        self.query.push(format!("{name}={}", utf8_percent_encode(&value, KEPT)));
        self
    }

    /// The same with a parameter, if there is one.
    pub fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same for a client of a queue.
    pub fn client(self, client: &str) -> Self {
        if client.is_empty() { self } else { self.with("client", client) }
    }

    fn uri(&self) -> String {
        match self.query.is_empty() {
            true => self.path.clone(),
            false => format!("{}?{}", self.path, self.query.join("&")),
        }
    }

    fn request(&self) -> Result<Request<Bytes>, Failure> {
        let mut request = Request::builder().method(self.method.clone()).uri(self.uri());
        let mut bytes = Bytes::new();
        if let Some(body) = &self.body {
            request = request.header(CONTENT_TYPE, "application/json");
            bytes = Bytes::from(without_null(body.clone()).to_string());
        }
        request.body(bytes).map_err(|error| Failure::Usage(error.to_string()))
    }
}

/// An object without what was not given: `json!` makes null of that. Nulls below the top mean something.
fn without_null(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            Value::Object(object.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

/// Where requests go.
pub enum Door {
    /// A store that is opened here.
    Here(Box<(Api, Backend)>),
    /// A server.
    Server(Box<HttpClient>),
}

impl Door {
    /// Opens the store, or finds the server.
    pub async fn open(target: &Target, make: Make) -> Result<Self, Failure> {
        if let Some(url) = &target.server {
            let client = HttpClient::new(url, access_key(), target.ca_file.as_deref())?;
            return Ok(Self::Server(Box::new(client)));
        }
        let (ground, backend) = open(target, make).await?;
        Ok(Self::Here(Box::new((Api::new(&ground, backend.clone()), backend))))
    }

    /// Asks, and returns what the answer says.
    pub async fn ask(&self, ask: Ask) -> Result<Value, Failure> {
        let (status, bytes) = match self {
            Self::Here(here) => {
                let response = here.0.handle(ask.request()?).await;
                (response.status(), response.into_body())
            }
            Self::Server(client) => client.send(ask.request()?).await?,
        };
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        Err(Failure::Refused(error_of(status, &answer, &bytes)))
    }

    /// Stores what was counted, and closes the store.
    pub async fn close(self) {
        if let Self::Here(here) = self {
            let (api, backend) = *here;
            api.close();
            api.retire().await;
            drop(api);
            if let Backend::Embedded(store, _) = backend {
                store.close().await;
            }
        }
    }
}

/// The error that an answer tells of. Something between here and the server may answer in its own way.
fn error_of(status: StatusCode, answer: &Value, bytes: &[u8]) -> ErrorBody {
    let told = answer.get("error").cloned().unwrap_or(Value::Null);
    serde_json::from_value(told).unwrap_or_else(|_| {
        let code = match status.as_u16() {
            401 | 403 => "access_denied",
            404 => "no_route",
            413 => "too_large",
            429 | 502..=504 => "unavailable",
            _ => "internal",
        };
        let text: String = String::from_utf8_lossy(bytes).chars().take(200).collect();
        let message = format!("the server answered {status}: {text}");
        ErrorBody { code: code.to_owned(), message, field: None }
    })
}

/// The list under a name of an answer.
pub fn list(mut answer: Value, name: &str) -> Vec<Value> {
    match answer.get_mut(name).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Names as objects, so that each can be a line.
pub fn named(answer: Value, list_name: &str, name: &str) -> Vec<Value> {
    list(answer, list_name).into_iter().map(|value| json!({ name: value })).collect()
}

/// A field of an answer; null when it is not there.
pub fn field<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer.get(name).unwrap_or(&Value::Null)
}

/// Gives an object a field.
pub fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}
