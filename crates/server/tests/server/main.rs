//! `millpond serve` as its users meet it: the real binary, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]
#![allow(
    clippy::disallowed_methods,
    reason = "the server is another process: it runs in real time, and so does who waits for it"
)]

mod config;
mod crash;
mod groups;
mod health;
mod hostile;
mod hostile_http2;
mod overload;
mod sdk;
mod stopping;
mod support;
mod table;
mod telemetry;
mod test_clock;
mod tls;
mod traces;
mod versions;
