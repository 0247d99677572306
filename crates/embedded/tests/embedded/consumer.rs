//! The consumer over the embedded engine: its behaviours, and histories of event source mappings against the model.

use std::sync::Arc;

use crate::common::{Kept, unsynced};
use millpond_embedded::Durability;
use millpond_store::{Environment, VirtualClock};
use millpond_testing::mapping::{Harm, Settings, Source, View, simulate_on};

millpond_testing::consumer_suite!(unsynced);

const SOURCES: [Source; 4] =
    [Source::Stream, Source::Queue, Source::Fifo, Source::Table(View::Both)];

async fn run(settings: Settings) {
    let clock = VirtualClock::new(Environment::system().now());
    let environment = Environment::simulated(clock.clone(), settings.seed);
    let fast = Durability::UnsafeNoSync;
    let store = Kept::open(&environment, |options| options.durability(fast)).await;
    simulate_on(Arc::new(store), clock, &environment, settings).await;
}

#[tokio::test]
async fn histories_end_as_the_model_says() {
    for seed in 20_000..20_008 {
        let settings = Settings::of(seed);
        Box::pin(run(Settings { messages: settings.messages.min(25), ..settings })).await;
    }
}

#[tokio::test]
async fn killed_processes_and_store_faults_lose_nothing() {
    for (at, source) in SOURCES.into_iter().enumerate() {
        let settings = Settings::of(21_000 + at as u64);
        let (harm, messages) = (Harm::Both, settings.messages.min(25));
        let settings = Settings {
            source,
            harm,
            messages,
            partial: true,
            retries_max: None,
            age_max: None,
            ..settings
        };
        Box::pin(run(settings.windows(Some(6)))).await;
    }
}
