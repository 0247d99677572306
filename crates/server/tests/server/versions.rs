//! HTTP/1.1 with keep-alive, and HTTP/2.

use std::io::Write as _;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::support::Server;
use crate::support::http::{connect, read_answer};

#[test]
fn one_connection_of_http1_carries_many_requests() {
    let server = Server::start(&[]);
    let mut stream = connect(&server.address);
    for _ in 0..50 {
        stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(read_answer(&stream).unwrap().status, 200);
    }
    let taken = crate::support::get(&server.address, "/metrics").body;
    assert!(taken.contains("millpond_http_connections_taken_total 2\n"), "{taken}");
}

#[tokio::test]
async fn one_connection_of_http2_carries_many_requests_at_a_time() {
    let server = Server::start(&[]);
    let stream = tokio::net::TcpStream::connect(&server.address).await.unwrap();
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let ask = |number: usize| {
        let mut sender = sender.clone();
        let request = Request::post("http://queues.example:99/")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(format!("Action=CreateQueue&QueueName=q{number}"))))
            .unwrap();
        async move {
            sender.ready().await.unwrap();
            let answer: Response<_> = sender.send_request(request).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        }
    };
    for (status, body) in futures::future::join_all((0..20).map(ask)).await {
        assert_eq!(status, 200, "{body}");
        assert!(body.contains("http://queues.example:99/000000000000/q"), "{body}");
    }
}
