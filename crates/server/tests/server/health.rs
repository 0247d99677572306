//! Starting with nothing, and the server's own pages.

use std::io::Write as _;

use crate::support::http::{connect, read_answer};
use crate::support::server::run;
use crate::support::{Server, get, post, request};

#[test]
fn it_serves_with_no_configuration_and_says_where() {
    let server = Server::start(&[]);
    for part in [
        "endpoint   http://127.0.0.1:",
        "data       ./millpond-data (durable)",
        &format!("aws --endpoint-url {} sqs create-queue", server.endpoint),
    ] {
        assert!(server.said.contains(part), "{part}: {}", server.said);
    }
    assert!(server.path("millpond-data").is_dir());
    let ready = get(&server.address, "/health/ready");
    assert_eq!((ready.status, ready.body.as_str()), (200, "ready\n"));
    assert_eq!(get(&server.address, "/health/live").status, 200);
    assert_eq!(post(&server.address, "/health/live", "").status, 405);
}

#[test]
fn a_second_server_on_the_same_directory_or_port_is_refused_with_the_reason() {
    let server = Server::start(&[]);
    let directory = server.directory();
    let (well, said) = run(directory.path(), &["serve", "--listen", "127.0.0.1:0"], &[]);
    assert!(!well && said.contains("millpond-data") && said.contains("cannot be opened"), "{said}");
    let elsewhere = tempfile::tempdir().unwrap();
    let (well, said) = run(elsewhere.path(), &["serve", "--listen", &server.address], &[]);
    assert!(!well && said.contains(&server.address) && said.contains("--listen"), "{said}");
    assert!(
        !elsewhere.path().join("millpond-data").exists(),
        "nothing is made when it cannot listen"
    );
}

#[test]
fn pages_of_other_origins_cannot_use_an_open_server() {
    let server = Server::start(&["--test-clock"]);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let foreign = [form[0], ("Origin", "http://evil.example")];
    let answer = request(&server.address, "POST", "/", &foreign, "Action=ListQueues");
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.body.contains("<Code>AccessDenied</Code>"), "{answer:?}");
    let body = "{\"seconds\": 1}";
    assert_eq!(request(&server.address, "POST", "/test-clock/advance", &foreign, body).status, 403);
    let own = [form[0], ("Origin", &*server.endpoint)];
    assert_eq!(request(&server.address, "POST", "/", &own, "Action=ListQueues").status, 200);
}

/// The status of a request by whatever name, with these headers.
fn by_name(server: &Server, host: &str, method: &str, path: &str, headers: &str) -> u16 {
    let mut stream = connect(&server.address);
    let body = "{\"seconds\": 1}";
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
    read_answer(&stream).unwrap().status
}

#[test]
fn a_page_whose_name_was_made_to_point_here_cannot_use_an_open_server() {
    let server = Server::start(&["--test-clock", "--public-url", "https://queues.test/here"]);
    let list = "/?Action=ListQueues";
    let clock = "/test-clock/advance";
    for (host, status) in [("evil.test:9324", 403), ("queues.test", 200), ("localhost:1", 200)] {
        // As browsers send them: with a form, and as a read, which names no origin without TLS.
        let origin = format!("Origin: http://{host}\r\n");
        assert_eq!(by_name(&server, host, "POST", list, &origin), status, "{host}");
        assert_eq!(by_name(&server, host, "POST", clock, &origin), status, "{host}");
        let language = "Accept-Language: en\r\n";
        assert_eq!(by_name(&server, host, "GET", list, language), status, "{host}");
        // As other clients do.
        assert_eq!(by_name(&server, host, "GET", list, ""), 200, "{host}");
    }
}

#[test]
fn logs_are_json_when_asked_for() {
    let server = Server::start(&["--log-format", "json", "--log-level", "debug"]);
    get(&server.address, "/health/live");
    crate::support::eventually("the request is logged", || server.log().contains("answered"));
    for line in server.log().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
    }
}
