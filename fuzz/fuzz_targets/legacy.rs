//! Any bytes as an item of state as the older libraries kept it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::legacy(bytes));
