//! What the log does, on every backend and with every object store.
//!
//! [`log_suite!`](crate::log_suite!) makes a test of each function. Their names follow the list of behaviours that
//! users rely on.

mod appending;
mod groups;
mod growing;
mod producing;
mod pulling;
mod reading;
mod running;
mod topics;

pub use appending::*;
pub use groups::*;
pub use growing::*;
pub use producing::*;
pub use pulling::*;
pub use reading::*;
pub use running::*;
pub use topics::*;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects;
use millpond_log::{Batch, Log, NewRecord, Record, Topic, TopicConfig};
use millpond_store::{Clock as _, Environment, SystemClock};
use object_store::ObjectStore;

use crate::subject::Subject;

/// Makes a test of every function, over the [`LogSubject`] that `$make` opens. Attributes before it go to each test.
#[macro_export]
macro_rules! log_suite {
    ($(#[$attribute:meta])* $make:path) => {
        $crate::log_suite! { @each $make, [$(#[$attribute])*]:
            log_suite::a_written_record_is_readable_bytes_intact,
            log_suite::same_key_same_partition_and_partitions_count_from_zero,
            log_suite::three_producers_on_one_key_keep_their_order,
            log_suite::two_first_writers_both_succeed,
            log_suite::a_slow_payload_write_is_never_skipped_and_never_blocks_others,
            log_suite::nothing_is_numbered_before_it_is_readable,
            log_suite::one_flush_writes_one_object_for_all_partitions,
            log_suite::a_fenced_writer_never_appears_again,
            log_suite::a_sequenced_batch_is_appended_once,
            log_suite::bad_records_are_refused_and_nothing_is_written,
            log_suite::count_bounds_a_read_and_the_answer_tells_whether_more_remains,
            log_suite::seeks_by_offset_time_earliest_and_latest,
            log_suite::a_write_during_a_read_is_read_or_signalled,
            log_suite::many_rapid_writes_cause_few_wake_ups_and_one_causes_one,
            log_suite::retention_removes_only_a_prefix_and_readers_below_it_get_a_gap,
            log_suite::numbers_are_never_reused_after_everything_expired,
            log_suite::objects_of_trimmed_records_are_swept_and_no_others,
            log_suite::topics_are_created_listed_described_and_deleted,
            log_suite::unknown_topics_and_absurd_configurations_are_refused,
            log_suite::a_committed_record_is_not_read_again_and_other_groups_see_everything,
            log_suite::two_workers_never_hold_one_partition,
            log_suite::a_paused_worker_that_wakes_cannot_move_the_checkpoint,
            log_suite::partitions_are_balanced_across_workers,
            log_suite::a_crashed_workers_partitions_are_taken_after_a_lease,
            log_suite::clock_jumps_make_no_double_lease,
            log_suite::skip_to_end_also_on_an_empty_partition,
            log_suite::groups_are_listed_described_reset_and_deleted,
            log_suite::a_group_at_the_latest_misses_nothing_after_it_was_made,
            log_suite::a_run_handles_everything_in_order_and_says_done,
            log_suite::contention_is_answered_busy_not_done,
            log_suite::a_handler_slower_than_the_lease_is_not_run_twice,
            log_suite::work_left_at_the_deadline_is_continued,
            log_suite::a_hand_off_lets_the_record_at_hand_finish,
            log_suite::a_poison_record_blocks_or_goes_to_the_dead_letters,
            log_suite::a_sink_that_fails_keeps_the_record,
            log_suite::workers_that_pull_share_partitions_and_hand_over_what_is_done,
            log_suite::what_a_puller_that_died_did_not_finish_comes_to_another,
            log_suite::an_answer_that_is_lost_loses_no_record,
            log_suite::a_pull_waits_for_records_and_ends_when_another_begins,
            log_suite::a_worker_of_a_deleted_group_reads_nothing_more,
            log_suite::growing_keeps_the_order_of_each_key_for_groups,
            log_suite::a_producer_batches_by_linger_and_size,
            log_suite::a_producer_holds_back_who_sends_too_much,
            log_suite::a_producer_keeps_order_when_the_store_fails,
            log_suite::four_kilobytes_450_times_a_second_take_few_requests,
            log_faults::every_request_of_every_log_operation_may_fail,
        }
    };
    (@each $make:path, $attributes:tt: $($module:ident::$test:ident,)+) => {
        $( $crate::log_suite! { @one $make, $attributes, $module, $test } )+
    };
    (@one $make:path, [$($attribute:tt)*], $module:ident, $test:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $($attribute)*
        async fn $test() {
            $crate::$module::$test(&$make().await).await;
        }
    };
}

/// A store, and perhaps an object store, to test the log on.
#[derive(Clone)]
pub struct LogSubject {
    /// The store, and its world.
    pub subject: Subject,
    /// The object store, if there is one.
    pub objects: Option<Arc<dyn ObjectStore>>,
    _kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl LogSubject {
    /// No object store.
    pub fn bare(subject: Subject) -> Self {
        Self { subject, objects: None, _kept: None }
    }

    /// With this object store, and whatever must live as long as it.
    pub fn with_objects(
        subject: Subject,
        objects: Arc<dyn ObjectStore>,
        kept: impl Any + Send + Sync,
    ) -> Self {
        Self { subject, objects: Some(objects), _kept: Some(Arc::new(kept)) }
    }

    /// The ground under this world.
    pub fn ground(&self, environment: &Environment) -> Ground {
        let ground = Ground::new(self.subject.store.clone(), environment);
        match &self.objects {
            Some(objects) => ground.with_objects(Objects::new(objects.clone(), "payload".into())),
            None => ground,
        }
    }

    /// A log as a new process has it, whose waits pass at once.
    pub fn log(&self) -> Log {
        Log::new(&self.ground(&self.subject.impatient()))
    }

    /// A log as a new process has it, whose waits pass when the clock is moved.
    pub fn timed_log(&self) -> Log {
        Log::new(&self.ground(&self.subject.environment))
    }

    /// A name that no other test uses.
    pub fn name(&self) -> String {
        self.subject.partition().as_str().replace('/', "-")
    }

    /// A new topic.
    pub async fn topic(&self, partitions: u32) -> Topic {
        self.topic_with(TopicConfig::with_partitions(partitions)).await
    }

    /// A new topic with this configuration.
    pub async fn topic_with(&self, config: TopicConfig) -> Topic {
        self.log().create(&self.name(), config).await.unwrap()
    }

    /// The same topic, as another process has it.
    pub async fn again(&self, topic: &Topic) -> Topic {
        self.log().topic(&topic.name()).await.unwrap()
    }

    /// The same topic, with waits that pass when the clock is moved.
    pub async fn timed(&self, topic: &Topic) -> Topic {
        self.timed_log().topic(&topic.name()).await.unwrap()
    }
}

/// A record whose bytes depend on its number.
pub fn record(number: u64, bytes: usize) -> NewRecord {
    NewRecord::new(payload(number, bytes)).header("n", number.to_be_bytes().to_vec())
}

/// The bytes of the record with this number.
pub fn payload(number: u64, bytes: usize) -> Bytes {
    (0..bytes).map(|at| (number as usize * 37 + at * 11 + at / 253) as u8).collect()
}

/// The number of a record that [`record`] made.
pub fn number(record: &Record) -> u64 {
    let header = record.header("n").expect("a numbered record");
    let number = u64::from_be_bytes(header.as_ref().try_into().unwrap());
    assert_eq!(record.payload, payload(number, record.payload.len()), "bytes of {number}");
    number
}

/// Appends to one partition and returns the first offset.
pub async fn append(topic: &Topic, partition: u32, records: Vec<NewRecord>) -> u64 {
    topic.append_to(partition, records, &Default::default()).await.unwrap().first
}

/// Everything that is in a partition, checked to be dense.
pub async fn read_all(topic: &Topic, partition: u32) -> Vec<Record> {
    let mut from = topic.seek(partition, millpond_log::Seek::Earliest).await.unwrap();
    let mut records: Vec<Record> = Vec::new();
    loop {
        let Batch { records: found, gap, next, more, .. } =
            topic.read(partition, from, 100).await.unwrap();
        if let Some(gap) = gap {
            // A removal whose caller gave up may still be under way: then the start has moved behind the gap, and what was
            // read before it is there no more.
            let earliest = topic.seek(partition, millpond_log::Seek::Earliest).await.unwrap();
            assert!(
                earliest >= gap.to,
                "partition {partition}: {gap:?}, but it starts at {earliest}"
            );
            records.clear();
            from = earliest;
            continue;
        }
        for record in found {
            assert_eq!(record.offset, from, "partition {partition} has a hole");
            from += 1;
            records.push(record);
        }
        assert_eq!(next, from);
        if !more {
            return records;
        }
    }
}

/// Lets virtual time pass until a condition holds: slowly enough for requests to a real server to come back.
pub async fn pass_time<F: Future<Output = bool>>(
    world: &LogSubject,
    step: Duration,
    what: &str,
    mut holds: impl FnMut() -> F,
) {
    let machine = SystemClock::new();
    until(what, || {
        let holds = holds();
        let (machine, clock) = (&machine, &world.subject.clock);
        async move {
            let began = machine.monotonic();
            while machine.monotonic().since(began) < Duration::from_millis(2) {
                tokio::task::yield_now().await;
            }
            let over = holds.await;
            if !over {
                clock.advance(step);
            }
            over
        }
    })
    .await;
}

/// Waits for a condition that other tasks bring about.
pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    crate::subject::bounded(what, async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
