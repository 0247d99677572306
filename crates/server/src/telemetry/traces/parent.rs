//! Which span a request, or a message, says that it comes from.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// How X-Ray, and thus Lambda and the AWS SDKs in it, say it.
const AMAZON: &str = "x-amzn-trace-id";

/// The headers of a request, to those who look for trace contexts in them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// The context that a request comes from: `traceparent` and `tracestate`, or else `X-Amzn-Trace-Id`. Where the latter
/// leaves open whether the trace is kept, `keep` decides.
pub fn of_request(headers: &HeaderMap, keep: impl Fn(TraceId) -> bool) -> Context {
    let none = Context::new();
    let standard = TraceContextPropagator::new().extract_with_context(&none, &Headers(headers));
    if standard.span().span_context().is_valid() {
        return standard;
    }
    let amazon = headers.get(AMAZON).and_then(|value| value.to_str().ok());
    match amazon.and_then(|text| of_text(text, keep)) {
        Some(parent) => none.with_remote_span_context(parent),
        None => none,
    }
}

/// The span that a text such as `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1` names. Without
/// a parent it names none.
pub fn of_text(text: &str, keep: impl Fn(TraceId) -> bool) -> Option<SpanContext> {
    let field = |name: &str| {
        let mut fields = text.split(';').filter_map(|field| field.split_once('='));
        fields.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let (version, rest) = field("Root")?.split_once('-')?;
    let (time, random) = rest.split_once('-')?;
    if version != "1" || time.len() != 8 || random.len() != 24 {
        return None;
    }
    let trace = TraceId::from_hex(&format!("{time}{random}")).ok()?;
    let span = field("Parent").filter(|span| span.len() == 16)?;
    let span = SpanId::from_hex(span).ok()?;
    let sampled = match field("Sampled") {
        Some("1") => true,
        Some("0") => false,
        _ => keep(trace),
    };
    let flags = TraceFlags::default().with_sampled(sampled);
    Some(SpanContext::new(trace, span, flags, true, TraceState::default()))
        .filter(SpanContext::is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "Root=1-5759e988-bd862e3fe1be46a994272793";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn parent(pairs: &[(&'static str, &str)]) -> SpanContext {
        of_request(&headers(pairs), |_| true).span().span_context().clone()
    }

    #[test]
    fn the_standard_header_comes_before_amazons() {
        let standard = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
        let amazon = format!("{ROOT};Parent=53995c3f42cd8ad8;Sampled=1");
        let both = parent(&[("traceparent", standard), ("x-amzn-trace-id", &amazon)]);
        assert_eq!(both.span_id().to_string(), "b7ad6b7169203331");
        assert!(!both.is_sampled() && both.is_remote());
        let one = parent(&[("traceparent", "nonsense"), ("x-amzn-trace-id", &amazon)]);
        assert_eq!(one.trace_id().to_string(), "5759e988bd862e3fe1be46a994272793");
        assert_eq!(one.span_id().to_string(), "53995c3f42cd8ad8");
        assert!(one.is_sampled() && one.is_remote());
        assert!(!parent(&[]).is_valid());
    }

    #[test]
    fn the_state_of_a_trace_comes_along() {
        let standard = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let given = parent(&[("traceparent", standard), ("tracestate", "vendor=x")]);
        assert_eq!(given.trace_state().header(), "vendor=x");
    }

    #[test]
    fn amazons_header_leaves_open_what_it_does_not_say() {
        let sampled = |rest: &str, keep: bool| {
            let text = format!("{ROOT};Parent=53995c3f42cd8ad8{rest}");
            of_text(&text, |_| keep).unwrap().is_sampled()
        };
        assert!(sampled(";Sampled=1", false) && !sampled(";Sampled=0", true));
        assert!(sampled("", true) && !sampled("", false) && sampled(";Sampled=?", true));
        for nonsense in [
            ROOT,
            "",
            "Root=1-5759e988;Parent=53995c3f42cd8ad8",
            "Root=2-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8",
            "Root=1-5759e988-bd862e3fe1be46a99427279x;Parent=53995c3f42cd8ad8",
            "Root=1-00000000-000000000000000000000000;Parent=53995c3f42cd8ad8",
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad",
        ] {
            assert!(of_text(nonsense, |_| true).is_none(), "{nonsense}");
        }
    }
}
