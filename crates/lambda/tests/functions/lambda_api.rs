//! As much of Lambda's own API as functions use: invocations are kept, mappings are listed in pages and switched.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::http::{Request, Response, Server};

/// Mappings of one page: far fewer than the service gives.
const PAGE: usize = 2;

#[derive(Debug, Default)]
struct State {
    invoked: Vec<Value>,
    mappings: Vec<Value>,
    pages: usize,
    updates: Vec<(String, Value)>,
    /// How many updates are refused first, since another change is under way.
    busy: usize,
}

#[derive(Debug)]
pub struct LambdaApi {
    state: Arc<Mutex<State>>,
    server: Server,
}

impl LambdaApi {
    pub async fn start() -> Self {
        Self::with_mappings(Vec::new(), 0).await
    }

    pub async fn with_mappings(mappings: Vec<Value>, busy: usize) -> Self {
        let state = State { mappings, busy, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let server = Server::start({
            let state = Arc::clone(&state);
            move |request| {
                let response = state.lock().unwrap().answer(&request);
                async move { response }
            }
        });
        Self { server: server.await, state }
    }

    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// What functions were invoked with since the last look.
    pub fn invoked(&self) -> Vec<Value> {
        std::mem::take(&mut self.state.lock().unwrap().invoked)
    }

    /// Ids and bodies of updates.
    pub fn updates(&self) -> Vec<(String, Value)> {
        self.state.lock().unwrap().updates.clone()
    }

    pub fn pages(&self) -> usize {
        self.state.lock().unwrap().pages
    }
}

pub fn mapping(uuid: &str, source: &str, function: &str, state: &str) -> Value {
    json!({ "UUID": uuid, "EventSourceArn": source, "FunctionArn": function, "State": state })
}

impl State {
    fn answer(&mut self, request: &Request) -> Response {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let body = || serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        if path.ends_with("/invocations") {
            self.invoked.push(body());
            return Response { status: 202, ..Response::default() };
        }
        let mappings = "/2015-03-31/event-source-mappings";
        match (request.method.as_str(), path.strip_prefix(mappings)) {
            ("GET", Some("" | "/")) => {
                self.pages += 1;
                let marker = query.split('&').find_map(|part| part.strip_prefix("Marker="));
                let first: usize = marker.map_or(0, |marker| marker.parse().unwrap());
                // The service filters loosely here, so that the client must compare by itself.
                let page: Vec<_> = self.mappings.iter().skip(first).take(PAGE).cloned().collect();
                let next = first + PAGE;
                let next = (next < self.mappings.len()).then(|| next.to_string());
                Response::json(200, &json!({ "EventSourceMappings": page, "NextMarker": next }))
            }
            ("PUT", Some(uuid)) => {
                if self.busy > 0 {
                    self.busy -= 1;
                    let error = json!({ "Type": "User", "Message": "another change is under way" });
                    let mut response = Response::json(400, &error);
                    response.headers.push(("x-amzn-errortype", "ResourceInUseException".into()));
                    return response;
                }
                let uuid = uuid.trim_matches('/').to_owned();
                self.updates.push((uuid.clone(), body()));
                Response::json(202, &json!({ "UUID": uuid, "State": "Disabling" }))
            }
            _ => Response::json(404, &json!({ "Message": "no such thing" })),
        }
    }
}
