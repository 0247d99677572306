//! Bytes that nobody meant to send: every input gets an answer, and none a panic.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::large_futures,
    reason = "test code: a broken expectation ends the test"
)]

use bytes::Bytes;
use millpond_consumer::DeadLetter;
use millpond_consumer::source::{Aggregate, AggregatedRecord, Event};
use millpond_consumer::state::legacy::LegacyBatch;
use millpond_testing::hostile::{self, handle};
use proptest::prelude::{ProptestConfig, Strategy, any, proptest};

/// Events as AWS delivers them, to be damaged.
fn recorded() -> Vec<Vec<u8>> {
    let directory = format!("{}/tests/events", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let flips = proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6);
    (0..recorded().len(), flips, any::<usize>(), any::<bool>()).prop_map(
        |(file, flips, end, cut)| {
            let mut bytes = recorded().swap_remove(file);
            for (at, byte) in flips {
                let at = at % bytes.len();
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = byte;
                }
            }
            if cut {
                bytes.truncate(end % bytes.len());
            }
            bytes
        },
    )
}

fn aggregates() -> impl Strategy<Value = Aggregate> {
    let record =
        (any::<u64>(), any::<Option<u64>>(), proptest::collection::vec(any::<u8>(), 0..20));
    let record = record.prop_map(|(key, explicit, data)| AggregatedRecord {
        partition_key_index: key % 4,
        explicit_hash_key_index: explicit.map(|index| index % 4),
        data: data.into(),
    });
    let keys = || proptest::collection::vec("[a-z0-9]{0,40}", 0..4);
    (keys(), keys(), proptest::collection::vec(record, 0..8)).prop_map(
        |(partition_keys, explicit_hash_keys, records)| Aggregate {
            partition_keys,
            explicit_hash_keys,
            records,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes_are_one_dead_record(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if Event::parse(&bytes).is_err() {
            assert_eq!(handle(&bytes).dead_total(), 1);
        }
    }

    #[test]
    fn damaged_events_come_to_an_end(bytes in damaged()) {
        handle(&bytes);
    }

    #[test]
    fn arbitrary_aggregates_are_read_or_refused(aggregate in aggregates()) {
        let records = Aggregate::user_records(&aggregate.to_bytes());
        if let Ok(Some(records)) = records {
            assert_eq!(records.len(), aggregate.records.len());
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_aggregate_and_no_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), magic in any::<bool>()) {
        if magic {
            bytes.splice(..0, [0xF3, 0x89, 0x9A, 0xC2]);
        }
        let _ = Aggregate::user_records(&Bytes::from(bytes));
    }

    #[test]
    fn arbitrary_data_is_extracted_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        hostile::extract(&bytes);
    }

    #[test]
    fn arbitrary_letters_and_old_items_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80), text in ".{0,60}") {
        for bytes in [bytes, format!("{{\"streamConsumerId\":{text:?}}}").into_bytes()] {
            assert!(DeadLetter::decode(&bytes).is_err());
            let _ = LegacyBatch::parse(&bytes);
        }
    }
}

/// Of each kind of input, what fuzzers have found and what people thought of.
#[test]
fn the_corpus_comes_to_an_end() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (kind, feed) in hostile::KINDS {
        let files = std::fs::read_dir(corpus.join(kind)).expect("every kind has its corpus");
        let mut seen = 0;
        for file in files {
            feed(&std::fs::read(file.unwrap().path()).unwrap());
            seen += 1;
        }
        assert!(seen >= 3, "{kind} has {seen} files");
    }
}
