//! What is printed: the JSON of `millpond bench`.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::usage::Usage;
use crate::work::{Measured, Plan};

pub fn json(place: &str, plan: &Plan, measured: &Measured) -> Value {
    let latencies = &measured.latencies;
    let parts =
        [("send", &latencies.send), ("receive", &latencies.receive), ("delete", &latencies.delete)];
    let requests: Vec<Value> =
        parts.into_iter().filter(|(_, some)| !some.is_empty()).map(latency).collect();
    let seconds = measured.elapsed.as_secs_f64();
    json!({
        "place": place,
        "workload": format!("{:?}", plan.workload).to_lowercase(),
        "messages": measured.messages,
        "bytes": plan.bytes,
        "batch": plan.batch,
        "concurrency": plan.concurrency,
        "seconds": seconds,
        "messages_per_second": measured.messages as f64 / seconds.max(f64::EPSILON),
        "again": measured.again,
        "client": measured.own.map(|used| usage(used, measured.messages)),
        "server": measured.process.map(|used| usage(used, measured.messages)),
        "requests": requests,
    })
}

fn usage(used: Usage, messages: u64) -> Value {
    let messages = messages.max(1) as f64;
    json!({
        "cpu_seconds": used.cpu.as_secs_f64(),
        "cpu_micros_each": (used.cpu.as_secs_f64() * 1e7 / messages).round() / 10.0,
        "written_bytes": used.written,
        "written_bytes_each": (used.written as f64 / messages).round(),
    })
}

fn latency((name, histogram): (&str, &Histogram<u64>)) -> Value {
    let millis = |micros: u64| (micros as f64 / 10.0).round() / 100.0;
    json!({
        "request": name,
        "count": histogram.len(),
        "p50_ms": millis(histogram.value_at_percentile(50.0)),
        "p90_ms": millis(histogram.value_at_percentile(90.0)),
        "p99_ms": millis(histogram.value_at_percentile(99.0)),
        "p999_ms": millis(histogram.value_at_percentile(99.9)),
        "max_ms": millis(histogram.max()),
    })
}
