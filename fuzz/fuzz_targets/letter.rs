//! Any bytes as a dead letter.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::letter(bytes));
