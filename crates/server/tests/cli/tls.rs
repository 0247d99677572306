//! A server with TLS, whose certificate is known by a file.

use super::world::{Place, Server};

fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[test]
fn a_server_is_trusted_by_the_certificates_that_are_given() {
    let directory = tempfile::TempDir::new().unwrap();
    let (chain, key) = certificate();
    std::fs::write(directory.path().join("chain.pem"), &chain).unwrap();
    std::fs::write(directory.path().join("key.pem"), key).unwrap();
    let flags = ["--tls-cert", "chain.pem", "--tls-key", "key.pem"];
    let server = Server::start(directory.path(), &flags);
    let url = server.url.replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://localhost:"), "{url}");

    let place = Place::Store(tempfile::TempDir::new().unwrap());
    let file = |name: &str, text: &str| std::fs::write(place.directory().join(name), text).unwrap();
    file("ours.pem", &chain);
    file("others.pem", &certificate().0);
    file("none.pem", "nothing");
    let with = |ca: &'static str, arguments: &[&str]| {
        let all = [arguments, &["--server", &url, "--ca-file", ca]].concat();
        place.run(&all)
    };
    assert!(with("ours.pem", &["queue", "create", "q"]).status.success());
    let listed = with("ours.pem", &["queue", "list"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "QUEUE\nq\n");
    for (ca, code, word) in [("others.pem", 5, "--ca-file"), ("none.pem", 2, "none.pem")] {
        let refused = with(ca, &["queue", "list"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{said}");
        assert!(said.contains(word), "{said}");
    }
}
