//! What is wrong with a function's settings is said at its start, by name.

use crate::support::function::Start;

#[tokio::test]
async fn wrong_settings_are_named_at_the_start() {
    let consumer = || {
        Start::binary(env!("CARGO_BIN_EXE_stream-consumer"))
            .set("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
    };
    let worker = || Start::binary(env!("CARGO_BIN_EXE_queue-worker"));
    for (start, said) in [
        (consumer().unset("MILLPOND_STORE"), "MILLPOND_STORE is not set: name the table"),
        (
            consumer().set("MILLPOND_STORE", "./data"),
            "MILLPOND_STORE is \"./data\": a function's disk",
        ),
        (
            consumer().set("MILLPOND_ATTEMPTS", "0"),
            "MILLPOND_ATTEMPTS is \"0\": it should be a number",
        ),
        (consumer().set("MILLPOND_DEAD_LETTERS", "sqs:x"), "MILLPOND_DEAD_LETTERS is \"sqs:x\""),
        (consumer().set("MILLPOND_ORDER", "age"), "it should be one of none, shard, key"),
        (consumer().set("MILLPOND_OBJECTS", "ftp://x"), "does not name an object store"),
        (
            consumer().unset("AWS_LAMBDA_RUNTIME_API"),
            "AWS_LAMBDA_RUNTIME_API is not set: this program",
        ),
        (worker(), "MILLPOND_QUEUE is not set"),
    ] {
        let (well, errors) = start.output().await;
        assert!(!well && errors.contains(said), "{said:?} is not in {errors:?}");
    }
}
