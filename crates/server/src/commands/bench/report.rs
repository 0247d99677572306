//! What a bench prints.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::set;
use super::super::output::{Column, Output, Show, print_text};
use super::work::{Measured, Plan};

/// Which percentiles are shown.
const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)];

/// Prints what was measured.
pub fn print(out: Output, place: &str, plan: &Plan, measured: &Measured) -> Result<(), Failure> {
    let latencies = &measured.latencies;
    let parts =
        [("send", &latencies.send), ("receive", &latencies.receive), ("delete", &latencies.delete)];
    let requests: Vec<Value> = parts
        .into_iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(name, histogram)| latency(name, histogram))
        .collect();
    let seconds = measured.elapsed.as_secs_f64();
    let rate = rate(measured);
    let answer = json!({
        "place": place,
        "workload": plan.workload.text(),
        "messages": measured.messages,
        "bytes": plan.bytes,
        "batch": plan.batch,
        "concurrency": plan.concurrency,
        "seconds": seconds,
        "messages_per_second": rate,
        "requests": requests,
    });
    if out.is_json() {
        return out.document(&answer);
    }
    print_text(&format!(
        "{} on {place}: {} messages of {} bytes, {} a request, {} callers\n{rate:.0} messages/s ({seconds:.2} s)\n\n",
        plan.workload.text(),
        measured.messages,
        plan.bytes,
        plan.batch,
        plan.concurrency,
    ))?;
    let columns: &[Column] = &[
        ("REQUEST", "request", Show::Plain),
        ("COUNT", "count", Show::Number),
        ("P50 ms", "p50_ms", Show::Number),
        ("P90 ms", "p90_ms", Show::Number),
        ("P99 ms", "p99_ms", Show::Number),
        ("P99.9 ms", "p999_ms", Show::Number),
        ("MAX ms", "max_ms", Show::Number),
    ];
    out.list(columns, &requests)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn rate(measured: &Measured) -> f64 {
    measured.messages as f64 / measured.elapsed.as_secs_f64().max(f64::EPSILON)
}

fn latency(name: &str, histogram: &Histogram<u64>) -> Value {
    let mut row = json!({ "request": name, "count": histogram.len() });
    for (title, percentile) in PERCENTILES {
        set(
            &mut row,
            &format!("{title}_ms"),
            json!(millis(histogram.value_at_percentile(percentile))),
        );
    }
    set(&mut row, "max_ms", json!(millis(histogram.max())));
    row
}

#[expect(clippy::cast_precision_loss, reason = "a latency for people to read")]
fn millis(micros: u64) -> f64 {
    (micros as f64 / 10.0).round() / 100.0
}
