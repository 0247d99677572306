//! Stores themselves: directories, and a table of DynamoDB.

use super::world::Place;

#[test]
fn a_directory_is_made_looked_at_checked_and_swept() {
    let place = Place::store();
    place.good(&["queue", "create", "q"]);
    place.good(&["queue", "send", "q", "x"]);
    let stats = &place.json(&["store", "stats"])[0];
    assert_eq!((stats["backend"].as_str(), stats["queues"].as_u64()), (Some("embedded"), Some(1)));
    assert!(stats["bytes"].as_u64().unwrap() > 0);
    let checked = &place.json(&["store", "verify"])[0];
    assert_eq!(
        (checked["messages"].as_u64(), checked["problems"].as_array().unwrap().len()),
        (Some(1), 0)
    );
    assert_eq!(place.json(&["store", "sweep", "--remove"])[0]["removed"], 0);
    let made = &place.json(&["store", "create", "--store", "other"])[0];
    assert_eq!(made["store"], "other");
    assert!(place.directory().join("other").is_dir());
}

#[test]
fn policies_name_the_table_and_the_bucket() {
    let place = Place::store();
    let arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/things";
    let printed =
        place.good(&["store", "policy", "--role", "producer", "--arn", arn, "--bucket", "b/p"]);
    assert!(printed.contains(arn) && printed.contains("arn:aws:s3:::b/p/*"), "{printed}");
    assert!(!printed.contains("DeleteTable"), "{printed}");
    let all = place.json(&["store", "policy", "--store", "dynamodb:things"]);
    let roles: Vec<&str> = all.iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["producer", "consumer", "admin"]);
    assert!(all[2].to_string().contains("table/things"));
}

/// A table, spoken to over HTTP by the real binary.
#[test]
fn a_table_is_made_verified_and_used() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let endpoint = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(dynoxide::server::serve_on(listener, dynoxide::Database::memory().unwrap()));
        endpoint
    });
    let directory = tempfile::TempDir::new().unwrap();
    let run = |arguments: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_millpond"))
            .current_dir(directory.path())
            .args(arguments)
            .args(["--store", "dynamodb:things"])
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_ACCESS_KEY_ID", "example")
            .env("AWS_SECRET_ACCESS_KEY", "example")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .output()
            .unwrap()
    };
    let good = |arguments: &[&str]| {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let missing = run(&["store", "verify"]);
    assert_eq!(missing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("things"), "{said}");
    assert!(good(&["store", "create"]).contains("is there"));
    assert!(good(&["store", "create"]).contains("already"));
    let checks = good(&["store", "verify", "--role", "admin"]);
    assert!(checks.contains("dynamodb:PutItem") && !checks.contains("false"), "{checks}");
    good(&["queue", "create", "q"]);
    good(&["queue", "send", "q", "from a table"]);
    assert!(good(&["queue", "receive", "q", "--ack"]).contains("from a table"));
    assert!(good(&["store", "stats"]).contains("dynamodb"));
}
