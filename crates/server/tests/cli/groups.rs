//! `log consume`: workers of a group on the command line.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::world::Place;

fn with_records(place: &Place, partitions: &str, count: usize) {
    place.good(&["log", "create", "t", "--partitions", partitions]);
    let lines: String = (0..count).map(|n| format!("{n}\n")).collect();
    place.good_with(&["log", "append", "t", "--lines", "-"], &lines);
}

fn payloads(lines: &[Value]) -> Vec<u64> {
    let mut all: Vec<u64> =
        lines.iter().map(|line| line["payload"].as_str().unwrap().parse().unwrap()).collect();
    all.sort_unstable();
    all
}

/// A worker that goes on until it is ended, and has printed so many records.
fn follower(place: &Place, more: &[&str], count: usize) -> Child {
    let mut command = place.command(&["log", "consume", "t", "--group", "g", "--follow", "--json"]);
    if let Place::Server(_, server) = place {
        command.args(["--server", &server.url]);
    }
    let mut child = command.args(more).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().take(count);
    assert_eq!(lines.map_while(Result::ok).count(), count);
    child
}

#[test]
fn what_is_printed_is_checkpointed_and_not_printed_again() {
    for place in [Place::store(), Place::server()] {
        with_records(&place, "3", 25);
        let some = place.json(&["log", "consume", "t", "--group", "g", "--max", "10"]);
        let rest = place.json(&["log", "consume", "t", "--group", "g", "--batch", "4"]);
        assert_eq!((some.len(), rest.len()), (10, 15));
        assert_eq!(payloads(&[some, rest].concat()), (0..25).collect::<Vec<_>>());
        assert!(place.json(&["log", "consume", "t", "--group", "g"]).is_empty());
        let other = ["log", "consume", "t", "--group", "late", "--start", "latest"];
        assert!(place.json(&other).is_empty());
        let lag = &place.json(&["log", "lag", "t", "g"])[0];
        assert_eq!((&lag["lag"], &lag["workers"]), (&json!(0), &json!([])));
        let table = place.good(&["log", "consume", "t", "--group", "table", "--max", "1"]);
        assert!(table.starts_with("PARTITION"), "{table}");
    }
}

#[test]
fn an_interrupted_worker_checkpoints_what_it_printed_and_leaves() {
    for place in [Place::store(), Place::server()] {
        with_records(&place, "2", 9);
        let mut child = follower(&place, &["--checkpoint", "end", "--worker", "patient"], 9);
        if matches!(place, Place::Server(..)) {
            let lag = &place.json(&["log", "lag", "t", "g"])[0];
            assert_eq!(lag["lag"], 9, "nothing is checkpointed before the end");
            let worker = lag["workers"][0]["id"].as_str().unwrap();
            assert!(worker.starts_with("patient."), "{worker}");
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let lag = &place.json(&["log", "lag", "t", "g"])[0];
        assert_eq!((&lag["lag"], &lag["workers"]), (&json!(0), &json!([])));
    }
}

#[test]
fn what_a_killed_worker_printed_and_did_not_checkpoint_is_printed_by_another() {
    let place = Place::server();
    with_records(&place, "2", 9);
    let how = ["--checkpoint", "end", "--lease", "1s"];
    let mut killed = follower(&place, &how, 9);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let output = place.run(&["log", "consume", "t", "--group", "g", "--lease", "1s", "--json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    if output.stdout.is_empty() {
        assert!(said.contains("are with other workers") && said.contains("--wait"), "{said}");
        let wait =
            ["log", "consume", "t", "--group", "g", "--lease", "1s", "--wait", "60s", "--max", "9"];
        assert_eq!(payloads(&place.json(&wait)), (0..9).collect::<Vec<_>>());
    }
    assert_eq!(place.json(&["log", "lag", "t", "g"])[0]["lag"], 0);
}

#[test]
fn bad_workers_are_refused() {
    let place = Place::store();
    with_records(&place, "1", 1);
    let refused = |arguments: &[&str], code: i32, word: &str| {
        let (exit, said) = place.bad(arguments);
        assert!(exit == code && said.contains(word), "{arguments:?}: {exit}, {said}");
    };
    refused(&["log", "consume", "t"], 2, "--group");
    refused(&["log", "consume", "nowhere", "--group", "g"], 3, "nowhere");
    refused(&["log", "consume", "t", "--group", "a b"], 2, "group");
    refused(&["log", "consume", "t", "--group", "g", "--lease", "1ms"], 2, "lease");
    refused(&["log", "consume", "t", "--group", "g", "--max", "0"], 2, "--max");
}
