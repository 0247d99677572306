//! Who answers what: the server's own pages, and the doors behind it.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use millpond_store::Clock;

use super::answer::{Encoding, Refusal, come_back, plain};
use super::body;
use super::door::Door;
use super::limits::{COUNTED_BYTES_MIN, HEAD_FIELDS_MAX};
use super::normal::{self, Names};
use super::room::Room;
use crate::config::Limits;
use crate::telemetry::{Metrics, Took, Traced, Traces};

/// The server's own pages: health, metrics and the test clock.
#[async_trait]
pub trait Special: Send + Sync + 'static {
    /// Whether this path is one of them.
    fn has(&self, path: &str) -> bool;

    /// The page. `peer` is who asks.
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        peer: SocketAddr,
    ) -> Response<Bytes>;
}

/// Everything behind the listener.
pub struct Inside {
    /// Doors by the beginning of their paths; the first that fits is taken.
    pub doors: Vec<(&'static str, Arc<dyn Door>)>,
    pub special: Arc<dyn Special>,
    pub room: Room,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    /// The machine's clock, also when the queues run on a test clock.
    pub clock: Arc<dyn Clock>,
    /// Whether requests need no signature.
    pub anonymous: bool,
    /// What pages of its own may call the server.
    pub names: Names,
    /// When requests have traces.
    pub traces: Option<Traces>,
}

/// One connection's way in.
#[derive(Clone)]
pub struct Front {
    pub inside: Arc<Inside>,
    pub peer: SocketAddr,
    pub tls: bool,
}

impl Front {
    /// Answers a request; every failure is an answer.
    pub async fn answer(self, request: Request<Incoming>) -> Response<Bytes> {
        let inside = &self.inside;
        let began = inside.clock.monotonic();
        let (mut parts, body) = request.into_parts();
        let too_many = parts.headers.len() > HEAD_FIELDS_MAX;
        normal::normalize(&parts.uri, &mut parts.headers, self.tls);
        let encoding = Encoding::of(&parts.headers);
        // Only for those who want to read it.
        let asked = tracing::enabled!(tracing::Level::DEBUG)
            .then(|| (parts.method.clone(), parts.uri.path().to_owned()));
        let traced = self.trace(&mut parts);
        let (door, outcome) = if too_many {
            (Way::new("none"), Err(Refusal::TooManyFields))
        } else {
            self.pass(Request::from_parts(parts, ()), body).await
        };
        let refusal = outcome.as_ref().err().map(|refusal| refusal.name());
        let mut response = outcome.unwrap_or_else(|refusal| {
            inside.metrics.refused(refusal.name());
            refusal.answer(encoding)
        });
        come_back(&mut response);
        let response = self.count_bytes(response);
        let took = inside.clock.monotonic().since(began);
        let status = response.status();
        inside.metrics.answered(Took { door: door.name, waited: door.waited, status, took });
        if let Some(traced) = traced {
            traced.answered(door.name, status, refusal);
        }
        if let Some((method, path)) = asked {
            let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let (peer, door, status) = (self.peer, door.name, status.as_u16());
            tracing::debug!(%peer, door, %method, path, status, millis, "answered");
        }
        response
    }

    /// Begins the span of a request, if it has one, and lets those who answer know. The server's own pages have none:
    /// nobody wants to know where the time of a probe went.
    fn trace(&self, parts: &mut Parts) -> Option<Traced> {
        let traces = self.inside.traces.as_ref()?;
        if self.inside.special.has(parts.uri.path()) {
            return None;
        }
        let traced = traces.begin(parts, self.peer, self.tls)?;
        parts.extensions.insert(traced.watch());
        parts.extensions.insert(traced.clone());
        Some(traced)
    }

    async fn pass(
        &self,
        head: Request<()>,
        body: Incoming,
    ) -> (Way, Result<Response<Bytes>, Refusal>) {
        let inside = &self.inside;
        let path = head.uri().path();
        if inside.special.has(path) {
            return (Way::new("own"), Box::pin(self.own_page(&head, body)).await);
        }
        let door = inside.doors.iter().find(|(start, _)| path.starts_with(start));
        let Some((_, door)) = door else {
            return (
                Way::new("none"),
                Ok(plain(StatusCode::NOT_FOUND, "text/plain", "not found\n")),
            );
        };
        let mut way = Way::new(door.name());
        let outcome = Box::pin(self.through(door, head, body, &mut way)).await;
        (way, outcome)
    }

    async fn own_page(
        &self,
        head: &Request<()>,
        body: Incoming,
    ) -> Result<Response<Bytes>, Refusal> {
        let inside = &self.inside;
        let (body, _held) = body::read(body, &inside.limits, &inside.room, &*inside.clock).await?;
        // A page of another origin must not move the clock.
        if head.method() != Method::GET && self.is_foreign(head) {
            return Err(Refusal::ForeignOrigin);
        }
        Ok(inside.special.answer(head.method(), head.uri().path(), body, self.peer).await)
    }

    fn is_foreign(&self, head: &Request<()>) -> bool {
        normal::is_from_foreign_page(head.headers(), &self.inside.names, self.peer)
    }

    async fn through(
        &self,
        door: &Arc<dyn Door>,
        head: Request<()>,
        body: Incoming,
        way: &mut Way,
    ) -> Result<Response<Bytes>, Refusal> {
        let inside = &self.inside;
        if inside.anonymous && self.is_foreign(&head) {
            return Err(Refusal::ForeignOrigin);
        }
        let (body, _held) = body::read(body, &inside.limits, &inside.room, &*inside.clock).await?;
        let request = head.map(|()| body);
        way.waited = door.may_wait(&request);
        let _turn = if way.waited { inside.room.wait()? } else { inside.room.request().await? };
        inside.room.check()?;
        let traced = request.extensions().get::<Traced>().cloned();
        let answer = door.handle(request);
        Ok(match traced {
            Some(traced) => traced.over(answer).await,
            None => answer.await,
        })
    }

    /// Counts the answer's bytes until the client has taken them.
    fn count_bytes(&self, response: Response<Bytes>) -> Response<Bytes> {
        response.map(|body| {
            if body.len() < COUNTED_BYTES_MIN { body } else { self.inside.room.counted(body) }
        })
    }
}

/// Which way a request went.
struct Way {
    name: &'static str,
    waited: bool,
}

impl Way {
    fn new(name: &'static str) -> Self {
        Self { name, waited: false }
    }
}
