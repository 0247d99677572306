//! What stores on one machine promise beyond the contract.

use millpond_store::{Attributes, Expect, Query, Write};

use crate::subject::{Subject, bounded, key_in};

/// Two counters that move only together look equal to who reads them in one query.
pub async fn groups_look_whole_to_readers(subject: &Subject) {
    let partition = subject.partition();
    let keys = [key_in(&partition, b"a"), key_in(&partition, b"b")];
    let set = |n: i64, expects: [Expect; 2]| -> Vec<Write> {
        let attributes = Attributes::new().with("n", n);
        keys.iter()
            .zip(expects)
            .map(|(key, expect)| subject.put(key, attributes.clone(), expect))
            .collect()
    };
    let mut last = set(0, [Expect::Absent; 2]);
    subject.store.write_all(last.clone()).await.unwrap();
    let reader = {
        let (subject, partition) = (subject.clone(), partition.clone());
        tokio::spawn(async move {
            loop {
                let items = subject.all(Query::new(partition.clone())).await;
                let values: Vec<_> =
                    items.iter().map(|item| item.attributes.number("n").unwrap()).collect();
                assert_eq!(values.len(), 2);
                assert_eq!(values[0], values[1], "a reader saw half of a group");
                if values[0] == 20 {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    for n in 1..=20 {
        let expect = |write: &Write| Expect::Version(write.version().unwrap());
        last = set(n, [expect(&last[0]), expect(&last[1])]);
        subject.store.write_all(last.clone()).await.unwrap();
    }
    bounded("the reader", reader).await.unwrap();
}
