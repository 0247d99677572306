//! Any bytes as the JSON of a record of DynamoDB Streams.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::table(bytes));
