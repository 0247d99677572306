//! Clause 16: change hints.

use millpond_store::{Attributes, Expect, Write};

use crate::subject::{Subject, bounded, key_in};

/// Clause 16.
pub async fn hints_follow_changes(subject: &Subject) {
    let partition = subject.partition();
    let key = key_in(&partition, b"k");

    // Between asking and waiting.
    let mut hint = subject.store.changed(&partition);
    subject.must_put(&key, Attributes::new(), Expect::Absent).await;
    bounded("a hint for an earlier change", hint.wait()).await;

    // While waiting, for each kind of write.
    let writes: [Vec<Write>; 3] = [
        vec![subject.put(&key, Attributes::new(), Expect::Any)],
        vec![
            subject.put(&key, Attributes::new(), Expect::Any),
            subject.put(&key_in(&partition, b"l"), Attributes::new(), Expect::Any),
        ],
        vec![Write::delete(key.clone(), Expect::Any)],
    ];
    for group in writes {
        let mut hint = subject.store.changed(&partition);
        let waiting = tokio::spawn(async move { hint.wait().await });
        tokio::task::yield_now().await;
        subject.store.write_all(group).await.unwrap();
        bounded("a hint while waiting", waiting).await.unwrap();
    }
    let mut hint = subject.store.changed(&partition);
    let each = vec![subject.put(&key, Attributes::new(), Expect::Any)];
    subject.store.write_each(each).await.unwrap();
    bounded("a hint for an independent write", hint.wait()).await;
}
