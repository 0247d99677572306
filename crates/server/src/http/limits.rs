//! Every bound of the HTTP server, and the defaults of those that can be set.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Where the server listens unless it is told otherwise.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9324);

/// Connections at a time. One that has had a request costs about 30 KB, one that waits for messages about 50 KB.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Requests in work at a time, those that wait not counted.
pub const REQUESTS_MAX: usize = 512;
/// Receives that wait at a time.
pub const WAITS_MAX: usize = 5_000;
/// A message has up to 1 MiB, and JSON may write a character of it as six (`\u0009`); the rest is for attributes.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of all bodies in memory, of requests and answers.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Answers with fewer bytes are not worth counting: they are in the connection's own buffers at once.
pub const COUNTED_BYTES_MIN: usize = 4_096;

/// How long a request's head may take.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request's body may take.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may be without a request. Clients keep idle ones for 60 to 90 seconds, and should be the ones
/// who close them: a request that meets a closing connection is lost.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a client may take to take an answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests may take to finish when the server stops.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request waits for its turn before it is told to come back.
pub const TURN_TIMEOUT: Duration = Duration::from_secs(1);
/// When to come back.
pub const RETRY_AFTER_SECONDS: &str = "1";
/// The head of a request. Session tokens in signatures have a few kilobytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The same for HTTP/2, which counts in other types.
pub const HEAD_BYTES_MAX_H2: u32 = 64 * 1024;
/// Fields of a head. HTTP/1.1 has the same bound already when a request comes: more than hyper's default cost it an
/// allocation for every request.
pub const HEAD_FIELDS_MAX: usize = 100;
/// Requests at a time on one connection of HTTP/2.
pub const STREAMS_MAX: u32 = 250;
/// What one request of HTTP/2 may send ahead of being read.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// What one connection of HTTP/2 may send ahead of being read.
pub const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Connections that are being told that there are too many.
pub const REFUSALS_MAX: usize = 64;
/// How long one of them may take to say what it wants before it is told.
pub const REFUSAL_TIMEOUT: Duration = Duration::from_millis(500);
/// After the system refused to accept a connection, because it has no more files, say.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections that wait to be accepted.
pub const BACKLOG: u32 = 1_024;
/// How often a free port is looked for that is free at every address of a name.
pub const FREE_PORT_TRIES_MAX: u32 = 8;
/// Files that the store and everything else but connections may need.
pub const FILES_KEPT: u64 = 512;

/// How often TLS files are looked at.
pub const TLS_LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often a connection is looked at, at most: the least of the timeouts may be longer by this.
pub const WATCH_EVERY: Duration = Duration::from_secs(5);

/// How long an answer about readiness is good for, and how long the store may take to give it.
pub const READY_FOR: Duration = Duration::from_secs(1);
/// How long the store may take to say that it is ready.
pub const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it is looked whether the store has stopped for good.
pub const HEALTH_LOOK_EVERY: Duration = Duration::from_secs(5);

/// The furthest that a test clock can be moved at a time: ten years.
pub const ADVANCE_SECONDS_MAX: f64 = 10.0 * 365.0 * 24.0 * 60.0 * 60.0;
