//! What the sequencer costs on DynamoDB, in units as the service reports them: `cargo xtask cost`.

use std::sync::Arc;

use bytes::Bytes;
use millpond_sequencer::{Config, Entry, Sequencer};
use millpond_store::{Environment, Rng as _, SeededRng, Usage};

use crate::support::Setup;

/// Bytes that do not compress.
fn body() -> Bytes {
    let rng = SeededRng::new(5);
    (0..1_024).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
}

async fn open() -> (Setup, Sequencer) {
    let setup = Setup::new().await;
    let store = Arc::new(setup.store.clone());
    let sequencer =
        Sequencer::open(store, &Environment::system(), "orders", Config::default()).unwrap();
    (setup, sequencer)
}

/// Prints what one message cost and fails when that is too much.
fn judge(what: &str, used: Usage, messages: u64, most: (f64, f64)) {
    let (wcu, rcu) = (used.write_units / messages as f64, used.read_units / messages as f64);
    println!(
        "sequencer, {what}: {wcu:.3} WCU (at most {}), {rcu:.3} RCU (at most {}), {:.2} requests",
        most.0,
        most.1,
        used.requests as f64 / messages as f64
    );
    assert!(wcu <= most.0 + 1e-9 && rcu <= most.1 + 1e-9, "{what} costs too much");
}

/// Puts `batches`, each in one call, and returns what that used.
async fn cost(setup: &Setup, sequencer: &Sequencer, batches: Vec<Vec<u64>>) -> Usage {
    let _ = setup.store.meter().take();
    for batch in batches {
        let entries: Vec<Entry> =
            batch.iter().map(|seq| Entry::new("customer-0001", *seq, body()).unwrap()).collect();
        let result = sequencer.put_batch(entries).await.unwrap();
        assert!(result.arrivals.iter().all(Result::is_ok));
    }
    setup.store.meter().take().total()
}

#[tokio::test]
async fn puts_in_order_cost_at_most_their_target() {
    let (setup, sequencer) = open().await;
    sequencer.put("customer-0001", 0, body()).await.unwrap();
    let used = cost(&setup, &sequencer, (1..=50).map(|seq| vec![seq]).collect()).await;
    judge("1 KB in order, one by one", used, 50, (3.0, 2.0));

    // Every put from a new process, which remembers nothing: a cold Lambda function.
    let mut used = Usage::default();
    for seq in 51..=70 {
        let store = Arc::new(setup.store.clone());
        let cold = Sequencer::open(store, &Environment::system(), "orders", Config::default());
        let one = cost(&setup, &cold.unwrap(), vec![vec![seq]]).await;
        used.read_units += one.read_units;
        used.write_units += one.write_units;
        used.requests += one.requests;
    }
    judge("1 KB in order, one by one, cold", used, 20, (3.0, 2.0));

    let (setup, sequencer) = open().await;
    sequencer.put("customer-0001", 0, body()).await.unwrap();
    let batches = (0..10).map(|n| (n * 25 + 1..=n * 25 + 25).collect()).collect();
    let used = cost(&setup, &sequencer, batches).await;
    judge("1 KB in order, batches of 25", used, 250, (2.1, 0.1));
}

#[tokio::test]
async fn puts_out_of_order_cost_little_more() {
    let (setup, sequencer) = open().await;
    sequencer.put("customer-0001", 0, body()).await.unwrap();
    // Pairs in the wrong order: half of the puts land ahead, each of the others passes two.
    let swapped = (0..25).flat_map(|n| [vec![2 * n + 2], vec![2 * n + 1]]).collect();
    let used = cost(&setup, &sequencer, swapped).await;
    judge("1 KB, neighbours swapped, one by one", used, 50, (3.0, 3.0));

    let (setup, sequencer) = open().await;
    let shuffled: Vec<u64> = millpond_testing::sequencer_suite::shuffled(0..100, 1);
    let used = cost(&setup, &sequencer, shuffled.chunks(25).map(<[u64]>::to_vec).collect()).await;
    judge("1 KB, shuffled within 100, batches of 25", used, 100, (2.1, 1.0));
}
