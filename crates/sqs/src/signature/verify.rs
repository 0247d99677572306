//! Checking a signature.

use hmac::{Hmac, Mac as _};
use http::request::Parts;
use millpond_store::Timestamp;
use sha2::Sha256;

use super::canonical::{self, hash};
use super::presented::{ALGORITHM, Presented};
use super::time;
use crate::error::{Code, Failure, Result};
use crate::limits::{PRESIGNED_SECONDS_MAX, SKEW_MAX};

/// Checks that a request was signed with a secret, for this service, and not too long ago.
pub fn verify(
    request: &Parts,
    body: &[u8],
    presented: &Presented,
    secret: &str,
    now: Timestamp,
) -> Result<()> {
    check_scope(presented)?;
    check_headers(request, presented)?;
    check_time(presented, now)?;
    let canonical = canonical::request(request, body, &presented.signed_headers);
    let canonical = canonical.ok_or_else(mismatch)?;
    let Presented { day, region, service, time, .. } = presented;
    let to_sign = format!(
        "{ALGORITHM}\n{time}\n{day}/{region}/{service}/aws4_request\n{}",
        hash(canonical.as_bytes())
    );
    let mut key = mac(format!("AWS4{secret}").as_bytes(), day.as_bytes());
    for part in [region.as_str(), service, "aws4_request"] {
        key = mac(&finish(key), part.as_bytes());
    }
    let signature = from_hex(&presented.signature).ok_or_else(mismatch)?;
    // In constant time: how long it takes says nothing about where they differ.
    mac(&finish(key), to_sign.as_bytes()).verify_slice(&signature).map_err(|_| mismatch())
}

fn mac(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.chain_update(text)
}

fn finish(mac: Hmac<Sha256>) -> Vec<u8> {
    mac.finalize().into_bytes().to_vec()
}

fn check_scope(presented: &Presented) -> Result<()> {
    if presented.service != "sqs" {
        let text = format!(
            "Credential should be scoped to correct service: 'sqs', not '{}'.",
            presented.service
        );
        return Err(Failure::new(Code::SignatureDoesNotMatch, text));
    }
    if !presented.time.starts_with(&presented.day) {
        let text = format!(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from \
             HTTP: '{}' != '{}'.",
            presented.day, presented.time
        );
        return Err(Failure::new(Code::SignatureDoesNotMatch, text));
    }
    Ok(())
}

/// The host and all headers of the protocol must be signed: what is not could be changed on the way.
fn check_headers(request: &Parts, presented: &Presented) -> Result<()> {
    let signed = &presented.signed_headers;
    if !signed.is_sorted() {
        return Err(Failure::new(Code::IncompleteSignature, "SignedHeaders are not in order."));
    }
    let mut needed = vec!["host"];
    let protocol = request.headers.keys().map(http::HeaderName::as_str);
    needed.extend(protocol.filter(|name| name.starts_with("x-amz-")));
    match needed.iter().find(|name| !signed.iter().any(|signed| signed == *name)) {
        None => Ok(()),
        Some(name) => {
            let text = format!("'{name}' must be a 'SignedHeader' in the AWS Authorization.");
            Err(Failure::new(Code::SignatureDoesNotMatch, text))
        }
    }
}

fn check_time(presented: &Presented, now: Timestamp) -> Result<()> {
    let signed = time::read(&presented.time).ok_or_else(|| {
        let text = format!("Date must be in ISO-8601 'basic format'. Got '{}'.", presented.time);
        Failure::new(Code::IncompleteSignature, text)
    })?;
    let refused = |text: String| Err(Failure::new(Code::SignatureDoesNotMatch, text));
    let (signed_text, now_text) = (&presented.time, time::write(now));
    if signed > now.plus(SKEW_MAX) {
        let latest = time::write(now.plus(SKEW_MAX));
        return refused(format!(
            "Signature not yet current: {signed_text} is still later than {latest} ({now_text} + 15 min.)"
        ));
    }
    let life = match presented.expires {
        None => SKEW_MAX,
        Some(seconds) if seconds <= PRESIGNED_SECONDS_MAX => {
            std::time::Duration::from_secs(seconds)
        }
        Some(_) => {
            return refused(format!(
                "X-Amz-Expires must be less than a week ({PRESIGNED_SECONDS_MAX} seconds)."
            ));
        }
    };
    if now > signed.plus(life) {
        let earliest = time::write(now.minus(life));
        return refused(format!(
            "Signature expired: {signed_text} is now earlier than {earliest} ({now_text} - {} min.)",
            life.as_secs() / 60
        ));
    }
    Ok(())
}

fn mismatch() -> Failure {
    Failure::new(
        Code::SignatureDoesNotMatch,
        "The request signature we calculated does not match the signature you provided. Check \
         your AWS Secret Access Key and signing method. Consult the service documentation for \
         details.",
    )
}

/// The bytes of a text in lower-case hexadecimal, the only form in which signatures are written.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Amazon's examples of signing, as they were published (`get-vanilla`, `get-vanilla-query-order-key-case` and
    /// `post-x-www-form-urlencoded`), whose service is called `service`.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn signature_of(request: http::request::Builder, body: &[u8], signed: &str) -> String {
        let parts = request.body(()).unwrap().into_parts().0;
        let signed: Vec<String> = signed.split(';').map(str::to_owned).collect();
        let canonical = canonical::request(&parts, body, &signed).unwrap();
        let scope = "20150830/us-east-1/service/aws4_request";
        let to_sign =
            format!("{ALGORITHM}\n20150830T123600Z\n{scope}\n{}", hash(canonical.as_bytes()));
        let mut key = mac(format!("AWS4{SECRET}").as_bytes(), b"20150830");
        for part in ["us-east-1", "service", "aws4_request"] {
            key = mac(&finish(key), part.as_bytes());
        }
        finish(mac(&finish(key), to_sign.as_bytes())).iter().map(|b| format!("{b:02x}")).collect()
    }

    fn example(method: &str, uri: &str) -> http::request::Builder {
        http::Request::builder()
            .method(method)
            .uri(uri)
            .header("Host", "example.amazonaws.com")
            .header("X-Amz-Date", "20150830T123600Z")
    }

    #[test]
    fn published_examples_have_their_signatures() {
        let signed = "host;x-amz-date";
        assert_eq!(
            signature_of(example("GET", "/"), b"", signed),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert_eq!(
            signature_of(example("GET", "/?Param2=value2&Param1=value1"), b"", signed),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
        let form = example("POST", "/").header("Content-Type", "application/x-www-form-urlencoded");
        assert_eq!(
            signature_of(form, b"Param1=value1", "content-type;host;x-amz-date"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
        assert_eq!(
            signature_of(example("POST", "/"), b"", signed),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
    }

    #[test]
    fn only_lower_case_hexadecimal_is_a_signature() {
        assert_eq!(from_hex(&"0f".repeat(32)), Some(vec![15; 32]));
        for bad in ["", &"0F".repeat(32), &"0f".repeat(31), &"+f".repeat(32)] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}
