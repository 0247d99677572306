//! Input that makes no sense: a typed error that names the field and the limit, and nothing is written.

use std::time::Duration;

use bytes::Bytes;
use millpond_queue::{
    Attribute, AttributeValue, Client, DeadLetters, Limits, Message, Nack, Order, QueueConfig,
    QueueError, Rate, Receive, Shedding, StatusKeeping,
};

use super::{counts, name, process, queue, seconds, send, take, take_one};
use crate::subject::Subject;

/// The field that an error names.
fn field(error: &QueueError) -> &'static str {
    match error {
        QueueError::Invalid { field, .. } => field,
        QueueError::TooLarge { what, .. } => what,
        other => panic!("not an error about input: {other:?}"),
    }
}

/// Names of queues and ids of clients.
pub async fn bad_names_are_refused(subject: &Subject) {
    let queues = process(subject);
    let long = "x".repeat(129);
    for bad in ["", " ", "a b", "a/b", "a#b", "ä", "a\n", &long] {
        for outcome in
            [queues.create(bad, QueueConfig::default()).await.err(), queues.open(bad).await.err()]
        {
            let error = outcome.expect("a bad name is refused");
            assert_eq!(field(&error), "name", "{bad:?}: {error}");
        }
    }
    let error = queues.create(&long, QueueConfig::default()).await.unwrap_err();
    assert!(error.to_string().contains("128"), "the limit is not named: {error}");
    let longest = format!("{:x<128}", name());
    let handle = queues.create(&longest, QueueConfig::default()).await.unwrap();
    for bad in ["x".repeat(257), "a\nb".into(), "\0".into()] {
        let error = handle.client(&bad).unwrap_err();
        assert_eq!(field(&error), "client id", "{error}");
    }
    let widest = handle.client(&"#".repeat(256)).unwrap();
    send(&widest, &["the longest id, escaped"]).await;
    assert_eq!(take(&widest, 1).await.len(), 1);
    let unknown = queues.open("no-such-queue").await.unwrap_err();
    assert!(matches!(unknown, QueueError::NotFound { what: "queue", .. }), "{unknown:?}");
}

async fn refuses(client: &Client, message: Message, expected: &str) {
    let error = client.send(message.clone()).await.unwrap_err();
    assert_eq!(field(&error), expected, "{error}");
    let batch = client.send_batch(vec![message, Message::new("fine")]).await.unwrap();
    assert!(batch[0].is_err() && batch[1].is_ok(), "the neighbour is sent");
}

/// What is said about a message.
pub async fn bad_messages_are_refused(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let strict = config.strict.is_some();
        let client = queue(subject, config).await;
        let plain = || Message::new("x");
        let with = |name: &str, value| plain().attribute(name, value);
        let text = |text: &str| AttributeValue::String(text.to_owned());
        let number = |text: &str| AttributeValue::Number(text.to_owned());
        let labelled = |label: String| {
            let mut message = plain();
            let attribute = Attribute { value: AttributeValue::String("x".into()), label };
            message.attributes.insert("a".into(), attribute);
            message
        };
        let many =
            (0..65).fold(plain(), |message, n| message.attribute(format!("a{n}"), text("x")));
        let mut bad = vec![
            (plain().group(""), "group"),
            (plain().group("g".repeat(129)), "group"),
            (plain().dedup_id(""), "dedup_id"),
            (plain().dedup_id("d".repeat(129)), "dedup_id"),
            (plain().priority(1), "priority"),
            (plain().ttl(Duration::ZERO), "ttl"),
            (plain().ttl(Duration::MAX), "ttl"),
            (plain().delay(Duration::MAX), "delay"),
            (plain().delay(seconds(15 * 86_400)), "delay"),
            (Message { trace: Some("t".repeat(1_025)), ..plain() }, "trace"),
            (with("", text("x")), "attribute name"),
            (with(&"n".repeat(257), text("x")), "attribute name"),
            (labelled("l".repeat(257)), "attribute label"),
            (with("a", text("")), "attribute"),
            (with("a", AttributeValue::Binary(Bytes::new())), "attribute"),
            (many, "message"),
        ];
        for wrong in ["", "ten", "1,5", "NaN", "0x10", "1e400", &"9".repeat(39)] {
            bad.push((with("a", number(wrong)), "attribute"));
        }
        if !strict {
            bad.push((plain().dedup_id("only in strict queues"), "dedup_id"));
        }
        let count = bad.len() as u64;
        for (message, expected) in bad {
            refuses(&client, message, expected).await;
        }
        assert_eq!(counts(&client).await, (count, 0, 0), "a refused message was written");
    }
}

/// What a receive asks for, and times of leases.
pub async fn bad_receives_and_times_are_refused(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    let strict = queue(subject, QueueConfig::strict()).await;
    send(&client, &["x"]).await;
    send(&strict, &["x"]).await;
    let ask = Receive::default;
    let zero = Order::Priority { aging: Duration::ZERO };
    for (bad, expected) in [
        (Receive::up_to(0), "max"),
        (Receive::up_to(1_001), "max"),
        (Receive { min: 2, ..ask() }, "min"),
        (ask().wait(seconds(3_601)), "wait"),
        (ask().visibility(Duration::ZERO), "visibility"),
        (ask().visibility(seconds(43_201)), "visibility"),
        (ask().visibility(Duration::MAX), "visibility"),
        (ask().order(zero), "order.aging"),
        (Receive { attempt: Some(String::new()), ..ask() }, "attempt"),
        (Receive { attempt: Some("a".repeat(129)), ..ask() }, "attempt"),
        (Receive { worker: "w".repeat(65), ..ask() }, "worker"),
    ] {
        let error = client.receive(&bad).await.unwrap_err();
        assert_eq!(field(&error), expected, "{error}");
    }
    let error = strict.receive(&ask().order(Order::Lifo)).await.unwrap_err();
    assert_eq!(field(&error), "order", "{error}");
    assert_eq!((counts(&client).await, counts(&strict).await), ((1, 0, 0), (1, 0, 0)));

    let receipt = take_one(&client).await.receipt;
    for time in [Duration::ZERO, seconds(43_201), Duration::MAX] {
        for error in [
            client.extend(&receipt, time).await.unwrap_err(),
            client.extend_batch(std::slice::from_ref(&receipt), time).await.unwrap_err(),
            client.heartbeat(&receipt, time).unwrap_err(),
        ] {
            assert_eq!(field(&error), "visibility", "{error}");
            assert!(error.to_string().contains("43200"), "the limit is not named: {error}");
        }
    }
    let late = Nack { delay: Duration::MAX, ..Nack::default() };
    assert_eq!(field(&client.nack(&receipt, late).await.unwrap_err()), "delay");
    let unblocked = client.unblock("g").await.unwrap_err();
    assert_eq!(field(&unblocked), "group");
    client.ack(&receipt).await.unwrap();
    assert!("nonsense".parse::<millpond_queue::MessageId>().is_err());
}

/// Configurations that make no sense by themselves or together.
pub async fn a_config_that_contradicts_itself_is_refused(subject: &Subject) {
    let queues = process(subject);
    let (name, other, strict_other) = (name(), super::name(), super::name());
    queues.create(&other, QueueConfig::default()).await.unwrap();
    queues.create(&strict_other, QueueConfig::strict()).await.unwrap();
    let base = QueueConfig::default;
    let dead = |queue: &str, receives_max| QueueConfig {
        dead_letters: Some(DeadLetters { queue: queue.to_owned(), receives_max }),
        ..base()
    };
    let shed = |shedding| QueueConfig { shedding: Some(shedding), ..base() };
    let limited = |limits| QueueConfig { limits, ..base() };
    let rate = |per_second, burst| Some(Rate { per_second, burst });
    let cases = vec![
        (QueueConfig { visibility: Duration::ZERO, ..base() }, "visibility"),
        (QueueConfig { visibility: seconds(43_201), ..base() }, "visibility"),
        (QueueConfig { retention: Duration::ZERO, ..base() }, "retention"),
        (QueueConfig { retention: Duration::MAX, ..base() }, "retention"),
        (QueueConfig { delay: seconds(366 * 86_400), ..base() }, "delay"),
        (QueueConfig { delay: seconds(60), retention: seconds(60), ..base() }, "delay"),
        (QueueConfig { message_bytes_max: 0, ..base() }, "message_bytes_max"),
        (QueueConfig { message_bytes_max: usize::MAX, ..base() }, "message_bytes_max"),
        (QueueConfig { lanes: 0, ..base() }, "lanes"),
        (QueueConfig { lanes: 17, ..base() }, "lanes"),
        (QueueConfig { priorities: 0, ..base() }, "priorities"),
        (QueueConfig { priorities: 11, ..base() }, "priorities"),
        (QueueConfig { priorities: 2, ..QueueConfig::strict() }, "priorities"),
        (QueueConfig { order: Order::Lifo, ..QueueConfig::strict() }, "order"),
        (QueueConfig { shedding: Some(Shedding::default()), ..QueueConfig::strict() }, "shedding"),
        (QueueConfig { order: Order::Priority { aging: Duration::ZERO }, ..base() }, "order.aging"),
        (
            QueueConfig { status: Some(StatusKeeping { keep: Duration::ZERO }), ..base() },
            "status.keep",
        ),
        (dead(&name, 3), "dead_letters.queue"),
        (dead("not a name", 3), "dead_letters.queue"),
        (dead("no-such-queue", 3), "dead_letters.queue"),
        (dead(&strict_other, 3), "dead_letters.queue"),
        (dead(&other, 0), "dead_letters.receives_max"),
        (dead(&other, 1_001), "dead_letters.receives_max"),
        (
            shed(Shedding { age_max: Some(Duration::ZERO), ..Shedding::default() }),
            "shedding.age_max",
        ),
        (shed(Shedding { depth_max: Some(0), ..Shedding::default() }), "shedding.depth_max"),
        (
            shed(Shedding { side_queue: Some(name.clone()), ..Shedding::default() }),
            "shedding.side_queue",
        ),
        (limited(Limits { rate: rate(0.0, 1), ..Limits::default() }), "limits.rate"),
        (limited(Limits { rate: rate(f64::NAN, 1), ..Limits::default() }), "limits.rate"),
        (limited(Limits { group_rate: rate(1.0, 0), ..Limits::default() }), "limits.group_rate"),
        (limited(Limits { running: Some(0), ..Limits::default() }), "limits.running"),
    ];
    for (config, expected) in cases {
        let error = queues.create(&name, config.clone()).await.unwrap_err();
        assert_eq!(field(&error), expected, "{error}");
        let missing = queues.open(&name).await.unwrap_err();
        assert!(matches!(missing, QueueError::NotFound { .. }), "{expected} was written");
    }
}

/// What a queue is cannot be changed by opening it with another configuration, nor all of it later.
pub async fn a_queue_keeps_what_it_is(subject: &Subject) {
    let queues = process(subject);
    let name = name();
    let handle = queues.create(&name, QueueConfig::default()).await.unwrap();
    queues.create(&name, QueueConfig::default()).await.unwrap();
    let other = QueueConfig { visibility: seconds(60), ..QueueConfig::default() };
    let error = queues.create(&name, other.clone()).await.unwrap_err();
    assert!(matches!(error, QueueError::Exists { field: "visibility", .. }), "{error:?}");
    for (changed, expected) in [
        (QueueConfig::strict(), "strict"),
        (QueueConfig { lanes: 2, ..QueueConfig::default() }, "lanes"),
        (QueueConfig { priorities: 2, ..QueueConfig::default() }, "priorities"),
        (QueueConfig { visibility: Duration::ZERO, ..QueueConfig::default() }, "visibility"),
    ] {
        let error = handle.update_config(changed).await.unwrap_err();
        assert_eq!(field(&error), expected, "{error}");
    }
    let elsewhere = process(subject).open(&name).await.unwrap();
    handle.update_config(other.clone()).await.unwrap();
    assert_eq!(*handle.config().await.unwrap(), other);
    subject.clock.advance(seconds(10));
    assert_eq!(*elsewhere.config().await.unwrap(), other, "noticed within ten seconds");
    let client = elsewhere.main().unwrap();
    send(&client, &["x"]).await;
    let held = take_one(&client).await;
    assert_eq!(held.leased_until, subject.environment.now().plus(seconds(60)));
}
