//! Any bytes as the header that carries a signature.
#![no_main]

use bytes::Bytes;
use http::{HeaderValue, Request};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = HeaderValue::from_bytes(bytes) else { return };
    let request = Request::post("/?Action=ListQueues")
        .header("host", "x")
        .header("x-amz-date", "20270115T080000Z")
        .header("authorization", header)
        .body(Bytes::new());
    millpond_fuzz::ask(request.expect("a request"), true);
});
