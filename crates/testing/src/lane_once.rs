//! Messages that are appended once, ends of messages, and what goes with a removal, on every backend.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use millpond_lanes::{
    Append, Given, Lane as _, LaneConfig, Message, Once, SequencedLane, UnorderedLane,
};
use millpond_store::{Attributes, Expect, Key, StoreError, UniqueId};

use crate::lane_suite::{ground, message, segments};
use crate::subject::{Subject, bounded, key_in};

fn open(subject: &Subject, name: &str) -> SequencedLane {
    SequencedLane::open(&ground(subject), name, LaneConfig::QUEUE).unwrap()
}

fn marked(number: u64, key: &Key) -> Message {
    let note = Attributes::new().with("who", "me");
    let once = Once { key: key.clone(), kept: Duration::from_secs(60), note };
    Message { once: Some(once), ..message(number, 20) }
}

async fn append(lane: &SequencedLane, messages: Vec<Message>) -> Vec<Given> {
    lane.append_once(messages).await.unwrap().into_iter().map(Result::unwrap).collect()
}

/// Numbers of the messages that are there, by what they say.
async fn heads(lane: &SequencedLane) -> Vec<u64> {
    let mut found = Vec::new();
    for segment in segments(lane).await {
        for message in lane.load(&segment).await.unwrap() {
            assert!(message.once.is_none(), "a mark is not part of the message");
            found.push(u64::from_be_bytes(message.head.as_ref().try_into().unwrap()));
        }
    }
    found
}

/// A marked message is appended once: known across handles, with what was kept, until its mark ends.
pub async fn a_marked_message_is_appended_once(subject: &Subject) {
    let name = subject.partition().as_str().to_owned();
    let (lane, other) = (open(subject, &name), open(subject, &name));
    let marks = subject.partition();
    let key = |n: u8| key_in(&marks, &[n]);
    assert_eq!(append(&lane, vec![marked(1, &key(1))]).await, [Given::New(0)]);
    for lane in [&lane, &other, &open(subject, &name)] {
        let again = append(lane, vec![marked(9, &key(1))]).await.remove(0);
        assert_eq!(again.number().unwrap(), 0);
        let Given::Known(mark) = again else { panic!("{again:?}") };
        assert_eq!(mark.attributes.text("who").unwrap(), "me");
    }
    // Done and removed does not make it new; the end of its mark does.
    lane.finish(&segments(&lane).await[0]).await.unwrap();
    assert!(matches!(append(&other, vec![marked(1, &key(1))]).await[0], Given::Known(_)));
    subject.clock.advance(Duration::from_secs(62));
    assert_eq!(append(&other, vec![marked(1, &key(1))]).await, [Given::New(1)]);
    assert_eq!(heads(&lane).await, [1]);
}

/// Repeats within a call and known ones lose none of their neighbours, and take no numbers.
pub async fn repeats_keep_their_neighbours(subject: &Subject) {
    let lane = open(subject, subject.partition().as_str());
    let marks = subject.partition();
    let key = |n: u8| key_in(&marks, &[n]);
    append(&lane, vec![marked(1, &key(1)), message(2, 20), marked(3, &key(3))]).await;
    let call = vec![
        message(10, 20),
        marked(11, &key(1)),
        marked(12, &key(2)),
        marked(13, &key(2)),
        message(14, 20),
        marked(15, &key(3)),
        marked(16, &key(1)),
        marked(17, &key(4)),
    ];
    let given = append(&lane, call).await;
    let numbers: Vec<u64> = given.iter().map(|given| given.number().unwrap()).collect();
    assert_eq!(numbers, [3, 0, 4, 4, 5, 2, 0, 6]);
    assert!(matches!(given[1], Given::Known(_)) && matches!(given[6], Given::Known(_)));
    assert_eq!((&given[2], &given[3]), (&Given::New(4), &Given::Repeated(4)));
    assert_eq!(heads(&lane).await, [1, 2, 3, 10, 12, 14, 17]);
    assert_eq!(lane.tail().await.unwrap(), 7);
}

/// Eight handles append the same at once: it is there once, and each hears the same number.
pub async fn racing_marks_have_one_winner(subject: &Subject) {
    let name = subject.partition().as_str().to_owned();
    let marks = subject.partition();
    for round in 0..5_u8 {
        let racers = (0..8_u64).map(|racer| {
            let lane = open(subject, &name);
            let call = vec![message(racer, 20), marked(100, &key_in(&marks, &[round]))];
            tokio::spawn(async move { append(&lane, call).await })
        });
        let mut new = 0;
        let mut numbers = std::collections::BTreeSet::new();
        for racer in bounded("the racers", join_all(racers)).await {
            let given = racer.unwrap();
            new += usize::from(matches!(given[1], Given::New(_)));
            numbers.insert(given[1].number().unwrap());
        }
        assert_eq!((new, numbers.len()), (1, 1), "round {round}");
    }
    let lane = open(subject, &name);
    assert_eq!(lane.tail().await.unwrap(), 5 * 9);
    assert_eq!(heads(&lane).await.iter().filter(|head| **head == 100).count(), 5);
}

/// The mark is there exactly when the message is: a mark in the way leaves no row, and a row no mark.
pub async fn a_mark_and_its_message_are_stored_together(subject: &Subject) {
    let lane = open(subject, subject.partition().as_str());
    let marks = subject.partition();
    let (taken, free) = (key_in(&marks, b"taken"), key_in(&marks, b"free"));
    subject.must_put(&taken, Attributes::new().with("num", 77), Expect::Absent).await;
    let mut both =
        Append::new(&subject.environment, &[marked(1, &free), marked(2, &taken)]).unwrap();
    let refused = lane.append_prepared(&mut both).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    assert!(subject.get(&free).await.is_none(), "a mark without its message");
    assert!(heads(&lane).await.is_empty(), "a message without its mark");
    let given = append(&lane, vec![marked(1, &free), marked(2, &taken)]).await;
    assert_eq!((given[0].number().unwrap(), given[1].number().unwrap()), (0, 77));
    assert!(subject.get(&free).await.is_some());
}

/// Ends of messages and of segments are kept and told; rows stay past them when they are to be counted.
pub async fn ends_are_told_and_rows_stay_when_they_are_to(subject: &Subject) {
    let now = subject.environment.now();
    let ends = now.plus(Duration::from_secs(5));
    for rows_expire in [false, true] {
        let retention = Some(Duration::from_secs(60));
        let config = LaneConfig { retention, rows_expire, ..LaneConfig::QUEUE };
        let name = subject.partition();
        let lane = UnorderedLane::open(&ground(subject), name.as_str(), config).unwrap();
        let sent = vec![Message { expires: Some(ends), ..message(1, 20) }, message(2, 20)];
        lane.append(sent.clone()).await.unwrap();
        let segment = segments(&lane).await.remove(0);
        assert_eq!(segment.ends, Some(subject.environment.now().plus(Duration::from_secs(60))));
        let index = segment.index().unwrap().unwrap();
        let told: Vec<_> = index.entries().iter().map(|entry| entry.expires).collect();
        // Kept relative to the segment's time: never before it.
        assert_eq!(told, [Some(ends.max(segment.appended)), None]);
        assert_eq!(lane.load(&segment).await.unwrap()[1], sent[1]);
        subject.clock.advance(Duration::from_secs(62));
        assert_eq!(segments(&lane).await.len(), usize::from(!rows_expire));
    }
}

/// What is written with a removal happens with it or not at all.
pub async fn a_removal_and_what_goes_with_it_are_one(subject: &Subject) {
    let unordered =
        UnorderedLane::open(&ground(subject), subject.partition().as_str(), LaneConfig::QUEUE)
            .unwrap();
    unordered.append(vec![message(1, 3_000)]).await.unwrap();
    finishes_with(subject, &unordered).await;
    let sequenced = open(subject, subject.partition().as_str());
    append(&sequenced, vec![message(1, 3_000)]).await;
    finishes_with(subject, &sequenced).await;
}

async fn finishes_with(subject: &Subject, lane: &impl millpond_lanes::Lane) {
    let segment = segments(lane).await.remove(0);
    let (kept, taken) = (subject.key(), subject.key());
    subject.must_put(&taken, Attributes::new().with("n", 1), Expect::Absent).await;
    let put = |key: &Key| subject.put(key, Attributes::new().with("n", 2), Expect::Absent);
    let refused = lane.finish_with(&segment, vec![put(&kept), put(&taken)]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict(_)), "{refused}");
    assert!(subject.get(&kept).await.is_none(), "half of it was written");
    assert_eq!(segments(lane).await, std::slice::from_ref(&segment), "removed all the same");
    let changed = lane.update(&segment, Bytes::from_static(b"x")).await.unwrap();
    let stale = lane.finish_with(&segment, vec![put(&kept)]).await.unwrap_err();
    assert_eq!(lane.current(&stale).unwrap(), Some(changed.clone()));
    assert!(subject.get(&kept).await.is_none());
    lane.finish_with(&changed, vec![put(&kept)]).await.unwrap();
    assert!(subject.get(&kept).await.is_some() && segments(lane).await.is_empty());
}

/// Appended under the same id again, from another handle, a message is there once.
pub async fn an_append_with_an_id_is_made_once(subject: &Subject) {
    let name = subject.partition().as_str().to_owned();
    let open = || UnorderedLane::open(&ground(subject), &name, LaneConfig::QUEUE).unwrap();
    let id = UniqueId::from_parts(subject.environment.now(), 5);
    for _ in 0..3 {
        let append = Append::new(&subject.environment, &[message(1, 20)]).unwrap();
        let mut append = append.with_id(id);
        assert_eq!(append.id(), id);
        assert_eq!(open().append_prepared(&mut append).await.unwrap(), id);
        assert_eq!(segments(&open()).await.len(), 1);
    }
}
