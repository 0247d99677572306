//! Long histories of everything on this engine, each judged by its model: `cargo xtask model`.
//!
//! Beside the properties that shrink what fails, these go for numbers: every run has a new seed, which it prints, and
//! which `MILLPOND_MODEL_SEED` repeats.

use std::pin::Pin;
use std::sync::Arc;

use crate::common::{Kept, unsynced};
use millpond_embedded::Durability;
use millpond_store::{Environment, Rng as _, SeededRng, VirtualClock};
use millpond_testing::log_suite::LogSubject;
use millpond_testing::mapping::{Settings, simulate_on};
use millpond_testing::queue_model::Setting;
use millpond_testing::{
    lane_model, log_model, queue_operations, queue_runs, sequencer_model, store_model,
};
use proptest::prelude::ProptestConfig;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// Operations of all models together; `cargo xtask model` asks for more.
const OPERATIONS: u64 = 3_000;
const OPERATIONS_VARIABLE: &str = "MILLPOND_MODEL_OPERATIONS";
const SEED_VARIABLE: &str = "MILLPOND_MODEL_SEED";

/// Most operations of one history.
const HISTORY_MAX: usize = 200;

/// One model's part of the run.
struct Part {
    name: &'static str,
    /// Of a hundred operations, how many are its.
    share: u64,
}

type Checking = Pin<Box<dyn Future<Output = ()>>>;

/// A history: its number of operations, and the check of it.
type History = (u64, Checking);

impl Part {
    /// Checks histories until there were enough operations.
    fn run(&self, history: impl Fn(&mut TestRunner, u64) -> History) {
        let read = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let seed = read(SEED_VARIABLE).unwrap_or_else(|| Environment::system().rng.next_u64());
        let enough = read(OPERATIONS_VARIABLE).unwrap_or(OPERATIONS) * self.share / 100;
        println!("{}: {enough} operations, {SEED_VARIABLE}={seed}", self.name);
        // One thread, so that virtual time stands still while anything is under way.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let seeds = SeededRng::new(seed);
        let (mut operations, mut histories) = (0, 0);
        while operations < enough {
            let own = seeds.next_u64();
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&own.to_le_bytes());
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
            let (count, check) = history(&mut runner, own);
            runtime.block_on(check);
            operations += count;
            histories += 1;
        }
        println!("{}: {operations} operations in {histories} histories agree", self.name);
    }
}

/// What a strategy makes of a seed.
fn draw<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).unwrap().current()
}

fn queue(runner: &mut TestRunner, seed: u64, faults: bool) -> History {
    let operations = draw(runner, &queue_operations::operations(HISTORY_MAX));
    let (strict, dead_letters) = (seed & 1 == 0, seed & 2 == 0);
    let setting = Setting { strict, dead_letters, faults: faults.then_some(seed) };
    let count = operations.len() as u64;
    let check = async move { queue_runs::check(&unsynced().await, setting, operations).await };
    (count, Box::pin(check))
}

#[test]
fn queues() {
    Part { name: "queues", share: 15 }.run(|runner, seed| queue(runner, seed, false));
}

#[test]
fn queues_under_faults() {
    Part { name: "queues under faults", share: 10 }.run(|runner, seed| queue(runner, seed, true));
}

#[test]
fn logs() {
    Part { name: "logs", share: 10 }.run(|runner, seed| {
        let operations = draw(runner, &log_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move {
            let subject = LogSubject::bare(unsynced().await);
            log_model::check(&subject, operations, seed & 1 == 0).await;
        };
        (count, Box::pin(check))
    });
}

#[test]
fn sequencers() {
    Part { name: "sequencers", share: 20 }.run(|runner, seed| {
        let operations = draw(runner, &sequencer_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check =
            async move { sequencer_model::check(&unsynced().await, operations, seed).await };
        (count, Box::pin(check))
    });
}

#[test]
fn stores() {
    Part { name: "stores", share: 30 }.run(|runner, _| {
        let operations = draw(runner, &store_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move { store_model::check(&unsynced().await, operations).await };
        (count, Box::pin(check))
    });
}

#[test]
fn lanes() {
    Part { name: "lanes", share: 10 }.run(|runner, _| {
        let operations = draw(runner, &lane_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move { lane_model::check(&unsynced().await, operations).await };
        (count, Box::pin(check))
    });
}

/// Each message is an operation, however often it is delivered.
#[test]
fn consumers() {
    Part { name: "consumers", share: 5 }.run(|_, seed| {
        let settings = Settings::of(seed);
        let check = async move {
            let clock = VirtualClock::new(Environment::system().now());
            let environment = Environment::simulated(clock.clone(), seed);
            let fast = Durability::UnsafeNoSync;
            let store = Kept::open(&environment, |options| options.durability(fast)).await;
            Box::pin(simulate_on(Arc::new(store), clock, &environment, settings)).await;
        };
        (settings.messages, Box::pin(check))
    });
}
