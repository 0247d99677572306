//! Clauses 1 to 4: what reads see.

use std::time::Duration;

use bytes::Bytes;
use millpond_store::{Attributes, Expect, Expiry, Query, SortKey, SortRange, Value};

use crate::subject::{Subject, key_in};

/// Clause 1.
pub async fn reads_see_acknowledged_writes(subject: &Subject) {
    let partition = subject.partition();
    for n in 0..50_i64 {
        let key = key_in(&partition, &n.to_be_bytes());
        let write = subject.must_put(&key, Attributes::new().with("n", n), Expect::Absent).await;
        assert_eq!(subject.get(&key).await, write.item());
        let found = subject.all(Query::new(partition.clone())).await;
        assert_eq!(found.len(), usize::try_from(n).unwrap() + 1);
        assert_eq!(found.last(), write.item().as_ref());
    }
    assert_eq!(subject.get(&key_in(&partition, b"other")).await, None);
}

/// Clause 2.
pub async fn items_come_back_intact(subject: &Subject) {
    let key = subject.key();
    let expiry = Expiry::from_secs(subject.environment.now().as_millis() / 1_000 + 3_600);
    let attributes = Attributes::new()
        .with("zero", 0)
        .with("least", i64::MIN)
        .with("most", i64::MAX)
        .with("text", "tränen 💧 \u{0} \r\n \"quoted\"")
        .with("no_text", "")
        .with("bytes", (0..=255_u8).collect::<Vec<_>>())
        .with("no_bytes", Bytes::new());
    let write = subject.put(&key, attributes, Expect::Absent).expires(expiry);
    subject.store.write(write.clone()).await.unwrap();
    assert_eq!(subject.get(&key).await, write.item());
    assert_eq!(subject.all(Query::new(key.partition.clone())).await, [write.item().unwrap()]);

    let bare = subject.must_put(&key, Attributes::new(), Expect::Any).await;
    let item = subject.get(&key).await.expect("the second put");
    assert_eq!(Some(&item), bare.item().as_ref(), "a put replaces the whole item");
    assert_eq!((item.attributes.len(), item.expiry), (0, None));
}

/// Clause 3.
pub async fn queries_are_ordered_and_bounded(subject: &Subject) {
    let (partition, neighbour) = (subject.partition(), subject.partition());
    // Byte order, not text or number order, and prefixes before what they begin.
    let sorted: [&[u8]; 8] = [b"\x00", b"\x00\x00", b"10", b"9", b"A", b"a", b"a\x00", b"\xff\xff"];
    for sort in sorted.iter().rev() {
        subject.must_put(&key_in(&partition, sort), Attributes::new(), Expect::Absent).await;
        subject.must_put(&key_in(&neighbour, sort), Attributes::new(), Expect::Absent).await;
    }
    let query = || Query::new(partition.clone());
    let sort = |bytes: &[u8]| SortKey::new(bytes.to_vec()).unwrap();
    let cases = [
        (SortRange::all(), 0..8),
        (SortRange::from(sort(b"9")), 3..8),
        (SortRange::to(sort(b"9")), 0..3),
        (SortRange::between(sort(b"\x00\x00"), sort(b"a")), 1..5),
        (SortRange::between(sort(b"10"), sort(b"10\x00")), 2..3),
        (SortRange::between(sort(b"B"), sort(b"Z")), 5..5),
        (SortRange::between(sort(b"a"), sort(b"a")), 5..5),
        (SortRange::between(sort(b"z"), sort(b"b")), 5..5),
        (SortRange::prefix(sort(b"a")), 5..7),
        (SortRange::prefix(sort(b"\xff")), 7..8),
    ];
    for (range, expected) in cases {
        let expected: Vec<&[u8]> = sorted[expected].to_vec();
        for (name, query) in [("strong", query()), ("relaxed", query().relaxed())] {
            let forward = subject.all(query.clone().range(range.clone())).await;
            let keys: Vec<_> = forward.iter().map(|item| item.key.sort.as_bytes()).collect();
            assert_eq!(keys, expected, "{name}, forward, {range:?}");
            assert!(forward.iter().all(|item| item.key.partition == partition));
            let reverse = subject.all(query.range(range.clone()).reverse()).await;
            assert!(reverse.iter().eq(forward.iter().rev()), "{name}, reverse, {range:?}");
        }
    }
    assert!(subject.all(Query::new(subject.partition())).await.is_empty());
}

/// Clause 4.
pub async fn pages_join_without_gap_or_repeat(subject: &Subject) {
    let partition = subject.partition();
    // 23 items of 120 KB are more than two pages by bytes, so that both bounds are met.
    let body = Value::Bytes(vec![7; 120 * 1_024].into());
    for n in 0..23_u8 {
        let attributes = Attributes::new().with("n", i64::from(n)).with("body", body.clone());
        let key = key_in(&partition, &[n]);
        subject.must_put(&key, attributes, Expect::Absent).await;
    }
    // One that expired must not count, nor end a page's chain.
    let past = Expiry::at(subject.environment.now().minus(Duration::from_secs(1)));
    let gone = subject.put(&key_in(&partition, &[9, 9]), Attributes::new(), Expect::Absent);
    subject.store.write(gone.expires(past)).await.unwrap();

    for limit in [1, 5, 23, 1_000] {
        for reverse in [false, true] {
            let query = Query::new(partition.clone()).limit(limit);
            let mut next = Some(if reverse { query.reverse() } else { query });
            let mut seen = Vec::new();
            while let Some(query) = next {
                let page = subject.store.query(query).await.unwrap();
                assert!(page.items.len() <= limit, "{} items, limit {limit}", page.items.len());
                seen.extend(page.items.iter().map(|item| item.key.sort.as_bytes()[0]));
                next = page.next;
                assert!(seen.len() <= 23, "a page was repeated: {seen:?}");
            }
            let mut expected: Vec<u8> = (0..23).collect();
            if reverse {
                expected.reverse();
            }
            assert_eq!(seen, expected, "limit {limit}, reverse {reverse}");
        }
    }
    let behind_last = Query::new(partition.clone()).after(SortKey::new(vec![22]).unwrap());
    assert!(subject.all(behind_last).await.is_empty());
    let unlimited = Query::new(partition).limit(0);
    assert!(subject.store.query(unlimited).await.is_err(), "a limit of zero makes no sense");
}
