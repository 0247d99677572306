//! What queues do, on every backend: each behaviour a function, a topic a file.
//!
//! [`queue_suite!`](crate::queue_suite!) makes a test of each.

pub mod basics;
pub mod clocks;
pub mod cost;
pub mod counting;
pub mod crowds;
pub mod dead;
pub mod dedup;
pub mod endings;
pub mod faults;
pub mod groups;
pub mod input;
pub mod leases;
pub mod order;
pub mod races;
pub mod shedding;
pub mod tasks;
pub mod topics;
pub mod waiting;

use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{Client, DeadLetters, Delivery, Message, QueueConfig, Queues, Receive};
use millpond_store::Environment;

use crate::subject::Subject;

/// Makes a test of every function, over the [`Subject`] that `$make` opens. Attributes before it, such as
/// `#[ignore = "why"]`, go to each test.
#[macro_export]
macro_rules! queue_suite {
    ($(#[$attribute:meta])* $make:path) => {
        $crate::queue_suite! { @each $make, [$(#[$attribute])*]:
            basics::one_message_goes_all_the_way,
            basics::queues_and_clients_never_see_each_others_messages,
            basics::five_queues_of_500_stay_apart,
            basics::min_and_max_of_a_receive_are_kept,
            basics::receive_without_waiting_answers_at_once,
            basics::size_limits_count_bytes_and_the_limit_is_accepted,
            basics::a_batch_is_reported_per_entry,
            basics::a_heavy_head_does_not_fail_its_batch,
            basics::messages_with_groups_delays_and_ends_fill_segments,
            basics::a_deletion_that_is_cut_off_is_carried_on,
            basics::a_deleted_queue_is_gone_and_its_name_is_free,
            clocks::a_jump_forward_ends_no_lease_early,
            clocks::a_jump_back_loses_and_blocks_nothing,
            clocks::processes_with_different_clocks_lose_nothing,
            cost::cost_per_receive_does_not_grow_with_the_backlog,
            cost::a_thousand_leased_at_the_head_cost_nothing,
            cost::held_groups_at_the_head_cost_little,
            counting::count_is_exact_when_quiet_at_any_size,
            counting::totals_add_up_over_processes,
            counting::what_a_short_lived_handle_did_is_counted,
            counting::what_another_process_gives_back_is_soon_seen,
            crowds::five_writers_of_20_lose_nothing,
            crowds::twenty_consumers_share_2000_messages,
            crowds::what_a_dead_consumer_held_is_redelivered,
            crowds::senders_and_consumers_at_once_lose_nothing,
            dead::dead_lettered_exactly_at_the_limit_with_its_history,
            dead::a_lapsed_lease_counts_towards_the_limit,
            dead::a_poison_head_does_not_starve_what_is_behind_it,
            dead::redrive_brings_a_dead_letter_back_once,
            dead::a_dead_letter_of_a_group_is_skipped,
            dead::a_dead_letter_of_a_group_blocks_it_until_unblocked,
            dead::a_dead_letter_of_a_group_parks_those_behind_it,
            dead::long_errors_are_cut_and_many_fit,
            dedup::dedup_by_id_holds_after_restart_and_across_processes,
            dedup::dedup_by_content_goes_by_the_body,
            dedup::dedup_can_be_scoped_to_the_group,
            dedup::duplicates_do_not_lose_their_neighbours,
            dedup::racing_duplicates_are_sent_once,
            endings::an_expired_message_is_never_delivered,
            endings::a_message_on_loan_is_its_holders_beyond_its_end,
            endings::a_purge_leaves_other_queues_alone_and_is_counted,
            endings::sends_racing_a_purge_are_before_or_after_it,
            endings::a_purge_forgets_what_it_removed_and_no_more,
            endings::a_purge_forgets_what_was_done_before_it,
            endings::a_delayed_message_is_invisible_until_due,
            faults::no_fault_loses_resurrects_or_unlocks,
            faults::no_fault_loses_resurrects_or_unlocks_in_strict_queues,
            groups::groups_keep_their_order_under_many_consumers,
            groups::a_held_group_waits_and_delays_no_other,
            groups::behind_a_run_on_loan_nothing_of_its_group_is_received,
            groups::one_receive_never_returns_a_message_of_a_group_twice,
            groups::groups_rotate_so_that_none_starves,
            groups::order_survives_crashes_and_skewed_clocks,
            groups::a_delayed_message_of_a_group_keeps_its_place,
            groups::a_fifo_batch_is_all_in_order_or_refused_per_entry,
            groups::a_receive_attempt_made_again_gets_the_same_messages,
            groups::an_attempt_id_ends_after_five_minutes_and_with_a_change,
            groups::an_attempt_id_means_nothing_in_a_standard_queue,
            groups::groups_keep_their_order_over_lanes,
            input::bad_names_are_refused,
            input::bad_messages_are_refused,
            input::bad_receives_and_times_are_refused,
            input::a_config_that_contradicts_itself_is_refused,
            input::a_queue_keeps_what_it_is,
            leases::a_received_message_is_invisible_until_its_timeout,
            leases::failed_3_times_delivered_4_times,
            leases::of_3_racing_acks_exactly_one_succeeds,
            leases::an_ack_after_the_timeout_succeeds_if_nobody_took_it,
            leases::a_stale_holder_is_refused_and_changes_nothing,
            leases::extend_release_and_nack_move_the_timeout,
            leases::a_heartbeat_keeps_a_lease_until_it_is_dropped,
            leases::tampered_and_foreign_receipts_are_refused,
            leases::there_is_no_default_signing_secret,
            order::sent_one_after_another_received_in_that_order,
            order::the_order_can_be_changed_per_receive,
            order::lifo_takes_the_newest_and_what_returns_keeps_its_age,
            order::priority_comes_first_and_age_counts,
            order::adaptive_turns_with_a_standing_backlog_and_back,
            races::a_send_between_any_two_requests_of_a_purge,
            races::a_receive_between_any_two_requests_of_another,
            races::a_lapse_between_any_two_requests_of_an_ack,
            races::a_move_that_another_takes_over_is_made_once,
            races::a_consumer_of_the_dead_letters_does_not_stop_a_redrive,
            shedding::under_tenfold_load_the_newest_keep_completing,
            shedding::too_many_waiting_are_shed_oldest_first,
            shedding::a_standing_backlog_is_shed_and_a_burst_is_not,
            shedding::what_is_on_loan_is_not_shed,
            tasks::task_status_follows_its_life,
            tasks::task_transitions_need_their_predecessor_and_holder,
            tasks::tasks_are_listed_by_state_and_age,
            tasks::what_left_the_queue_is_no_task,
            topics::a_topic_sends_to_each_queue_and_stores_the_body_once,
            topics::a_topic_refuses_what_does_not_suit_and_writes_nothing,
            topics::a_topics_message_keeps_its_body_among_the_dead_letters,
            waiting::a_long_poll_is_woken_by_a_send,
            waiting::a_wait_ends_in_time_and_messages_need_none,
            waiting::a_waiting_receive_gets_what_becomes_free,
            waiting::cancelling_ends_a_wait_and_loses_nothing,
            waiting::a_wait_for_a_minimum_gathers_messages,
        }
    };
    (@each $make:path, $attributes:tt: $($module:ident::$test:ident,)+) => {
        $( $crate::queue_suite! { @one $make, $attributes, $module, $test } )+
    };
    (@one $make:path, [$($attribute:tt)*], $module:ident, $test:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $($attribute)*
        async fn $test() {
            $crate::queue_suite::$module::$test(&$make().await).await;
        }
    };
}

/// So many seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The queues as a process of its own sees them. Nothing waits in it: what would sleep goes on at once.
pub fn process(subject: &Subject) -> Queues {
    Queues::new(&Ground::new(subject.store.clone(), &subject.impatient()))
}

/// The same, where sleeps end when the test moves the clock.
pub fn patient(subject: &Subject) -> Queues {
    Queues::new(&Ground::new(subject.store.clone(), &subject.environment))
}

/// A name that no other test uses, also when the store outlives the test.
pub fn name() -> String {
    format!("q-{:016x}", Environment::system().rng.next_u64())
}

/// The main client of a new queue.
pub async fn queue(subject: &Subject, config: QueueConfig) -> Client {
    process(subject).create(&name(), config).await.unwrap().main().unwrap()
}

/// The same client, in another process.
pub async fn elsewhere(subject: &Subject, client: &Client) -> Client {
    open_in(&process(subject), client).await
}

/// The same client, as these queues see it.
pub async fn open_in(queues: &Queues, client: &Client) -> Client {
    queues.open(client.queue().as_str()).await.unwrap().client(client.id().as_str()).unwrap()
}

/// A queue with dead letters, and the main clients of both.
pub async fn with_dead_letters(
    subject: &Subject,
    receives_max: u32,
    config: QueueConfig,
) -> (Client, Client) {
    let strict = config.strict.map(|_| QueueConfig::strict());
    let dead = queue(subject, strict.unwrap_or_default()).await;
    let dead_letters = DeadLetters { queue: dead.queue().as_str().to_owned(), receives_max };
    let config = QueueConfig { dead_letters: Some(dead_letters), ..config };
    (queue(subject, config).await, dead)
}

/// Sends these texts one after another.
pub async fn send(client: &Client, texts: &[&str]) {
    for text in texts {
        client.send(Message::new(text.to_string())).await.unwrap();
    }
}

/// Sends messages in one call, each of which must be taken.
pub async fn send_all(client: &Client, messages: impl IntoIterator<Item = Message>) {
    for outcome in client.send_batch(messages.into_iter().collect()).await.unwrap() {
        outcome.unwrap();
    }
}

/// Receives up to so many, without waiting.
pub async fn take(client: &Client, max: usize) -> Vec<Delivery> {
    client.receive(&Receive::up_to(max)).await.unwrap()
}

/// Receives exactly one.
pub async fn take_one(client: &Client) -> Delivery {
    let mut taken = take(client, 1).await;
    assert_eq!(taken.len(), 1, "nothing was received");
    taken.remove(0)
}

/// The bodies as texts.
pub fn texts(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| delivery.text_lossy().into_owned()).collect()
}

/// Receives and acknowledges everything that is there.
pub async fn drain(client: &Client) -> Vec<Delivery> {
    let mut all = Vec::new();
    loop {
        let taken = take(client, 1_000).await;
        if taken.is_empty() {
            return all;
        }
        ack_all(client, &taken).await;
        all.extend(taken);
    }
}

/// Acknowledges these, each of which must succeed.
pub async fn ack_all(client: &Client, deliveries: &[Delivery]) {
    let receipts: Vec<_> = deliveries.iter().map(|delivery| delivery.receipt.clone()).collect();
    for outcome in client.ack_batch(&receipts).await.unwrap() {
        outcome.unwrap();
    }
}

/// How many messages are available, on loan, and delayed.
pub async fn counts(client: &Client) -> (u64, u64, u64) {
    let count = client.count().await.unwrap();
    (count.available, count.leased, count.delayed)
}

/// The texts `0` to `count - 1`.
pub fn numbered(count: usize) -> Vec<Message> {
    (0..count).map(|number| Message::new(number.to_string())).collect()
}
