//! Signature Version 4, as SQS clients sign: so that a server with access keys knows who asks.

use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use http::{HeaderValue, Request};
use millpond_store::Timestamp;
use sha2::{Digest as _, Sha256};

/// The service in the scope of every signature.
const SERVICE: &str = "sqs";

/// The region in the scope of every signature; a server of ours serves any.
const REGION: &str = "us-east-1";

/// An access key.
#[derive(Clone)]
pub struct Key {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Adds the headers that prove who asks. The host header is already there.
pub fn sign(request: &mut Request<Bytes>, key: &Key, now: Timestamp) {
    let time = compact_time(now);
    let date = time.get(..8).unwrap_or_default().to_owned();
    let digest = hex(&Sha256::digest(request.body()));
    for (name, value) in [("x-amz-date", &time), ("x-amz-content-sha256", &digest)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            request.headers_mut().insert(name, value);
        }
    }
    let scope = format!("{date}/{REGION}/{SERVICE}/aws4_request");
    let (signed, canonical) = canonical(request, &digest);
    let hashed = hex(&Sha256::digest(canonical.as_bytes()));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashed}");
    let mut derived = format!("AWS4{}", key.secret).into_bytes();
    for part in [date.as_str(), REGION, SERVICE, "aws4_request"] {
        derived = mac(&derived, part.as_bytes());
    }
    let signature = hex(&mac(&derived, text.as_bytes()));
    let header = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
        key.id
    );
    if let Ok(header) = HeaderValue::from_str(&header) {
        request.headers_mut().insert(http::header::AUTHORIZATION, header);
    }
}

/// The names of the signed headers, and the request as it is signed.
fn canonical(request: &Request<Bytes>, digest: &str) -> (String, String) {
    let is_signed =
        |name: &str| matches!(name, "host" | "content-type") || name.starts_with("x-amz-");
    let mut headers: Vec<(&str, &str)> = request
        .headers()
        .iter()
        .filter(|(name, _)| is_signed(name.as_str()))
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default().trim()))
        .collect();
    headers.sort_unstable();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let mut query: Vec<&str> =
        request.uri().query().unwrap_or_default().split('&').filter(|p| !p.is_empty()).collect();
    query.sort_unstable();
    let (method, path, query) = (request.method(), twice(request.uri().path()), query.join("&"));
    (names.clone(), format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"))
}

/// A path is encoded once more for the signature.
fn twice(path: &str) -> String {
    path.replace('%', "%25")
}

fn mac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length is fine");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time as `20150830T123600Z`.
fn compact_time(now: Timestamp) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(now.as_millis());
    humantime::format_rfc3339_seconds(time).to_string().replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_compactly() {
        let time = compact_time(Timestamp::from_millis(1_440_938_160_999));
        assert_eq!(time, "20150830T123600Z");
    }

    #[test]
    fn a_request_is_signed_as_the_published_example_of_a_derived_key_says() {
        // The example of the documentation of Signature Version 4: key of 20150830, us-east-1, iam.
        let mut derived = b"AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_vec();
        for part in ["20150830", "us-east-1", "iam", "aws4_request"] {
            derived = mac(&derived, part.as_bytes());
        }
        assert_eq!(
            hex(&derived),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
        );
    }

    #[test]
    fn what_is_signed_depends_on_every_part() {
        let signature = |path: &str, body: &'static str, secret: &str| {
            let mut request = Request::post(path).header("host", "h").body(body.into()).unwrap();
            let key = Key { id: "id".into(), secret: secret.into() };
            sign(&mut request, &key, Timestamp::from_millis(1_440_938_160_000));
            request.headers()["authorization"].to_str().unwrap().to_owned()
        };
        let usual = signature("/v1/queues?a=1", "{}", "s");
        assert_eq!(usual, signature("/v1/queues?a=1", "{}", "s"));
        for other in [
            signature("/v1/queues?a=2", "{}", "s"),
            signature("/v1/queue?a=1", "{}", "s"),
            signature("/v1/queues?a=1", "{ }", "s"),
            signature("/v1/queues?a=1", "{}", "t"),
        ] {
            assert_ne!(usual, other);
        }
    }
}
