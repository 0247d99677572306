//! Fan-out: a message to several queues, its body stored once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_lanes::Ground;
use millpond_queue::{
    AttributeValue, DeadLetters, Message, Nack, QueueConfig, QueueError, Queues, Redrive,
};
use millpond_store::{Meter, Metered};

use super::{counts, drain, name, process, seconds, take, take_one};
use crate::subject::Subject;

/// Each queue gets the message, whole; the body is stored once whatever their number.
pub async fn a_topic_sends_to_each_queue_and_stores_the_body_once(subject: &Subject) {
    let meter = Meter::new();
    let store = Arc::new(Metered::new(subject.store.clone(), meter.clone()));
    let queues = Queues::new(&Ground::new(store, &subject.impatient()));
    let names = [name(), name(), name(), name()];
    for (at, name) in names.iter().enumerate() {
        let config = if at == 0 { QueueConfig::strict() } else { QueueConfig::default() };
        queues.create(name, config).await.unwrap();
    }
    let topic_name = name();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let topic = queues.create_topic(&topic_name, &listed).await.unwrap();
    assert_eq!(topic.subscribers().await.unwrap(), names);
    let topics = process(subject).topics().await.unwrap();
    assert!(topics.iter().any(|topic| topic.as_str() == topic_name), "{topics:?}");
    for (size, most) in [(10, 10_000), (300_000, 330_000)] {
        let body = Bytes::from(vec![7; size]);
        let message = Message::new(body.clone())
            .group("g")
            .attribute("kind", AttributeValue::String("news".into()));
        let _ = meter.take();
        let sent = topic.send("c", message.clone()).await.unwrap();
        assert_eq!(
            sent.iter().map(|(queue, _)| queue).collect::<Vec<_>>(),
            names.iter().collect::<Vec<_>>()
        );
        assert!(sent.iter().all(|(_, outcome)| outcome.is_ok()), "{sent:?}");
        let written = meter.take().total().bytes;
        assert!(written < most, "{written} bytes for a body of {size}");
        let topic = process(subject).open_topic(&topic_name).await.unwrap();
        assert_eq!(topic.subscribers().await.unwrap().len(), 4);
        for name in &names {
            let client = process(subject).open(name).await.unwrap().client("c").unwrap();
            let delivery = take_one(&client).await;
            assert_eq!((&delivery.body, &delivery.attributes), (&body, &message.attributes));
            assert_eq!(delivery.group, message.group);
            client.ack(&delivery.receipt).await.unwrap();
            assert_eq!(counts(&client).await, (0, 0, 0));
        }
    }
    topic.delete().await.unwrap();
    assert!(!queues.topics().await.unwrap().iter().any(|topic| topic.as_str() == topic_name));
    assert!(matches!(topic.send("c", Message::new("x")).await, Err(QueueError::NotFound { .. })));
    assert!(matches!(queues.open_topic(&topic_name).await, Err(QueueError::NotFound { .. })));
}

/// A message that suits one of the queues only is sent to none; topics name queues that exist.
pub async fn a_topic_refuses_what_does_not_suit_and_writes_nothing(subject: &Subject) {
    let queues = process(subject);
    let (wide, narrow) = (name(), name());
    queues.create(&wide, QueueConfig::default()).await.unwrap();
    let small = QueueConfig { message_bytes_max: 100, ..QueueConfig::default() };
    queues.create(&narrow, small).await.unwrap();
    let topic = queues.create_topic(&name(), &[&wide, &narrow]).await.unwrap();
    let error = topic.send("", Message::new(vec![1; 1_000])).await.unwrap_err();
    assert!(matches!(error, QueueError::TooLarge { limit: 100, .. }), "{error:?}");
    for queue in [&wide, &narrow] {
        let client = queues.open(queue).await.unwrap().main().unwrap();
        assert_eq!(counts(&client).await, (0, 0, 0));
    }
    let missing = queues.create_topic(&name(), &[&wide, "no-such-queue"]).await.unwrap_err();
    assert!(matches!(missing, QueueError::NotFound { .. }), "{missing:?}");
    let empty = queues.create_topic(&name(), &[]).await.unwrap_err();
    assert!(matches!(empty, QueueError::Invalid { field: "queues", .. }), "{empty:?}");
    let unnamed = queues.create_topic("", &[&wide]).await.unwrap_err();
    assert!(matches!(unnamed, QueueError::Invalid { field: "name", .. }), "{unnamed:?}");
}

/// A dead letter has its body for as long as it is kept, though the topic's copy has ended; and can be brought back.
pub async fn a_topics_message_keeps_its_body_among_the_dead_letters(subject: &Subject) {
    let queues = process(subject);
    let (dead, short) = (name(), name());
    let dead_config = QueueConfig { retention: seconds(100 * 86_400), ..QueueConfig::default() };
    let dead_handle = queues.create(&dead, dead_config).await.unwrap();
    let dead_letters = Some(DeadLetters { queue: dead.clone(), receives_max: 1 });
    let retention = seconds(60);
    let config = QueueConfig { dead_letters, retention, ..QueueConfig::default() };
    let handle = queues.create(&short, config).await.unwrap();
    let topic = queues.create_topic(&name(), &[&short]).await.unwrap();
    let body = Bytes::from(vec![3; 50_000]);
    topic.send("", Message::new(body.clone())).await.unwrap();
    let client = handle.main().unwrap();
    client.nack(&take_one(&client).await.receipt, Nack::default()).await.unwrap();
    // Beyond the queue's retention and an hour.
    subject.clock.advance(Duration::from_secs(86_400));
    let dead = dead_handle.main().unwrap();
    let letter = take(&dead, 1).await;
    assert_eq!(letter.first().map(|letter| &letter.body), Some(&body));
    dead.release(&letter[0].receipt).await.unwrap();
    assert_eq!(dead.redrive(&Redrive::default()).await.unwrap().moved, 1);
    let back = drain(&client).await;
    assert_eq!(back.first().map(|back| &back.body), Some(&body));
}
