//! Any bytes as what extractors read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::extract(bytes));
