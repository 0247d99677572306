//! Any bytes as a KPL aggregate: with its frame, or, after an odd byte, the message in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::aggregate(bytes));
