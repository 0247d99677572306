//! Clause 14: limits.

use millpond_store::limits::{
    GROUP_BYTES_MAX, ITEM_BYTES_MAX, PAGE_ITEMS_MAX, PARTITION_BYTES_MAX, SORT_KEY_BYTES_MAX,
};
use millpond_store::{Attributes, Expect, Key, Query, SortKey, StoreError, Write};

use crate::subject::{Subject, key_in};

/// A put of exactly `bytes` bytes.
fn sized(subject: &Subject, key: &Key, bytes: usize) -> Write {
    let empty = subject.put(key, Attributes::new().with("body", Vec::new()), Expect::Absent);
    let body = vec![b'x'; bytes - empty.size()];
    let put = subject.put(key, Attributes::new().with("body", body), Expect::Absent);
    assert_eq!(put.size(), bytes);
    put
}

fn too_large(outcome: Result<(), StoreError>, named: &str, most: usize) {
    match outcome {
        Err(StoreError::TooLarge { what, limit, .. }) => assert_eq!((what, limit), (named, most)),
        other => panic!("expected {named} to be too large, got {other:?}"),
    }
}

/// Clause 14.
pub async fn limits_are_inclusive_and_named(subject: &Subject) {
    let key = subject.key();
    let store = subject.store.as_ref();
    too_large(store.write(sized(subject, &key, ITEM_BYTES_MAX + 1)).await, "item", ITEM_BYTES_MAX);
    assert_eq!(subject.get(&key).await, None, "a refused item was written");
    let largest = sized(subject, &key, ITEM_BYTES_MAX);
    store.write(largest.clone()).await.expect("exactly the limit is accepted");
    assert_eq!(subject.get(&key).await, largest.item());

    // The longest keys, with bytes at both ends of their order.
    let name = subject.partition();
    let longest =
        format!("{}{}", name, "ü".repeat((PARTITION_BYTES_MAX - name.as_str().len()) / 2));
    for byte in [0, 0xff] {
        let key = Key::new(longest.as_str(), vec![byte; SORT_KEY_BYTES_MAX]).unwrap();
        let put = subject.must_put(&key, Attributes::new(), Expect::Absent).await;
        assert_eq!(subject.get(&key).await, put.item());
    }
    let long = Key::new(longest.as_str(), vec![0; SORT_KEY_BYTES_MAX]).unwrap();
    for reverse in [false, true] {
        let query = Query::new(long.partition.clone()).limit(1);
        let found = subject.all(if reverse { query.reverse() } else { query }).await;
        assert_eq!(found.len(), 2, "paging over the longest keys, reverse {reverse}");
    }

    // A group over its bytes, though each item is fine.
    let partition = subject.partition();
    let eleven: Vec<_> =
        (0..11_u8).map(|n| sized(subject, &key_in(&partition, &[n]), ITEM_BYTES_MAX)).collect();
    too_large(store.write_all(eleven).await, "atomic group", GROUP_BYTES_MAX);
    let bad_name = subject.put(&key, Attributes::new().with("Bad", 1), Expect::Any);
    assert!(matches!(store.write(bad_name).await, Err(StoreError::Invalid { .. })));
    assert!(subject.all(Query::new(partition.clone())).await.is_empty());

    let wide = Query::new(partition.clone()).limit(PAGE_ITEMS_MAX + 1);
    assert!(matches!(store.query(wide).await, Err(StoreError::TooLarge { .. })));
    let widest = Query::new(partition).limit(PAGE_ITEMS_MAX).after(SortKey::new("x").unwrap());
    store.query(widest).await.expect("exactly the limit is accepted");
}
