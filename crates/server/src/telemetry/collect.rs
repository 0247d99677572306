//! What is counted elsewhere and read when somebody asks for metrics.

use std::fmt;
use std::sync::Arc;

use millpond_sqs::Sqs;
use millpond_store::{Meter, Operation, Timestamp};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::traces::SpanCounts;
use crate::http::Room;

/// Where to read.
#[derive(Debug)]
pub struct Sources {
    pub sqs: Sqs,
    pub room: Room,
    /// Of a store that has one.
    pub meter: Option<Meter>,
    /// When there are traces.
    pub spans: Option<Arc<SpanCounts>>,
    pub started: Timestamp,
}

#[derive(Debug)]
pub struct Collected(Sources);

const OPERATIONS: [(&str, Operation); 5] = [
    ("get", Operation::Get),
    ("query", Operation::Query),
    ("write", Operation::Write),
    ("write_all", Operation::WriteAll),
    ("write_each", Operation::WriteEach),
];

impl Collected {
    pub fn new(sources: Sources) -> Self {
        Self(sources)
    }

    fn sqs(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seen = self.0.sqs.metrics();
        let mut requests = family(out, "sqs_requests", "SQS requests that were answered")?;
        for ((action, code), count) in &seen.requests {
            add(&mut requests, &[("action", *action), ("code", *code)], *count)?;
        }
        counter(out, "sqs_messages_sent", "Messages that were accepted", seen.messages_sent)?;
        let received = seen.messages_received;
        counter(out, "sqs_messages_received", "Messages that were handed out", received)?;
        counter(out, "sqs_messages_deleted", "Messages that were deleted", seen.messages_deleted)?;
        let help = "Messages claimed for a client that had gone, and given back";
        counter(out, "sqs_messages_returned", help, seen.messages_returned)?;
        gauge(
            out,
            "sqs_receives_waiting",
            "Receives that wait for messages now",
            seen.waiting as u64,
        )
    }

    fn room(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (requests, waits, bytes) = self.0.room.in_hand();
        gauge(
            out,
            "http_requests_in_work",
            "Requests in work now, waits not counted",
            requests as u64,
        )?;
        gauge(out, "http_waits", "Requests that may wait, now", waits as u64)?;
        gauge(out, "http_bodies_bytes", "Bytes of bodies in memory now", bytes as u64)
    }

    fn store(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let reading = self.0.meter.as_ref().map(Meter::read).unwrap_or_default();
        let present = self.0.meter.is_some();
        let used = OPERATIONS
            .iter()
            .filter(|_| present)
            .map(|(name, operation)| ([("operation", *name)], reading.of(*operation)));
        let used: Vec<_> = used.collect();
        let mut requests = family(out, "store_requests", "Requests to DynamoDB")?;
        for (labels, usage) in &used {
            add(&mut requests, labels, usage.requests)?;
        }
        let mut units = family(out, "store_read_units", "Read units that DynamoDB charged")?;
        for (labels, usage) in &used {
            add_fraction(&mut units, labels, usage.read_units)?;
        }
        let mut units = family(out, "store_write_units", "Write units that DynamoDB charged")?;
        for (labels, usage) in &used {
            add_fraction(&mut units, labels, usage.write_units)?;
        }
        Ok(())
    }

    fn traces(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let spans = self.0.spans.as_deref();
        let mut sent = family(out, "traces_sent", "Spans that the collector has taken")?;
        if let Some(spans) = spans {
            sent.encode_counter::<NoLabelSet, _, u64>(&spans.sent(), None)?;
        }
        let mut dropped = family(out, "traces_dropped", "Spans that the collector did not take")?;
        for (reason, count) in spans.iter().flat_map(|spans| spans.dropped()) {
            add(&mut dropped, &[("reason", reason)], count)?;
        }
        Ok(())
    }

    fn process(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let started = self.0.started.as_millis() / 1_000;
        gauge(out, "process_start_seconds", "When the server started, since 1970", started)?;
        let resident = resident_bytes().unwrap_or_default();
        gauge(
            out,
            "process_resident_bytes",
            "Memory of the process; 0 where it is not known",
            resident,
        )
    }
}

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.sqs(&mut encoder)?;
        self.room(&mut encoder)?;
        self.store(&mut encoder)?;
        self.traces(&mut encoder)?;
        self.process(&mut encoder)
    }
}

fn family<'a>(
    out: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    out.encode_descriptor(name, help, None, MetricType::Counter)
}

fn add(family: &mut MetricEncoder<'_>, labels: &impl EncodeLabelSet, count: u64) -> fmt::Result {
    family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

fn add_fraction(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    count: f64,
) -> fmt::Result {
    family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

fn counter(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, count: u64) -> fmt::Result {
    family(out, name, help)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    out.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

/// The memory of this process, where the system tells it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}
