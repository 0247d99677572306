//! Workers that are driven by requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use millpond_log::{Assignment, ConsumerOptions, LogError, Pull, Pulled, Puller, Topic};

use super::{LogSubject, append, number, record};
use crate::subject::bounded;

const LEASE: Duration = Duration::from_secs(30);

async fn join(topic: &Topic, name: &str) -> Puller {
    let name = Some(name.to_owned());
    let options = ConsumerOptions { lease: LEASE, name, ..ConsumerOptions::default() };
    Puller::new(topic.consumer("g", options).await.unwrap())
}

async fn pull(puller: &Puller, max: usize, after: Option<u64>) -> Pulled {
    puller.pull(Pull { max, after, wait: Duration::ZERO }).await.unwrap()
}

fn numbers(pulled: &Pulled) -> Vec<u64> {
    pulled.batches.iter().flat_map(|(_, batch)| batch.records.iter().map(number)).collect()
}

async fn finish(puller: &Puller, pulled: &Pulled) {
    for (assignment, batch) in &pulled.batches {
        puller.checkpoint(*assignment, batch.next).await.unwrap();
    }
}

fn partitions(pulled: &Pulled) -> BTreeSet<u32> {
    pulled.held.iter().map(|held| held.partition).collect()
}

/// Two workers end with half of the partitions each; what one gives up it finishes first, and nothing comes twice.
pub async fn workers_that_pull_share_partitions_and_hand_over_what_is_done(world: &LogSubject) {
    let topic = world.topic(4).await;
    for partition in 0..4 {
        append(&topic, partition, vec![record(u64::from(partition), 20)]).await;
    }
    let first = join(&topic, "first").await;
    assert!(first.worker().as_str().starts_with("first."), "{}", first.worker());
    let all = pull(&first, 100, None).await;
    assert_eq!((partitions(&all).len(), numbers(&all).len()), (4, 4));
    let second = join(&topic, "second").await;
    assert!(pull(&second, 100, None).await.held.is_empty(), "everything is held");
    world.subject.clock.advance(LEASE / 3);
    let asked = pull(&first, 100, Some(all.answer)).await;
    assert_eq!((asked.leaving.len(), asked.held.len()), (2, 4), "{asked:?}");
    pull(&second, 100, None).await;
    // Only now that everything is done is it handed over.
    finish(&first, &all).await;
    for partition in 0..4 {
        append(&topic, partition, vec![record(4 + u64::from(partition), 20)]).await;
    }
    let mine = pull(&first, 100, Some(asked.answer)).await;
    assert_eq!((mine.held.len(), mine.leaving.len()), (2, 0), "{mine:?}");
    world.subject.clock.advance(LEASE / 3);
    let theirs = pull(&second, 100, None).await;
    assert_eq!(partitions(&mine).len() + partitions(&theirs).len(), 4);
    assert!(partitions(&mine).is_disjoint(&partitions(&theirs)));
    let seen: BTreeSet<u64> = numbers(&mine).into_iter().chain(numbers(&theirs)).collect();
    assert_eq!(seen, (4..8).collect());
    let others: BTreeSet<u32> = theirs.others.iter().copied().collect();
    assert_eq!(others, partitions(&mine));
    first.leave().await.unwrap();
    world.subject.clock.advance(LEASE / 3);
    assert_eq!(pull(&second, 100, None).await.held.len(), 4, "who leaves is not waited for");
}

/// A worker that asks no more keeps its partitions for a lease and no longer; its tokens are good for nothing then.
pub async fn what_a_puller_that_died_did_not_finish_comes_to_another(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, (0..10).map(|n| record(n, 20)).collect()).await;
    let dying = join(&topic, "dying").await;
    let (old, _) = pull(&dying, 100, None).await.batches.remove(0);
    dying.checkpoint(old, 4).await.unwrap();
    let other = join(&topic, "other").await;
    for _ in 0..2 {
        assert!(pull(&other, 100, None).await.held.is_empty());
        world.subject.clock.advance(LEASE / 3);
    }
    assert!(!dying.is_silent());
    world.subject.clock.advance(LEASE / 3);
    assert!(dying.is_silent() && !other.is_silent());
    let taken = pull(&other, 100, None).await;
    assert_eq!(numbers(&taken), (4..10).collect::<Vec<_>>());
    let refused = dying.checkpoint(old, 10).await;
    assert!(matches!(refused, Err(LogError::LeaseLost { .. })), "{refused:?}");
    finish(&other, &taken).await;
    let back = pull(&dying, 100, None).await;
    assert!(back.held.is_empty() && back.others == [0], "{back:?}");
    let stale = Assignment { epoch: old.epoch, ..taken.batches[0].0 };
    let refused = other.checkpoint(stale, 10).await;
    assert!(matches!(refused, Err(LogError::LeaseLost { .. })), "{refused:?}");
}

/// Who says which answer it got last goes on behind it; else everything behind the checkpoint comes again.
pub async fn an_answer_that_is_lost_loses_no_record(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, (0..9).map(|n| record(n, 20)).collect()).await;
    let puller = join(&topic, "w").await;
    let first = pull(&puller, 3, None).await;
    let second = pull(&puller, 3, Some(first.answer)).await;
    assert_eq!((numbers(&first), numbers(&second)), (vec![0, 1, 2], vec![3, 4, 5]));
    // A sign of life changes nothing.
    assert_eq!(pull(&puller, 0, None).await.answer, second.answer);
    let third = pull(&puller, 3, Some(second.answer)).await;
    assert_eq!(numbers(&third), [6, 7, 8]);
    // The third answer did not arrive.
    let again = pull(&puller, 4, Some(second.answer)).await;
    assert_eq!(numbers(&again), [0, 1, 2, 3]);
    finish(&puller, &second).await;
    let rest = pull(&puller, 100, None).await;
    assert_eq!(numbers(&rest), [6, 7, 8]);
    // What was read before it came again counts as read.
    pull(&puller, 1, None).await;
    finish(&puller, &rest).await;
    assert!(pull(&puller, 100, None).await.batches.is_empty());
    let over = puller.checkpoint(rest.held[0], 10).await;
    assert!(matches!(over, Err(LogError::Invalid { field: "checkpoint", .. })), "{over:?}");
}

/// A pull waits for what is appended, and for no longer than it is wanted.
pub async fn a_pull_waits_for_records_and_ends_when_another_begins(world: &LogSubject) {
    // Its clock stands still and its pauses end at once: it looks again and again, and its time is never over.
    let topic = world.topic(1).await;
    let puller = Arc::new(join(&topic, "w").await);
    pull(&puller, 0, None).await;
    let wait = |puller: &Arc<Puller>| {
        let puller = Arc::clone(puller);
        let wait = Duration::from_secs(60);
        tokio::spawn(async move { puller.pull(Pull { max: 10, after: None, wait }).await.unwrap() })
    };
    let waiting = wait(&puller);
    append(&topic, 0, vec![record(7, 20)]).await;
    let pulled = bounded("a pull", waiting).await.unwrap();
    assert_eq!(numbers(&pulled), [7]);
    finish(&puller, &pulled).await;
    let older = wait(&puller);
    let ended = async {
        while !older.is_finished() {
            pull(&puller, 0, None).await;
        }
    };
    bounded("an older pull", ended).await;
    assert!(older.await.unwrap().batches.is_empty());
}

/// A worker does not go on with a group that is gone, nor with another one of its name.
pub async fn a_worker_of_a_deleted_group_reads_nothing_more(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, vec![record(0, 20)]).await;
    for anew in [false, true] {
        let puller = join(&topic, "w").await;
        let pulled = pull(&puller, 10, None).await;
        topic.delete_group("g").await.unwrap();
        if anew {
            topic.create_group("g", &Default::default()).await.unwrap();
        }
        let refused = puller.checkpoint(pulled.held[0], 1).await;
        assert!(matches!(refused, Err(LogError::LeaseLost { .. })), "{refused:?}");
        world.subject.clock.advance(LEASE / 3);
        let refused = puller.pull(Pull { max: 10, ..Pull::default() }).await;
        assert!(matches!(refused, Err(LogError::UnknownGroup { .. })), "{refused:?}");
        if anew {
            topic.delete_group("g").await.unwrap();
        }
    }
}
