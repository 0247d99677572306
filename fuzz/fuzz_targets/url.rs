//! Any bytes as the address of a queue.
#![no_main]

use millpond_fuzz::{ask, json};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let body = serde_json::json!({"QueueUrl": text, "SourceArn": text, "MessageBody": "x"});
    ask(json("SendMessage", body.to_string().into_bytes()), false);
});
