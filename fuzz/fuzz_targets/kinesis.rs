//! Any bytes as the JSON of a record of Kinesis.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::kinesis(bytes));
