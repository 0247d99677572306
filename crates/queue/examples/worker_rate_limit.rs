//! A worker whose downstream takes 20 calls a second, and no more than 4 at a time.
//!
//! ```text
//! cargo run -p millpond-queue --example worker_rate_limit
//! ```
#![allow(clippy::print_stdout, reason = "an example says what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{
    Delivery, Limits, Message, Outcome, QueueConfig, Queues, Rate, RunUntil, Worker,
};
use millpond_store::{Environment, MemoryStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let environment = Environment::system();
    // Any store will do; this one forgets everything when the process ends.
    let store = Arc::new(MemoryStore::new(&environment));
    let queues = Queues::new(&Ground::new(store, &environment));
    let rate = Rate { per_second: 20.0, burst: 1 };
    let limits = Limits { rate: Some(rate), running: Some(4), ..Limits::default() };
    let config = QueueConfig { limits, ..QueueConfig::default() };
    let client = queues.create("calls", config).await?.main()?;
    for n in 0..40 {
        client.send(Message::new(format!("call {n}"))).await?;
    }

    let clock = Arc::clone(&environment.clock);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let worker = Worker::new(client, move |delivery: Delivery| {
        let (clock, running, most) = (Arc::clone(&clock), Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
            clock.sleep(Duration::from_millis(120)).await;
            running.fetch_sub(1, Ordering::AcqRel);
            Outcome::Done(format!("{} answered", delivery.text_lossy()).into())
        }
    });

    let began = environment.clock.monotonic();
    let report = worker.concurrency(16).run_until(RunUntil::empty()).await?;
    let took = environment.clock.monotonic().since(began).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let pace = report.done as f64 / took;
    println!("{} calls in {took:.2} s: {pace:.1} a second", report.done);
    println!(
        "at most {} at a time; work remains: {}",
        peak.load(Ordering::Acquire),
        report.work_remains
    );
    Ok(())
}
