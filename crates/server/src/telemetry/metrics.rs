//! What the HTTP server counts itself.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::collect::{Collected, Sources};

/// Upper ends of the histogram's buckets, in seconds: from a send that is answered from memory to a receive that waited
/// its 20 seconds.
const SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 21.0];

type One = [(&'static str, &'static str); 1];
type Two = [(&'static str, &'static str); 2];

/// Counters of the HTTP server, and what is read from elsewhere when somebody asks.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Two, Counter>,
    seconds: Family<One, Histogram, fn() -> Histogram>,
    refused: Family<One, Counter>,
    connections: Gauge,
    connections_taken: Counter,
    dropped: Family<One, Counter>,
    tls_reloads: Family<One, Counter>,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    pub door: &'static str,
    pub waited: bool,
    pub status: StatusCode,
    pub took: Duration,
}

/// A connection that is counted while this lives.
pub struct Connected(Gauge);

impl Metrics {
    /// Counters at zero, and what else is to be shown.
    pub fn new(sources: Sources) -> Arc<Self> {
        let mut registry = Registry::with_prefix("millpond");
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            refused: Family::default(),
            connections: Gauge::default(),
            connections_taken: Counter::default(),
            dropped: Family::default(),
            tls_reloads: Family::default(),
        };
        let all = &mut registry;
        all.register("http_requests", "Requests that were answered", metrics.requests.clone());
        all.register_with_unit(
            "http_request",
            "Time from a request's head to its answer",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        all.register(
            "http_refused",
            "Requests that the server itself refused",
            metrics.refused.clone(),
        );
        all.register("http_connections", "Connections now", metrics.connections.clone());
        all.register(
            "http_connections_taken",
            "Connections that were taken",
            metrics.connections_taken.clone(),
        );
        all.register(
            "http_connections_dropped",
            "Connections that were refused or ended by the server",
            metrics.dropped.clone(),
        );
        all.register("tls_reloads", "Changes of the TLS files", metrics.tls_reloads.clone());
        all.register_collector(Box::new(Collected::new(sources)));
        metrics.registry = registry;
        Arc::new(metrics)
    }

    /// A request was answered.
    pub fn answered(&self, took: Took) {
        let class = match took.status.as_u16() {
            200..=299 => "2xx",
            400..=499 => "4xx",
            500..=599 => "5xx",
            _ => "other",
        };
        self.requests.get_or_create(&[("door", took.door), ("status", class)]).inc();
        let kind = if took.waited { "wait" } else { "request" };
        self.seconds.get_or_create(&[("kind", kind)]).observe(took.took.as_secs_f64());
    }

    /// The server itself refused a request.
    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason)]).inc();
    }

    /// A connection was taken.
    pub fn connection(&self) -> Connected {
        self.connections_taken.inc();
        self.connections.inc();
        Connected(self.connections.clone())
    }

    /// A connection was refused, or ended by the server.
    pub fn dropped(&self, reason: &'static str) {
        self.dropped.get_or_create(&[("reason", reason)]).inc();
    }

    /// The TLS files have changed.
    pub fn tls_reloaded(&self, outcome: &'static str) {
        self.tls_reloads.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Everything, in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes whatever is written to it");
        text
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use millpond_lanes::Ground;
    use millpond_sqs::{Sqs, SqsOptions};
    use millpond_store::{Environment, MemoryStore, Meter};

    use super::*;
    use crate::http::Room;

    /// Names and labels in the tables of the documentation: `name{label,label}`.
    fn documented() -> BTreeSet<String> {
        let text = include_str!("../../../../docs/telemetry.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `millpond_"));
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            format!("millpond_{}{{{}}}", cells[0], cells[2]).replace(['`', ' '], "")
        })
        .collect()
    }

    /// The same of what is shown.
    fn shown(text: &str) -> BTreeSet<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| {
                let name = line.split(['{', ' ']).next().unwrap_or_default();
                let name = ["_sum", "_count", "_bucket"]
                    .iter()
                    .find_map(|suffix| name.strip_suffix(suffix))
                    .unwrap_or(name);
                let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
                let labels: Vec<&str> = labels
                    .map(|(labels, _)| labels.split(',').filter_map(|l| l.split('=').next()))
                    .into_iter()
                    .flatten()
                    .filter(|label| *label != "le")
                    .collect();
                format!("{name}{{{}}}", labels.join(","))
            })
            .collect()
    }

    #[tokio::test]
    async fn the_documentation_lists_every_metric_and_no_other() {
        let environment = Environment::system();
        let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
        let sqs = Sqs::open(&ground, SqsOptions::default()).await.unwrap();
        // Nonsense, which is counted like anything else.
        sqs.handle(http::Request::new(bytes::Bytes::new())).await;
        let room = Room::new(&crate::config::Limits::example(), &environment.clock);
        let started = environment.now();
        let metrics = Metrics::new(Sources {
            sqs,
            room,
            meter: Some(Meter::new()),
            spans: Some(Arc::default()),
            started,
        });
        let took = Duration::from_millis(1);
        metrics.answered(Took { door: "sqs", waited: true, status: StatusCode::OK, took });
        metrics.refused("busy");
        metrics.dropped("idle");
        metrics.tls_reloaded("ok");
        drop(metrics.connection());
        assert_eq!(shown(&metrics.text()), documented());
    }
}
