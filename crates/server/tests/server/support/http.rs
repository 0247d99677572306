//! HTTP/1.1 by hand, so that a test can also do what no client does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::PATIENCE;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A connection that does not wait for ever.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads one answer; nothing when the connection ended first.
pub fn read_answer(stream: impl Read) -> Option<Answer> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut headers = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        headers.push_str(&header);
    }
    let mut answer = Answer { status, headers, body: String::new() };
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    answer.body = String::from_utf8(body).unwrap();
    Some(answer)
}

/// One request on a connection of its own.
pub fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = connect(address);
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).unwrap();
    read_answer(&stream).expect("an answer")
}

pub fn get(address: &str, path: &str) -> Answer {
    request(address, "GET", path, &[], "")
}

pub fn post(address: &str, path: &str, body: &str) -> Answer {
    request(address, "POST", path, &[("Content-Type", "application/json")], body)
}
