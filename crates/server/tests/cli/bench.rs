//! A short load of each kind.

use serde_json::Value;

use super::world::{Place, Server};

fn check(report: &Value, workload: &str, requests: &[&str]) {
    assert_eq!(report["workload"], workload);
    assert!(report["messages"].as_u64().unwrap() >= 40, "{report}");
    assert!(report["messages_per_second"].as_f64().unwrap() > 0.0);
    let names: Vec<&str> = report["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["request"].as_str().unwrap())
        .collect();
    assert_eq!(names, requests);
    for request in report["requests"].as_array().unwrap() {
        assert!(request["p50_ms"].as_f64() <= request["max_ms"].as_f64(), "{request}");
    }
}

const WORKLOADS: [(&str, &[&str]); 4] = [
    ("send", &["send"]),
    ("receive", &["receive", "delete"]),
    ("cycle", &["send", "receive", "delete"]),
    ("drain", &["receive", "delete"]),
];

#[test]
fn each_workload_runs_on_a_store_and_leaves_no_queue() {
    let place = Place::store();
    for (workload, requests) in WORKLOADS {
        let arguments = [
            "bench",
            "--workload",
            workload,
            "--messages",
            "40",
            "--concurrency",
            "4",
            "--batch",
            "5",
        ];
        check(&place.json(&arguments)[0], workload, requests);
    }
    assert_eq!(place.good(&["queue", "list"]), "");
    let printed = place.good(&["bench", "--messages", "10", "--keep", "--queue", "kept"]);
    assert!(printed.contains("messages/s") && printed.contains("P99.9 ms"), "{printed}");
    assert_eq!(place.good(&["queue", "list"]), "QUEUE\nkept\n");
}

#[test]
fn each_workload_runs_on_an_sqs_endpoint() {
    let directory = tempfile::TempDir::new().unwrap();
    let server = Server::start(directory.path(), &[]);
    let place = Place::Store(tempfile::TempDir::new().unwrap());
    for (workload, requests) in WORKLOADS {
        let report = place.json(&[
            "bench",
            "--endpoint",
            &server.url,
            "--workload",
            workload,
            "--messages",
            "40",
            "--concurrency",
            "4",
        ]);
        check(&report[0], workload, requests);
    }
}

#[test]
fn a_backlog_waits_all_the_while_and_the_server_is_watched() {
    let directory = tempfile::TempDir::new().unwrap();
    let server = Server::start(directory.path(), &[]);
    let place = Place::Store(tempfile::TempDir::new().unwrap());
    let id = std::process::id().to_string();
    let load = ["bench", "--endpoint", &server.url, "--messages", "20", "--concurrency", "2"];
    let more =
        ["--backlog", "30", "--process", &id, "--keep", "--queue", "watched", "--bytes", "5"];
    let report = place.json(&[&load[..], &more[..]].concat());
    assert_eq!((&report[0]["messages"], &report[0]["again"]), (&20.into(), &0.into()));
    // This test, whose child the server is.
    assert!(report[0]["server"]["cpu_seconds"].as_f64().is_some(), "{}", report[0]);
    assert!(report[0]["client"]["cpu_seconds"].as_f64().is_some(), "{}", report[0]);
    // What was there before the cycles, as many as there were, is there after them.
    let count = place.json(&["queue", "count", "watched", "--server", &server.url]);
    assert_eq!(count[0]["available"], 30, "{}", count[0]);
}
