//! Spans that have ended and are to be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc;

use super::limits::OUTBOX_SPANS_MAX;

/// What became of spans.
#[derive(Debug, Default)]
pub struct SpanCounts {
    sent: AtomicU64,
    full: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
}

/// Why spans did not reach the collector, or were not taken there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The outbox had no room: the collector is too slow, or away.
    Full,
    /// Sending failed for good.
    Failed,
    /// The collector took the batch and left these out.
    Rejected,
}

impl SpanCounts {
    pub fn count_sent(&self, count: usize) {
        self.sent.fetch_add(number(count), Ordering::Relaxed);
    }

    pub fn count_dropped(&self, why: Dropped, count: usize) {
        let counter = match why {
            Dropped::Full => &self.full,
            Dropped::Failed => &self.failed,
            Dropped::Rejected => &self.rejected,
        };
        counter.fetch_add(number(count), Ordering::Relaxed);
    }

    /// Spans that the collector has taken.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Spans that were dropped, by reason.
    pub fn dropped(&self) -> [(&'static str, u64); 3] {
        [("full", &self.full), ("failed", &self.failed), ("rejected", &self.rejected)]
            .map(|(reason, counter)| (reason, counter.load(Ordering::Relaxed)))
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Takes spans that have ended, as many as there is room for, and never makes anybody wait. The SDK's own batches do not
/// tell how many spans they dropped, and send from a thread that has no runtime.
#[derive(Debug)]
pub struct Outbox {
    spans: mpsc::Sender<SpanData>,
    counts: Arc<SpanCounts>,
}

impl Outbox {
    /// An outbox, and the end that it is emptied from.
    pub fn new(counts: &Arc<SpanCounts>) -> (Self, mpsc::Receiver<SpanData>) {
        let (spans, out) = mpsc::channel(OUTBOX_SPANS_MAX);
        (Self { spans, counts: Arc::clone(counts) }, out)
    }
}

impl SpanProcessor for Outbox {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.spans.try_send(span).is_err() {
            self.counts.count_dropped(Dropped::Full, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        // Whoever empties it is told apart.
        Ok(())
    }
}
