//! Clauses 10, 11, 12 and 15: several writes in one call.

use millpond_store::limits::{EACH_WRITES_MAX, GROUP_WRITES_MAX};
use millpond_store::{Attributes, Expect, Query, StoreError, Write};

use crate::subject::{Subject, conflicts_of, key_in};

/// Clause 10.
pub async fn groups_are_atomic(subject: &Subject) {
    let partition = subject.partition();
    let keys: Vec<_> = (0..4_u8).map(|n| key_in(&partition, &[n])).collect();
    let old = subject.must_put(&keys[1], Attributes::new().with("n", 0), Expect::Absent).await;
    let stays = subject.must_put(&keys[3], Attributes::new(), Expect::Absent).await;
    let stale = Expect::Version(subject.environment.version());

    let refused = vec![
        subject.put(&keys[0], Attributes::new(), Expect::Absent),
        subject.put(&keys[1], Attributes::new(), Expect::Absent),
        subject.put(&keys[2], Attributes::new(), stale),
        Write::delete(keys[3].clone(), Expect::Any),
    ];
    let conflicts = conflicts_of(subject.store.write_all(refused).await);
    assert_eq!(conflicts, [(1, old.item()), (2, None)]);
    let left = subject.all(Query::new(partition.clone())).await;
    assert_eq!(left, [old.item().unwrap(), stays.item().unwrap()], "a refused group left a trace");

    let applied = vec![
        subject.put(&keys[0], Attributes::new(), Expect::Absent),
        subject.put(&keys[1], Attributes::new(), Expect::Version(old.version().unwrap())),
        subject.put(&keys[2], Attributes::new(), Expect::Any),
        Write::delete(keys[3].clone(), Expect::Version(stays.version().unwrap())),
    ];
    let expected: Vec<_> = applied.iter().filter_map(Write::item).collect();
    subject.store.write_all(applied).await.unwrap();
    assert_eq!(subject.all(Query::new(partition)).await, expected);
}

/// Clause 11.
pub async fn a_retried_group_is_known_again(subject: &Subject) {
    let partition = subject.partition();
    let (a, b, c) = (key_in(&partition, b"a"), key_in(&partition, b"b"), key_in(&partition, b"c"));
    let victim = subject.must_put(&c, Attributes::new(), Expect::Absent).await;
    let group = vec![
        subject.put(&a, Attributes::new().with("n", 1), Expect::Absent),
        subject.put(&b, Attributes::new().with("n", 1), Expect::Any),
        Write::delete(c.clone(), Expect::Version(victim.version().unwrap())),
    ];
    subject.store.write_all(group.clone()).await.unwrap();
    subject.store.write_all(group.clone()).await.expect("its own success is not a conflict");

    // One of its items moved on: the group is still known by the other, and nothing is done again.
    let over = Expect::Version(group[0].version().unwrap());
    let later = subject.must_put(&a, Attributes::new().with("n", 2), over).await;
    subject.store.write_all(group.clone()).await.expect("known by its second put");
    assert_eq!(subject.get(&a).await, later.item(), "a retried group overwrote a later write");

    let alone = vec![subject.put(&c, Attributes::new(), Expect::Absent)];
    subject.store.write_all(alone.clone()).await.unwrap();
    subject.store.write_all(alone).await.expect("a group of one is known again too");
}

/// Clause 12.
pub async fn independent_writes_have_their_own_outcomes(subject: &Subject) {
    let partition = subject.partition();
    let taken = key_in(&partition, b"taken");
    let there = subject.must_put(&taken, Attributes::new(), Expect::Absent).await;
    let huge = Attributes::new().with("body", vec![0; millpond_store::limits::ITEM_BYTES_MAX]);
    let mut writes: Vec<Write> = (0..60_u8)
        .map(|n| {
            let expect = if n % 3 == 0 { Expect::Absent } else { Expect::Any };
            subject.put(
                &key_in(&partition, &[n]),
                Attributes::new().with("n", i64::from(n)),
                expect,
            )
        })
        .collect();
    writes.insert(20, subject.put(&taken, Attributes::new(), Expect::Absent));
    writes.insert(40, subject.put(&key_in(&partition, b"huge"), huge, Expect::Any));
    writes.push(Write::delete(key_in(&partition, b"nothing"), Expect::Any));

    let outcomes = subject.store.write_each(writes.clone()).await.unwrap();
    assert_eq!(outcomes.len(), writes.len());
    for (index, (write, outcome)) in writes.iter().zip(outcomes).enumerate() {
        match index {
            20 => assert_eq!(conflicts_of(outcome), [(0, there.item())]),
            40 => assert!(matches!(outcome, Err(StoreError::TooLarge { .. })), "{outcome:?}"),
            _ => {
                outcome.unwrap_or_else(|error| panic!("write {index}: {error}"));
                assert_eq!(subject.get(&write.key).await, write.item());
            }
        }
    }
    assert_eq!(subject.all(Query::new(partition)).await.len(), 61);
}

/// Clause 15.
pub async fn groups_name_each_key_once(subject: &Subject) {
    let partition = subject.partition();
    let put = |n: usize| {
        subject.put(&key_in(&partition, &n.to_be_bytes()), Attributes::new(), Expect::Absent)
    };
    let twice = vec![put(1), put(2), put(1)];
    let refused = subject.store.write_all(twice.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("more than once"), "{refused}");
    let refused = subject.store.write_each(twice).await.unwrap_err();
    assert!(refused.to_string().contains("more than once"), "{refused}");
    let many = subject.store.write_all((0..=GROUP_WRITES_MAX).map(put).collect()).await;
    assert!(matches!(many, Err(StoreError::TooLarge { limit: GROUP_WRITES_MAX, .. })), "{many:?}");
    let many = subject.store.write_each((0..=EACH_WRITES_MAX).map(put).collect()).await;
    assert!(matches!(many, Err(StoreError::TooLarge { limit: EACH_WRITES_MAX, .. })), "{many:?}");
    assert!(subject.all(Query::new(partition.clone())).await.is_empty(), "a refused call wrote");

    subject.store.write_all(Vec::new()).await.expect("an empty group does nothing");
    assert!(subject.store.write_each(Vec::new()).await.unwrap().is_empty());
    subject.store.write_all((0..GROUP_WRITES_MAX).map(put).collect()).await.unwrap();
    let full = subject.store.write_each((1_000..1_000 + 200).map(put).collect()).await.unwrap();
    assert!(full.iter().all(Result::is_ok));
    let rows = subject.all(Query::new(partition)).await;
    assert_eq!(rows.len(), GROUP_WRITES_MAX + 200);
}
