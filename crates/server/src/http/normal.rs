//! A request as those who answer want it, whatever version of HTTP it came by.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::header::{ACCEPT_LANGUAGE, HOST, HeaderName, HeaderValue, ORIGIN};
use http::uri::Authority;
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

/// The names that are this server's: those that it was told, beside what no one else can have.
#[derive(Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// With these, each with or without a port.
    pub fn new<'a>(told: impl IntoIterator<Item = &'a str>) -> Self {
        Self(told.into_iter().filter_map(host_of).collect())
    }

    /// Whether a client that calls the server this can mean no other. Anybody can let a name of theirs point here, but
    /// an address is its own.
    fn has(&self, host: &str) -> bool {
        let Some(host) = host_of(host) else { return false };
        let v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        host == "localhost"
            || host.parse::<IpAddr>().is_ok()
            || v6.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
            || self.0.contains(&host)
    }
}

fn host_of(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

/// Whether a browser sent this for a page of another origin. Such a page could otherwise use every server that asks for
/// no signature and that its visitor can reach, one on loopback too.
pub fn is_from_foreign_page(headers: &HeaderMap, names: &Names, peer: SocketAddr) -> bool {
    // Browsers say it with every request, also where a page only names an address, as of a picture.
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return true;
    }
    let origin = headers.get(ORIGIN);
    // Without TLS they say neither when a page reads from where it came from, but a language they always say.
    let may_be_page = || {
        let is_here = peer.ip().to_canonical().is_loopback();
        site.is_none() && is_here && headers.contains_key(ACCEPT_LANGUAGE)
    };
    if origin.is_none() && site != Some(b"same-origin") && !may_be_page() {
        return false;
    }
    // A page of the same name, which need not be from here: its owner can let the name point here once it is loaded.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host.filter(|host| names.has(host)) else { return true };
    let Some(origin) = origin else { return false };
    let from = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    !from.is_some_and(|(_, from)| from.eq_ignore_ascii_case(host))
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

    fn is_foreign_from(peer: &str, said: &[(&'static str, &'static str)], names: &Names) -> bool {
        is_from_foreign_page(&headers(said), names, peer.parse().unwrap())
    }

    #[test]
    fn pages_of_other_origins_are_told_apart() {
        let is_foreign = |said: &[_]| is_foreign_from("127.0.0.1:1", said, &Names::default());
        assert!(!is_foreign(&[("host", "localhost:9324")]));
        assert!(!is_foreign(&[("host", "localhost:9324"), ("origin", "http://localhost:9324")]));
        for (site, foreign) in
            [("cross-site", true), ("same-site", true), ("same-origin", false), ("none", false)]
        {
            let said = [("host", "localhost:9324"), ("sec-fetch-site", site)];
            assert_eq!(is_foreign(&said), foreign, "{site}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:1"] {
            assert!(is_foreign(&[("host", "localhost:9324"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn a_page_whose_name_was_made_to_point_here_is_foreign() {
        let names = Names::new(["Queues.test:9324", "public.test"]);
        let is_foreign = |said: &[_]| is_foreign_from("[::1]:1", said, &names);
        let origins = [
            ("evil.test:9324", "http://evil.test:9324", true),
            ("localhost.evil.test", "http://localhost.evil.test", true),
            ("127.0.0.1.evil.test", "http://127.0.0.1.evil.test", true),
            ("", "http://", true),
            ("localhost:9324", "http://localhost:9324", false),
            ("LOCALHOST", "https://localhost", false),
            ("127.8.9.1:9324", "http://127.8.9.1:9324", false),
            ("[::1]:9324", "http://[::1]:9324", false),
            ("192.168.1.7:9324", "http://192.168.1.7:9324", false),
            ("queues.test:9324", "http://queues.test:9324", false),
            ("public.test", "https://public.test", false),
        ];
        for (host, origin, foreign) in origins {
            for said in [
                vec![("host", host), ("origin", origin)],
                vec![("host", host), ("sec-fetch-site", "same-origin")],
                vec![("host", host), ("origin", origin), ("sec-fetch-site", "same-origin")],
                vec![("host", host), ("accept-language", "*")],
            ] {
                assert_eq!(is_foreign(&said), foreign, "{said:?}");
            }
            // Whoever is no page may call the server as they like.
            for said in [vec![("host", host)], vec![("host", host), ("sec-fetch-site", "none")]] {
                assert!(!is_foreign(&said), "{said:?}");
            }
            // Libraries that fetch as browsers do, on other machines, are no pages of a visitor of this one.
            let said = [("host", host), ("accept-language", "*")];
            assert!(!is_foreign_from("10.0.0.7:1", &said, &names), "{said:?}");
        }
    }
}
