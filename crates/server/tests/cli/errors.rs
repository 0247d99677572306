//! Bad input: each with its message and its exit code.

use super::world::{Place, Server};

/// A command, its exit code, and what its message names.
type Case = (&'static [&'static str], i32, &'static [&'static str]);

const CASES: &[Case] = &[
    // 2: makes no sense.
    (&["queue"], 2, &["Usage"]),
    (&["queue", "create", "no spaces"], 2, &["name", "' '"]),
    (&["queue", "create", "r", "--visibility", "soon"], 2, &["--visibility", "30s"]),
    (&["queue", "create", "r", "--visibility", "20h"], 2, &["visibility", "accepted"]),
    (&["queue", "create", "r", "--dead-letters", "q"], 2, &["--receives-max"]),
    (&["queue", "create", "r", "--config", "{"], 2, &["--config", "JSON"]),
    (&["queue", "create", "r", "--config", "{\"speed\":1}"], 2, &["speed"]),
    (&["queue", "create", "r", "--strict", "--order", "lifo"], 2, &["order", "strict"]),
    (&["queue", "send", "q"], 2, &["CONTENT"]),
    (&["queue", "send", "q", "x", "--file", "y"], 2, &["--file", "cannot be used"]),
    (&["queue", "send", "q", "--file", "not-there"], 2, &["not-there"]),
    (&["queue", "send", "q", "x", "--attribute", "colour"], 2, &["NAME=VALUE"]),
    (&["queue", "send", "q", "x", "--priority", "5"], 2, &["priority"]),
    (&["queue", "send", "q", "x", "--batch", "0"], 2, &["--batch"]),
    (&["queue", "receive", "q", "--max", "5000"], 2, &["max", "1000"]),
    (&["queue", "ack", "q", "nonsense"], 2, &["1 of 1 receipts failed"]),
    (&["queue", "get", "q", "nonsense"], 2, &["message id"]),
    (&["queue", "tasks", "q"], 2, &["status", "not kept"]),
    (&["queue", "purge", "q"], 2, &["--yes"]),
    (&["queue", "delete", "q"], 2, &["--yes"]),
    (&["queue", "dead-letters", "q"], 2, &["dead-letter queue"]),
    (&["queue", "list", "--store", "redis://x"], 2, &["redis"]),
    (&["queue", "list", "--server", "127.0.0.1:1"], 2, &["server's address"]),
    (&["log", "read", "t", "--from", "yesterday"], 2, &["earliest"]),
    (&["log", "create", "u", "--partitions", "0"], 2, &["partitions"]),
    (&["log", "append", "t", "x", "--fence", "1"], 2, &["--partition"]),
    (&["sequence", "put", "x"], 2, &["--queue"]),
    (&["sequence", "put", "--queue", "s", "x"], 2, &["--seq"]),
    (&["sequence", "config", "--gaps", "skip-after"], 2, &["gaps_after_ms"]),
    (&["store", "policy"], 2, &["dynamodb:TABLE"]),
    (&["completions", "tcsh"], 2, &["tcsh", "bash"]),
    (&["bench", "--batch", "11"], 2, &["--batch"]),
    // 3: not found.
    (&["queue", "count", "none"], 3, &["no queue", "none"]),
    (
        &["queue", "create", "r", "--dead-letters", "none", "--receives-max", "3"],
        2,
        &["none", "does not exist"],
    ),
    (&["queue", "get", "q", "018bcfe56800716ba38d640c807f36d2-0000"], 3, &["no message"]),
    (&["log", "describe", "none"], 3, &["no topic", "t"]),
    (&["log", "lag", "t", "none"], 3, &["no group"]),
    (&["log", "read", "t", "--partition", "7"], 3, &["no partition 7"]),
    (&["sequence", "cursor", "none"], 3, &["has not begun"]),
    (&["queue", "list", "--store", "nowhere"], 3, &["nowhere", "store create"]),
    // 4: refused.
    (&["queue", "create", "q", "--order", "lifo"], 4, &["exists", "order"]),
    (&["log", "create", "t", "--partitions", "3"], 4, &["already"]),
    (&["log", "read", "t", "--from", "9", "--partition", "0"], 4, &["offset 9"]),
    (&["sequence", "put", "--queue", "s", "--seq", "0", "other"], 4, &["1 of 1 messages failed"]),
    (&["sequence", "rewind", "s", "9"], 4, &["rewind to 9"]),
    (&["sequence", "declare-gap", "s", "5", "6"], 4, &["gap policy"]),
    // 5: not now.
    (&["queue", "list", "--server", "http://127.0.0.1:1"], 5, &["127.0.0.1:1", "millpond serve"]),
];

#[test]
fn each_mistake_has_its_exit_code_and_names_what_is_wrong() {
    let place = Place::store();
    place.good(&["queue", "create", "q"]);
    place.good(&["log", "create", "t", "--partitions", "1"]);
    place.good(&["sequence", "put", "--queue", "s", "--seq", "0", "zero"]);
    for (arguments, code, named) in CASES {
        let (got, said) = place.bad(arguments);
        assert_eq!(got, *code, "{arguments:?}: {said}");
        for word in *named {
            assert!(said.contains(word), "{arguments:?}: {word:?} is not in {said}");
        }
    }
}

#[test]
fn a_store_that_a_server_uses_is_refused_with_the_way_round() {
    let directory = tempfile::TempDir::new().unwrap();
    let server = Server::start(directory.path(), &[]);
    let place = Place::Store(directory);
    let (code, said) = place.bad(&["queue", "list"]);
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("--server"), "{said}");
    assert_eq!(place.good(&["queue", "list", "--server", &server.url]), "");
}

#[test]
fn some_failures_among_entries_are_told_and_the_rest_is_done() {
    let place = Place::store();
    place.good(&["queue", "create", "q", "--message-bytes-max", "5"]);
    let lines = "short\nmuch too long\nfine\n";
    let output = place.run_with(&["queue", "send", "q", "--lines", "-", "--json"], lines);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("1 of 3 messages failed"), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.lines().nth(1).unwrap().contains("too_large"), "{printed}");
    assert_eq!(place.json(&["queue", "count", "q"])[0]["available"], 2);
}

#[test]
fn a_bad_line_is_named_and_what_was_before_it_is_sent() {
    let place = Place::store();
    place.good(&["queue", "create", "q"]);
    let lines = "{\"body\":\"a\"}\n\n{\"body\":\n";
    let arguments = ["queue", "send", "q", "--jsonl", "-", "--batch", "1"];
    let output = place.run_with(&arguments, lines);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("line 3"), "{said}");
    assert_eq!(place.json(&["queue", "count", "q"])[0]["available"], 1);
}
