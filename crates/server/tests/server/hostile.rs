//! Clients that are slow, silent, or send too much: they are bounded, and others are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::http::{connect, read_answer};
use crate::support::{Server, eventually, get, post, request};

/// What a server may need beyond what it needed at the start, while a few hundred clients hold it.
const GROWTH_MAX: u64 = 64 * 1024 * 1024;

/// Waits until the server has closed the connection.
fn is_closed(mut stream: &TcpStream) -> bool {
    let mut rest = Vec::new();
    // A reset is an end as well; a timeout is none.
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// Connections that were ended for this reason.
pub fn dropped(server: &Server, reason: &str) -> u64 {
    let text = get(&server.address, "/metrics").body;
    let line = format!("millpond_http_connections_dropped_total{{reason=\"{reason}\"}} ");
    text.lines().find_map(|l| l.strip_prefix(&*line)).map_or(0, |count| count.parse().unwrap())
}

#[test]
fn five_hundred_idle_sockets_cost_little_and_are_closed_in_the_end() {
    let server = Server::start(&["--idle-timeout", "3s"]);
    let before = server.resident();
    let idle: Vec<TcpStream> = (0..500).map(|_| connect(&server.address)).collect();
    assert_eq!(get(&server.address, "/health/ready").status, 200);
    assert!(server.resident() < before + GROWTH_MAX, "{} after {before}", server.resident());
    assert!(idle.iter().all(is_closed));
    eventually("all are counted as idle", || dropped(&server, "idle") >= 500);
}

#[test]
fn slow_heads_are_cut_off_while_others_are_served() {
    let server = Server::start(&["--header-timeout", "1s"]);
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = connect(&server.address);
            stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
            stream
        })
        .collect();
    // One of them keeps sending, a byte at a time.
    let mut trickle = slow[0].try_clone().unwrap();
    std::thread::spawn(move || {
        while trickle.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_eq!(get(&server.address, "/health/live").status, 200);
    assert!(slow.iter().all(is_closed));
    eventually("all are counted as slow", || dropped(&server, "slow_head") >= 50);
}

#[test]
fn an_idle_connection_is_not_taken_for_a_slow_head() {
    let server = Server::start(&["--header-timeout", "1s"]);
    let mut stream = connect(&server.address);
    for _ in 0..2 {
        stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(read_answer(&stream).unwrap().status, 200);
        std::thread::sleep(Duration::from_millis(2_500));
    }
    assert_eq!(dropped(&server, "slow_head"), 0);
}

#[test]
fn a_slow_body_is_answered_with_408() {
    let server = Server::start(&["--body-timeout", "1s"]);
    let mut stream = connect(&server.address);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nAction").unwrap();
    assert_eq!(get(&server.address, "/health/live").status, 200);
    assert_eq!(read_answer(&stream).unwrap().status, 408);
}

#[test]
fn huge_bodies_are_refused_before_they_are_taken() {
    let server = Server::start(&[]);
    let mut stream = connect(&server.address);
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
        .unwrap();
    let answer = read_answer(&stream).unwrap();
    assert_eq!(answer.status, 413);
    assert!(answer.body.contains("8388608"), "{answer:?}");

    let mut stream = connect(&server.address);
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let mut sent = 0;
    // It ends when the server has had enough: it answers and closes.
    while sent < 1_000_000_000 && stream.write_all(&chunk).is_ok() {
        sent += 0x10000;
    }
    assert!(sent < 100_000_000, "{sent} bytes were taken");
    assert_eq!(get(&server.address, "/health/live").status, 200);
}

#[test]
fn many_large_bodies_at_a_time_stay_within_the_bound_of_all() {
    let bound = 16 * 1024 * 1024;
    let server =
        Server::start(&["--bodies-bytes-max", &bound.to_string(), "--body-timeout", "60s"]);
    let before = server.resident();
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n";
    let part = vec![b'x'; 7_000_000];
    let refused = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut stream = connect(&server.address);
                // Whoever is refused is not read to the end.
                if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&part)).is_err()
                {
                    refused.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
                if read_answer(&stream).is_some_and(|answer| answer.status == 503) {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let grown = server.resident().saturating_sub(before);
    assert!(refused.load(Ordering::Relaxed) >= 18, "{refused:?} of 20 were refused");
    assert!(grown < bound + GROWTH_MAX, "{grown} bytes more than at the start");
    eventually("there is room again", || {
        get(&server.address, "/metrics").body.contains("millpond_http_bodies_bytes 0\n")
    });
}

/// What a head with these lines is answered.
fn ask_with(server: &Server, lines: &str) -> Option<u16> {
    let mut stream = connect(&server.address);
    let text = format!("GET /health/live HTTP/1.1\r\n{lines}\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    read_answer(&stream).map(|answer| answer.status)
}

#[test]
fn huge_heads_are_refused() {
    let server = Server::start(&[]);
    // Host is one of them.
    let fields = |count: usize| format!("Host: x\r\n{}", "X: y\r\n".repeat(count - 1));
    assert_eq!(ask_with(&server, &fields(100)), Some(200));
    assert_eq!(ask_with(&server, &fields(101)), Some(431));
    assert_eq!(ask_with(&server, &fields(1_000)), Some(431));
    let bytes = |count: usize| format!("Host: x\r\nX: {}\r\n", "y".repeat(count));
    assert_eq!(ask_with(&server, &bytes(65_000)), Some(200));
    // All that is sent is read: of a connection that is closed with bytes unread, the answer may be lost.
    let mut stream = connect(&server.address);
    let begun = "GET /health/live HTTP/1.1\r\nHost: x\r\nX: ";
    let rest = "y".repeat(64 * 1024 - begun.len());
    stream.write_all([begun, &rest].concat().as_bytes()).unwrap();
    assert_eq!(read_answer(&stream).map(|answer| answer.status), Some(431));

    let mut stream = connect(&server.address);
    stream
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 no HTTP at all\r\n\r\n")
        .unwrap();
    assert_eq!(read_answer(&stream).map(|answer| answer.status), Some(400));
    assert_eq!(get(&server.address, "/health/live").status, 200);
}

#[test]
fn a_client_that_does_not_take_its_answers_is_cut_off() {
    let server = Server::start(&["--write-timeout", "1s"]);
    let mut stream = connect(&server.address);
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let started = Instant::now();
    let asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    // Answers fill the buffers of both sides until the server can write no more.
    while started.elapsed() < Duration::from_secs(50) {
        match stream.write_all(&asked) {
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    eventually("it is counted", || dropped(&server, "slow_reader") == 1);
    assert_eq!(post(&server.address, "/health/live", "").status, 405);
}

#[test]
fn a_client_that_takes_a_large_answer_bit_by_bit_is_cut_off_and_makes_room() {
    let room = (8 * 1024 * 1024).to_string();
    let server = Server::start(&["--write-timeout", "4s", "--bodies-bytes-max", &room]);
    let json = [("Content-Type", "application/json")];
    assert_eq!(request(&server.address, "PUT", "/v1/queues/q", &json, "{}").status, 200);
    // More than the buffers of both sides take.
    let message = serde_json::json!({ "body": "x".repeat(1_000_000) });
    let messages = serde_json::json!({ "messages": vec![message; 7] }).to_string();
    for _ in 0..5 {
        assert_eq!(post(&server.address, "/v1/queues/q/messages", &messages).status, 200);
    }
    let mut stream = connect(&server.address);
    stream.write_all(b"GET /v1/queues/q/messages HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut part = vec![0; 64 * 1024];
    stream.read_exact(&mut part).unwrap();
    let refused = get(&server.address, "/v1/queues");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    // So fast that the server is never kept from writing for long, and too slow to be done in time.
    while stream.read_exact(&mut part).is_ok() {
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(dropped(&server, "slow_reader"), 1);
    eventually("there is room again", || get(&server.address, "/v1/queues").status == 200);
}
