//! Any bytes as the JSON of an action, which the first byte chooses.
#![no_main]

use millpond_fuzz::{ask, json};
use millpond_sqs::ACTIONS;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    ask(json(ACTIONS[usize::from(*first) % ACTIONS.len()], rest.to_vec()), false);
});
