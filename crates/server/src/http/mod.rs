//! HTTP: who may connect, how long they may take, how much they may send, and who answers.
//!
//! Everything here has a bound: connections, requests in work, receives that wait (counted apart, so that they cannot
//! keep sends out), bytes in memory, and the time for each part of an exchange. These times are the machine's, also when
//! the server runs on a test clock.

mod accept;
mod answer;
mod body;
mod connection;
mod door;
mod front;
pub mod limits;
mod normal;
mod pulse;
mod room;
mod speech;
mod tls;
mod watched;

pub use accept::Listener;
pub use answer::plain;
pub use door::Door;
pub use front::{Inside, Special};
pub use normal::Names;
pub use room::Room;
pub use tls::{Tls, TlsError};
