//! What is refused when a consumer is made.

use std::time::Duration;

use millpond_consumer::{
    BuildError, Builder, Consumer, Duplicates, HashRange, Ids, MemorySink, Message, Order, Outcome,
};

use crate::support::World;

fn refused(builder: Builder) -> String {
    builder.build().map(|_| ()).unwrap_err().to_string()
}

fn good() -> Builder {
    World::new().planned(|_| Outcome::Done)
}

#[test]
fn no_handler_no_state_and_no_sink_are_refused() {
    let world = World::new();
    assert_eq!(
        refused(world.builder()),
        "a handler is not set: add at least one with `one` or `all`"
    );
    let handler = |_: Message| async { Outcome::Done };
    let error = refused(Consumer::builder("c").one("t", handler));
    assert!(error.starts_with("state is not set: "), "{error}");
    let error = refused(Consumer::builder("c").one("t", handler).state(world.state()));
    assert!(error.starts_with("dead_messages is not set: "), "{error}");
    let some = Consumer::builder("c").one("t", handler).state(world.state());
    let error = refused(some.dead_messages(MemorySink::new()));
    assert!(error.starts_with("dead_records is not set: "), "{error}");
}

#[test]
fn duplicate_settings_are_refused_naming_both() {
    let error = refused(good().one("index", |_: Message| async {}));
    assert_eq!(error, "a handler's name is set twice: to one(\"index\") and to one(\"index\")");
    assert_eq!(refused(good().attempts(3).attempts(4)), "attempts is set twice: to 3 and to 4");
    let error = refused(good().order(Order::None).order(Order::PerKey));
    assert_eq!(error, "order is set twice: to None and to PerKey");
    let error = refused(good().dead_letters(MemorySink::new()));
    assert!(error.starts_with("dead_messages is set twice: to MemorySink"), "{error}");
    for twice in [
        good().extractor(millpond_consumer::Raw).extractor(millpond_consumer::Json),
        good().keys(["a"]).keys(["b"]),
        good().sequence(["a"]).sequence(["b"]),
        good().ids(Ids::Digest).ids(Ids::Source),
        good().concurrency(1).concurrency(2),
        good().timeout_share(0.5).timeout_share(0.6),
        good().age_max(Duration::from_secs(1)).age_max(Duration::from_secs(2)),
        good().before(|_| async { Ok::<_, String>(()) }).before(|_| async { Ok::<_, String>(()) }),
        good().after(|_| async {}).after(|_| async {}),
        good().before_finish(|_| async {}).before_finish(|_| async {}),
    ] {
        assert!(matches!(twice.build(), Err(BuildError::Twice { .. })));
    }
}

#[test]
fn conflicting_settings_are_refused_naming_both() {
    for (builder, expected) in [
        (
            good().keys(["customer"]).order(Order::PerShard),
            "keys [\"customer\"] and order PerShard contradict each other: keys are only for order per key",
        ),
        (
            good().sequence(["version"]).order(Order::None),
            "sequence [\"version\"] and order None contradict each other: without an order, nothing goes by a sequence",
        ),
        (
            good().duplicates(Duplicates::Skip { window: Duration::from_secs(60) }),
            "duplicates Skip { window: 60s } and ids Source contradict each other: no two messages have one id of the source, so that none would be skipped",
        ),
        (
            good().one("search", |_: Message| async {}).alias("index", "search"),
            "alias \"index\" of \"search\" and one(\"index\") contradict each other: a handler's own name cannot be a former name too",
        ),
        (
            good().one("b", |_: Message| async {}).alias("old", "index").alias("old", "b"),
            "alias \"old\" of \"index\" and alias \"old\" of \"b\" contradict each other: a former name is that of one handler",
        ),
    ] {
        assert_eq!(refused(builder), expected);
    }
}

#[test]
fn senseless_settings_are_refused_with_their_limits() {
    let hour = Duration::from_secs(3_600);
    for (builder, expected) in [
        (good().attempts(0), "attempts is 0, from 1 to 1000 are accepted"),
        (good().attempts(1_001), "attempts is 1001, from 1 to 1000 are accepted"),
        (good().concurrency(0), "concurrency is 0, from 1 to 1000 are accepted"),
        (good().timeout_share(1.0), "timeout_share is 1, from 0.05 to 0.95 are accepted"),
        (good().timeout_share(f64::NAN), "timeout_share is NaN, from 0.05 to 0.95 are accepted"),
        (good().keys([""]), "keys has no property, or an empty one"),
        (good().keys(["a", "a"]), "keys names a property twice"),
        (good().ids(Ids::Properties(vec![])), "ids has no property, or an empty one"),
        (good().sources([]), "sources is empty: no record could be consumed"),
        (good().age_max(Duration::ZERO), "age_max is zero: every message would be too old"),
        (
            good().hash_range("s", HashRange { first: 2, last: 1 }),
            "hash_range ends before it begins",
        ),
        (good().alias("old", "nothing"), "an alias names \"nothing\", which is no handler"),
        (
            good().one("a/b", |_: Message| async {}),
            "a handler's name \"a/b\" has a slash or a control character",
        ),
        (good().one("", |_: Message| async {}), "a handler's name is empty"),
        (
            good().ids(Ids::Digest).duplicates(Duplicates::Skip { window: hour * 24 * 8 }),
            "the window of duplicates is 691200s, up to 604800s are accepted",
        ),
    ] {
        assert_eq!(refused(builder), expected);
    }
    assert_eq!(refused(Consumer::builder("")), "name is empty");
    let many =
        (0..40).fold(good(), |builder, n| builder.one(&n.to_string(), |_: Message| async {}));
    assert_eq!(refused(many), "handlers are 41, at most 32 are accepted");
}
