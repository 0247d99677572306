//! More than there is room for: those who come too late are told when to come back, and what waits starves nobody.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::http::{connect, read_answer};
use crate::support::{Gate, Server, eventually, get, request, sqs};
use crate::table;

/// Every poll is a connection, and so a file of this process too.
fn many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Sends a receive that waits, and does not wait for its answer.
fn poll(server: &Server, queue: &str) -> TcpStream {
    let body = json!({ "QueueUrl": queue, "WaitTimeSeconds": 20 }).to_string();
    let mut stream = connect(&server.address);
    let text = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// What a gauge of the listener says.
fn gauge(server: &Server, name: &str) -> usize {
    let text = get(&server.address, "/metrics").body;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

fn waits(server: &Server) -> usize {
    gauge(server, "millpond_http_waits")
}

#[test]
fn a_thousand_waiting_receives_leave_sends_alone_and_memory_bounded() {
    many_files();
    let server = Server::start(&[]);
    let (waited, other) = (sqs::queue(&server, "waited"), sqs::queue(&server, "other"));
    let before = server.resident();
    let polls: Vec<TcpStream> = (0..1_000).map(|_| poll(&server, &waited)).collect();
    eventually("all wait", || waits(&server) == 1_000);
    let grown = server.resident().saturating_sub(before);
    assert!(grown < 100 * 1024 * 1024, "{grown} bytes for 1,000 waiting receives");
    println!("a waiting receive costs {} bytes", grown / 1_000);

    let started = Instant::now();
    for number in 0..20 {
        sqs::send(&server, &other, &number.to_string());
        assert_eq!(sqs::receive(&server, &other, 0).len(), 1);
    }
    // Were they queued behind those that wait, they would take 20 seconds.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());

    // Those who hang up take nothing with them.
    drop(polls);
    eventually("nobody waits", || waits(&server) == 0);
    sqs::send(&server, &waited, "still there");
    assert_eq!(sqs::receive(&server, &waited, 5).len(), 1);
}

#[test]
fn receives_that_would_wait_beyond_the_bound_are_told_to_come_back() {
    let server = Server::start(&["--waits-max", "2"]);
    let queue = sqs::queue(&server, "q");
    let _polls = [poll(&server, &queue), poll(&server, &queue)];
    eventually("two wait", || waits(&server) == 2);
    let answer = read_answer(&poll(&server, &queue)).unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{answer:?}");
    assert_eq!(answer.json()["__type"], "com.amazonaws.sqs#RequestThrottled");
    sqs::send(&server, &queue, "sends go on");
}

#[test]
fn a_wait_that_is_written_strangely_takes_no_turn_of_sends() {
    let server = Server::start(&["--requests-max", "1"]);
    let queue = sqs::queue(&server, "q");
    let topic = r#"{"settings": {"partitions": 1}}"#;
    let json = [("Content-Type", "application/json")];
    assert_eq!(request(&server.address, "PUT", "/v1/topics/t", &json, topic).status, 200);
    let mut reader = connect(&server.address);
    let path = "/v1/topics/t/records?partition=0&wait%5Fms=60000";
    reader.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut receiver = connect(&server.address);
    let body = r#"{"wait\u005fms": 60000}"#;
    let head =
        "POST /v1/queues/empty/receive HTTP/1.1\r\nHost: x\r\nContent-Type: application/json";
    assert_eq!(request(&server.address, "PUT", "/v1/queues/empty", &json, "{}").status, 200);
    let text = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    receiver.write_all(text.as_bytes()).unwrap();
    eventually("both wait", || waits(&server) == 2);
    sqs::send(&server, &queue, "sends go on");
}

#[test]
fn messages_that_are_on_loan_are_not_withheld_when_there_is_no_room_for_the_answer() {
    let room = ["--body-bytes-max", "100000", "--bodies-bytes-max", "100000"];
    let server = Server::start(&[&room, ["--body-timeout", "60s"].as_slice()].concat());
    let queue = sqs::queue(&server, "large");
    sqs::send(&server, &queue, &"x".repeat(50_000));
    // A client that sends most of a body takes most of the room.
    let mut slow = connect(&server.address);
    slow.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n").unwrap();
    slow.write_all(&[b'x'; 80_000]).unwrap();
    eventually("the room is taken", || gauge(&server, "millpond_http_bodies_bytes") >= 80_000);
    let got = sqs::receive(&server, &queue, 0);
    assert_eq!(got.len(), 1, "{got:?}");
    assert_eq!(got[0]["Body"].as_str().map(str::len), Some(50_000));
    drop(slow);
    eventually("there is room again", || gauge(&server, "millpond_http_bodies_bytes") == 0);
}

/// A server on a table whose engine is behind a gate, with one turn for requests.
fn server_behind(gate: &Gate) -> Server {
    let store = ["--store", "dynamodb:queues", "--create-table", "--requests-max", "1"];
    let directory = Arc::new(tempfile::tempdir().unwrap());
    Server::start_with(directory, &store, &table::variables(&gate.endpoint))
}

#[test]
fn requests_beyond_the_bound_are_told_to_come_back() {
    let (engine, _runtime) = table::engine();
    let gate = Gate::before(&engine);
    let server = server_behind(&gate);
    let queue = sqs::queue(&server, "q");
    gate.close();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| sqs::send(&server, &queue, "slow"));
        eventually("it is in work", || gauge(&server, "millpond_http_requests_in_work") == 1);
        let body = json!({ "QueueUrl": queue, "MessageBody": "one too many" });
        let answer = sqs::call(&server, "SendMessage", &body);
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert_eq!(answer.json()["__type"], "com.amazonaws.sqs#ServiceUnavailable");
        assert_eq!(get(&server.address, "/health/live").status, 200);
        gate.open();
        sending.join().unwrap();
    });
    let got = sqs::receive(&server, &queue, 0);
    assert_eq!(got.iter().map(|message| &message["Body"]).collect::<Vec<_>>(), ["slow"]);
}

#[test]
fn a_connection_too_many_is_told_to_come_back() {
    let server = Server::start(&["--connections-max", "5", "--waits-max", "2"]);
    let held: Vec<TcpStream> = (0..5).map(|_| connect(&server.address)).collect();
    let mut refused = 0;
    eventually("one is refused", || {
        let mut stream = connect(&server.address);
        // It may be closed before it was heard.
        let _ = stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
        let answer = read_answer(&stream);
        refused += usize::from(answer.is_some_and(|answer| {
            answer.status == 503 && answer.header("retry-after") == Some("1")
        }));
        refused > 0
    });
    drop(held);
    eventually("there is room again", || {
        let mut stream = connect(&server.address);
        let _ = stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n");
        read_answer(&stream).is_some_and(|answer| answer.status == 200)
    });
}

#[test]
fn a_send_wakes_a_waiting_receive() {
    let server = Server::start(&[]);
    let queue = sqs::queue(&server, "woken");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sqs::receive(&server, &queue, 20));
        eventually("it waits", || waits(&server) == 1);
        let started = Instant::now();
        sqs::send(&server, &queue, "wake up");
        assert_eq!(waiting.join().unwrap().len(), 1);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    });
}
