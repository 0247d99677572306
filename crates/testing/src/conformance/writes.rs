//! Clauses 5 to 9 and 17: compare-and-swap.

use futures::future::join_all;
use millpond_store::{Attributes, Expect, Write};

use crate::subject::{Subject, bounded, conflicts_of};

/// Clause 5.
pub async fn one_of_racing_writers_wins(subject: &Subject) {
    let key = subject.key();
    let mut expect = Expect::Absent;
    for _ in 0..5 {
        let writes: Vec<Write> = (0..8_i64)
            .map(|n| subject.put(&key, Attributes::new().with("writer", n), expect))
            .collect();
        let race = writes.iter().map(|write| {
            let (store, write) = (subject.store.clone(), write.clone());
            tokio::spawn(async move { store.write(write).await })
        });
        let outcomes: Vec<_> =
            bounded("the race", join_all(race)).await.into_iter().map(Result::unwrap).collect();
        let winners: Vec<_> =
            writes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{outcomes:?}");
        let winner = winners[0].0.item();
        for outcome in outcomes.into_iter().filter(Result::is_err) {
            assert_eq!(conflicts_of(outcome), [(0, winner.clone())]);
        }
        assert_eq!(subject.get(&key).await, winner);
        expect = Expect::Version(winner.unwrap().version);
    }
    subject.must_put(&key, Attributes::new().with("any", 1), Expect::Any).await;
    let Expect::Version(stale) = expect else { panic!("five rounds end with a version") };
    let late = subject.store.write(Write::delete(key.clone(), Expect::Version(stale))).await;
    assert_eq!(conflicts_of(late).len(), 1);
    subject.store.write(Write::delete(key.clone(), Expect::Any)).await.unwrap();
    assert_eq!(subject.get(&key).await, None);
}

/// Clause 6.
pub async fn conflicts_return_the_current_item(subject: &Subject) {
    let key = subject.key();
    let stale = Expect::Version(subject.environment.version());
    let refused = subject.store.write(subject.put(&key, Attributes::new(), stale)).await;
    assert_eq!(conflicts_of(refused), [(0, None)]);
    assert_eq!(subject.get(&key).await, None, "a conflict wrote something");

    let first = subject.must_put(&key, Attributes::new().with("n", 1), Expect::Absent).await.item();
    for expect in [Expect::Absent, stale] {
        let other = Attributes::new().with("n", 2);
        let refused = subject.store.write(subject.put(&key, other, expect)).await;
        assert_eq!(conflicts_of(refused), [(0, first.clone())]);
        let refused = subject.store.write(Write::delete(key.clone(), expect)).await;
        assert_eq!(conflicts_of(refused), [(0, first.clone())]);
        assert_eq!(subject.get(&key).await, first, "a conflict changed the item");
    }
}

/// Clause 7.
pub async fn deletes_of_absent_items(subject: &Subject) {
    let key = subject.key();
    subject.store.write(Write::delete(key.clone(), Expect::Any)).await.unwrap();
    subject.store.write(Write::delete(key.clone(), Expect::Absent)).await.unwrap();
    let put = subject.must_put(&key, Attributes::new(), Expect::Absent).await;
    let version = Expect::Version(put.version().unwrap());
    subject.store.write(Write::delete(key.clone(), version)).await.unwrap();
    let again = subject.store.write(Write::delete(key, version)).await;
    assert_eq!(conflicts_of(again), [(0, None)]);
}

/// Clause 8.
pub async fn a_retried_put_is_known_again(subject: &Subject) {
    let key = subject.key();
    let first = subject.must_put(&key, Attributes::new().with("n", 1), Expect::Absent).await;
    subject.store.write(first.clone()).await.expect("its own success is not a conflict");
    let over = Expect::Version(first.version().unwrap());
    let second = subject.must_put(&key, Attributes::new().with("n", 2), over).await;
    subject.store.write(second.clone()).await.expect("its own success is not a conflict");
    assert_eq!(subject.get(&key).await, second.item());
    let late = subject.store.write(first).await;
    assert_eq!(conflicts_of(late), [(0, second.item())], "the first put was overwritten since");
}

/// Clause 9.
pub async fn stale_versions_stay_stale(subject: &Subject) {
    let key = subject.key();
    let first = subject.must_put(&key, Attributes::new().with("n", 1), Expect::Absent).await;
    subject.store.write(Write::delete(key.clone(), Expect::Any)).await.unwrap();
    let second = subject.must_put(&key, Attributes::new().with("n", 1), Expect::Absent).await;
    let stale = Expect::Version(first.version().unwrap());
    let refused = subject.store.write(subject.put(&key, Attributes::new(), stale)).await;
    assert_eq!(conflicts_of(refused), [(0, second.item())]);
}

/// Clause 17.
pub async fn concurrent_increments_add_up(subject: &Subject) {
    const WRITERS: i64 = 6;
    const INCREMENTS: i64 = 15;
    let key = subject.key();
    subject.must_put(&key, Attributes::new().with("n", 0), Expect::Absent).await;
    let writers = (0..WRITERS).map(|_| {
        let (subject, key) = (subject.clone(), key.clone());
        tokio::spawn(async move {
            for _ in 0..INCREMENTS {
                let mut current = subject.get(&key).await;
                loop {
                    let item = current.expect("the counter");
                    let n = item.attributes.number("n").unwrap() + 1;
                    let next = Attributes::new().with("n", n);
                    let write = subject.put(&key, next, Expect::Version(item.version));
                    match subject.store.write(write).await {
                        Ok(()) => break,
                        refused => current = conflicts_of(refused).remove(0).1,
                    }
                }
            }
        })
    });
    for writer in bounded("the increments", join_all(writers)).await {
        writer.unwrap();
    }
    let counter = subject.get(&key).await.expect("the counter");
    assert_eq!(counter.attributes.number("n").unwrap(), WRITERS * INCREMENTS);
}
