//! Long histories of everything on this engine, each judged by its model: `cargo xtask model`.
//!
//! Beside the properties that shrink what fails, these go for numbers: every run has a new seed, which it prints, and
//! which `MILLPOND_MODEL_SEED` repeats.

use std::pin::Pin;

use crate::common::unsynced;
use millpond_store::{Environment, Rng as _, SeededRng};
use millpond_testing::log_suite::LogSubject;
use millpond_testing::mapping::{Settings, simulate_on};
use millpond_testing::queue_model::Setting;
use millpond_testing::{
    Subject, lane_model, log_model, queue_operations, queue_runs, sequencer_model, store_model,
};
use proptest::prelude::ProptestConfig;
use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use tokio::runtime::Builder;

/// Operations of all models together; `cargo xtask model` asks for more.
const OPERATIONS: u64 = 3_000;
const OPERATIONS_VARIABLE: &str = "MILLPOND_MODEL_OPERATIONS";
const SEED_VARIABLE: &str = "MILLPOND_MODEL_SEED";

/// Most operations of one history.
const HISTORY_MAX: usize = 200;

/// So many histories share a store, one after another and each with names of its own: opening one takes longer than a history.
/// What earlier ones left is there while the next runs, as it is in a store that has been used.
const STORE_HISTORIES: u64 = 25;

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
    /// Checks histories until there were enough operations, on a new store every [`STORE_HISTORIES`].
    fn run(&self, history: impl Fn(&mut TestRunner, u64, Subject) -> History) {
        let read = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let seed = read(SEED_VARIABLE).unwrap_or_else(|| Environment::system().rng.next_u64());
        let enough = read(OPERATIONS_VARIABLE).unwrap_or(OPERATIONS) * self.share / 100;
        println!("{}: {enough} operations, {SEED_VARIABLE}={seed}", self.name);
        // One thread, so that virtual time stands still while anything is under way.
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let seeds = SeededRng::new(seed);
        let mut subject = None;
        let (mut operations, mut histories) = (0, 0);
        while operations < enough {
            let own = seeds.next_u64();
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&own.to_le_bytes());
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
            if histories % STORE_HISTORIES == 0 {
                subject = None;
            }
            let subject = subject.get_or_insert_with(|| runtime.block_on(unsynced())).clone();
            let (count, check) = history(&mut runner, own, subject);
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

fn queue(runner: &mut TestRunner, seed: u64, subject: Subject, faults: bool) -> History {
    let operations = draw(runner, &queue_operations::operations(HISTORY_MAX));
    let (strict, dead_letters) = (seed & 1 == 0, seed & 2 == 0);
    let setting = Setting { strict, dead_letters, faults: faults.then_some(seed) };
    let count = operations.len() as u64;
    let check = async move { queue_runs::check(&subject, setting, operations).await };
    (count, Box::pin(check))
}

#[test]
fn queues() {
    Part { name: "queues", share: 15 }
        .run(|runner, seed, subject| queue(runner, seed, subject, false));
}

#[test]
fn queues_under_faults() {
    Part { name: "queues under faults", share: 10 }
        .run(|runner, seed, subject| queue(runner, seed, subject, true));
}

#[test]
fn logs() {
    Part { name: "logs", share: 10 }.run(|runner, seed, subject| {
        let operations = draw(runner, &log_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move {
            let subject = LogSubject::bare(subject);
            log_model::check(&subject, operations, seed & 1 == 0).await;
        };
        (count, Box::pin(check))
    });
}

#[test]
fn sequencers() {
    Part { name: "sequencers", share: 20 }.run(|runner, seed, subject| {
        let operations = draw(runner, &sequencer_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move { sequencer_model::check(&subject, operations, seed).await };
        (count, Box::pin(check))
    });
}

#[test]
fn stores() {
    Part { name: "stores", share: 30 }.run(|runner, _, subject| {
        let operations = draw(runner, &store_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move { store_model::check(&subject, operations).await };
        (count, Box::pin(check))
    });
}

#[test]
fn lanes() {
    Part { name: "lanes", share: 10 }.run(|runner, _, subject| {
        let operations = draw(runner, &lane_model::operations(HISTORY_MAX));
        let count = operations.len() as u64;
        let check = async move { lane_model::check(&subject, operations).await };
        (count, Box::pin(check))
    });
}

/// Each message is an operation, however often it is delivered.
#[test]
fn consumers() {
    Part { name: "consumers", share: 5 }.run(
        |_, seed, Subject { store, clock, environment, .. }| {
            let settings = Settings::of(seed);
            let check = async move {
                Box::pin(simulate_on(store, clock, &environment, settings)).await;
            };
            (settings.messages, Box::pin(check))
        },
    );
}
