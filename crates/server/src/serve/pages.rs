//! The server's own pages: health, metrics, and the test clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use millpond_store::Clock as _;
use serde::Deserialize;
use serde_json::json;

use super::clock::TestClock;
use super::health::Health;
use crate::config::MetricsFor;
use crate::http::limits::ADVANCE_SECONDS_MAX;
use crate::http::{Special, plain};
use crate::telemetry::Metrics;

const LIVE: &str = "/health/live";
const READY: &str = "/health/ready";
const METRICS: &str = "/metrics";
const CLOCK: &str = "/test-clock";
const ADVANCE: &str = "/test-clock/advance";

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The pages.
pub struct Pages {
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub metrics_for: MetricsFor,
    pub test_clock: Option<TestClock>,
}

/// How far to move the clock.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    seconds: f64,
}

#[async_trait]
impl Special for Pages {
    fn has(&self, path: &str) -> bool {
        matches!(path, LIVE | READY | METRICS | CLOCK | ADVANCE)
    }

    async fn answer(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        peer: SocketAddr,
    ) -> Response<Bytes> {
        let wanted = if path == ADVANCE { Method::POST } else { Method::GET };
        if *method != wanted {
            let said = format!("{path} answers {wanted}\n");
            return plain(StatusCode::METHOD_NOT_ALLOWED, TEXT, said);
        }
        match path {
            LIVE => plain(StatusCode::OK, TEXT, "alive\n"),
            READY => match self.health.ready().await {
                Ok(()) => plain(StatusCode::OK, TEXT, "ready\n"),
                Err(why) => {
                    plain(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("not ready: {why}\n"))
                }
            },
            METRICS => self.metrics(peer),
            CLOCK => self.clock(|_| Ok(())),
            _ => self.clock(|clock| advance(clock, &body)),
        }
    }
}

impl Pages {
    fn metrics(&self, peer: SocketAddr) -> Response<Bytes> {
        let allowed = match self.metrics_for {
            MetricsFor::Everyone => true,
            MetricsFor::Loopback => peer.ip().to_canonical().is_loopback(),
            MetricsFor::Nobody => false,
        };
        if !allowed {
            let said = "metrics are not for you; see --metrics\n";
            return plain(StatusCode::FORBIDDEN, TEXT, said);
        }
        plain(StatusCode::OK, OPEN_METRICS, self.metrics.text())
    }

    fn clock(&self, change: impl FnOnce(&TestClock) -> Result<(), String>) -> Response<Bytes> {
        let Some(clock) = &self.test_clock else {
            let said = json!({ "error": "the clock cannot be moved; start with --test-clock" });
            return plain(StatusCode::NOT_FOUND, JSON, said.to_string());
        };
        if let Err(problem) = change(clock) {
            return plain(StatusCode::BAD_REQUEST, JSON, json!({ "error": problem }).to_string());
        }
        let said = json!({
            "now_millis": clock.now().as_millis(),
            "ahead_seconds": clock.ahead().as_secs_f64(),
        });
        plain(StatusCode::OK, JSON, said.to_string())
    }
}

fn advance(clock: &TestClock, body: &[u8]) -> Result<(), String> {
    let Advance { seconds } = serde_json::from_slice(body)
        .map_err(|error| format!("send {{\"seconds\": 30}}: {error}"))?;
    if !(0.0..=ADVANCE_SECONDS_MAX).contains(&seconds) {
        return Err(format!("seconds: {seconds} is not between 0 and {ADVANCE_SECONDS_MAX}"));
    }
    clock.advance(Duration::from_secs_f64(seconds));
    Ok(())
}
