//! `docs/telemetry.md` lists every metric, and nothing else.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Server, get, sqs};

/// Name, kind and labels of each metric in the documentation's tables.
fn documented() -> BTreeMap<String, String> {
    let text = include_str!("../../../../docs/telemetry.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `millpond_"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let name = format!("millpond_{}", cells.next().unwrap().trim_end_matches('`'));
        (name, cells.next().unwrap().to_owned())
    })
    .collect()
}

/// Name and kind of each metric that a server shows.
fn shown(text: &str) -> BTreeMap<String, String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            // The text format adds it to each counter.
            let suffix = if kind == "counter" { "_total" } else { "" };
            (format!("{name}{suffix}"), kind.to_owned())
        })
        .collect()
}

#[test]
fn every_metric_that_is_shown_is_documented_with_its_kind() {
    let server = Server::start(&[]);
    let queue = sqs::queue(&server, "metered");
    sqs::send(&server, &queue, "x");
    let documented = documented();
    let shown = shown(&get(&server.address, "/metrics").body);
    assert!(shown.len() > 10, "{shown:?}");
    for (name, kind) in &shown {
        assert_eq!(documented.get(name), Some(kind), "{name} in docs/telemetry.md");
    }
}

#[test]
fn requests_and_messages_are_counted() {
    let server = Server::start(&[]);
    let queue = sqs::queue(&server, "counted");
    sqs::send(&server, &queue, "x");
    sqs::call(&server, "SendMessage", &json!({ "QueueUrl": queue }));
    assert_eq!(sqs::receive(&server, &queue, 0).len(), 1);
    let text = get(&server.address, "/metrics").body;
    for line in [
        "millpond_sqs_messages_sent_total 1",
        "millpond_sqs_messages_received_total 1",
        "millpond_sqs_requests_total{action=\"SendMessage\",code=\"OK\"} 1",
        "millpond_http_requests_total{door=\"sqs\",status=\"4xx\"} 1",
        "millpond_http_requests_total{door=\"sqs\",status=\"2xx\"} 3",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in\n{text}");
    }
}

#[test]
fn metrics_can_be_kept_from_others() {
    let server = Server::start(&["--metrics", "nobody"]);
    assert_eq!(get(&server.address, "/metrics").status, 403);
    let server = Server::start(&["--metrics", "loopback"]);
    let answer = get(&server.address, "/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text"));
}
