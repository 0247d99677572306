//! Just enough of a client to take the time of single requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// No answer takes longer: a receive waits for 20 seconds at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection that stays open.
pub(super) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(super) fn open(endpoint: &str) -> Result<Self> {
        let address =
            endpoint.strip_prefix("http://").context("an endpoint is an http:// address")?;
        let stream =
            TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// One of the server's own pages.
    pub(super) fn page(&mut self, path: &str) -> Result<String> {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// One action of SQS; its answer.
    pub(super) fn call(&mut self, action: &str, body: &serde_json::Value) -> Result<String> {
        let body = body.to_string();
        self.exchange(&format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n\
             X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn exchange(&mut self, request: &str) -> Result<String> {
        self.0.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (String::new(), 0);
        self.0.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(bytes) = line.strip_prefix("content-length:") {
                length = bytes.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        ensure!(status.contains(" 200 "), "{}: {body}", status.trim_end());
        Ok(body)
    }
}
