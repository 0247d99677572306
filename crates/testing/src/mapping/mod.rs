//! A simulator of Lambda's event source mappings, which drives a consumer over histories that a seed decides: what is
//! delivered when and how it is cut, which handlers fail after which of their steps, panic, hang or kill the process, which requests to the store and
//! letters to the sink go wrong. What becomes of each message is held against a sequential model. The same seed gives the same trace,
//! byte for byte.
//!
//! Of a stream: retries, halving, partial responses, batches that are cut anew, several batches of a shard at a time
//! (parallelization factor), batching windows (small batches that grow), tumbling windows with their state, a limit of retries
//! and of age. A stream is one of Kinesis, or of a DynamoDB table, with its images, view types, and numbers that are the same in
//! several shards. Of a queue: visibility, receive counts, FIFO groups. Where that is planned, processes go on for which the mapping
//! does not wait any more, beside those that get their work.
//!
//! Not in it are KPL aggregates, records of several messages, duplicates and deploys: for those, there are behaviours.

mod check;
mod invoke;
mod plan;
mod queue;
mod settings;
mod sink;
mod steps;
mod stream;
mod table;
mod truth;
mod window;

use std::sync::Arc;

use millpond_consumer::{MemorySink, StoreState};
use millpond_store::{Environment, FaultPlan, Faulty, MemoryStore, Store, Timestamp, VirtualClock};

use crate::pace::{Watched, in_virtual_time};
use invoke::{Deployment, Function};
use plan::Plan;
pub use settings::{Harm, Settings, Source, View};
use sink::FlakySink;
use truth::Truth;

/// Runs the history of a seed over a store in memory and checks it. Returns its trace.
pub async fn simulate(settings: Settings) -> String {
    let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
    let environment = Environment::simulated(clock.clone(), settings.seed);
    let store = Arc::new(MemoryStore::new(&environment));
    simulate_on(store, clock, &environment, settings).await
}

/// The same over another store, which must not know of a history of the same seed.
pub async fn simulate_on(
    store: Arc<dyn Store>,
    clock: VirtualClock,
    environment: &Environment,
    settings: Settings,
) -> String {
    // The history's own chance: a store may draw from the environment's as often as it likes.
    let chance = Environment::simulated(clock.clone(), settings.seed ^ 0x5EED);
    // Outermost, since a delay is time that passes, not a request under way.
    let watched = Watched::new(store);
    let faulty = Arc::new(Faulty::new(watched.clone(), &chance));
    let sink = MemorySink::new();
    let plan = Plan::new(&settings);
    let truth = Truth::default();
    let function = Function::new(environment, &chance, &settings, truth.clone());
    let own = Environment { clock: Arc::new(clock.clone()), ..chance.clone() };
    let state = StoreState::new(Arc::clone(&faulty) as _, &own);
    let chance_of_failure = if settings.faults().is_some() { 0.2 } else { 0.0 };
    let flaky =
        FlakySink { inner: sink.clone(), rng: Arc::clone(&chance.rng), chance: chance_of_failure };
    let deployment =
        Deployment { plan: plan.clone(), settings, environment: own, state, sink: flaky };
    if let Some(rates) = settings.faults() {
        faulty.follow(FaultPlan::Chance(rates));
    }
    let history = async {
        let discarded = match settings.source {
            Source::Stream | Source::Table(_) => {
                stream::run(&function, &deployment, &plan, &settings).await
            }
            Source::Queue | Source::Fifo => {
                queue::run(&function, &deployment, &plan, &settings).await
            }
        };
        function.outlived().await;
        discarded
    };
    let discarded = in_virtual_time(&clock, &watched, history).await;
    check::check(&settings, &plan, &truth, &sink, &discarded);
    truth.trace()
}
