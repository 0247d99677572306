//! Functions of this test program's own, whose handlers do what messages tell them to.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_consumer::{Message, Outcome};
use millpond_lambda::functions::{self, LogWorker, Prepared, QueueWorker};
use millpond_lambda::settings::Variables;
use millpond_log::{Failure, Record};
use millpond_queue::Delivery;
use millpond_store::Environment;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::function::Start;

/// Where handlers note what they begin.
const NOTES: &str = "TRIAL_NOTES";

/// What a message tells its handler.
#[derive(Debug, Deserialize)]
struct Told {
    n: usize,
    #[serde(default)]
    act: String,
}

/// A message with this number that is simply handled.
pub fn fine(n: usize) -> Value {
    json!({ "n": n })
}

/// A message whose handler does this.
pub fn told(n: usize, act: &str) -> Value {
    json!({ "n": n, "act": act })
}

/// The notes of a function's handlers.
#[derive(Debug)]
pub struct Notes(tempfile::TempDir);

impl Notes {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("notes")
    }

    /// The numbers of messages whose handling began, in order.
    pub fn begun(&self) -> Vec<usize> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    pub fn count(&self, n: usize) -> usize {
        self.begun().into_iter().filter(|begun| *begun == n).count()
    }

    pub fn start(&self, test: &str) -> Start {
        Start::this_program(test).set(NOTES, self.path().to_str().unwrap())
    }
}

fn note(n: usize) {
    let path = std::env::var(NOTES).unwrap();
    let file = std::fs::OpenOptions::new().create(true).append(true).open(Path::new(&path));
    file.unwrap().write_all(format!("{n}\n").as_bytes()).unwrap();
}

async fn obey(message: Message) -> Outcome {
    let told: Told = match message.json() {
        Ok(told) => told,
        Err(error) => return Outcome::reject(error),
    };
    note(told.n);
    match told.act.as_str() {
        "" => Outcome::Done,
        "fail" => Outcome::retry("it was told to fail"),
        "fail once" if message.attempt() == 1 => Outcome::retry("it was told to fail once"),
        "reject" => Outcome::reject("it was told to"),
        "panic" => panic!("it was told to"),
        "hang" => std::future::pending().await,
        _ => Outcome::Done,
    }
}

fn block_on(function: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(function);
}

#[test]
#[ignore = "a function that other tests start as a process"]
fn consumer_function() {
    block_on(async {
        let prepared = Prepared::from(&Variables::of_process()).await.unwrap();
        let consumer = prepared.consumer().unwrap().one("obey", obey).build().unwrap();
        functions::run(consumer).await.unwrap();
    });
}

/// How long a slow handler takes: a few fit into an invocation, and not all.
const SLOW: Duration = Duration::from_millis(300);

#[test]
#[ignore = "a function that other tests start as a process"]
fn slow_queue_function() {
    block_on(async {
        let prepared = Prepared::from(&Variables::of_process()).await.unwrap();
        let worker = QueueWorker::new(&prepared, |delivery: Delivery| async move {
            Environment::system().clock.sleep(SLOW).await;
            note(delivery.text().unwrap().parse().unwrap());
            millpond_queue::Outcome::done()
        });
        worker.unwrap().run().await.unwrap();
    });
}

#[test]
#[ignore = "a function that other tests start as a process"]
fn slow_log_function() {
    block_on(async {
        let prepared = Prepared::from(&Variables::of_process()).await.unwrap();
        let worker = LogWorker::new(&prepared, |record: Record| async move {
            Environment::system().clock.sleep(SLOW).await;
            note(std::str::from_utf8(&record.payload).unwrap().parse().unwrap());
            Ok::<(), Failure>(())
        });
        worker.unwrap().run().await.unwrap();
    });
}
