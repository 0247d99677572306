//! What a bench prints.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{field, set};
use super::super::output::{Column, Output, Show, print_text};
use super::usage::Usage;
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
    let mut answer = json!({
        "place": place,
        "workload": plan.workload.text(),
        "messages": measured.messages,
        "bytes": plan.bytes,
        "batch": plan.batch,
        "concurrency": plan.concurrency,
        "seconds": seconds,
        "messages_per_second": rate,
        "again": measured.again,
        "requests": requests,
    });
    for (name, used) in [("client", measured.own), ("server", measured.process)] {
        if let Some(used) = used {
            set(&mut answer, name, usage(used, measured.messages));
        }
    }
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
    if measured.again > 0 {
        print_text(&format!("{} messages came more than once\n\n", measured.again))?;
    }
    if let Some(used) = measured.process {
        let each = usage(used, measured.messages);
        let (cpu, written) = (field(&each, "cpu_micros_each"), field(&each, "written_bytes_each"));
        print_text(&format!("the server used {cpu} µs and wrote {written} bytes a message\n\n"))?;
    }
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

/// What was used, in all and for each message.
#[expect(clippy::cast_precision_loss, reason = "figures for people to read")]
fn usage(used: Usage, messages: u64) -> Value {
    let messages = messages.max(1) as f64;
    let micros = used.cpu.as_secs_f64() * 1e6 / messages;
    json!({
        "cpu_seconds": used.cpu.as_secs_f64(),
        "cpu_micros_each": (micros * 10.0).round() / 10.0,
        "written_bytes": used.written,
        "written_bytes_each": (used.written as f64 / messages).round(),
    })
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
