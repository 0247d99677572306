//! `kill -9` of the server under load from a real client: nothing acknowledged is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, QueueAttributeName};

use crate::sdk::client;
use crate::support::{PATIENCE, Server};

/// How often to kill; `cargo xtask crash` says more.
const CYCLES: usize = 3;
const CYCLES_VARIABLE: &str = "MILLPOND_CRASH_CYCLES";
const SENDERS: usize = 4;
const RECEIVERS: usize = 2;
const GROUPS: usize = 3;

/// What was acknowledged, and what is in doubt since its answer never came.
#[derive(Default)]
struct Seen {
    sent: BTreeSet<String>,
    deleted: BTreeSet<String>,
    delete_in_doubt: BTreeSet<String>,
    /// What came after its deletion was acknowledged.
    came_back: Vec<String>,
    next: u64,
}

type Shared = Arc<Mutex<Seen>>;

#[derive(Clone)]
struct Queues {
    client: Client,
    plain: String,
    fifo: String,
}

impl Queues {
    async fn open(server: &Server) -> Self {
        let client = client(&server.endpoint);
        let short = (QueueAttributeName::VisibilityTimeout, "2");
        let plain = client.create_queue().queue_name("load").attributes(short.0.clone(), short.1);
        let fifo = client.create_queue().queue_name("load.fifo").attributes(short.0, short.1);
        let fifo = fifo
            .attributes(QueueAttributeName::FifoQueue, "true")
            .attributes(QueueAttributeName::ContentBasedDeduplication, "true");
        let plain = plain.send().await.expect("a queue").queue_url.expect("its URL");
        let fifo = fifo.send().await.expect("a queue").queue_url.expect("its URL");
        Self { client, plain, fifo }
    }

    /// One body, to the queue that its number says; those of a group are sent one after the other.
    async fn send(&self, body: &str, fifo: bool, group: usize) -> bool {
        let send = self.client.send_message().message_body(body);
        let send = if fifo {
            send.queue_url(&self.fifo).message_group_id(format!("g{group}"))
        } else {
            send.queue_url(&self.plain)
        };
        send.send().await.is_ok()
    }

    async fn receive(&self, fifo: bool, wait: i32) -> Vec<Message> {
        let queue = if fifo { &self.fifo } else { &self.plain };
        let receive = self.client.receive_message().queue_url(queue).max_number_of_messages(10);
        let got = receive.wait_time_seconds(wait).send().await;
        got.ok().and_then(|got| got.messages).unwrap_or_default()
    }

    async fn delete(&self, fifo: bool, message: &Message) -> bool {
        let queue = if fifo { &self.fifo } else { &self.plain };
        let handle = message.receipt_handle().unwrap_or_default();
        let delete = self.client.delete_message().queue_url(queue).receipt_handle(handle);
        delete.send().await.is_ok()
    }
}

fn note(seen: &Shared, message: &Message) -> String {
    let body = message.body().unwrap_or_default().to_owned();
    let mut seen = seen.lock().expect("nobody panicked");
    if seen.deleted.contains(&body) {
        seen.came_back.push(body.clone());
    }
    body
}

async fn send_until(over: &AtomicBool, queues: &Queues, seen: &Shared, sender: usize) {
    while !over.load(Ordering::Relaxed) {
        let (fifo, group) = (sender.is_multiple_of(2), sender % GROUPS);
        let body = {
            let mut seen = seen.lock().expect("nobody panicked");
            seen.next += 1;
            format!("g{group}-{:09}", seen.next)
        };
        if queues.send(&body, fifo, group).await {
            seen.lock().expect("nobody panicked").sent.insert(body);
        }
    }
}

async fn receive_until(over: &AtomicBool, queues: &Queues, seen: &Shared, receiver: usize) {
    let fifo = receiver.is_multiple_of(2);
    while !over.load(Ordering::Relaxed) {
        for message in queues.receive(fifo, 0).await {
            let body = note(seen, &message);
            seen.lock().expect("nobody panicked").delete_in_doubt.insert(body.clone());
            if queues.delete(fifo, &message).await {
                let mut seen = seen.lock().expect("nobody panicked");
                seen.delete_in_doubt.remove(&body);
                seen.deleted.insert(body);
            }
        }
    }
}

/// Load until the server dies in the middle of it.
async fn live_and_die(server: Server, seen: &Shared, sends: usize) -> Arc<tempfile::TempDir> {
    let queues = Queues::open(&server).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..SENDERS + RECEIVERS {
        let (over, queues, seen) = (Arc::clone(&over), queues.clone(), Arc::clone(seen));
        tasks.spawn(async move {
            if number < SENDERS {
                send_until(&over, &queues, &seen, number).await;
            } else {
                receive_until(&over, &queues, &seen, number - SENDERS).await;
            }
        });
    }
    // By work done rather than by time: a slow machine does as much as a fast one before the server dies.
    let enough = seen.lock().expect("nobody panicked").sent.len() + sends;
    let started = Instant::now();
    while seen.lock().expect("nobody panicked").sent.len() < enough {
        assert!(started.elapsed() < PATIENCE, "{sends} sends take longer than {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let directory = server.kill();
    over.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.expect("the load goes on until it is over");
    }
    directory
}

/// Takes everything that is left, and says in which order it came.
async fn drain(server: &Server, seen: &Shared) -> Vec<(bool, String)> {
    let queues = Queues::open(server).await;
    let mut order = Vec::new();
    let started = Instant::now();
    let mut quiet = 0;
    // A lease of before the last death lasts two seconds: two empty waits of five are more than that.
    while quiet < 2 {
        assert!(started.elapsed() < 3 * PATIENCE, "the drain does not end");
        let mut got = 0;
        for fifo in [true, false] {
            for message in queues.receive(fifo, if quiet > 0 { 3 } else { 1 }).await {
                got += 1;
                let body = note(seen, &message);
                assert!(queues.delete(fifo, &message).await);
                seen.lock().expect("nobody panicked").deleted.insert(body.clone());
                order.push((fifo, body));
            }
        }
        quiet = if got == 0 { quiet + 1 } else { 0 };
    }
    order
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed_under_load() {
    let cycles = std::env::var(CYCLES_VARIABLE).ok().map_or(CYCLES, |text| text.parse().unwrap());
    let seen = Shared::default();
    let mut directory = Arc::new(tempfile::tempdir().unwrap());
    for cycle in 0..cycles {
        let server = Server::start_in(directory, &["--log-level", "warn"]);
        // Deaths at many different moments: after 20 to 99 sends.
        directory = live_and_die(server, &seen, 20 + cycle * 37 % 80).await;
    }
    let server = Server::start_in(directory, &["--log-level", "warn"]);
    let order = drain(&server, &seen).await;
    let seen = seen.lock().unwrap();
    assert!(seen.sent.len() >= 20 * cycles, "there was no load: {} were sent", seen.sent.len());
    let lost: Vec<&String> = seen
        .sent
        .iter()
        .filter(|body| !seen.deleted.contains(*body) && !seen.delete_in_doubt.contains(*body))
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {} acknowledged were lost: {lost:?}",
        lost.len(),
        seen.sent.len()
    );
    assert!(seen.came_back.is_empty(), "deleted, and came back: {:?}", seen.came_back);
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, body) in order.iter().filter(|(fifo, _)| *fifo) {
        let (group, number) = body.split_once('-').unwrap();
        let before = last.insert(group, number);
        assert!(before < Some(number), "{group}: {number} came after {before:?}");
    }
    println!("{cycles} kills, {} sends acknowledged, none lost", seen.sent.len());
}
