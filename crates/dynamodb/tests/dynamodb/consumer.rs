//! The consumer over DynamoDB, on an engine within the test process: histories of event source mappings, against the
//! model.

use crate::support::world::dynoxide;
use millpond_testing::mapping::{Harm, Settings, Source, simulate_on};

async fn run(settings: Settings) {
    let subject = dynoxide().await;
    simulate_on(subject.store, subject.clock, &subject.environment, settings).await;
}

#[tokio::test]
async fn histories_end_as_the_model_says() {
    for (at, source) in [Source::Stream, Source::Queue, Source::Fifo].into_iter().enumerate() {
        let settings = Settings::of(30_000 + at as u64);
        let settings = Settings {
            source,
            harm: Harm::None,
            messages: 15,
            retries_max: None,
            age_max: None,
            ..settings
        };
        Box::pin(run(settings)).await;
    }
}

#[tokio::test]
async fn killed_processes_and_store_faults_lose_nothing() {
    for (at, source) in [Source::Stream, Source::Queue, Source::Fifo].into_iter().enumerate() {
        let settings = Settings::of(31_000 + at as u64);
        let settings = Settings {
            source,
            harm: Harm::Both,
            messages: 15,
            retries_max: None,
            age_max: None,
            ..settings
        };
        Box::pin(run(settings)).await;
    }
}
