//! Numbers that do not come: what is missing, a gap that is declared, one that is skipped after a while, and a
//! message that comes too late.
//!
//! ```sh
//! cargo run -p millpond-sequencer --example gaps
//! ```

use std::sync::Arc;
use std::time::Duration;

use millpond_sequencer::{Config, GapPolicy, LatePolicy, Output, Sequencer, SequencerError};
use millpond_store::{Environment, MemoryStore, VirtualClock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), SequencerError> {
    // A clock that moves when told, so that the example need not wait.
    let clock = VirtualClock::new(Environment::system().now());
    let environment = Environment::simulated(clock.clone(), 1);
    let store = Arc::new(MemoryStore::new(&environment));
    let config = Config {
        gaps: GapPolicy::SkipAfter(Duration::from_secs(60)),
        late: LatePolicy::SideQueue,
        ..Config::default()
    };
    let sequencer = Sequencer::open(store, &environment, "readings", config)?;

    for seq in [0, 1, 4, 5, 8] {
        sequencer.put("sensor-3", seq, format!("reading {seq}")).await?;
    }
    println!("missing: {:?}", sequencer.missing("sensor-3").await?);

    let passed = sequencer.declare_gap("sensor-3", 2..4).await?;
    println!("2 and 3 were declared as a gap: passed {}", passed.expect("up to 5"));

    println!("swept at once: {:?}", sequencer.sweep().await?.skipped);
    clock.advance(Duration::from_secs(60));
    println!("swept after a minute: {:?}", sequencer.sweep().await?.skipped);

    let late = sequencer.put("sensor-3", 6, "reading 6").await?;
    println!("6 came after all: {:?}", late.arrival);

    let next = sequencer.cursor("sensor-3").await?.expect("the queue has begun").next;
    for output in sequencer.read("sensor-3", 0..next).await?.outputs {
        match output {
            Output::Message(found) => {
                println!("{}: {}", found.seq, String::from_utf8_lossy(&found.message.payload));
            }
            Output::Gap(gap) => println!("{} to {}: {:?}", gap.first, gap.end - 1, gap.reason),
        }
    }
    for late in sequencer.late("sensor-3", 0).await? {
        println!("late: {}", String::from_utf8_lossy(&late.message.payload));
    }
    Ok(())
}
