//! Lines in and out: what one command prints, another reads.

use serde_json::{Value, json};

use super::world::Place;

#[test]
fn what_is_received_as_json_lines_can_be_sent_again_and_acknowledged() {
    let place = Place::store();
    place.good(&["queue", "create", "from"]);
    place.good(&["queue", "create", "to"]);
    let messages = [
        json!({ "body": "plain", "attributes": { "size": { "type": "number", "value": "3" } } }),
        json!({ "body_base64": "/wAB", "group": "g" }),
        json!({ "body": "with\nlines and ünicode", "trace": "t", "attributes": { "a": "b" } }),
    ];
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    assert_eq!(place.json_with(&["queue", "send", "from", "--jsonl", "-"], &lines).len(), 3);

    let received = place.good(&["queue", "receive", "from", "--max", "10", "--json"]);
    let sent = place.json_with(&["queue", "send", "to", "--jsonl", "-"], &received);
    assert_eq!(sent.len(), 3);
    let acked = place.json_with(&["queue", "ack", "from", "-"], &received);
    assert!(acked.iter().all(|outcome| outcome["settled"] == "now"), "{acked:?}");
    let count = &place.json(&["queue", "count", "from"])[0];
    assert_eq!((&count["available"], &count["leased"]), (&json!(0), &json!(0)));

    let again = place.json(&["queue", "receive", "to", "--max", "10"]);
    assert_eq!(again[0]["body"], "plain");
    assert_eq!(again[0]["attributes"]["size"]["value"], "3");
    assert_eq!((&again[1]["body_base64"], &again[1]["group"]), (&json!("/wAB"), &json!("g")));
    assert_eq!((&again[2]["body"], &again[2]["trace"]), (&messages[2]["body"], &json!("t")));
}

#[test]
fn records_and_numbered_messages_round_trip_as_json_lines() {
    let place = Place::store();
    place.good(&["log", "create", "a", "--partitions", "1"]);
    place.good(&["log", "create", "b", "--partitions", "1"]);
    let record =
        json!({ "key": "k", "payload_base64": "/w==", "headers": [{ "name": "h", "value": "v" }] });
    place.good_with(&["log", "append", "a", "--jsonl", "-"], &format!("{record}\n"));
    place.good(&["log", "append", "a", "second", "--key", "k"]);
    let read = place.good(&["log", "read", "a", "--json"]);
    place.good_with(&["log", "append", "b", "--jsonl", "-"], &read);
    let strip = |mut value: Value| {
        value.as_object_mut().unwrap().remove("timestamp_ms");
        value
    };
    let copies: Vec<Value> = place.json(&["log", "read", "b"]).into_iter().map(strip).collect();
    let originals: Vec<Value> = place.json(&["log", "read", "a"]).into_iter().map(strip).collect();
    assert_eq!(copies, originals);

    let messages = "{\"queue\":\"q\",\"seq\":1,\"payload\":\"b\"}\n{\"queue\":\"q\",\"seq\":0,\"payload\":\"a\"}\n";
    place.good_with(&["sequence", "put", "--jsonl", "-"], messages);
    let read = place.good(&["sequence", "read", "q", "--json"]);
    place.good_with(&["sequence", "put", "--queue", "copy", "--jsonl", "-"], &read);
    assert_eq!(place.json(&["sequence", "read", "copy"])[1]["payload"], "b");
}

#[test]
fn files_lines_and_long_input_are_sent_in_order() {
    let place = Place::store();
    place.good(&["queue", "create", "q", "--strict"]);
    let lines: String = (0..500).map(|n| format!("m{n}\n")).collect();
    let sent = place.json_with(
        &["queue", "send", "q", "--lines", "-", "--batch", "64", "--group", "g"],
        &lines,
    );
    assert_eq!(sent.len(), 500);
    std::fs::write(place.directory().join("body.bin"), b"\xff\xfe").unwrap();
    place.good(&["queue", "send", "q", "--file", "body.bin", "--group", "g"]);
    let got = place.json(&["queue", "receive", "q", "--max", "1000", "--ack"]);
    let mut bodies: Vec<String> =
        got.iter().filter_map(|message| message["body"].as_str()).map(str::to_owned).collect();
    // A receive takes a run of one segment at a time.
    while bodies.len() < 500 {
        let more = place.json(&["queue", "receive", "q", "--max", "1000", "--ack"]);
        assert!(!more.is_empty(), "{} of 500 came", bodies.len());
        bodies.extend(more.iter().filter_map(|m| m["body"].as_str()).map(str::to_owned));
    }
    let wanted: Vec<String> = (0..500).map(|n| format!("m{n}")).collect();
    assert_eq!(bodies, wanted);
}

#[test]
fn counters_of_short_commands_are_kept() {
    let place = Place::store();
    place.good(&["queue", "create", "q"]);
    for _ in 0..3 {
        place.good(&["queue", "send", "q", "x"]);
    }
    place.good(&["queue", "receive", "q", "--ack"]);
    let totals = &place.json(&["queue", "count", "q"])[0]["totals"];
    assert_eq!(
        (&totals["sent"], &totals["received"], &totals["acked"]),
        (&json!(3), &json!(1), &json!(1))
    );
}

#[test]
fn large_messages_go_through_a_server_in_requests_that_it_takes() {
    let place = Place::server();
    place.good(&["queue", "create", "q"]);
    // 12 × 900,000 bytes are more than the 8 MiB that a server takes at once.
    let lines: String = (0..12).map(|n| format!("{n}-{}\n", "x".repeat(900_000))).collect();
    assert_eq!(place.json_with(&["queue", "send", "q", "--lines", "-"], &lines).len(), 12);
    assert_eq!(place.json(&["queue", "count", "q"])[0]["available"], 12);
}
