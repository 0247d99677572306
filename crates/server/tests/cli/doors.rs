//! A store directly, and the same through a server: the same answers.

use serde_json::Value;

use super::world::Place;

/// What differs from run to run: ids, receipts, times, sizes.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(name, value)| {
                    let varies = name.ends_with("_ms") && !name.starts_with("retention")
                        || matches!(name.as_str(), "id" | "identity" | "receipt");
                    let varies = varies && !matches!(name.as_str(), "linger_ms");
                    (name.clone(), if varies { Value::from("*") } else { normal(value) })
                })
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(normal).collect()),
        other => other.clone(),
    }
}

/// Runs a script of commands; a word that begins with `$` is a field of the first line that the command before printed.
fn transcript(place: &Place, script: &[&[&str]]) -> Vec<(i32, Vec<Value>, String)> {
    let mut last: Vec<Value> = Vec::new();
    let mut transcript = Vec::new();
    for command in script {
        let arguments: Vec<String> = command
            .iter()
            .map(|word| match word.strip_prefix('$') {
                Some(field) => {
                    let value = last.first().and_then(|first| first.get(field));
                    value.and_then(Value::as_str).expect("a field of text").to_owned()
                }
                None => (*word).to_owned(),
            })
            .collect();
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.push("--json");
        let output = place.run(&arguments);
        let printed = String::from_utf8(output.stdout).unwrap();
        let parsed: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        transcript.push((
            output.status.code().unwrap(),
            parsed.iter().map(normal).collect(),
            said.clone(),
        ));
        if !parsed.is_empty() {
            last = parsed;
        }
    }
    transcript
}

fn same_at_both_doors(script: &[&[&str]]) -> Vec<(i32, Vec<Value>, String)> {
    let (here, there) = (Place::store(), Place::server());
    let (at_store, at_server) = (transcript(&here, script), transcript(&there, script));
    for ((command, here), there) in script.iter().zip(&at_store).zip(&at_server) {
        assert_eq!(here, there, "{command:?}");
    }
    at_store
}

#[test]
fn queues_answer_the_same_at_both_doors() {
    let done = same_at_both_doors(&[
        &["queue", "create", "dead"],
        &[
            "queue",
            "create",
            "q",
            "--visibility",
            "1h",
            "--dead-letters",
            "dead",
            "--receives-max",
            "1",
            "--status",
            "1h",
        ],
        &["queue", "list"],
        &["queue", "send", "q", "hello", "--attribute", "colour=red", "--client", "c1"],
        &["queue", "peek", "q", "--client", "c1"],
        &["queue", "get", "q", "$id", "--client", "c1"],
        &["queue", "receive", "q", "--client", "c1"],
        &["queue", "extend", "q", "$receipt", "--visibility", "2h", "--client", "c1"],
        &["queue", "release", "q", "$receipt", "--client", "c1"],
        &["queue", "receive", "q", "--client", "c1"],
        &["queue", "tasks", "q", "--state", "pending", "--client", "c1"],
        &["queue", "send", "q", "poison"],
        &["queue", "receive", "q"],
        &["queue", "nack", "q", "$receipt", "--error", "boom"],
        &["queue", "dead-letters", "q"],
        &["queue", "redrive", "dead"],
        &["queue", "count", "q"],
        &["queue", "receive", "q", "--worker", "w"],
        &["queue", "finish", "q", "$receipt", "--result", "fine"],
        &["queue", "tasks", "q", "--state", "success"],
        &["queue", "config", "q", "--visibility", "5s", "--unset", "status"],
        &["queue", "purge", "q", "--yes"],
        &["queue", "topics", "create", "t", "q", "dead"],
        &["queue", "topics", "send", "t", "news"],
        &["queue", "topics", "list"],
        &["queue", "describe", "dead"],
        &["queue", "ack", "q", "forged"],
        &["queue", "delete", "q", "--yes"],
        &["queue", "count", "q"],
    ]);
    let codes: Vec<i32> = done.iter().map(|(code, ..)| *code).collect();
    let failures: Vec<(usize, i32)> =
        codes.iter().copied().enumerate().filter(|(_, code)| *code != 0).collect();
    // With receives_max 1 the released message of c1 went to the dead letters instead of coming again.
    assert_eq!(failures, [(26, 2), (28, 3)], "{done:#?}");
}

#[test]
fn the_log_answers_the_same_at_both_doors() {
    let done = same_at_both_doors(&[
        &["log", "create", "t", "--partitions", "2"],
        &["log", "append", "t", "a book", "--key", "k", "--header", "via=web"],
        &["log", "append", "t", "paid", "--key", "k"],
        &["log", "read", "t"],
        &["log", "read", "t", "--from", "1", "--partition", "0"],
        &["log", "seek", "t", "latest"],
        &["log", "follow", "t", "--from", "earliest", "--max", "2"],
        &["log", "create-group", "t", "g", "--attempts-max", "3"],
        &["log", "groups", "t"],
        &["log", "lag", "t", "g"],
        &["log", "consume", "t", "--group", "c", "--max", "1"],
        &["log", "consume", "t", "--group", "c", "--checkpoint", "end"],
        &["log", "consume", "t", "--group", "c"],
        &["log", "lag", "t", "c"],
        &["log", "reset", "t", "g", "--to", "latest"],
        &["log", "skip-to-end", "t", "g"],
        &["log", "config-group", "t", "g"],
        &["log", "config", "t", "--retention-age", "1h"],
        &["log", "trim", "t"],
        &["log", "grow", "t", "4"],
        &["log", "describe", "t"],
        &["log", "delete-group", "t", "g", "--yes"],
        &["log", "list"],
        &["log", "delete", "t", "--yes"],
        &["log", "read", "t"],
    ]);
    let failures: Vec<usize> = (0..done.len()).filter(|at| done[*at].0 != 0).collect();
    // Partition 0 has no offset 1: both records went to another partition, or it is the one they are in.
    assert!(failures == [24] || failures == [4, 24], "{done:#?}");
}

#[test]
fn the_sequencer_and_the_store_answer_the_same_at_both_doors() {
    let done = same_at_both_doors(&[
        &["sequence", "put", "--queue", "q", "--seq", "1", "second"],
        &["sequence", "gaps", "q"],
        &["sequence", "pending", "q"],
        &["sequence", "put", "--queue", "q", "--seq", "0", "first", "--attribute", "a=b"],
        &["sequence", "cursor", "q"],
        &["sequence", "read", "q"],
        &["sequence", "ranges", "q", "--from", "start"],
        &["sequence", "commit", "q", "r", "1"],
        &["sequence", "read", "q", "--reader", "r"],
        &["sequence", "seek-reader", "q", "r", "0"],
        &["sequence", "readers", "q"],
        &["sequence", "put", "--queue", "q", "--seq", "9", "far"],
        &["sequence", "skip", "q", "9"],
        &["sequence", "rewind", "q", "1"],
        &["sequence", "config", "--gaps", "when-declared", "--late", "side-queue"],
        &["sequence", "sequencers"],
        &["sequence", "sweep", "--all"],
        &["sequence", "late", "q"],
        &["sequence", "trim", "q", "1"],
        &["sequence", "list"],
        &["sequence", "reset", "q", "5", "--yes"],
        &["sequence", "declare-gap", "q", "5", "7"],
        &["sequence", "declare-gap", "q", "1", "2"],
        &["store", "verify"],
        &["store", "sweep"],
    ]);
    let failures: Vec<usize> = (0..done.len()).filter(|at| done[*at].0 != 0).collect();
    assert_eq!(failures, [22], "{done:#?}");
}
