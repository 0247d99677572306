//! Any bytes as a form of the Query encoding.
#![no_main]

use bytes::Bytes;
use http::Request;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let body = Bytes::copy_from_slice(bytes);
    millpond_fuzz::ask(Request::post("/000000000000/q").body(body).expect("a request"), false);
});
