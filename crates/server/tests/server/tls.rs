//! TLS, and certificates that change while the server runs.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::http::{Answer, connect, read_answer};
use crate::support::server::run;
use crate::support::{Server, eventually, get};

/// A new certificate for this machine, written to the files that the server reads.
fn certify(directory: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    // First the key: the server looks whenever one of them has changed, and takes only what fits.
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    made.cert.der().clone()
}

/// Asks over TLS, trusting only this certificate.
fn ask(server: &Server, trusted: &CertificateDer<'static>) -> Option<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(&server.address));
    let body = "Action=CreateQueue&QueueName=secret";
    let text = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).ok()?;
    read_answer(&mut stream)
}

const ARGUMENTS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

#[test]
fn it_speaks_tls_and_takes_new_certificates_as_they_come() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let first = certify(directory.path());
    let server = Server::start_in(Arc::clone(&directory), &ARGUMENTS);
    assert!(server.endpoint.starts_with("https://"), "{}", server.said);
    let answer = ask(&server, &first).expect("an answer over TLS");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("https://localhost/"), "queue URLs say https: {answer:?}");

    // A half-written file does no harm.
    std::fs::write(directory.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nMII").unwrap();
    eventually("it is noticed", || server.log().contains("the former ones stay"));
    assert_eq!(ask(&server, &first).unwrap().status, 200);

    let second = certify(directory.path());
    eventually("the new certificate is used", || ask(&server, &second).is_some());
    assert!(ask(&server, &first).is_none(), "the old one is not used any more");
}

#[test]
fn whoever_speaks_no_tls_is_turned_away_and_others_are_served() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let certificate = certify(directory.path());
    let server = Server::start_in(directory, &ARGUMENTS);
    let mut plain = connect(&server.address);
    plain.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(read_answer(&plain).is_none_or(|answer| answer.status != 200));
    assert_eq!(ask(&server, &certificate).unwrap().status, 200);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [&["serve", "--listen", "127.0.0.1:0"], ARGUMENTS.as_slice()].concat();
    let (well, said) = run(directory.path(), &arguments, &[]);
    assert!(!well && said.contains("cert.pem"), "{said}");
    certify(directory.path());
    std::fs::write(directory.path().join("key.pem"), "nonsense").unwrap();
    let (well, said) = run(directory.path(), &arguments, &[]);
    assert!(!well && said.contains("key.pem"), "{said}");
    assert!(!directory.path().join("millpond-data").exists());
    // Without TLS nothing of it is needed.
    assert_eq!(get(&Server::start(&[]).address, "/health/live").status, 200);
}
