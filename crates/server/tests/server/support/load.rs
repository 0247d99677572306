//! Load from a real client on servers that may die, and what must hold of it afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, QueueAttributeName};
use tokio::task::JoinSet;

use super::{PATIENCE, Server};
use crate::sdk::client;

const SENDERS: usize = 4;
const RECEIVERS: usize = 2;

/// Between attempts on a server that is dead.
const PAUSE: Duration = Duration::from_millis(5);

/// What was acknowledged, and what is in doubt since its answer never came.
#[derive(Default)]
struct Seen {
    sent: BTreeSet<String>,
    /// With when that was acknowledged.
    deleted: BTreeMap<String, Instant>,
    delete_in_doubt: BTreeSet<String>,
    /// What was asked for after its deletion was acknowledged, and came.
    came_back: Vec<String>,
    next: u64,
}

/// Load, over as many lives of servers as there are.
#[derive(Clone, Default)]
pub struct Load(Arc<Mutex<Seen>>);

/// Load that goes on.
pub struct Running {
    over: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

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

    async fn send(&self, body: &str, group: Option<&str>) -> bool {
        let send = self.client.send_message().message_body(body);
        let send = match group {
            Some(group) => send.queue_url(&self.fifo).message_group_id(group),
            None => send.queue_url(&self.plain),
        };
        send.send().await.is_ok()
    }

    async fn receive(&self, fifo: bool, wait: i32) -> Option<Vec<Message>> {
        let queue = if fifo { &self.fifo } else { &self.plain };
        let receive = self.client.receive_message().queue_url(queue).max_number_of_messages(10);
        let got = receive.wait_time_seconds(wait).send().await;
        got.ok().map(|got| got.messages.unwrap_or_default())
    }

    async fn delete(&self, fifo: bool, message: &Message) -> bool {
        let queue = if fifo { &self.fifo } else { &self.plain };
        let handle = message.receipt_handle().unwrap_or_default();
        let delete = self.client.delete_message().queue_url(queue).receipt_handle(handle);
        delete.send().await.is_ok()
    }
}

impl Load {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().expect("nobody panicked")
    }

    /// Sends, receives and deletes on all of these servers, until told to stop. Each sender to the FIFO queue has a
    /// group of its own.
    pub async fn start(&self, servers: &[&Server]) -> Running {
        let over = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for (node, server) in servers.iter().enumerate() {
            let queues = Queues::open(server).await;
            for number in 0..SENDERS + RECEIVERS {
                let (over, queues, load) = (Arc::clone(&over), queues.clone(), self.clone());
                tasks.spawn(async move {
                    if number < SENDERS {
                        load.send_until(&over, &queues, node * SENDERS + number).await;
                    } else {
                        load.receive_until(&over, &queues, number.is_multiple_of(2)).await;
                    }
                });
            }
        }
        Running { over, tasks }
    }

    /// Returns when so many more sends are acknowledged. By work done rather than by time: a slow machine does as much
    /// as a fast one before a server dies.
    pub async fn until_sent(&self, more: usize) {
        let enough = self.seen().sent.len() + more;
        let started = Instant::now();
        while self.seen().sent.len() < enough {
            assert!(started.elapsed() < PATIENCE, "{more} sends take longer than {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn send_until(&self, over: &AtomicBool, queues: &Queues, sender: usize) {
        let group = format!("g{sender}");
        let chosen = sender.is_multiple_of(2).then_some(group.as_str());
        while !over.load(Ordering::Relaxed) {
            let body = {
                let mut seen = self.seen();
                seen.next += 1;
                format!("{group}-{:09}", seen.next)
            };
            if queues.send(&body, chosen).await {
                self.seen().sent.insert(body);
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn receive_until(&self, over: &AtomicBool, queues: &Queues, fifo: bool) {
        while !over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            let Some(messages) = queues.receive(fifo, 0).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            for message in messages {
                let body = self.received(&message, asked);
                self.seen().delete_in_doubt.insert(body.clone());
                if queues.delete(fifo, &message).await {
                    self.deleted(body);
                }
            }
        }
    }

    fn received(&self, message: &Message, asked: Instant) -> String {
        let body = message.body().unwrap_or_default().to_owned();
        let mut seen = self.seen();
        if seen.deleted.get(&body).is_some_and(|deleted| *deleted < asked) {
            seen.came_back.push(body.clone());
        }
        body
    }

    fn deleted(&self, body: String) {
        let mut seen = self.seen();
        seen.delete_in_doubt.remove(&body);
        // What was deleted twice was deleted the first time.
        seen.deleted.entry(body).or_insert_with(Instant::now);
    }

    /// Takes everything that is left, and checks all there was: what was acknowledged has come, what was deleted has
    /// not come back, groups are in order. Returns how many sends were acknowledged.
    pub async fn check(&self, server: &Server) -> usize {
        let order = self.drain(server).await;
        let seen = self.seen();
        let is_lost = |body: &&String| {
            !seen.deleted.contains_key(*body) && !seen.delete_in_doubt.contains(*body)
        };
        let lost: Vec<&String> = seen.sent.iter().filter(is_lost).collect();
        let sent = seen.sent.len();
        assert!(lost.is_empty(), "{} of {sent} acknowledged were lost: {lost:?}", lost.len());
        assert!(seen.came_back.is_empty(), "deleted, and came back: {:?}", seen.came_back);
        let mut last: BTreeMap<&str, &str> = BTreeMap::new();
        for body in &order {
            let (group, number) = body.split_once('-').unwrap();
            let before = last.insert(group, number);
            assert!(before < Some(number), "{group}: {number} came after {before:?}");
        }
        sent
    }

    /// Takes everything that is left, and says in which order the messages of the FIFO queue came.
    async fn drain(&self, server: &Server) -> Vec<String> {
        let queues = Queues::open(server).await;
        let mut order = Vec::new();
        let started = Instant::now();
        let mut quiet = 0;
        // A lease of before the last death lasts two seconds: two empty waits of three are more than that.
        while quiet < 2 {
            assert!(started.elapsed() < 3 * PATIENCE, "the drain does not end");
            let mut got = 0;
            for fifo in [true, false] {
                let asked = Instant::now();
                let wait = if quiet > 0 { 3 } else { 1 };
                for message in queues.receive(fifo, wait).await.expect("the server lives") {
                    got += 1;
                    let body = self.received(&message, asked);
                    assert!(queues.delete(fifo, &message).await);
                    self.deleted(body.clone());
                    if fifo {
                        order.push(body);
                    }
                }
            }
            quiet = if got == 0 { quiet + 1 } else { 0 };
        }
        order
    }
}

impl Running {
    /// Ends the load.
    pub async fn stop(mut self) {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("the load goes on until it is over");
        }
    }
}
