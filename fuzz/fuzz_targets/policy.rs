//! Any bytes as a policy of a queue.
#![no_main]

use millpond_fuzz::{ask, json};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let names = ["Policy", "RedrivePolicy", "RedriveAllowPolicy", "Millpond.Rate"];
    let body = serde_json::json!({
        "Attributes": {names[bytes.len() % names.len()]: String::from_utf8_lossy(bytes)},
    });
    ask(json("SetQueueAttributes", body.to_string().into_bytes()), false);
});
