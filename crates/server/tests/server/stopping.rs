//! A graceful stop: what is under way is finished, what waits is answered, what was acknowledged is there afterwards.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::support::http::{connect, read_answer};
use crate::support::{Server, eventually, get, sqs};

#[test]
fn a_stop_answers_the_receive_that_waits_and_keeps_what_was_sent() {
    let mut server = Server::start(&[]);
    let queue = sqs::queue(&server, "kept");
    let empty = sqs::queue(&server, "empty");
    for number in 0..100 {
        sqs::send(&server, &queue, &number.to_string());
    }
    let address = server.address.clone();
    let waiting = std::thread::spawn({
        let body = serde_json::json!({ "QueueUrl": empty, "WaitTimeSeconds": 20 });
        move || sqs::call_at(&address, "ReceiveMessage", &body)
    });
    eventually("it waits", || {
        get(&server.address, "/metrics").body.contains("millpond_http_waits 1\n")
    });
    let started = Instant::now();
    server.terminate();
    let answer = waiting.join().unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains("Messages"), "{answer:?}");
    assert!(server.ended().success());
    assert!(started.elapsed() < Duration::from_secs(15), "it waited for {:?}", started.elapsed());
    assert!(
        server.log().contains("SIGTERM") && server.log().contains("stopped"),
        "{}",
        server.log()
    );

    let server = Server::start_in(server.directory(), &[]);
    let queue = sqs::queue(&server, "kept");
    let mut got = 0;
    while got < 100 {
        let some = sqs::receive(&server, &queue, 0).len();
        assert!(some > 0, "{got} of 100 are there");
        got += some;
    }
}

#[test]
fn a_stop_lets_a_request_finish_and_closes_idle_connections() {
    let mut server = Server::start(&[]);
    let idle = connect(&server.address);
    let mut halfway = connect(&server.address);
    let body = "Action=ListQueues&Version=2012-11-05";
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    halfway.write_all(head.as_bytes()).unwrap();
    halfway.write_all(&body.as_bytes()[..6]).unwrap();
    // The server has seen the head when it has answered somebody who came later.
    get(&server.address, "/health/live");
    server.terminate();
    eventually("no new connections are taken", || {
        std::net::TcpStream::connect(&server.address).is_err()
    });
    assert!(read_answer(&idle).is_none(), "an idle connection is closed");
    halfway.write_all(&body.as_bytes()[6..]).unwrap();
    let answer = read_answer(&halfway).expect("the request is finished");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(server.ended().success());
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let mut server = Server::start(&["--shutdown-timeout", "1s", "--body-timeout", "60s"]);
    let mut stuck = connect(&server.address);
    stuck.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n").unwrap();
    get(&server.address, "/health/live");
    let started = Instant::now();
    server.terminate();
    assert!(server.ended().success());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(server.log().contains("cut off"), "{}", server.log());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Server::start(&["--shutdown-timeout", "10m", "--body-timeout", "10m"]);
    let mut stuck = connect(&server.address);
    stuck.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n").unwrap();
    get(&server.address, "/health/live");
    server.terminate();
    eventually("it has heard the first", || server.log().contains("SIGTERM"));
    server.terminate();
    server.ended();
    assert!(server.log().contains("told again"), "{}", server.log());
}
