//! What lanes do, on every backend.
//!
//! [`lane_suite!`](crate::lane_suite!) makes a test of each function.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use millpond_lanes::cargo::{CargoRef, Objects};
use millpond_lanes::{Ground, Lane, LaneConfig, Message, Segment, SequencedLane, UnorderedLane};
use millpond_store::{Attributes, Expect, Partition, Query, StoreError, Timestamp, Write};
use object_store::memory::InMemory;

use crate::subject::{Subject, bounded};

/// Makes a test of every function, over the [`Subject`] that `$make` opens. Attributes before it, such as
/// `#[ignore = "why"]`, go to each test.
#[macro_export]
macro_rules! lane_suite {
    ($(#[$attribute:meta])* $make:path) => {
        $crate::lane_suite! { @each $make, [$(#[$attribute])*]:
            lane_suite::messages_of_every_size_come_back,
            lane_suite::what_is_removed_is_gone_with_its_cargo,
            lane_suite::unordered_writers_lose_nothing,
            lane_suite::sequenced_numbers_have_no_gap_and_no_repeat,
            lane_suite::the_tail_survives_removal_of_everything,
            lane_suite::a_scan_from_a_number_begins_with_its_segment,
            lane_suite::stale_updates_are_refused,
            lane_suite::damage_is_refused,
            lane_once::a_marked_message_is_appended_once,
            lane_once::repeats_keep_their_neighbours,
            lane_once::racing_marks_have_one_winner,
            lane_once::a_mark_and_its_message_are_stored_together,
            lane_once::ends_are_told_and_rows_stay_when_they_are_to,
            lane_once::a_removal_and_what_goes_with_it_are_one,
            lane_once::an_append_with_an_id_is_made_once,
            lane_faults::every_request_of_every_operation_may_fail,
        }
    };
    (@each $make:path, $attributes:tt: $($module:ident::$test:ident,)+) => {
        $( $crate::lane_suite! { @one $make, $attributes, $module, $test } )+
    };
    (@one $make:path, [$($attribute:tt)*], $module:ident, $test:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $($attribute)*
        async fn $test() {
            $crate::$module::$test(&$make().await).await;
        }
    };
}

/// A lane's ground on the subject's store.
pub fn ground(subject: &Subject) -> Ground {
    Ground::new(subject.store.clone(), &subject.impatient())
}

fn ground_with_objects(subject: &Subject) -> Ground {
    let objects = Objects::new(Arc::new(InMemory::new()), "cargo".into());
    ground(subject).with_objects(objects)
}

fn name(subject: &Subject) -> String {
    subject.partition().as_str().to_owned()
}

/// No power of two, so that pieces in the wrong place are noticed.
const ROW: usize = 251;

/// A message whose bytes depend on its number.
pub fn message(number: u64, bytes: usize) -> Message {
    let body = noise(number as usize * 31, bytes);
    Message {
        head: Bytes::from(number.to_be_bytes().to_vec()),
        body: body.into(),
        ..Message::default()
    }
}

/// A row of bytes, each 7 more than the one before and, every [`ROW`], one more still.
///
/// Rows are copied, since nothing here is optimised and some tests make gigabytes of it: a row that begins with any byte is
/// somewhere in two rounds of the bytes 0, 7, 14 and so on, as 7 is odd.
fn noise(start: usize, bytes: usize) -> Vec<u8> {
    /// `7 * INVERSE` is 1 modulo 256.
    const INVERSE: usize = 183;
    let rounds: Vec<u8> = (0..2 * 256_usize).map(|at| (at * 7) as u8).collect();
    let mut body = Vec::with_capacity(bytes + ROW);
    while body.len() < bytes {
        let first = start + body.len() * 7 + body.len() / ROW;
        let at = first * INVERSE % 256;
        body.extend_from_slice(&rounds[at..at + ROW]);
    }
    body.truncate(bytes);
    body
}

/// All segments of a lane.
pub async fn segments(lane: &impl Lane) -> Vec<Segment> {
    let mut found = Vec::new();
    let mut next = Some(lane.scan().unwrap());
    while let Some(scan) = next {
        let page = lane.page(scan).await.unwrap();
        found.extend(page.segments);
        next = page.next;
    }
    found
}

/// Tiny ones inline, larger ones in items, one of more than an item's bound, all of them intact.
pub async fn messages_of_every_size_come_back(subject: &Subject) {
    let due = Timestamp::from_millis(subject.environment.now().as_millis() + 5_000);
    let sizes = [0, 1, 100, 1_000, 5_000, 70_000, 409_600, 1_048_576];
    for (objects, ground) in [(false, ground(subject)), (true, ground_with_objects(subject))] {
        let config =
            LaneConfig { retention: Some(Duration::from_secs(3_600)), ..LaneConfig::QUEUE };
        let lane = SequencedLane::open(&ground, &name(subject), config).unwrap();
        let unordered = UnorderedLane::open(&ground, &name(subject), config).unwrap();
        let mut placements = BTreeSet::new();
        for (number, size) in sizes.into_iter().enumerate() {
            let mut sent = vec![message(number as u64, size), message(99, 10)];
            sent[1].group = Some(7);
            sent[0].due = Some(due);
            let outcomes = lane.append(sent.clone()).await.unwrap();
            assert!(outcomes.iter().all(Result::is_ok), "{size} bytes: {outcomes:?}");
            let outcomes = unordered.append(sent.clone()).await.unwrap();
            assert!(outcomes.iter().all(Result::is_ok), "{size} bytes: {outcomes:?}");
            let mut loaded = Vec::new();
            let from = lane.scan_from(2 * number as u64).await.unwrap();
            for segment in lane.page(from).await.unwrap().segments {
                placements.insert(match segment.cargo {
                    CargoRef::Inline(_) => "inline",
                    CargoRef::Items { .. } => "items",
                    CargoRef::Object { .. } | CargoRef::Shared { .. } => "object",
                });
                let index = segment.index().unwrap().expect("queues' rows have their index");
                assert_eq!(index.entries().len(), segment.count);
                loaded.extend(lane.load(&segment).await.unwrap());
            }
            assert_eq!(loaded, sent, "{size} bytes");
        }
        let expected: &[&str] =
            if objects { &["inline", "items", "object"] } else { &["inline", "items"] };
        assert_eq!(placements.into_iter().collect::<Vec<_>>(), expected);
        let mut found = Vec::new();
        for segment in segments(&unordered).await {
            found.extend(unordered.load(&segment).await.unwrap());
        }
        assert_eq!(found.len(), 2 * sizes.len());
        let large = Message::new(vec![0; millpond_lanes::limits::MESSAGE_BYTES_MAX + 1]);
        let refused = lane.append(vec![message(0, 1), large]).await;
        assert!(
            matches!(refused, Err(StoreError::TooLarge { what: "message", .. })),
            "{refused:?}"
        );
        assert_eq!(lane.tail().await.unwrap(), 2 * sizes.len() as u64, "a refused call appended");
    }
}

/// After finishing, and once husks are past, no row and no cargo is left that costs anything.
pub async fn what_is_removed_is_gone_with_its_cargo(subject: &Subject) {
    let ground = ground(subject);
    let name = name(subject);
    let lane = UnorderedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
    for number in 0..5 {
        lane.append(vec![message(number, 300_000)]).await.unwrap().remove(0).unwrap();
    }
    for segment in segments(&lane).await {
        lane.finish(&segment).await.unwrap();
        let again = lane.finish(&segment).await.unwrap_err();
        assert!(again.is_conflict(), "{again}");
    }
    assert!(segments(&lane).await.is_empty());
    subject.clock.advance(Duration::from_secs(3_600));
    for partition in [name.clone(), format!("{name}#cargo")] {
        let rows = subject.all(Query::new(Partition::new(partition).unwrap())).await;
        assert!(rows.is_empty(), "{} rows are left", rows.len());
    }
}

/// Eight writers, each with its own handle.
pub async fn unordered_writers_lose_nothing(subject: &Subject) {
    let (ground, name) = (ground(subject), name(subject));
    let writers = (0..8_u64).map(|writer| {
        let lane = UnorderedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
        tokio::spawn(async move {
            for n in 0..20 {
                let sent = lane.append(vec![message(writer * 100 + n, 200)]).await.unwrap();
                assert!(sent[0].is_ok(), "writers of an unordered lane never conflict: {sent:?}");
            }
        })
    });
    for writer in bounded("the writers", join_all(writers)).await {
        writer.unwrap();
    }
    let lane = UnorderedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
    let mut numbers = BTreeSet::new();
    let mut last = None;
    for segment in segments(&lane).await {
        assert!(last.is_none_or(|last| last < segment.place), "not in order of time");
        last = Some(segment.place);
        for message in lane.load(&segment).await.unwrap() {
            assert!(numbers.insert(message.head), "a message is there twice");
        }
    }
    assert_eq!(numbers.len(), 160);
}

/// Six writers, each with its own handle and its own idea of the tail.
pub async fn sequenced_numbers_have_no_gap_and_no_repeat(subject: &Subject) {
    let (ground, name) = (ground(subject), name(subject));
    let writers = (0..6_u64).map(|writer| {
        let lane = SequencedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
        tokio::spawn(async move {
            let mut given = Vec::new();
            for n in 0..12 {
                let batch =
                    (0..=n % 3).map(|at| message(writer * 1_000 + n * 10 + at, 50)).collect();
                for number in lane.append(batch).await.unwrap() {
                    given.push(number.unwrap());
                }
            }
            given
        })
    });
    let mut given = Vec::new();
    for writer in bounded("the writers", join_all(writers)).await {
        let numbers = writer.unwrap();
        assert!(numbers.is_sorted(), "a writer's messages are not in its order: {numbers:?}");
        given.extend(numbers);
    }
    given.sort_unstable();
    assert!(given.iter().copied().eq(0..6 * 24), "numbers given: {given:?}");

    let lane = SequencedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
    let (mut next, mut senders) = (0, [0; 6]);
    for segment in segments(&lane).await {
        assert_eq!(segment.first(), Some(next), "a gap in the rows");
        next += segment.count as u64;
        for message in lane.load(&segment).await.unwrap() {
            let number = u64::from_be_bytes(message.head.as_ref().try_into().unwrap());
            let sender = &mut senders[number as usize / 1_000];
            assert!(*sender <= number, "a writer's messages are not in its order");
            *sender = number;
        }
    }
    assert_eq!(next, 6 * 24);
    assert_eq!(lane.tail().await.unwrap(), 6 * 24);
}

/// Numbers go on after everything was removed, in a new process, and long after.
pub async fn the_tail_survives_removal_of_everything(subject: &Subject) {
    let (ground, name) = (ground(subject), name(subject));
    let open = || SequencedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
    let mut expected = 0;
    for round in 0..6_u64 {
        let lane = open();
        for _ in 0..=round % 3 {
            let number =
                lane.append(vec![message(expected, 2_000)]).await.unwrap().remove(0).unwrap();
            assert_eq!(number, expected);
            expected += 1;
        }
        for segment in segments(&lane).await {
            lane.finish(&segment).await.unwrap();
        }
        assert!(segments(&lane).await.is_empty());
        assert_eq!(open().tail().await.unwrap(), expected, "the tail went back");
        if round % 2 == 1 {
            subject.clock.advance(Duration::from_secs(2 * 3_600));
            assert_eq!(open().tail().await.unwrap(), expected, "the tail went back with time");
        }
    }
    let rows = subject.all(Query::new(partition(&name))).await;
    assert!(rows.len() <= 6, "{} husks are left", rows.len());
    let cargo = partition(&format!("{name}#cargo"));
    assert!(subject.all(Query::new(cargo)).await.is_empty(), "cargo is left");

    // Retention lets cargo expire, never the rows: a lane that nobody consumes keeps its tail too.
    let config = LaneConfig { retention: Some(Duration::from_secs(60)), ..LaneConfig::QUEUE };
    let open = || SequencedLane::open(&ground, &format!("{name}/kept"), config).unwrap();
    open().append(vec![message(0, 10), message(1, 2_000)]).await.unwrap();
    subject.clock.advance(Duration::from_secs(7 * 24 * 3_600));
    assert_eq!(open().append(vec![message(2, 10)]).await.unwrap().remove(0).unwrap(), 2);
}

fn partition(name: &str) -> Partition {
    Partition::new(name).unwrap()
}

/// Also in the middle of a segment, at the end and behind it.
pub async fn a_scan_from_a_number_begins_with_its_segment(subject: &Subject) {
    let lane = SequencedLane::open(&ground(subject), &name(subject), LaneConfig::LOG).unwrap();
    for first in [0_u64, 5, 6, 10] {
        let count = match first {
            0 => 5,
            5 => 1,
            6 => 4,
            _ => 3,
        };
        lane.append((0..count).map(|n| message(first + n, 30)).collect()).await.unwrap();
    }
    for number in 0..15 {
        let page = lane.page(lane.scan_from(number).await.unwrap()).await.unwrap();
        let first = page.segments.first().and_then(Segment::first);
        let expected = match number {
            0..=4 => Some(0),
            5 => Some(5),
            6..=9 => Some(6),
            10..=12 => Some(10),
            _ => None,
        };
        assert_eq!(first, expected, "from {number}");
    }
}

/// A claim-like update by who read an older row changes nothing and says what is there.
pub async fn stale_updates_are_refused(subject: &Subject) {
    let unordered =
        UnorderedLane::open(&ground(subject), &name(subject), LaneConfig::QUEUE).unwrap();
    unordered.append(vec![message(1, 10)]).await.unwrap();
    refuses_stale_updates(&unordered).await;
    let sequenced =
        SequencedLane::open(&ground(subject), &name(subject), LaneConfig::QUEUE).unwrap();
    sequenced.append(vec![message(1, 10)]).await.unwrap();
    refuses_stale_updates(&sequenced).await;
}

async fn refuses_stale_updates(lane: &impl Lane) {
    let first = segments(lane).await.remove(0);
    let claimed = lane.update(&first, Bytes::from_static(b"mine")).await.unwrap();
    let refused = lane.update(&first, Bytes::from_static(b"late")).await.unwrap_err();
    assert!(refused.is_conflict());
    assert_eq!(lane.current(&refused).unwrap().as_ref(), Some(&claimed));
    assert_eq!(segments(lane).await.first(), Some(&claimed));
    assert_eq!((first.state.len(), claimed.state.as_ref()), (0, b"mine".as_slice()));
}

/// Rows and cargo that are not what was written are refused, never skipped.
pub async fn damage_is_refused(subject: &Subject) {
    let (ground, name) = (ground(subject), name(subject));
    let lane = SequencedLane::open(&ground, &name, LaneConfig::QUEUE).unwrap();
    lane.append(vec![message(1, 2_000)]).await.unwrap();
    let segment = segments(&lane).await.remove(0);
    let cargo = partition(&format!("{name}#cargo"));
    let item = subject.all(Query::new(cargo)).await.remove(0);

    let mut bytes = item.attributes.bytes("cargo").unwrap().to_vec();
    bytes[1_000] ^= 1;
    subject.must_put(&item.key, Attributes::new().with("cargo", bytes.clone()), Expect::Any).await;
    let error = lane.load(&segment).await.unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");

    bytes.truncate(100);
    subject.must_put(&item.key, Attributes::new().with("cargo", bytes), Expect::Any).await;
    let error = lane.load(&segment).await.unwrap_err();
    assert!(error.to_string().contains("its row says"), "{error}");

    subject.store.write(Write::delete(item.key.clone(), Expect::Any)).await.unwrap();
    let error = lane.load(&segment).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");

    let row = subject.all(Query::new(partition(&name))).await.remove(0);
    for broken in ["idx", "n", "sum", "id"] {
        let mut attributes = row.attributes.clone();
        attributes.remove(broken);
        subject.must_put(&row.key, attributes, Expect::Any).await;
        let page = lane.page(lane.scan().unwrap()).await;
        let damaged = match page {
            Ok(page) => lane.load(&page.segments[0]).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(damaged, StoreError::Corrupt { .. }), "without {broken}: {damaged}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_message_is_what_its_number_and_place_say() {
        for (number, bytes) in [(0, 0), (1, 1), (7, 250), (8, 251), (9, 252), (1_000_003, 3_000)] {
            let expected: Vec<u8> =
                (0..bytes).map(|at| (number as usize * 31 + at * 7 + at / 251) as u8).collect();
            assert_eq!(message(number, bytes).body, expected, "{number}");
        }
    }
}
