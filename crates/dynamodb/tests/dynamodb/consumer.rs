//! The consumer over DynamoDB, on an engine within the test process: its behaviours, and histories of event source
//! mappings against the model.

use crate::support::world::dynoxide;
use millpond_testing::mapping::{Harm, Settings, Source, View, simulate_on};

millpond_testing::consumer_suite!(dynoxide);

const SOURCES: [Source; 4] =
    [Source::Stream, Source::Queue, Source::Fifo, Source::Table(View::Both)];

async fn run(settings: Settings) {
    let subject = dynoxide().await;
    simulate_on(subject.store, subject.clock, &subject.environment, settings).await;
}

#[tokio::test]
async fn histories_end_as_the_model_says() {
    for (at, source) in SOURCES.into_iter().enumerate() {
        let settings = Settings::of(30_000 + at as u64);
        let settings = Settings {
            source,
            harm: Harm::None,
            messages: 15,
            retries_max: None,
            age_max: None,
            ..settings
        };
        Box::pin(run(settings.windows(Some(6)))).await;
    }
}

#[tokio::test]
async fn killed_processes_and_store_faults_lose_nothing() {
    for (at, source) in SOURCES.into_iter().enumerate() {
        let settings = Settings::of(31_000 + at as u64);
        let settings = Settings {
            source,
            harm: Harm::Both,
            messages: 15,
            retries_max: None,
            age_max: None,
            ..settings
        };
        Box::pin(run(settings.windows(Some(6)))).await;
    }
}
