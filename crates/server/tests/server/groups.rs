//! Workers of a group over HTTP: they share a topic, and what one that dies leaves behind, the other does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::http::Answer;
use crate::support::{Server, eventually, get, post, request};

const GROUP: &str = "/v1/topics/t/groups/g";

fn good(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// A topic with so many records in each partition.
fn topic(server: &Server, partitions: u64, records: u64) {
    let body = json!({ "settings": { "partitions": partitions } }).to_string();
    let kind = [("Content-Type", "application/json")];
    good(&request(&server.address, "PUT", "/v1/topics/t", &kind, &body));
    for partition in 0..partitions {
        let records: Vec<Value> =
            (0..records).map(|n| json!({ "payload": format!("{partition}/{n}") })).collect();
        let body = json!({ "records": records, "partition": partition });
        good(&post(&server.address, "/v1/topics/t/records", &body.to_string()));
    }
}

struct Worker<'a> {
    server: &'a Server,
    id: String,
    after: Option<u64>,
    /// What came last and is not checkpointed.
    batches: Vec<Value>,
}

impl<'a> Worker<'a> {
    fn join(server: &'a Server, name: &str) -> Self {
        let body = json!({ "worker": name, "lease_ms": 30_000 });
        let joined = good(&post(&server.address, &format!("{GROUP}/join"), &body.to_string()));
        let id = joined["worker"].as_str().unwrap().to_owned();
        Self { server, id, after: None, batches: Vec::new() }
    }

    fn ask(&self, what: &str, mut body: Value) -> Answer {
        body["worker"] = json!(self.id);
        post(&self.server.address, &format!("{GROUP}/{what}"), &body.to_string())
    }

    /// What is held, after the records that came are noted.
    fn poll(&mut self, seen: &mut Seen) -> BTreeSet<u64> {
        let mut body = json!({ "max": 7 });
        if let Some(after) = self.after {
            body["after"] = json!(after);
        }
        let mut answer = good(&self.ask("poll", body));
        self.after = answer["poll"].as_u64();
        self.batches = serde_json::from_value(answer["batches"].take()).unwrap();
        self.batches.iter().for_each(|batch| seen.note(&self.id, batch));
        let held = answer["held"].as_array().unwrap();
        held.iter().map(|held| held["partition"].as_u64().unwrap()).collect()
    }

    /// Statuses and codes of what was refused.
    fn finish(&mut self) -> Vec<(u16, String)> {
        let batches = std::mem::take(&mut self.batches);
        let checkpoint = |batch: Value| {
            let (partition, token) = (&batch["partition"], &batch["token"]);
            let body = json!({ "partition": partition, "token": token, "next": batch["next"] });
            let answer = self.ask("checkpoint", body);
            let code = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
            (answer.status != 200).then_some((answer.status, code))
        };
        batches.into_iter().filter_map(checkpoint).collect()
    }
}

/// What was delivered.
#[derive(Default)]
struct Seen {
    records: BTreeSet<(u64, u64)>,
    deliveries: usize,
    /// The last token of each partition, and whose it is.
    tokens: BTreeMap<u64, (u64, String)>,
}

impl Seen {
    fn note(&mut self, worker: &str, batch: &Value) {
        let number = |name: &str| batch[name].as_u64().unwrap();
        let (partition, token) = (number("partition"), number("token"));
        if let Some((last, whose)) = self.tokens.get(&partition) {
            assert!(token >= *last, "partition {partition}: token {token} after {last}");
            assert!(token > *last || whose == worker, "token {token} is {whose}'s and {worker}'s");
        }
        self.tokens.insert(partition, (token, worker.to_owned()));
        for record in batch["records"].as_array().unwrap() {
            let offset = record["offset"].as_u64().unwrap();
            assert_eq!(record["payload"], format!("{partition}/{offset}"));
            self.records.insert((partition, offset));
            self.deliveries += 1;
        }
    }
}

fn pass(server: &Server, seconds: u64) {
    let body = json!({ "seconds": seconds }).to_string();
    good(&post(&server.address, "/test-clock/advance", &body));
}

#[test]
fn two_workers_share_a_topic_and_one_that_dies_loses_nothing() {
    let server = Server::start(&["--test-clock"]);
    topic(&server, 4, 40);
    let mut seen = Seen::default();
    let (mut one, mut two) = (Worker::join(&server, "one"), Worker::join(&server, "two"));
    let mut shared = false;
    for _ in 0..6 {
        // Both asked at the same time, as the server's clock goes: no partition is both workers'.
        let (ones, twos) = (one.poll(&mut seen), two.poll(&mut seen));
        assert!(ones.is_disjoint(&twos), "{ones:?} {twos:?}");
        shared |= ones.len() == 2 && twos.len() == 2;
        assert_eq!((one.finish(), two.finish()), (vec![], vec![]));
        pass(&server, 10);
    }
    assert!(shared, "they never had two partitions each");
    // The second one takes something more, and is not heard of again.
    let kept = two.poll(&mut seen);
    assert!(!two.batches.is_empty());
    let mut at_once = 0;
    for round in 0.. {
        assert!(round < 60, "{} of 160 records came", seen.records.len());
        let held = one.poll(&mut seen);
        at_once += usize::from(round < 2 && !held.is_disjoint(&kept));
        if held.len() == 4 && one.batches.is_empty() {
            break;
        }
        assert_eq!(one.finish(), vec![]);
        pass(&server, 10);
    }
    assert_eq!(at_once, 0, "partitions were taken before the lease was over");
    assert_eq!(seen.records.len(), 160, "a record was lost");
    let refused = two.finish();
    assert!(!refused.is_empty());
    for (status, code) in refused {
        // It may have been forgotten altogether by now.
        assert_eq!(status, 409);
        assert!(code == "lease_lost" || code == "not_joined", "{code}");
    }
    let lag = good(&get(&server.address, GROUP));
    assert_eq!(lag["lag"], 0, "{lag}");
    println!("{} deliveries of 160 records", seen.deliveries);
}

#[test]
fn a_stale_token_is_refused_and_a_waiting_poll_is_woken() {
    let server = Server::start(&[]);
    topic(&server, 1, 1);
    let mut worker = Worker::join(&server, "w");
    let mut seen = Seen::default();
    worker.poll(&mut seen);
    let token = worker.batches[0]["token"].as_u64().unwrap();
    for (stale, status) in [(token - 1, 409), (token + 1, 409), (token, 200), (token, 200)] {
        let answer = worker.ask("checkpoint", json!({ "partition": 0, "token": stale, "next": 1 }));
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 409 {
            assert_eq!(answer.json()["error"]["code"], "lease_lost");
        }
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| worker.ask("poll", json!({ "wait_ms": 50_000 })));
        let body = json!({ "records": [{ "payload": "0/1" }], "partition": 0 }).to_string();
        good(&post(&server.address, "/v1/topics/t/records", &body));
        let woken = good(&waiting.join().unwrap());
        assert_eq!(woken["batches"][0]["records"][0]["payload"], "0/1");
    });
}

#[test]
fn a_server_that_stops_ends_polls_and_lets_its_workers_leave() {
    let mut server = Server::start(&[]);
    topic(&server, 2, 1);
    let mut worker = Worker::join(&server, "w");
    worker.poll(&mut Seen::default());
    let body = json!({ "worker": worker.id, "after": worker.after, "wait_ms": 50_000 }).to_string();
    let address = server.address.clone();
    let waiting = std::thread::spawn(move || post(&address, &format!("{GROUP}/poll"), &body));
    eventually("the poll waits", || {
        get(&server.address, "/metrics").body.contains("millpond_http_waits 1\n")
    });
    server.terminate();
    assert_eq!(good(&waiting.join().unwrap())["batches"], json!([]));
    assert!(server.ended().success());
    let server = Server::start_in(server.directory(), &[]);
    // Nobody has to wait for a lease, and what was not checkpointed comes again.
    let (mut next, mut seen) = (Worker::join(&server, "next"), Seen::default());
    assert_eq!((next.poll(&mut seen).len(), seen.deliveries), (2, 2));
}
