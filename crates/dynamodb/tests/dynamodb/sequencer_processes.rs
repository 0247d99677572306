//! Four processes put every message of a queue twice, shuffled: each number is announced once, in order.
//!
//! The processes are this very test program, started again with the writer's test and the endpoint of the engine.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use crate::support::engine::Engine;
use millpond_dynamodb::{DynamoDbStore, TableOptions};
use millpond_sequencer::{Advance, Config, Message, Sequencer};
use millpond_store::Environment;
use millpond_testing::sequencer_suite::shuffled;

const WRITERS: u64 = 4;
const NUMBERS: u64 = 100;

/// Tells the processes where the engine is, and which of them they are.
const ENDPOINT: &str = "MILLPOND_TEST_ENDPOINT";
const WRITER: &str = "MILLPOND_TEST_WRITER";

async fn open(endpoint: &str) -> (DynamoDbStore, Sequencer) {
    let environment = Environment::system();
    let config = crate::support::config(endpoint, "things");
    let store = DynamoDbStore::open(config, &environment).await.unwrap();
    let config = Config { batch: 10, ..Config::default() };
    let sequencer =
        Sequencer::open(Arc::new(store.clone()), &environment, "orders", config).unwrap();
    (store, sequencer)
}

fn message(seq: u64) -> Message {
    Message::new(format!("message {seq}"))
}

#[tokio::test]
#[ignore = "one of the processes that `four_processes_announce_each_number_once` starts"]
async fn writer() {
    let endpoint = std::env::var(ENDPOINT).unwrap();
    let writer: u64 = std::env::var(WRITER).unwrap().parse().unwrap();
    let (_store, sequencer) = open(&endpoint).await;
    // Each number is put by two of the four processes, and by each of them once.
    let own = (0..NUMBERS).filter(|seq| seq % WRITERS == writer || (seq + 1) % WRITERS == writer);
    for seq in shuffled(own, writer) {
        if let Some(passed) = sequencer.put("q", seq, message(seq)).await.unwrap().advanced {
            println!("passed {} {}", passed.first, passed.next);
        }
    }
    println!("done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_announce_each_number_once() {
    let engine = Engine::start().await;
    let (store, sequencer) = open(&engine.endpoint()).await;
    store.admin().create_table(TableOptions::default()).await.unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "sequencer_processes::writer", "--ignored", "--nocapture"])
                .env(ENDPOINT, engine.endpoint())
                .env(WRITER, writer.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut returned: BTreeMap<u64, u64> = BTreeMap::new();
    for writer in writers {
        let output = tokio::task::spawn_blocking(|| writer.wait_with_output()).await.unwrap();
        let output = output.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("done"), "a writer failed: {text}");
        for line in text.lines().filter_map(|line| line.split("passed ").nth(1)) {
            let (first, next) = line.split_once(' ').unwrap();
            let before = returned.insert(first.parse().unwrap(), next.parse().unwrap());
            assert_eq!(before, None, "{line} was returned twice");
        }
    }
    let mut at = 0;
    for (first, next) in returned {
        assert_eq!(first, at, "a range does not start where the former ended");
        assert!(Advance::new(first, next).is_some());
        at = next;
    }
    assert_eq!(at, NUMBERS);
    assert_eq!(sequencer.cursor("q").await.unwrap().unwrap().next, NUMBERS);
    let read = sequencer.read("q", 0..NUMBERS).await.unwrap();
    assert!(read.messages().map(|found| found.seq).eq(0..NUMBERS));
    assert!(read.messages().all(|found| found.message == message(found.seq)));
}
