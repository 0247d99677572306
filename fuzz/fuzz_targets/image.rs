//! Any bytes as the JSON of an item's image.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| millpond_testing::hostile::image(bytes));
