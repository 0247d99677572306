//! The form of a request that is signed.

use http::HeaderName;
use http::request::Parts;
use millpond_store::hex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

/// What is not written as it is, in a query...
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// ...and in a path.
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// The form of a request that is signed; nothing when a header that is to be signed is not there, or the query can be
/// read in more than one way.
pub fn request(request: &Parts, body: &[u8], signed_headers: &[String]) -> Option<String> {
    let path = utf8_percent_encode(request.uri.path(), PATH);
    let query = query(request.uri.query().unwrap_or_default())?;
    let mut headers = String::new();
    for name in signed_headers {
        headers.push_str(&format!("{name}:{}\n", header(request, name)?));
    }
    let (method, signed) = (&request.method, signed_headers.join(";"));
    Some(format!("{method}\n{path}\n{query}\n{headers}\n{signed}\n{}", hash(body)))
}

/// The parameters of a query, sorted, each encoded in one and the same way. Nothing when this form does not say what the
/// query means: a plain `+` would be signed as `%2B` and is read as a space, and of parameters of the same name the order
/// decides, which is not signed. No signer writes either: a space is `%20`, and items of lists are numbered.
fn query(text: &str) -> Option<String> {
    if text.contains('+') {
        return None;
    }
    let encoded = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8().ok()?;
        Some(utf8_percent_encode(&decoded, QUERY).to_string())
    };
    let mut pairs = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != "X-Amz-Signature" {
            pairs.push((encoded(name)?, encoded(value)?));
        }
    }
    pairs.sort_unstable();
    if pairs.array_windows().any(|[(one, _), (next, _)]| one == next) {
        return None;
    }
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(pairs.join("&"))
}

/// The values of a header, without spaces that mean nothing.
fn header(request: &Parts, name: &str) -> Option<String> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut values = Vec::new();
    for value in request.headers.get_all(&name) {
        let text = std::str::from_utf8(value.as_bytes()).ok()?;
        let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
        values.push(words.join(" "));
    }
    if values.is_empty() && name == http::header::HOST {
        // In HTTP/2 the host is part of the address.
        values.push(request.uri.authority()?.to_string());
    }
    (!values.is_empty()).then(|| values.join(","))
}

/// The SHA-256 of some bytes, as text.
pub fn hash(bytes: &[u8]) -> String {
    hex::of(&Sha256::digest(bytes))
}
