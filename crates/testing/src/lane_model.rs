//! Lanes as lists, and random operations that compare real lanes with them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use millpond_lanes::{Lane as _, LaneConfig, Segment, SequencedLane, UnorderedLane};
use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};

use crate::lane_suite::{ground, message, segments};
use crate::subject::Subject;

/// One operation. Numbers choose among what is there, wrapping around.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Appends messages of these sizes through one of three handles.
    Append(u8, Vec<u16>),
    /// Gives a segment a new state.
    Claim(u8, u8),
    /// Removes a segment.
    Finish(u8, u8),
    /// A handle is opened anew, as by a new process.
    Reopen(u8),
    /// Minutes pass.
    Advance(u8),
}

/// Up to `most` random operations.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let handle = 0..3_u8;
    let sizes = vec(prop_oneof![0..200_u16, 900..1_200_u16, 3_000..9_000_u16], 1..6);
    let operation = prop_oneof![
        4 => (handle.clone(), sizes).prop_map(|(handle, sizes)| Operation::Append(handle, sizes)),
        2 => (handle.clone(), 0..50_u8).prop_map(|(handle, at)| Operation::Claim(handle, at)),
        4 => (handle.clone(), 0..50_u8).prop_map(|(handle, at)| Operation::Finish(handle, at)),
        1 => handle.prop_map(Operation::Reopen),
        1 => (1..60_u8).prop_map(Operation::Advance),
    ];
    vec(operation, 1..most)
}

/// What should be in a lane: by the first message's serial number, how many and in which state.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Expected {
    segments: BTreeMap<u64, (usize, Bytes)>,
    appended: u64,
}

fn open(subject: &Subject, name: &str) -> (SequencedLane, UnorderedLane) {
    let ground = ground(subject);
    let unordered = format!("{name}/u");
    (
        SequencedLane::open(&ground, name, LaneConfig::QUEUE).unwrap(),
        UnorderedLane::open(&ground, &unordered, LaneConfig::QUEUE).unwrap(),
    )
}

/// Runs `operations` on a sequenced and an unordered lane, and on the model, and compares after each.
pub async fn check(subject: &Subject, operations: Vec<Operation>) {
    let name = subject.partition().as_str().to_owned();
    let mut handles = [open(subject, &name), open(subject, &name), open(subject, &name)];
    let mut model = Expected::default();
    let mut states = 0_u32;
    for operation in operations {
        match operation {
            Operation::Append(handle, sizes) => {
                let (sequenced, unordered) = &handles[usize::from(handle)];
                let first = model.appended;
                let batch: Vec<_> =
                    (first..).zip(&sizes).map(|(n, size)| message(n, (*size).into())).collect();
                model.appended += batch.len() as u64;
                model.segments.insert(first, (batch.len(), Bytes::new()));
                let numbers = sequenced.append(batch.clone()).await.unwrap();
                let numbers: Vec<u64> = numbers.into_iter().map(Result::unwrap).collect();
                assert!(
                    numbers.into_iter().eq(first..model.appended),
                    "numbers are not contiguous"
                );
                assert!(unordered.append(batch).await.unwrap().iter().all(Result::is_ok));
                // Ids of one millisecond have no order among them.
                subject.clock.advance(Duration::from_millis(1));
            }
            Operation::Claim(handle, at) => {
                let (sequenced, unordered) = &handles[usize::from(handle)];
                let Some((first, at)) = choose(&model, at) else { continue };
                states += 1;
                let state = Bytes::from(states.to_be_bytes().to_vec());
                let found = &segments(sequenced).await[at];
                sequenced.update(found, state.clone()).await.unwrap();
                let found = &segments(unordered).await[at];
                unordered.update(found, state.clone()).await.unwrap();
                model.segments.get_mut(&first).unwrap().1 = state;
            }
            Operation::Finish(handle, at) => {
                let (sequenced, unordered) = &handles[usize::from(handle)];
                let Some((first, at)) = choose(&model, at) else { continue };
                sequenced.finish(&segments(sequenced).await[at]).await.unwrap();
                unordered.finish(&segments(unordered).await[at]).await.unwrap();
                model.segments.remove(&first);
            }
            Operation::Reopen(handle) => {
                handles[usize::from(handle)] = open(subject, &name);
            }
            Operation::Advance(minutes) => {
                subject.clock.advance(Duration::from_secs(60 * u64::from(minutes)));
            }
        }
        compare(&model, &handles[0]).await;
    }
}

fn choose(model: &Expected, at: u8) -> Option<(u64, usize)> {
    let at = usize::from(at) % model.segments.len().max(1);
    model.segments.keys().nth(at).map(|first| (*first, at))
}

async fn compare(model: &Expected, (sequenced, unordered): &(SequencedLane, UnorderedLane)) {
    assert_eq!(sequenced.tail().await.unwrap(), model.appended, "the tail");
    let expected: Vec<_> = model
        .segments
        .iter()
        .map(|(first, (count, state))| (*first, *count, state.clone()))
        .collect();
    let mut found = Vec::new();
    for segment in segments(sequenced).await {
        let first = segment.first().expect("a number");
        verify(&segment, &sequenced.load(&segment).await.unwrap(), first);
        found.push((first, segment.count, segment.state));
    }
    assert_eq!(found, expected, "the sequenced lane");
    let mut found = Vec::new();
    for segment in segments(unordered).await {
        let messages = unordered.load(&segment).await.unwrap();
        let first = u64::from_be_bytes(messages[0].head.as_ref().try_into().unwrap());
        verify(&segment, &messages, first);
        found.push((first, segment.count, segment.state));
    }
    assert_eq!(found, expected, "the unordered lane");
}

fn verify(segment: &Segment, messages: &[millpond_lanes::Message], first: u64) {
    assert_eq!(messages.len(), segment.count);
    for (number, found) in (first..).zip(messages) {
        assert_eq!(*found, message(number, found.body.len()), "message {number}");
    }
}
