//! A server with access keys: who may do what through the native API.

use super::world::{Place, Server};

const KEYS: &str = r#"
[[keys]]
id = "admin"
secret = "admin's secret"

[[keys]]
id = "shop"
secret = "shop's secret"
actions = ["v1:count_messages", "v1:send_messages", "v1:list_queues", "v1:redrive_messages"]
queues = ["orders-*"]

[[keys]]
id = "111122223333"
secret = "an account's secret"
"#;

/// A key, a command, and what is said of it.
type Refused<'a> = (Option<(&'a str, &'a str)>, &'a [&'a str], &'a str);

#[test]
fn each_key_does_what_it_may_and_others_do_nothing() {
    let directory = tempfile::TempDir::new().unwrap();
    let keys = directory.path().join("keys.toml");
    std::fs::write(&keys, KEYS).unwrap();
    let server = Server::start(directory.path(), &["--access-keys", "keys.toml"]);
    let place = Place::Store(tempfile::TempDir::new().unwrap());
    let run = |key: Option<(&str, &str)>, arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.args(["--server", &server.url]);
        if let Some((id, secret)) = key {
            command.env("MILLPOND_ACCESS_KEY_ID", id).env("MILLPOND_SECRET_ACCESS_KEY", secret);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), said)
    };
    let admin = Some(("admin", "admin's secret"));
    let shop = Some(("shop", "shop's secret"));
    for queue in ["orders-1", "bills"] {
        assert_eq!(run(admin, &["queue", "create", queue]).0, 0);
    }
    assert_eq!(run(admin, &["queue", "send", "orders-1", "a b?c", "--client", "ü/x y"]).0, 0);
    assert_eq!(run(shop, &["queue", "send", "orders-1", "x"]).0, 0);
    assert_eq!(run(shop, &["queue", "count", "orders-1", "--client", "ü/x y"]).0, 0);
    let refused: &[Refused<'_>] = &[
        (None, &["queue", "list"], "MissingAuthenticationToken"),
        (Some(("admin", "guessed")), &["queue", "list"], "InvalidSignature"),
        (Some(("nobody", "x")), &["queue", "list"], "UnrecognizedClient"),
        (Some(("111122223333", "an account's secret")), &["queue", "list"], "one account's"),
        (shop, &["queue", "count", "bills"], "on what it names"),
        (shop, &["queue", "peek", "orders-1"], "v1:peek_messages"),
        (shop, &["queue", "list"], "on what it names"),
        (shop, &["queue", "redrive", "orders-1", "--to", "bills"], "on what it names"),
        (shop, &["store", "stats"], "v1:store_stats"),
    ];
    for (key, arguments, why) in refused {
        let (code, said) = run(*key, arguments);
        assert_eq!(code, 6, "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
}
