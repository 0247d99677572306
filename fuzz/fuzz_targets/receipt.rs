//! Any bytes as a receipt handle, a task handle or a page's token.
#![no_main]

use millpond_fuzz::{ask, json};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let body = serde_json::json!({
        "ReceiptHandle": text, "VisibilityTimeout": 1, "TaskHandle": text, "NextToken": text,
    });
    let actions = [
        "DeleteMessage",
        "ChangeMessageVisibility",
        "CancelMessageMoveTask",
        "ListDeadLetterSourceQueues",
    ];
    ask(json(actions[bytes.len() % actions.len()], body.to_string().into_bytes()), false);
});
