//! Crash loops: a real process is killed under load, and nothing that it acknowledged may be lost. And [simulated
//! worlds](simulation), in which a seed decides what happens.
//!
//! One cycle of [`crash::run`]: start this program again as a worker, read what it reports as acknowledged, kill it
//! at a random moment, open its store and compare. The same store goes through all cycles.
//!
//! What it is not: a test of power failure. A killed process leaves what it wrote in the system's memory; that
//! syncs come before answers is checked where syncs can be made to fail (`millpond-embedded`'s tests).
//!
//! # Example
//! ```no_run
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! let options = millpond_sim::crash::Options { cycles: 50, seed: 7, directory: "crash-store".into() };
//! // The running program must answer to `worker`, as the binary `millpond-sim` does.
//! let report = millpond_sim::crash::run(&options).await?;
//! println!("{report}");
//! # Ok(()) }
//! ```

pub mod crash;
mod lane;
pub mod load;
mod log;
mod queue;
mod report;
mod sequencer;
pub mod simulation;
mod verify;
