//! The protocol as clients meet it, on memory and on other stores, in virtual time.

mod common;
mod dead_letters;
mod exchanges;
mod fifo;
mod hostile;
mod messages;
mod own;
mod queues;
mod signature;
mod stores;
mod visibility;
mod waiting;
mod watch;
mod wire;
