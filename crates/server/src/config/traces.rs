//! Where traces go, and how many of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use clap::Args;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::error::ConfigError;
use super::pick::{Picker, Source};

/// Where OTLP over HTTP expects spans, when only a host is named.
const OTLP_PATH: &str = "/v1/traces";
/// What says that there are to be no traces, whatever the variables of OpenTelemetry say.
const OFF: &str = "off";
/// Headers are few.
const HEADERS_MAX: usize = 32;
/// What traces call this service, unless they are told otherwise.
const SERVICE_NAME: &str = "millpond";
/// What a service is called is shown with every span.
const SERVICE_NAME_CHARS_MAX: usize = 255;

/// Headers for the collector: secrets, which no flag can hold.
const HEADERS_VARIABLE: &str = "MILLPOND_TRACES_HEADERS";
/// The standard variables, which are asked last. The first of each pair is for traces alone.
const OTEL_HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
const OTEL_TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const OTEL_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OTEL_SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Traces, as far as somebody said something about them: the table `[traces]` of the file.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[command(next_help_heading = "Traces")]
pub struct TraceSettings {
    /// Where OpenTelemetry traces are sent, by OTLP over HTTP: http://localhost:4318, or with another path than
    /// /v1/traces. Without it there are none; "off" also disregards OTEL_EXPORTER_OTLP_ENDPOINT.
    #[arg(long, env = "MILLPOND_TRACES_ENDPOINT", value_name = "URL")]
    #[serde(rename = "endpoint")]
    pub traces_endpoint: Option<String>,

    /// The share of traces that are kept, from 0.0 to 1.0, where a request does not say whether its trace is kept
    /// [default: 1.0].
    #[arg(long, env = "MILLPOND_TRACES_SAMPLE", value_name = "RATIO", hide_short_help = true)]
    #[serde(rename = "sample")]
    pub traces_sample: Option<Ratio>,

    /// What traces call this service [default: millpond].
    #[arg(long, env = "MILLPOND_TRACES_SERVICE_NAME", value_name = "NAME", hide_short_help = true)]
    #[serde(rename = "service_name")]
    pub traces_service_name: Option<String>,

    /// Headers for the collector. They are secrets, and so there is no flag for them.
    #[arg(skip)]
    pub headers: BTreeMap<String, String>,
}

/// Where traces go, and how many of them.
#[derive(Debug, Clone)]
pub struct TraceConfig {
    /// The whole address.
    pub endpoint: Uri,
    pub sample: f64,
    pub service_name: String,
    /// Values are marked as secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Where the headers came from, for people.
    pub headers_from: Source,
}

/// A share: 0.0 to 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Ratio(f64);

impl TryFrom<f64> for Ratio {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&value) {
            return Ok(Self(value));
        }
        Err(format!("{value} is not between 0.0 and 1.0"))
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: f64 =
            text.parse().map_err(|_| format!("{text:?} is no number from 0.0 to 1.0"))?;
        Self::try_from(value)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl TraceConfig {
    /// What is in force; nothing when there are to be no traces.
    pub fn choose(
        picker: &mut Picker<'_>,
        said: TraceSettings,
        filed: TraceSettings,
    ) -> Result<Option<Self>, ConfigError> {
        picker.enter("traces");
        let endpoint = picker.pick_or_else(
            "traces_endpoint",
            said.traces_endpoint,
            filed.traces_endpoint,
            otel_endpoint,
        );
        let sample =
            picker.pick("traces_sample", said.traces_sample, filed.traces_sample, Ratio(1.0));
        let service_name = picker.pick_or_else(
            "traces_service_name",
            said.traces_service_name,
            filed.traces_service_name,
            || otel(OTEL_SERVICE_NAME).or_else(|| Some((SERVICE_NAME.to_owned(), Source::Default))),
        );
        let service_name = service_name.unwrap_or_default();
        let invalid = |name: &'static str, problem: String, from: &Source| ConfigError::Invalid {
            name,
            problem,
            given_by: from.to_string(),
        };
        let length = service_name.chars().count();
        if !(1..=SERVICE_NAME_CHARS_MAX).contains(&length) {
            let problem = format!("has {length} characters, not 1 to {SERVICE_NAME_CHARS_MAX}");
            let from = picker.source("traces_service_name");
            return Err(invalid("traces_service_name", problem, &from));
        }
        let (headers, headers_from) = headers(filed.headers, picker.file())?;
        let Some(endpoint) = endpoint.filter(|endpoint| endpoint != OFF) else { return Ok(None) };
        let from = picker.source("traces_endpoint");
        let as_it_is = from == Source::Variable(OTEL_TRACES_ENDPOINT.to_owned());
        let endpoint = address(&endpoint, as_it_is)
            .map_err(|problem| invalid("traces_endpoint", problem, &from))?;
        Ok(Some(Self { endpoint, sample: sample.0, service_name, headers, headers_from }))
    }
}

/// The whole address. One without a path gets that of OTLP.
fn address(text: &str, as_it_is: bool) -> Result<Uri, String> {
    let example = "give one such as http://localhost:4318";
    let uri: Uri = text.parse().map_err(|_| format!("{text:?} is no URL; {example}"))?;
    if !matches!(uri.scheme().map(Scheme::as_str), Some("http" | "https")) {
        return Err(format!("{text:?} begins with neither http:// nor https://; {example}"));
    }
    // What is in an address is shown to people.
    if uri.query().is_some() || uri.authority().is_some_and(|host| host.as_str().contains('@')) {
        return Err(format!(
            "has a query or a user; secrets go into headers ({HEADERS_VARIABLE}, or headers in [traces])"
        ));
    }
    if as_it_is || uri.path() != "/" {
        return Ok(uri);
    }
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static(OTLP_PATH));
    Uri::from_parts(parts).map_err(|error| format!("{text:?}: {error}"))
}

/// The endpoint of the standard variables: one for traces as it is, or one for everything, with the path behind it.
fn otel_endpoint() -> Option<(String, Source)> {
    otel(OTEL_TRACES_ENDPOINT).or_else(|| {
        let (base, from) = otel(OTEL_ENDPOINT)?;
        Some((format!("{}{OTLP_PATH}", base.trim_end_matches('/')), from))
    })
}

/// A standard variable's value, with its name as where it came from.
fn otel(name: &str) -> Option<(String, Source)> {
    Some((variable(name)?, Source::Variable(name.to_owned())))
}

type Headers = Vec<(HeaderName, HeaderValue)>;

/// Headers by variable, by file, or by the standard variables; the first that gives any gives all.
fn headers(
    filed: BTreeMap<String, String>,
    file: Source,
) -> Result<(Headers, Source), ConfigError> {
    let (pairs, from) = if let Some(text) = variable(HEADERS_VARIABLE) {
        (listed(&text), Source::Variable(HEADERS_VARIABLE.to_owned()))
    } else if !filed.is_empty() {
        (Ok(filed.into_iter().collect()), file)
    } else if let Some((name, text)) =
        OTEL_HEADERS.iter().find_map(|name| Some((name, variable(name)?)))
    {
        (listed(&text), Source::Variable((*name).to_owned()))
    } else {
        (Ok(Vec::new()), Source::Default)
    };
    let headers = pairs.and_then(understood).map_err(|problem| ConfigError::Invalid {
        name: "traces_headers",
        problem,
        given_by: from.to_string(),
    })?;
    Ok((headers, from))
}

/// `name=value,name=value`, with values percent-encoded, as the standard variables have it.
fn listed(text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let wrong = || "is not of the form name=value,name=value".to_owned();
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| wrong())?;
            Ok((name.trim().to_owned(), value.into_owned()))
        })
        .collect()
}

/// Errors name the header and never its value.
fn understood(pairs: Vec<(String, String)>) -> Result<Headers, String> {
    if pairs.len() > HEADERS_MAX {
        return Err(format!("has {} headers; at most {HEADERS_MAX} are taken", pairs.len()));
    }
    let mut headers = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let key = HeaderName::try_from(&name).map_err(|_| format!("{name:?} is no header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of {name:?} cannot be sent in a header"))?;
        value.set_sensitive(true);
        headers.push((key, value));
    }
    Ok(headers)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_gets_that_of_otlp() {
        for (given, whole) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("https://collector/", "https://collector/v1/traces"),
            ("http://[::1]:4318/otlp/spans", "http://[::1]:4318/otlp/spans"),
        ] {
            assert_eq!(address(given, false).unwrap().to_string(), whole);
        }
        assert_eq!(address("http://a:1/", true).unwrap().to_string(), "http://a:1/");
        for wrong in ["localhost:4318", "grpc://a:1", "http://u:p@a", "http://a/?key=1", "", "/x"] {
            assert!(address(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_are_secrets_also_in_errors() {
        let pairs = listed("authorization=Bearer%20hush, x-team = blue,").unwrap();
        let headers = understood(pairs).unwrap();
        assert_eq!(headers[0].1, "Bearer hush");
        assert_eq!(headers[1], (HeaderName::from_static("x-team"), "blue".parse().unwrap()));
        assert!(!format!("{headers:?}").contains("hush"));
        assert!(listed("hush").is_err());
        for (name, value) in [("a b", "hush"), ("a", "hu\nsh")] {
            let error = understood(vec![(name.into(), value.into())]).unwrap_err();
            assert!(error.contains(name) && !error.contains("hu"), "{error}");
        }
    }

    #[test]
    fn a_ratio_is_between_nothing_and_everything() {
        for (text, shown) in [("0", "0.0"), ("1", "1.0"), ("0.25", "0.25"), ("1.0", "1.0")] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), shown);
        }
        for text in ["1.1", "-0.1", "NaN", "half", "", "inf"] {
            assert!(text.parse::<Ratio>().unwrap_err().contains("0.0"), "{text}");
        }
    }
}
