//! Flags, variables and files.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::sync::Arc;

use serde_json::json;

use crate::support::server::run;
use crate::support::{Server, get, sqs};

/// `config check` with a file, arguments and variables.
fn check(file: &str, arguments: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("m.toml"), file).unwrap();
    let all = [&["config", "check", "--config", "m.toml"], arguments].concat();
    run(directory.path(), &all, variables)
}

#[test]
fn flags_come_before_variables_and_variables_before_the_file() {
    let file = "region = \"in-file\"\n[limits]\nrequests_max = 7\nbody_timeout = \"7s\"\nidle_timeout = \"7s\"\n";
    let variables = [("MILLPOND_BODY_TIMEOUT", "8s"), ("MILLPOND_IDLE_TIMEOUT", "8s")];
    let (well, said) = check(file, &["--idle-timeout", "9s"], &variables);
    assert!(well, "{said}");
    let line = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("idle_timeout"), "idle_timeout = \"9s\" # --idle-timeout");
    assert_eq!(line("body_timeout"), "body_timeout = \"8s\" # MILLPOND_BODY_TIMEOUT");
    assert_eq!(line("requests_max"), "requests_max = 7 # m.toml");
    assert_eq!(line("region"), "region = \"in-file\" # m.toml");
    assert_eq!(line("header_timeout"), "header_timeout = \"10s\" # default");
}

#[test]
fn what_config_check_prints_is_a_configuration_with_the_same_meaning() {
    let file = "account_id = \"123456789012\"\nquiet_periods = false\nlog_level = \"info,millpond=debug\"\n\
                [limits]\nwrite_timeout = \"1500ms\"\n[[queue]]\nname = \"jobs.fifo\"\n\
                attributes = { VisibilityTimeout = 5, ContentBasedDeduplication = true }\ntags = { team = \"é\\\"x\" }\n";
    let (well, first) = check(file, &[], &[]);
    assert!(well, "{first}");
    let (well, second) = check(&first, &[], &[]);
    assert!(well, "{second}");
    let values = |text: &str| -> Vec<String> {
        let values = text.lines().filter(|line| !line.starts_with('#'));
        values.map(|line| line.split(" # ").next().unwrap().trim().to_owned()).collect()
    };
    assert_eq!(values(&first), values(&second));
    assert!(first.contains("\"VisibilityTimeout\" = \"5\""), "{first}");
    assert!(first.contains("\"FifoQueue\" = \"true\""), "{first}");
}

/// A file, arguments and variables, and the words that the error must have.
type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a [&'a str]);

#[test]
fn bad_configuration_is_named_with_its_place() {
    let keys = "MILLPOND_ACCESS_KEY_ID";
    let cases: &[Case<'_>] = &[
        ("colour = 1", &[], &[], &["m.toml", "colour", "line 1"]),
        ("[limits]\ncolour = 1", &[], &[], &["m.toml", "colour", "line 2"]),
        ("listen = \"nowhere\"", &[], &[], &["m.toml", "nowhere"]),
        ("listen = \"no.such.name.invalid:1\"", &[], &[], &["listen", "m.toml", "has no address"]),
        ("listen = 5", &[], &[], &["m.toml", "listen"]),
        ("[limits]\nbody_timeout = \"5\"", &[], &[], &["5", "30s"]),
        ("[limits]\nwaits_max = 10000", &[], &[], &["waits_max", "connections_max", "m.toml"]),
        ("", &["--requests-max", "0"], &[], &["requests_max", "--requests-max"]),
        ("", &["--account-id", "12"], &[], &["--account-id", "twelve digits"]),
        ("", &["--log-level", "loud"], &[], &["log_level", "loud", "trace"]),
        ("", &["--public-url", "queues"], &[], &["public_url", "https://"]),
        ("", &["--tls-cert", "c.pem"], &[], &["tls_cert", "tls_key", "both"]),
        ("", &["--objects", "memory:"], &[], &["objects", "store"]),
        ("", &["--store", "redis:x"], &[], &["--store", "redis", "dynamodb:TABLE"]),
        ("", &["--access-keys", "none.toml"], &[], &["none.toml"]),
        ("", &["--access-keys", "m.toml"], &[], &["m.toml", "[[keys]]"]),
        ("", &[], &[(keys, "a")], &[keys, "MILLPOND_SECRET_ACCESS_KEY"]),
        (
            "",
            &[],
            &[(keys, "a"), ("MILLPOND_SECRET_ACCESS_KEY", "short")],
            &["\"a\"", "8 characters"],
        ),
        ("", &[], &[("MILLPOND_TEST_CLOCK", "perhaps")], &["perhaps", "true"]),
        ("[[queue]]\nname = \"q\"\n[[queue]]\nname = \"q\"", &[], &[], &["\"q\"", "twice"]),
        ("[[queue]]\nnom = \"q\"", &[], &[], &["nom"]),
        ("[traces]\nend = \"x\"", &[], &[], &["m.toml", "end", "line 2"]),
        ("[traces]\nsample = 2", &[], &[], &["m.toml", "2", "between 0.0 and 1.0"]),
        ("", &["--traces-sample", "half"], &[], &["--traces-sample", "half", "1.0"]),
        ("[traces]\nendpoint = \"ftp://x\"", &[], &[], &["traces_endpoint", "http://", "m.toml"]),
        ("", &["--traces-endpoint", "http://a/?token=x"], &[], &["traces_endpoint", "headers"]),
        ("", &[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "x")], &["OTEL_EXPORTER_OTLP_ENDPOINT"]),
        ("", &[], &[("MILLPOND_TRACES_HEADERS", "x")], &["MILLPOND_TRACES_HEADERS", "name=value"]),
    ];
    for (file, arguments, variables, named) in cases {
        let (well, said) = check(file, arguments, variables);
        assert!(!well, "{file:?} {arguments:?} {variables:?} was accepted");
        assert!(named.iter().all(|word| said.contains(word)), "{file:?} {arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn traces_are_configured_by_flag_variable_file_and_the_standard_variables_in_that_order() {
    let line = |said: &str, name: &str| {
        let line = said.lines().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (well, said) = check("", &[], &[]);
    assert!(well && said.contains("[traces]\n# endpoint is not set"), "{said}");
    assert_eq!(line(&said, "sample"), "sample = 1.0 # default");
    assert_eq!(line(&said, "service_name"), "service_name = \"millpond\" # default");

    let file = "[traces]\nendpoint = \"http://in-file\"\nsample = 0.25\nservice_name = \"1\"\n\
                headers = { x-key = \"hush-hush\" }\n";
    let otel = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318/base/"),
        ("OTEL_SERVICE_NAME", "otel"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-otel=hush"),
    ];
    let (well, first) = check(file, &[], &otel);
    assert!(well && !first.contains("hush"), "{first}");
    assert_eq!(line(&first, "endpoint"), "endpoint = \"http://in-file\" # m.toml");
    assert_eq!(line(&first, "sample"), "sample = 0.25 # m.toml");
    assert_eq!(line(&first, "service_name"), "service_name = \"1\" # m.toml");
    assert_eq!(line(&first, "x-key"), "# header \"x-key\": value not shown # m.toml");
    let (well, second) = check(&first, &[], &[]);
    assert!(well, "{second}");
    assert_eq!(line(&second, "sample"), "sample = 0.25 # m.toml");

    let (well, said) = check("", &[], &otel);
    assert!(well && !said.contains("hush") && said.contains("x-otel"), "{said}");
    let whole = "endpoint = \"http://otel:4318/base/v1/traces\" # OTEL_EXPORTER_OTLP_ENDPOINT";
    assert_eq!(line(&said, "endpoint"), whole);
    assert_eq!(line(&said, "service_name"), "service_name = \"otel\" # OTEL_SERVICE_NAME");

    let variables = [("MILLPOND_TRACES_ENDPOINT", "http://b"), ("MILLPOND_TRACES_SAMPLE", "0.5")];
    let (well, said) = check(file, &["--traces-endpoint", "http://a"], &variables);
    assert!(well, "{said}");
    assert_eq!(line(&said, "endpoint"), "endpoint = \"http://a\" # --traces-endpoint");
    assert_eq!(line(&said, "sample"), "sample = 0.5 # MILLPOND_TRACES_SAMPLE");
}

#[test]
fn an_open_address_needs_keys_or_a_loud_flag() {
    let directory = tempfile::tempdir().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let (well, said) = run(directory.path(), &["serve", "--listen", listen], &[]);
        assert!(!well && said.contains("--insecure-allow-anonymous"), "{said}");
        assert!(said.contains("--access-keys") && said.contains(listen), "{said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something was written");
    // A name for all addresses of the machine, and one for a loopback address.
    let (well, said) = run(directory.path(), &["serve", "--listen", "0:0"], &[]);
    assert!(!well && said.contains("0:0 (0.0.0.0:0)"), "{said}");
    assert!(said.contains("--insecure-allow-anonymous"), "{said}");
    let (well, said) = run(directory.path(), &["config", "check", "--listen", "127.1:0"], &[]);
    assert!(well && said.contains("listen = \"127.1:0\""), "{said}");
    let loud = ["config", "check", "--listen", "0.0.0.0:0", "--insecure-allow-anonymous"];
    assert!(run(directory.path(), &loud, &[]).0);
    let variables =
        [("MILLPOND_ACCESS_KEY_ID", "me"), ("MILLPOND_SECRET_ACCESS_KEY", "hush-hush-hush")];
    let (well, said) =
        run(directory.path(), &["config", "check", "--listen", "0.0.0.0:0"], &variables);
    assert!(well && said.contains("\"me\"") && !said.contains("hush"), "{said}");
}

#[test]
fn a_name_is_listened_on_at_all_its_addresses() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let server = Server::start_at("localhost:0", directory, &[], &[]);
    let port = server.endpoint.strip_prefix("http://localhost:").expect("the name that was given");
    assert_ne!(port, "0");
    let addresses = server.address.to_socket_addrs().unwrap();
    // Those that this machine has; some know no IPv6.
    let here = addresses.filter(|address| TcpListener::bind((address.ip(), 0)).is_ok());
    let here: BTreeSet<SocketAddr> = here.collect();
    assert!(!here.is_empty());
    for address in here {
        assert_eq!(get(&address.to_string(), "/health/live").status, 200, "{address}");
    }
    let queue = sqs::queue(&server, "named");
    assert!(queue.starts_with(&format!("http://localhost:{port}/")), "{queue}");
}

#[test]
fn declared_queues_are_there_from_the_start_and_follow_the_file() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let file = directory.path().join("m.toml");
    let declare = |timeout: u32| {
        let text = format!(
            "[[queue]]\nname = \"jobs\"\nattributes = {{ VisibilityTimeout = {timeout} }}\ntags = {{ team = \"a\" }}\n\
             [[queue]]\nname = \"jobs.fifo\"\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    // Made, then found as it is, then changed.
    for timeout in [40, 40, 50] {
        declare(timeout);
        let mut server = Server::start_in(Arc::clone(&directory), &["--config", "m.toml"]);
        let url = sqs::ok(&server, "GetQueueUrl", &json!({ "QueueName": "jobs" }));
        let url = url["QueueUrl"].clone();
        let body = json!({ "QueueUrl": url, "AttributeNames": ["VisibilityTimeout"] });
        let got = sqs::ok(&server, "GetQueueAttributes", &body);
        assert_eq!(got["Attributes"]["VisibilityTimeout"], json!(timeout.to_string()));
        let tags = sqs::ok(&server, "ListQueueTags", &json!({ "QueueUrl": url }));
        assert_eq!(tags["Tags"], json!({ "team": "a" }));
        sqs::ok(&server, "GetQueueUrl", &json!({ "QueueName": "jobs.fifo" }));
        server.terminate();
        assert!(server.ended().success());
    }
    std::fs::write(&file, "[[queue]]\nname = \"jobs\"\nattributes = { Colour = \"red\" }\n")
        .unwrap();
    let (well, said) =
        run(directory.path(), &["serve", "--listen", "127.0.0.1:0", "--config", "m.toml"], &[]);
    assert!(!well && said.contains("\"jobs\"") && said.contains("Colour"), "{said}");
}

#[test]
fn with_keys_unsigned_requests_are_refused_and_health_is_not() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let keys = "[[keys]]\nid = \"me\"\nsecret = \"hush-hush-hush\"\n";
    std::fs::write(directory.path().join("keys.toml"), keys).unwrap();
    let server = Server::start_in(directory, &["--access-keys", "keys.toml"]);
    let answer = sqs::call(&server, "ListQueues", &json!({}));
    assert!((400..=403).contains(&answer.status), "{answer:?}");
    assert_eq!(crate::support::get(&server.address, "/health/ready").status, 200);
}
