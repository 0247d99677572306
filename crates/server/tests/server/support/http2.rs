//! HTTP/2 by hand, frame by frame: for what no client does.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::http::connect;

pub const DATA: u8 = 0x0;
pub const HEADERS: u8 = 0x1;
pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
const CONTINUATION: u8 = 0x9;
const RESET: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const GO_AWAY: u8 = 0x7;
const WINDOW_UPDATE: u8 = 0x8;

const INITIAL_WINDOW_SIZE: u8 = 0x4;

/// What every server takes.
const FRAME_BYTES_MAX: usize = 16_384;

/// A frame that came.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// A connection without TLS, by prior knowledge.
pub struct Http2 {
    stream: TcpStream,
    next: u32,
}

impl Http2 {
    /// A client that lets each answer have so many bytes before it asks for more.
    pub fn connect(address: &str, window: u32) -> Self {
        let mut http2 = Self { stream: connect(address), next: 1 };
        http2.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let settings = [&[0, INITIAL_WINDOW_SIZE], window.to_be_bytes().as_slice()].concat();
        assert!(http2.send(SETTINGS, 0, 0, &settings));
        http2
    }

    /// Sends a frame; `false` when the server has closed the connection.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.send_raw(&[&head, payload].concat())
    }

    /// Sends bytes that need not be a frame.
    pub fn send_raw(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// A new stream's number.
    pub fn open(&mut self) -> u32 {
        let stream = self.next;
        self.next += 2;
        stream
    }

    /// Sends a request without a body, its head in as many frames as it needs.
    pub fn ask(&mut self, block: &[u8]) -> u32 {
        let stream = self.open();
        let mut parts = block.chunks(FRAME_BYTES_MAX).peekable();
        let (mut kind, mut flags) = (HEADERS, END_STREAM);
        while let Some(part) = parts.next() {
            let last = if parts.peek().is_none() { END_HEADERS } else { 0 };
            assert!(self.send(kind, flags | last, stream, part));
            (kind, flags) = (CONTINUATION, 0);
        }
        stream
    }

    /// Asks for a page; the number of its stream, or nothing when the connection is closed.
    pub fn get(&mut self, path: &str) -> Option<u32> {
        let stream = self.open();
        let block = head("GET", path, &[]);
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block).then_some(stream)
    }

    /// Lets the server send more.
    pub fn take(&mut self, stream: u32, more: u32) -> bool {
        self.send(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
    }

    /// The next frame; nothing when the connection has ended. The server's settings are not acknowledged: nothing may
    /// come between the frames of a head.
    pub fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let [a, b, c, kind, _, d, e, f, g] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([d, e, f, g]);
        Some(Frame { kind, stream, payload })
    }

    /// The status of the answer on this stream; nothing when there is none.
    pub fn status(&mut self, stream: u32) -> Option<u16> {
        loop {
            let frame = self.read()?;
            match frame.kind {
                HEADERS if frame.stream == stream => return status_of(&frame.payload),
                RESET if frame.stream == stream => return None,
                GO_AWAY => return None,
                _ => {}
            }
        }
    }

    /// Reads until the server has closed the connection.
    pub fn until_closed(&mut self) {
        while self.read().is_some() {}
    }
}

/// The head of a request, as literals that nobody need remember.
pub fn head(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let own = [(":method", method), (":scheme", "http"), (":authority", "x"), (":path", path)];
    own.iter().chain(fields).flat_map(|(name, value)| literal(name, value)).collect()
}

/// A field without indexing, name and value as they are.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        integer(&mut field, text.len());
        field.extend_from_slice(text.as_bytes());
    }
    field
}

/// A number with a prefix of 7 bits.
fn integer(bytes: &mut Vec<u8>, number: usize) {
    let Some(mut rest) = number.checked_sub(127) else {
        return bytes.push(u8::try_from(number).unwrap());
    };
    bytes.push(127);
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
}

/// The status, which comes first: from the static table, or as three digits, perhaps in Huffman's code.
fn status_of(block: &[u8]) -> Option<u16> {
    const INDEXED: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    match *block {
        [first @ 0x88..=0x8e, ..] => INDEXED.get(usize::from(first - 0x88)).copied(),
        [_, 0x3, a, b, c, ..] => std::str::from_utf8(&[a, b, c]).ok()?.parse().ok(),
        [_, length, ref rest @ ..] if length & 0x80 != 0 => {
            digits(rest.get(..usize::from(length & 0x7f))?)
        }
        _ => None,
    }
}

/// Digits in Huffman's code: 0 to 2 have 5 bits, 3 to 9 have 6.
fn digits(bytes: &[u8]) -> Option<u16> {
    let bits: Vec<u8> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let (mut number, mut at) = (0, 0);
    for _ in 0..3 {
        let take = |count: usize| {
            let code = bits.get(at..at + count)?;
            Some(code.iter().fold(0_u16, |all, bit| all << 1 | u16::from(*bit)))
        };
        let (digit, count) = match take(5)? {
            short @ 0..=2 => (short, 5),
            _ => (take(6)?.checked_sub(0x19)? + 3, 6),
        };
        number = number * 10 + digit;
        at += count;
    }
    Some(number)
}
