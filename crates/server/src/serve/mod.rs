//! `millpond serve`: the store, the protocol and the listener, put together, and taken apart again in order.

mod clock;
mod declare;
mod error;
mod files;
mod ground;
mod health;
mod pages;
mod run;
mod signals;
mod welcome;

pub use run::run;
