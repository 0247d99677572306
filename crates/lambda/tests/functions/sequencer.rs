//! The sequencer's functions: what comes in any order goes on in order.

use std::time::Duration;

use serde_json::json;

use crate::support::engine::Engine;
use crate::support::events::{cursor_moved, kinesis};
use crate::support::function::Start;
use crate::support::runtime_api::RuntimeApi;

const TIME: Duration = Duration::from_secs(60);

#[tokio::test]
async fn messages_come_in_any_order_and_go_on_in_order() {
    let (engine, api) = (Engine::start().await, RuntimeApi::start().await);
    let start = |binary: &str| {
        Start::binary(binary)
            .store(&engine.endpoint())
            .set("MILLPOND_SEQUENCER", "orders")
            .set("MILLPOND_SEQUENCE_PROPERTY", "/at/n")
            .set("MILLPOND_FORWARD_QUEUE", "in-order")
    };
    let intake = start(env!("CARGO_BIN_EXE_sequencer-intake")).start(&api);
    let order = |n: usize| json!({ "queue": "shop", "at": { "n": n } });
    let batch = [3, 1, 4, 0, 2, 1].map(order);
    let answer = api.invoke(&kinesis(1, &batch), TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());

    // What can never be put is dead at once, the rest is put.
    let bad = [
        json!({ "queue": "shop" }),
        json!({ "queue": "shop", "at": { "n": 1 }, "other": "content" }),
        order(5),
    ];
    let answer = api.invoke(&kinesis(7, &bad), TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());
    let reasons: Vec<_> = engine.letters().await.into_iter().map(|letter| letter.detail).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("/at/n")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("number 1 was put before")), "{reasons:?}");

    // Number 7 waits for 6; a sweep looks at it, and finds nothing to do.
    let answer = api.invoke(&kinesis(10, &[order(7)]), TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());
    let answer = api.invoke(&json!({ "source": "aws.events" }), TIME).await;
    let expected = json!({ "visited": 1, "advanced": 0, "skipped": 0, "parked": 0, "failed": 0 });
    assert_eq!(*answer.ok(), expected);
    drop(intake);

    // As the table's stream tells it: other items, moves of the cursor, and one of them twice.
    let api = RuntimeApi::start().await;
    let _ranges = start(env!("CARGO_BIN_EXE_sequencer-ranges")).start(&api);
    let mut other = cursor_moved(1, "shop", -1, 0);
    other["dynamodb"]["Keys"]["sk"]["B"] = json!("aQAAAAAAAAAA");
    let event = json!({
        "Records": [other, cursor_moved(2, "shop", -1, 2), cursor_moved(3, "shop", 2, 5)],
    });
    let answer = api.invoke(&event, TIME).await;
    assert_eq!(answer.failures(), Vec::<String>::new());
    let expected: Vec<_> = (0..=5).map(|n| order(n).to_string()).collect();
    assert_eq!(engine.bodies("in-order").await, expected);

    // A range that is not there is tried again, and does not hold up other queues.
    let event =
        json!({ "Records": [cursor_moved(4, "elsewhere", -1, 7), cursor_moved(5, "shop", 4, 5)] });
    let answer = api.invoke(&event, TIME).await;
    assert_eq!(answer.failures().len(), 1);
    assert_eq!(engine.bodies("in-order").await.len(), 7);
}
