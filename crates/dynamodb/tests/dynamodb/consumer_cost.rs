//! What the consumer costs on DynamoDB, in units as the service reports them: `cargo xtask cost`.

use std::sync::Arc;
use std::time::Duration;

use millpond_consumer::{Consumer, MemorySink, Message, Outcome, StoreState};
use millpond_store::Operation;

use crate::support::Setup;

const STREAM: &str = "arn:aws:kinesis:eu-central-1:111122223333:stream/orders";

/// The record that fails.
const FAILING: u32 = 2_100;

/// Messages `{"n":1}`, and `{"n":2}` for the one that fails, as Kinesis delivers them.
fn event(numbers: std::ops::Range<u32>) -> String {
    let data = ["eyJuIjoxfQ==", "eyJuIjoyfQ=="];
    let record = |n: u32| {
        let sequence = format!("4959033827149025660855969253836157109592157598913658{n:04}");
        format!(
            concat!(
                r#"{{"kinesis":{{"partitionKey":"key-{n}","sequenceNumber":"{sequence}","data":"{data}"}},"#,
                r#""eventSource":"aws:kinesis","eventID":"shardId-000000000001:{sequence}","eventSourceARN":"{arn}"}}"#
            ),
            n = n,
            sequence = sequence,
            data = data[usize::from(n == FAILING)],
            arn = STREAM,
        )
    };
    let records: Vec<String> = numbers.map(record).collect();
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}

async fn deliver(setup: &Setup, consumer: &Consumer, event: &str) -> millpond_consumer::Report {
    let deadline = setup.environment.now().plus(Duration::from_secs(60));
    consumer.handle(event.as_bytes(), deadline).await.unwrap().1
}

fn consumer(setup: &Setup) -> Consumer {
    let state = StoreState::new(Arc::new(setup.store.clone()), &setup.environment);
    Consumer::builder("orders")
        .state(state)
        .dead_letters(MemorySink::new())
        .one("index", |message: Message| async move {
            if message.value().unwrap()["n"] == 2 { Outcome::retry("no") } else { Outcome::Done }
        })
        .one("notify", |_: Message| async { Outcome::Done })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_batch_that_succeeds_writes_at_most_one_small_item() {
    let setup = Setup::new().await;
    let consumer = consumer(&setup);
    let _ = setup.store.meter().take();
    for batch in 0..5 {
        let from = 1_001 + batch * 100;
        let report = deliver(&setup, &consumer, &event(from..from + 100)).await;
        assert!(report.is_complete() && report.saved == 0, "{report:?}");
        let reading = setup.store.meter().take();
        let used = reading.total();
        println!(
            "consumer, batch {batch} of 100, all succeed: {:.1} WCU (at most 1), {:.1} RCU (at most 4), {} requests",
            used.write_units, used.read_units, used.requests
        );
        assert!(used.write_units <= 1.0 && used.read_units <= 4.0, "{used:?}");
        assert_eq!(reading.of(Operation::Write).requests, 1);
        assert_eq!(reading.of(Operation::WriteEach).requests, 0);
    }
}

#[tokio::test]
async fn a_batch_with_one_failure_writes_a_small_item_for_each_message_that_comes_again() {
    let setup = Setup::new().await;
    let consumer = consumer(&setup);
    let _ = setup.store.meter().take();
    // The failing one is the last but nine: ten come again.
    let report = deliver(&setup, &consumer, &event(2_010..2_110)).await;
    assert_eq!((report.unfinished, report.saved), (1, 10), "{report:?}");
    let used = setup.store.meter().take().total();
    println!(
        "consumer, batch of 100, one of the last ten fails: {:.1} WCU (at most 14), {:.1} RCU",
        used.write_units, used.read_units
    );
    // A marker, its removal, a row for each of ten, the row of the source.
    assert!(used.write_units <= 14.0, "{used:?}");
}
