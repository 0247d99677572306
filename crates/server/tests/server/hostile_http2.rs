//! The same over HTTP/2, where one connection carries many requests and the client says how much of each answer it takes.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::hostile::dropped;
use crate::support::http2::{DATA, END_HEADERS, HEADERS, Http2, head};
use crate::support::{PATIENCE, Server, eventually, get, post, request};

fn bodies_bytes(server: &Server) -> u64 {
    let text = get(&server.address, "/metrics").body;
    let bytes = text.lines().find_map(|line| line.strip_prefix("millpond_http_bodies_bytes "));
    bytes.unwrap().parse().unwrap()
}

#[test]
fn answers_that_windows_hold_back_are_not_held_for_ever_whatever_else_is_asked() {
    let server = Server::start(&["--write-timeout", "2s", "--idle-timeout", "60s"]);
    let json = [("Content-Type", "application/json")];
    assert_eq!(request(&server.address, "PUT", "/v1/queues/q", &json, "{}").status, 200);
    let sent = json!({ "messages": [{ "body": "x".repeat(1_000_000) }] }).to_string();
    assert_eq!(post(&server.address, "/v1/queues/q/messages", &sent).status, 200);

    // One byte of each is taken, so that they are behind the window rather than before it.
    let mut client = Http2::connect(&server.address, 1);
    for _ in 0..20 {
        assert!(client.get("/v1/queues/q/messages").is_some());
    }
    eventually("the answers are there", || bodies_bytes(&server) > 20_000_000);
    // Small ones are asked for and taken all the while.
    let started = Instant::now();
    while let Some(stream) = client.get("/health/live") {
        assert!(started.elapsed() < PATIENCE, "large answers are held for {PATIENCE:?}");
        if !client.take(stream, 1_000) || client.status(stream) != Some(200) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(dropped(&server, "slow_reader"), 1);
    eventually("there is room again", || bodies_bytes(&server) == 0);
}

#[test]
fn small_answers_that_windows_hold_back_are_not_held_for_ever_either() {
    let server = Server::start(&["--write-timeout", "1s", "--idle-timeout", "60s"]);
    let mut client = Http2::connect(&server.address, 0);
    for _ in 0..5 {
        assert!(client.get("/health/live").is_some());
    }
    client.until_closed();
    assert_eq!(dropped(&server, "slow_reader"), 1);
}

#[test]
fn a_client_that_takes_its_answers_in_time_may_keep_its_connection() {
    let server = Server::start(&["--write-timeout", "1s", "--header-timeout", "1s"]);
    let mut client = Http2::connect(&server.address, 1_000);
    for _ in 0..15 {
        let stream = client.get("/health/live").unwrap();
        assert_eq!(client.status(stream), Some(200));
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn slow_heads_are_cut_off_also_beside_a_request_in_work() {
    let server = Server::start(&["--header-timeout", "1s"]);
    let begun = head("GET", "/health/live", &[("x-slow", "")]);
    // One that says nothing more, and one that keeps sending, a byte at a time.
    for trickles in [false, true] {
        let mut client = Http2::connect(&server.address, 1_000);
        let (first, second) = (client.open(), client.open());
        let slow_body = head("POST", "/", &[]);
        assert!(client.send(HEADERS, END_HEADERS, first, &slow_body));
        if trickles {
            let length = u32::try_from(begun.len() + 10_000).unwrap().to_be_bytes();
            let frame = [&length[1..], &[HEADERS, 0], &second.to_be_bytes(), &begun].concat();
            assert!(client.send_raw(&frame));
            while client.send_raw(b"\0") {
                std::thread::sleep(Duration::from_millis(50));
            }
        } else {
            assert!(client.send(HEADERS, 0, second, &begun));
        }
        client.until_closed();
    }
    assert_eq!(dropped(&server, "slow_head"), 2);
    assert_eq!(get(&server.address, "/health/live").status, 200);
}

#[test]
fn a_slow_body_is_answered_with_408() {
    let server = Server::start(&["--body-timeout", "1s"]);
    let mut client = Http2::connect(&server.address, 1_000);
    let stream = client.open();
    assert!(client.send(HEADERS, END_HEADERS, stream, &head("POST", "/", &[])));
    assert!(client.send(DATA, 0, stream, b"Action"));
    assert_eq!(client.status(stream), Some(408));
}

#[test]
fn huge_heads_are_refused() {
    let server = Server::start(&[]);
    let ask = |fields: &[(&str, &str)]| {
        let mut client = Http2::connect(&server.address, 1_000);
        let stream = client.ask(&head("GET", "/health/live", fields));
        client.status(stream)
    };
    assert_eq!(ask(&[("x", "y"); 100]), Some(200));
    assert_eq!(ask(&[("x", "y"); 101]), Some(431));
    assert_eq!(ask(&[("x", "y"); 1_000]), Some(431));
    assert_eq!(ask(&[("x", &"y".repeat(65_000))]), Some(200));
    assert_eq!(ask(&[("x", &"y".repeat(66_000))]), Some(431));
}
