//! Any bytes as the JSON of a message of SQS.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::message(bytes));
