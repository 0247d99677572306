//! A collector of traces: takes OTLP over HTTP, and keeps what it was sent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Takes everything.
    Take,
    /// Takes it, and says that it left one span out.
    Reject,
    /// Answers with this status, and keeps nothing.
    Status(u16),
    /// Never answers.
    Hang,
}

/// A span as it came.
#[derive(Debug, Clone)]
pub struct Span {
    pub name: String,
    pub kind: i32,
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub state: String,
    pub attributes: BTreeMap<String, String>,
    /// Traces and spans that it is linked to.
    pub links: Vec<(String, String)>,
    /// Whether its status is an error.
    pub failed: bool,
    /// Its end is not before its start.
    pub is_in_order: bool,
    /// What is said of the process that it is from.
    pub resource: BTreeMap<String, String>,
}

/// A collector on a free port of this machine. It goes on until the tests end.
pub struct Collector {
    pub endpoint: String,
    shared: Arc<Shared>,
}

struct Shared {
    manner: Mutex<Manner>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    /// Heads of requests.
    heads: Vec<String>,
    /// Everything that was sent, taken or not.
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Collector {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { manner: Mutex::new(manner), seen: Mutex::default() });
        let collector = Self { endpoint, shared: Arc::clone(&shared) };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.seen.lock().unwrap().connections += 1;
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        collector
    }

    pub fn become_one_that(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    /// The spans that it has taken so far.
    pub fn spans(&self) -> Vec<Span> {
        self.shared.seen.lock().unwrap().spans.clone()
    }

    /// The span of this name, of which there must be one.
    pub fn span(&self, name: &str) -> Span {
        let spans = self.spans();
        let mut found = spans.iter().filter(|span| span.name == name);
        match (found.next(), found.next()) {
            (Some(span), None) => span.clone(),
            (first, _) => panic!("{name}: {first:?} in {spans:#?}"),
        }
    }

    pub fn connections(&self) -> usize {
        self.shared.seen.lock().unwrap().connections
    }

    pub fn heads(&self) -> Vec<String> {
        self.shared.seen.lock().unwrap().heads.clone()
    }

    /// Whether this text was sent, in whatever place.
    pub fn has_seen(&self, text: &str) -> bool {
        let seen = self.shared.seen.lock().unwrap();
        seen.bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

impl Shared {
    /// Answers requests on a connection until that ends.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap_or_default() == 0 {
                    return;
                }
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_it = name.eq_ignore_ascii_case("content-length");
                is_it.then(|| value.trim().parse::<usize>().unwrap())
            });
            let mut body = vec![0; length.unwrap_or_default()];
            reader.read_exact(&mut body).unwrap();
            let manner = *self.manner.lock().unwrap();
            let mut seen = self.seen.lock().unwrap();
            seen.heads.push(head);
            seen.bytes.extend_from_slice(&body);
            if manner == Manner::Take || manner == Manner::Reject {
                seen.spans.extend(spans_of(&body));
            }
            drop(seen);
            let (status, answer) = match manner {
                Manner::Take => (200, Vec::new()),
                Manner::Reject => (200, one_left_out()),
                Manner::Status(status) => (status, Vec::new()),
                // The client ends this sooner or later.
                Manner::Hang => {
                    let _ = reader.read_line(&mut String::new());
                    return;
                }
            };
            let head = format!(
                "HTTP/1.1 {status} x\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            let mut stream = stream;
            if stream.write_all(&[head.as_bytes(), &answer].concat()).is_err() {
                return;
            }
        }
    }
}

fn one_left_out() -> Vec<u8> {
    let error_message = "one too many".to_owned();
    let partial = ExportTracePartialSuccess { rejected_spans: 1, error_message };
    ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec()
}

fn spans_of(body: &[u8]) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let mut spans = Vec::new();
    for from in request.resource_spans {
        let resource = texts(&from.resource.unwrap_or_default().attributes);
        for span in from.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let links = span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id)));
            spans.push(Span {
                kind: span.kind,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                attributes: texts(&span.attributes),
                links: links.collect(),
                failed: span.status.unwrap_or_default().code == 2,
                is_in_order: span.start_time_unix_nano <= span.end_time_unix_nano,
                resource: resource.clone(),
                state: span.trace_state,
                name: span.name,
            });
        }
    }
    spans
}

/// Attributes as text; each may be there once.
fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for attribute in attributes {
        let value = match attribute.value.clone().unwrap().value.unwrap() {
            Value::StringValue(text) => text,
            Value::IntValue(number) => number.to_string(),
            other => panic!("{}: {other:?}", attribute.key),
        };
        let before = texts.insert(attribute.key.clone(), value);
        assert_eq!(before, None, "{} twice", attribute.key);
    }
    texts
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
