//! Clause 13: expiry.

use std::time::Duration;

use millpond_store::{Attributes, Expect, Expiry, Query, Write};

use crate::subject::{Subject, conflicts_of, key_in};

/// Clause 13.
pub async fn expiry_is_exact(subject: &Subject) {
    // Stand at the start of a second, so that the steps below are exact.
    let into_second = subject.environment.now().as_millis() % 1_000;
    subject.clock.advance(Duration::from_millis(1_000 - into_second));
    let end = Expiry::at(subject.environment.now().plus(Duration::from_secs(10)));

    let partition = subject.partition();
    let names: [&[u8]; 6] = [b"absent", b"any", b"delete", b"group", b"read", b"version"];
    let mut versions = Vec::new();
    for name in names {
        let put = subject.put(&key_in(&partition, name), Attributes::new(), Expect::Absent);
        subject.store.write(put.clone().expires(end)).await.unwrap();
        versions.push(Expect::Version(put.version().unwrap()));
    }
    subject.must_put(&key_in(&partition, b"stays"), Attributes::new(), Expect::Absent).await;

    subject.clock.advance(Duration::from_millis(9_999));
    assert_eq!(subject.all(Query::new(partition.clone())).await.len(), 7, "gone too early");
    let early = subject.put(&key_in(&partition, b"absent"), Attributes::new(), Expect::Absent);
    assert!(subject.store.write(early).await.is_err(), "absent too early");

    subject.clock.advance(Duration::from_millis(1));
    assert_eq!(subject.get(&key_in(&partition, b"read")).await, None);
    for query in [Query::new(partition.clone()), Query::new(partition.clone()).reverse()] {
        assert_eq!(subject.all(query).await.len(), 1, "a query returned what had expired");
    }
    let put =
        |name: &[u8], expect| subject.put(&key_in(&partition, name), Attributes::new(), expect);
    let over_expired = subject.store.write(put(b"version", versions[5])).await;
    assert_eq!(conflicts_of(over_expired), [(0, None)]);
    let delete = Write::delete(key_in(&partition, b"delete"), versions[2]);
    assert_eq!(conflicts_of(subject.store.write(delete).await), [(0, None)]);
    let group = vec![put(b"group", Expect::Absent), put(b"version", versions[5])];
    assert_eq!(conflicts_of(subject.store.write_all(group).await), [(1, None)]);

    subject.store.write(put(b"absent", Expect::Absent)).await.expect("what expired is absent");
    subject.store.write(put(b"any", Expect::Any)).await.unwrap();
    subject.store.write_all(vec![put(b"group", Expect::Absent)]).await.unwrap();
    assert_eq!(subject.all(Query::new(partition)).await.len(), 4);
}
