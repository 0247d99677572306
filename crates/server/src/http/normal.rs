//! A request as those who answer want it, whatever version of HTTP it came by.

use http::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Uri};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Puts the server's name, as the client said it, where HTTP/1.1 has it, and says when TLS was used: queue URLs are made
/// of both. What a proxy in front has said stays.
pub fn normalize(uri: &Uri, headers: &mut HeaderMap, tls: bool) {
    if !headers.contains_key(HOST)
        && let Some(authority) = uri.authority()
        && let Ok(host) = HeaderValue::try_from(authority.as_str())
    {
        headers.insert(HOST, host);
    }
    if tls {
        headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("https"));
    }
}

/// Whether a browser sent this for a page of another origin. Such a page could otherwise use every server that asks for
/// no signature and that its visitor can reach, one on loopback too.
pub fn is_from_foreign_page(headers: &HeaderMap) -> bool {
    // Browsers say it with every request, also where a page only names an address, as of a picture.
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return true;
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let from = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    !matches!((from, host), (Some((_, from)), Some(host)) if from.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn http2_requests_have_a_host_and_tls_is_told() {
        let mut said = HeaderMap::new();
        normalize(&"https://queues:1234/x".parse().unwrap(), &mut said, true);
        assert_eq!(
            (&said["host"], &said["x-forwarded-proto"]),
            (&"queues:1234".parse().unwrap(), &"https".parse().unwrap())
        );
        let mut said = headers(&[("host", "inside"), ("x-forwarded-proto", "http")]);
        normalize(&"/x".parse().unwrap(), &mut said, true);
        assert_eq!(said, headers(&[("host", "inside"), ("x-forwarded-proto", "http")]));
    }

    #[test]
    fn pages_of_other_origins_are_told_apart() {
        assert!(!is_from_foreign_page(&headers(&[("host", "localhost:9324")])));
        let own = [("host", "localhost:9324"), ("origin", "http://localhost:9324")];
        assert!(!is_from_foreign_page(&headers(&own)));
        for (site, foreign) in [("cross-site", true), ("same-site", true), ("none", false)] {
            let said = headers(&[("host", "localhost:9324"), ("sec-fetch-site", site)]);
            assert_eq!(is_from_foreign_page(&said), foreign, "{site}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:1"] {
            assert!(is_from_foreign_page(&headers(&[
                ("host", "localhost:9324"),
                ("origin", origin)
            ])));
        }
    }
}
