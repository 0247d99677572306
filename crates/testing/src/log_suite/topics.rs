//! Topics: making, finding, changing and deleting them.

use std::time::Duration;

use millpond_log::{ConsumerOptions, LogError, Seek, TopicConfig, limits};
use millpond_store::{Partition, Query};

use super::{LogSubject, append, record};

/// The whole life of a topic, and that one made anew shares nothing with it.
pub async fn topics_are_created_listed_described_and_deleted(world: &LogSubject) {
    let log = world.log();
    let name = world.name();
    let config = TopicConfig {
        retention_age: Some(Duration::from_secs(86_400)),
        linger: Duration::from_millis(20),
        ..TopicConfig::with_partitions(3)
    };
    let topic = log.create(&name, config).await.unwrap();
    log.create(&name, config).await.expect("the same again is fine");
    let other = log.create(&name, TopicConfig::with_partitions(2)).await;
    assert!(matches!(other, Err(LogError::TopicExists { .. })), "{other:?}");
    assert!(log.list().await.unwrap().contains(&name));
    append(&topic, 1, vec![record(0, 2_000), record(1, 20_000)]).await;
    topic.consumer("readers", ConsumerOptions::default()).await.unwrap();
    let described = world.again(&topic).await.describe().await.unwrap();
    assert_eq!((described.name.as_str(), described.config), (name.as_str(), config));
    let ends: Vec<u64> = described.partitions.iter().map(|partition| partition.latest).collect();
    assert_eq!(ends, [0, 2, 0]);
    assert!(described.partitions[1].bytes >= 22_000);

    let changed = TopicConfig { retention_age: None, retention_bytes: Some(1 << 20), ..config };
    log.configure(&name, changed).await.unwrap();
    assert_eq!(world.again(&topic).await.config(), changed);
    let shrunk = log.configure(&name, TopicConfig { partitions: 1, ..changed }).await;
    assert!(matches!(shrunk, Err(LogError::Invalid { field: "partitions", .. })), "{shrunk:?}");

    log.delete(&name).await.unwrap();
    assert!(!log.list().await.unwrap().contains(&name));
    let gone = log.topic(&name).await;
    assert!(matches!(gone, Err(LogError::UnknownTopic { .. })), "{gone:?}");
    // A handle that was open learns of it.
    world.subject.clock.advance(limits::TOPIC_AGE_MAX + Duration::from_secs(1));
    let late = topic.append(record(9, 10)).await;
    assert!(matches!(late, Err(LogError::UnknownTopic { .. })), "{late:?}");
    let anew = log.create(&name, config).await.unwrap();
    assert_eq!(anew.seek(1, Seek::Latest).await.unwrap(), 0);
    assert!(anew.groups().await.unwrap().is_empty());
    assert!(matches!(log.delete("never-was").await, Err(LogError::UnknownTopic { .. })));
}

/// Errors name the field or what there is instead, and nothing is stored.
pub async fn unknown_topics_and_absurd_configurations_are_refused(world: &LogSubject) {
    let log = world.log();
    let topic = world.topic(1).await;
    let unknown = log.topic("no-such-topic").await.unwrap_err();
    assert!(matches!(&unknown, LogError::UnknownTopic { known, .. } if !known.is_empty()));
    assert!(unknown.to_string().contains("no-such-topic"), "{unknown}");
    let before = world.subject.all(Query::new(Partition::new("log").unwrap())).await.len();
    for partitions in [0, limits::PARTITIONS_MAX + 1, u32::MAX] {
        let refused = log.create(&world.name(), TopicConfig::with_partitions(partitions)).await;
        assert!(matches!(refused, Err(LogError::Invalid { field: "partitions", .. })));
    }
    for name in ["", "a/b", "a b", &"x".repeat(201)] {
        assert!(log.create(name, TopicConfig::default()).await.is_err(), "{name:?}");
        assert!(topic.consumer(name, ConsumerOptions::default()).await.is_err(), "{name:?}");
    }
    let fewer = log.grow(&topic.name(), 0).await;
    assert!(matches!(fewer, Err(LogError::Invalid { field: "partitions", .. })), "{fewer:?}");
    let short = ConsumerOptions { lease: Duration::ZERO, ..ConsumerOptions::default() };
    let short = topic.consumer("g", short).await;
    assert!(matches!(short, Err(LogError::Invalid { field: "lease", .. })));
    let nobody = topic.describe_group("nobody").await.unwrap_err();
    assert!(
        matches!(&nobody, LogError::UnknownGroup { known, .. } if known.is_empty()),
        "{nobody}"
    );
    let after = world.subject.all(Query::new(Partition::new("log").unwrap())).await.len();
    assert_eq!(before, after, "something was stored");
    assert!(topic.groups().await.unwrap().is_empty());
}
