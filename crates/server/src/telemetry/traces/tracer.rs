//! The tracer: makes spans, and has them sent.

use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use millpond_store::{Clock, Environment, Rng};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanId, SpanKind, TraceId, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    IdGenerator, Sampler, SamplingDecision, SdkTracer, SdkTracerProvider, ShouldSample as _, Span,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::collector::Collector;
use super::export::Export;
use super::limits::FLUSH_TIMEOUT;
use super::outbox::{Outbox, SpanCounts};
use super::parent;
use super::request::{Traced, describe, method_name};
use crate::config::TraceConfig;

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent to {endpoint}: {source}")]
pub struct TracesError {
    /// The collector.
    pub endpoint: String,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// Makes spans. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Traces(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tracer: SdkTracer,
    /// Decides about a trace of which nobody else has.
    sampler: Sampler,
    counts: Arc<SpanCounts>,
}

/// The task that sends spans.
#[derive(Debug)]
pub struct Sending {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    clock: Arc<dyn Clock>,
}

/// Ids from the one source of chance.
#[derive(Debug)]
struct Ids(Arc<dyn Rng>);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        TraceId::from(u128::from(self.0.next_u64()) << 64 | u128::from(self.0.next_u64()))
    }

    fn new_span_id(&self) -> SpanId {
        SpanId::from(self.0.next_u64())
    }
}

impl Traces {
    /// Begins to send spans to the collector that is configured. Nothing is connected before there is one.
    pub fn start(config: &TraceConfig) -> Result<(Self, Sending), TracesError> {
        let collector = Collector::new(config)
            .map_err(|source| TracesError { endpoint: config.endpoint.to_string(), source })?;
        // Time and chance are the machine's, also when the queues run on a test clock.
        let environment = Environment::system();
        let counts = Arc::default();
        let (outbox, spans) = Outbox::new(&counts);
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let (stop, stopped) = watch::channel(false);
        let clock = Arc::clone(&environment.clock);
        let export = Export {
            spans,
            collector,
            resource: (&resource).into(),
            counts: Arc::clone(&counts),
            clock: Arc::clone(&clock),
            stop: stopped,
            failing: false,
        };
        let task = tokio::spawn(export.run());
        let sampler = Sampler::TraceIdRatioBased(config.sample);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(outbox)
            .with_sampler(Sampler::ParentBased(Box::new(sampler.clone())))
            .with_id_generator(Ids(environment.rng))
            .with_resource(resource)
            .build();
        let scope = InstrumentationScope::builder("millpond")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let tracer = provider.tracer_with_scope(scope);
        let traces = Self(Arc::new(Inner { tracer, sampler, counts }));
        Ok((traces, Sending { stop, task, clock }))
    }

    /// What became of spans so far.
    pub fn counts(&self) -> Arc<SpanCounts> {
        Arc::clone(&self.0.counts)
    }

    /// The span of a request, if its trace is kept.
    pub fn begin(&self, head: &Parts, peer: SocketAddr, tls: bool) -> Option<Traced> {
        let parent = parent::of_request(&head.headers, |trace| self.keeps(trace));
        let builder = SpanBuilder::from_name(method_name(&head.method)).with_kind(SpanKind::Server);
        let mut span = self.0.tracer.build_with_context(builder, &parent);
        if !span.is_recording() {
            return None;
        }
        describe(&mut span, head, peer, tls);
        Some(Traced::new(self.clone(), span, method_name(&head.method)))
    }

    /// A span inside another.
    pub fn inside(&self, parent: &Context, name: &'static str, kind: SpanKind) -> Span {
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        self.0.tracer.build_with_context(builder, parent)
    }

    fn keeps(&self, trace: TraceId) -> bool {
        let result = self.0.sampler.should_sample(None, trace, "", &SpanKind::Server, &[], &[]);
        result.decision == SamplingDecision::RecordAndSample
    }
}

impl Sending {
    /// Sends what is left, for as long as that may take.
    pub async fn stop(mut self) {
        // The task lives as long as this.
        let _ = self.stop.send(true);
        tokio::select! {
            biased;
            _ = &mut self.task => {}
            () = self.clock.sleep(FLUSH_TIMEOUT) => {
                tracing::warn!("the collector takes too long: the last traces are lost");
            }
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.task.abort();
    }
}
