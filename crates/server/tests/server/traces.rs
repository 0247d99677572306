//! Traces, as a collector gets them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
};
use serde_json::json;

use crate::sdk::client;
use crate::support::collector::{Manner, Span};
use crate::support::http::{connect, read_answer};
use crate::support::{Collector, PATIENCE, Server, eventually, get, post, request, sqs};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const SERVER: i32 = 2;
const INTERNAL: i32 = 1;

/// A server that sends its traces to this collector.
fn traced(collector: &Collector, arguments: &[&str]) -> Server {
    Server::start(&[&["--traces-endpoint", &collector.endpoint], arguments].concat())
}

/// Stops a server, which sends what it has.
fn stop(mut server: Server) {
    server.terminate();
    assert!(server.ended().success(), "{}", server.log());
}

/// A request of SQS with a header more.
fn ask(server: &Server, action: &str, body: &serde_json::Value, header: (&str, &str)) {
    let target = format!("AmazonSQS.{action}");
    let kind = ("Content-Type", "application/x-amz-json-1.0");
    let headers = [kind, ("X-Amz-Target", target.as_str()), header];
    let answer = request(&server.address, "POST", "/", &headers, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn has(span: &Span, key: &str, value: &str) {
    assert_eq!(span.attributes.get(key).map(String::as_str), Some(value), "{key} of {span:#?}");
}

/// A metric of traces as it stands.
fn metric(server: &Server, name: &str) -> u64 {
    let text = get(&server.address, "/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

#[tokio::test]
async fn a_request_is_a_span_inside_its_clients_with_what_it_did_and_without_what_messages_say() {
    let collector = Collector::start(Manner::Take);
    let server = traced(&collector, &[]);
    let client = client(&server.endpoint);
    let url = client.create_queue().queue_name("orders").send().await.unwrap().queue_url.unwrap();

    let parent = format!("00-{TRACE}-{PARENT}-01");
    let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    let header = MessageSystemAttributeValue::builder().data_type("String").string_value(header);
    let attribute = MessageAttributeValue::builder().data_type("String").string_value("hush-attr");
    client
        .send_message()
        .queue_url(&url)
        .message_body("hush-body")
        .message_attributes("a", attribute.build().unwrap())
        .message_system_attributes(
            MessageSystemAttributeNameForSends::AwsTraceHeader,
            header.build().unwrap(),
        )
        .customize()
        .mutate_request(move |request| {
            request.headers_mut().insert("traceparent", parent.clone());
            request.headers_mut().insert("tracestate", "vendor=x");
        })
        .send()
        .await
        .unwrap();
    let receive = client.receive_message().queue_url(&url).wait_time_seconds(20);
    let got = receive.send().await.unwrap().messages.unwrap();
    let receipt = got[0].receipt_handle().unwrap();
    client.delete_message().queue_url(&url).receipt_handle(receipt).send().await.unwrap();
    stop(server);

    let send = collector.span("POST SendMessage");
    assert_eq!((send.kind, &*send.trace, &*send.parent), (SERVER, TRACE, PARENT), "{send:#?}");
    assert_eq!(send.state, "vendor=x");
    assert_eq!(send.resource["service.name"], "millpond");
    has(&send, "http.request.method", "POST");
    has(&send, "http.response.status_code", "200");
    has(&send, "url.path", "/");
    has(&send, "server.address", "127.0.0.1");
    has(&send, "messaging.system", "millpond");
    has(&send, "messaging.operation.name", "SendMessage");
    has(&send, "messaging.operation.type", "send");
    has(&send, "messaging.destination.name", "orders");
    let action = collector.span("SendMessage orders");
    assert_eq!((action.kind, &action.parent), (INTERNAL, &send.id), "{action:#?}");
    has(&action, "messaging.destination.name", "orders");
    let commit = collector.span("commit");
    assert_eq!((&*commit.trace, &commit.parent), (TRACE, &action.id));

    let receive = collector.span("POST ReceiveMessage");
    assert_eq!(receive.parent, "", "nobody said where it comes from");
    assert_ne!(receive.trace, TRACE);
    has(&receive, "messaging.batch.message_count", "1");
    let action = collector.span("ReceiveMessage orders");
    assert_eq!(action.parent, receive.id);
    let link = ("5759e988bd862e3fe1be46a994272793".to_owned(), "53995c3f42cd8ad8".to_owned());
    assert_eq!(action.links, [link]);
    let wait = collector.span("wait");
    assert_eq!(wait.parent, action.id);
    let spans = collector.spans();
    let claims = spans.iter().filter(|span| span.parent == wait.id);
    assert!(claims.filter(|span| span.name.starts_with("store ")).count() > 0, "{spans:#?}");
    has(&collector.span("POST DeleteMessage"), "messaging.operation.type", "settle");

    assert!(spans.iter().all(|span| span.is_in_order && !span.failed), "{spans:#?}");
    assert!(collector.has_seen("orders"));
    for secret in ["hush-body", "hush-attr", receipt, "Signature=", "AWS4-HMAC"] {
        assert!(!collector.has_seen(secret), "{secret} was sent");
    }
}

#[test]
fn a_query_and_the_headers_of_a_request_are_not_told() {
    let collector = Collector::start(Manner::Take);
    let server = traced(&collector, &[]);
    let path = "/?Action=ListQueues&X-Amz-Signature=hush-query&X-Amz-Security-Token=hush-token";
    let answer = request(&server.address, "GET", path, &[("Authorization", "hush-header")], "");
    assert_eq!(answer.status, 200, "{answer:?}");
    stop(server);
    has(&collector.span("GET ListQueues"), "url.path", "/");
    assert!(!collector.has_seen("hush"));
}

#[test]
fn the_parent_decides_what_is_kept_and_else_the_ratio_does() {
    let nothing = json!({});
    let sampled = format!("00-{TRACE}-{PARENT}-01");
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    let amazon = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";

    let collector = Collector::start(Manner::Take);
    let server = traced(&collector, &["--traces-sample", "0"]);
    ask(&server, "ListQueues", &nothing, ("X-Nothing", "x"));
    ask(&server, "ListQueues", &nothing, ("traceparent", &unsampled));
    ask(&server, "ListQueues", &nothing, ("traceparent", &sampled));
    stop(server);
    assert_eq!(collector.span("POST ListQueues").parent, PARENT);

    let collector = Collector::start(Manner::Take);
    let server = traced(&collector, &[]);
    ask(&server, "ListQueues", &nothing, ("traceparent", &unsampled));
    ask(&server, "ListQueues", &nothing, ("X-Amzn-Trace-Id", amazon));
    stop(server);
    let span = collector.span("POST ListQueues");
    let trace = "5759e988bd862e3fe1be46a994272793";
    assert_eq!((&*span.trace, &*span.parent), (trace, "53995c3f42cd8ad8"));
}

#[test]
fn a_client_that_hangs_up_leaves_a_span_that_says_so() {
    let collector = Collector::start(Manner::Take);
    let server = traced(&collector, &[]);
    let queue = sqs::queue(&server, "empty");
    let body = json!({ "QueueUrl": queue, "WaitTimeSeconds": 20 }).to_string();
    let mut stream = connect(&server.address);
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    eventually("it waits", || {
        get(&server.address, "/metrics").body.contains("millpond_sqs_receives_waiting 1")
    });
    drop(stream);
    eventually("it is noticed", || {
        get(&server.address, "/metrics").body.contains("millpond_sqs_receives_waiting 0")
    });
    stop(server);
    has(&collector.span("POST ReceiveMessage"), "error.type", "client_gone");
    assert!(collector.span("wait").is_in_order);
}

#[test]
fn a_collector_that_hangs_slows_nothing_and_costs_spans_and_a_stop_is_bounded() {
    let collector = Collector::start(Manner::Hang);
    let mut server = traced(&collector, &[]);
    let body = "Action=ListQueues";
    let one = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // Each has two spans or more; 4,096 wait, and 512 are being sent.
    let stream = connect(&server.address);
    let started = Instant::now();
    for _ in 0..2_400 {
        (&stream).write_all(one.as_bytes()).unwrap();
        assert_eq!(read_answer(&stream).expect("an answer").status, 200);
    }
    assert!(metric(&server, "millpond_traces_dropped_total{reason=\"full\"}") > 0);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    assert!(collector.connections() > 0);
    drop(stream);

    let started = Instant::now();
    server.terminate();
    assert!(server.ended().success(), "{}", server.log());
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    assert!(server.log().contains("the last traces are lost"), "{}", server.log());
}

#[test]
fn what_does_not_reach_the_collector_is_counted_and_said_once() {
    let collector = Collector::start(Manner::Status(400));
    let server = traced(&collector, &[]);
    let failed =
        |server: &Server| metric(server, "millpond_traces_dropped_total{reason=\"failed\"}");
    sqs::queue(&server, "first");
    eventually("it is counted", || failed(&server) > 0);
    let before = failed(&server);
    sqs::queue(&server, "second");
    eventually("it is counted again", || failed(&server) > before);
    let log = server.log();
    assert_eq!(log.matches("traces do not reach the collector").count(), 1, "{log}");
    assert!(log.contains("400"), "{log}");

    collector.become_one_that(Manner::Reject);
    sqs::queue(&server, "third");
    let rejected = "millpond_traces_dropped_total{reason=\"rejected\"}";
    eventually("one is left out", || metric(&server, rejected) == 1);
    assert!(metric(&server, "millpond_traces_sent_total") > 0);
    let log = server.log();
    assert!(log.contains("reach the collector again") && log.contains("one too many"), "{log}");
}

#[test]
fn a_batch_that_is_refused_for_the_moment_is_sent_again() {
    let collector = Collector::start(Manner::Status(503));
    let server = traced(&collector, &[]);
    sqs::queue(&server, "kept");
    eventually("it is tried", || !collector.heads().is_empty());
    collector.become_one_that(Manner::Take);
    eventually("it is tried again", || !collector.spans().is_empty());
    collector.span("POST CreateQueue");
    assert_eq!(metric(&server, "millpond_traces_dropped_total{reason=\"failed\"}"), 0);
}

#[test]
fn without_an_endpoint_nothing_is_connected_and_nothing_counted() {
    let collector = Collector::start(Manner::Take);
    // What would be connected to, if it were not switched off.
    let otel = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint.as_str())];
    let off = ["--traces-endpoint", "off"];
    for (arguments, variables, connections) in
        [(&[][..], &[][..], 0), (&off[..], &otel[..], 0), (&[], &otel, 1)]
    {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let server = Server::start_with(directory, arguments, variables);
        ask(&server, "ListQueues", &json!({}), ("traceparent", &format!("00-{TRACE}-{PARENT}-01")));
        let metrics = get(&server.address, "/metrics").body;
        let is_shown = metrics.lines().any(|line| line.starts_with("millpond_traces_sent_total"));
        assert_eq!(is_shown, connections > 0, "{metrics}");
        stop(server);
        assert_eq!(collector.connections(), connections, "{arguments:?} {variables:?}");
    }
}

#[test]
fn the_collector_gets_the_headers_and_the_name_that_were_configured() {
    let collector = Collector::start(Manner::Take);
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = format!(
        "[traces]\nendpoint = \"{}/some/path\"\nservice_name = \"shop\"\nheaders = {{ authorization = \"Bearer hush\" }}\n",
        collector.endpoint
    );
    std::fs::write(directory.path().join("m.toml"), file).unwrap();
    let variables = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=not-this"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let server = Server::start_with(directory, &["--config", "m.toml"], &variables);
    sqs::queue(&server, "orders");
    assert!(!server.log().contains("hush"));
    stop(server);
    let heads = collector.heads();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(heads[0].starts_with("POST /some/path HTTP/1.1\r\n"), "{heads:?}");
    for line in ["authorization: Bearer hush\r\n", "content-type: application/x-protobuf\r\n"] {
        assert!(heads[0].contains(line), "{line} in {heads:?}");
    }
    let resource = collector.span("POST CreateQueue").resource;
    assert_eq!(resource["service.name"], "shop");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_collector_can_be_behind_tls() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(directory.path().join("cert.pem"), made.cert.pem()).unwrap();
    // Another server has no such path, and answers over TLS that it has not.
    let arguments = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let other = Server::start_in(Arc::clone(&directory), &arguments);
    let endpoint = other.endpoint.replace("127.0.0.1", "localhost");
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.path().join("stranger.pem"), stranger.cert.pem()).unwrap();
    for (trusted, said) in [("cert.pem", "404"), ("stranger.pem", "certificate")] {
        let trusted = directory.path().join(trusted);
        let variables = [("SSL_CERT_FILE", trusted.to_str().unwrap())];
        let own = Arc::new(tempfile::tempdir().unwrap());
        let server = Server::start_with(own, &["--traces-endpoint", &endpoint], &variables);
        sqs::queue(&server, "orders");
        eventually("it is tried", || server.log().contains("traces do not reach the collector"));
        assert!(server.log().contains(said), "{said} in {}", server.log());
    }
}

/// The rows of a table behind a heading of the documentation, as cells.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = include_str!("../../../../docs/telemetry.md");
    let (_, rest) = text.split_once(&format!("\n### {heading}\n")).unwrap();
    let section = rest.split("\n### ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('|').skip(1).map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

/// What the documentation calls such a span, and what it is of. Its name must be made of what it says of itself.
fn called(span: &Span) -> (&'static str, &'static str) {
    let said = |key: &str| span.attributes.get(key).map(String::as_str);
    let action = said("messaging.operation.name");
    let (name, called) = match (span.kind, said("http.route"), action) {
        (SERVER, Some(route), _) => (
            format!("{} {route}", said("http.request.method").unwrap()),
            ("METHOD ROUTE", "request"),
        ),
        (SERVER, None, Some(action)) => (
            format!("{} {action}", said("http.request.method").unwrap()),
            ("METHOD ACTION", "request"),
        ),
        (SERVER, None, None) => {
            (said("http.request.method").unwrap().to_owned(), ("METHOD", "request"))
        }
        (_, _, Some(action)) => match said("messaging.destination.name") {
            Some(queue) => (format!("{action} {queue}"), ("ACTION QUEUE", "action")),
            None => (action.to_owned(), ("ACTION", "action")),
        },
        _ => match said("db.operation.name") {
            Some(operation) => (format!("store {operation}"), ("store OPERATION", "store")),
            None if span.name == "wait" => ("wait".to_owned(), ("wait", "part")),
            None => ("commit".to_owned(), ("commit", "part")),
        },
    };
    assert_eq!(span.name, name, "{span:#?}");
    called
}

#[test]
fn the_documentation_lists_every_span_and_attribute_and_no_other() {
    let collector = Collector::start(Manner::Take);
    let server = traced(&collector, &["--body-bytes-max", "4096"]);
    let queue = sqs::queue(&server, "orders");
    let entries = json!([{ "Id": "a", "MessageBody": "a" }, { "Id": "b", "MessageBody": "b" }]);
    sqs::ok(&server, "SendMessageBatch", &json!({ "QueueUrl": queue, "Entries": entries }));
    assert!(!sqs::receive(&server, &queue, 1).is_empty());
    sqs::ok(&server, "ListQueues", &json!({}));
    sqs::ok(&server, "DeleteQueue", &json!({ "QueueUrl": queue }));
    assert_eq!(sqs::call(&server, "SendMessage", &json!({ "QueueUrl": queue })).status, 400);
    assert_eq!(get(&server.address, "/v1/queues").status, 200);
    assert_eq!(get(&server.address, "/v1/queues/missing").status, 404);
    assert_eq!(post(&server.address, "/", &"x".repeat(5_000)).status, 413);
    stop(server);

    let spans: BTreeMap<String, String> =
        table("Spans").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let mut attributes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in table("Attributes") {
        for of in row[1].split(", ") {
            attributes.entry(of.to_owned()).or_default().insert(row[0].clone());
        }
    }
    let (mut seen, mut seen_attributes) = (BTreeSet::new(), BTreeMap::new());
    for span in collector.spans() {
        let (name, of) = called(&span);
        let kind = if span.kind == SERVER { "server" } else { "internal" };
        let documented = spans.get(name).unwrap_or_else(|| panic!("{name} of {span:#?}"));
        assert!(documented.starts_with(kind), "{name} is {kind}, not {documented}");
        seen.insert(name.to_owned());
        let keys: &mut BTreeSet<String> = seen_attributes.entry(of.to_owned()).or_default();
        keys.extend(span.attributes.keys().cloned());
    }
    assert_eq!(seen, spans.into_keys().collect());
    // No failure of a store can be had at will.
    seen_attributes.get_mut("store").unwrap().insert("error.type".to_owned());
    assert_eq!(seen_attributes.remove("part"), Some(BTreeSet::new()));
    assert_eq!(seen_attributes, attributes);
}
