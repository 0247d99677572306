//! Consumer groups: who reads which partition, and how far they have come.

mod admin;
mod balance;
mod consumer;
mod dead_letters;
mod growth;
mod handler;
mod item;
mod lease;
mod pull;
mod run;
mod stop;
mod work;
mod worker;

pub use admin::{GroupDescription, GroupPartition, WorkerDescription};
pub use consumer::{Assignment, Balance, Consumer, ConsumerOptions};
pub use dead_letters::{DeadLetter, DeadLetters, TopicSink};
pub use handler::{Failure, Handler};
pub use item::{GroupConfig, Poison, Start};
pub use pull::{Pull, Pulled, Puller};
pub use run::{RunEnd, RunOptions, RunReport, Until};
pub use stop::Stop;
