//! What a consumer remembers and does with it, on every backend: each behaviour a function, a topic a file.
//!
//! [`consumer_suite!`](crate::consumer_suite!) makes a test of each. What does not touch the state is tested in the consumer's
//! own crate, with the same [`World`](world::World).

pub mod duplicates;
pub mod events;
pub mod fakes;
pub mod kills;
pub mod reading;
pub mod state;
pub mod steps;
pub mod verdicts;
pub mod window_ends;
pub mod windows;
pub mod world;

/// Makes a test of every function, over the [`Subject`](crate::Subject) that `$make` opens.
#[macro_export]
macro_rules! consumer_suite {
    ($make:path) => {
        $crate::consumer_suite! { @each $make:
            duplicates::duplicates_within_a_batch_are_skipped_and_differing_ones_reported,
            duplicates::duplicates_across_batches_are_skipped_within_the_window,
            duplicates::a_message_that_comes_again_itself_is_no_duplicate,
            duplicates::ids_that_differ_in_the_last_of_many_digits_are_two,
            duplicates::under_the_policy_to_run_all_are_processed_and_differing_ones_reported,
            kills::a_killed_process_counts_and_the_killer_is_isolated_and_dead_lettered,
            kills::a_killer_is_isolated_under_bisecting_too,
            kills::a_killer_is_isolated_among_the_messages_of_a_queue,
            kills::a_delivery_of_a_queue_that_ended_as_it_should_is_not_taken_for_killed,
            kills::process_all_gets_messages_one_by_one_after_a_kill,
            kills::a_careful_run_that_ends_at_the_deadline_stays_careful_for_the_rest,
            reading::a_record_that_kills_its_process_while_it_is_read_is_isolated,
            reading::a_user_record_that_kills_its_process_while_it_is_read_is_isolated,
            reading::what_is_read_one_by_one_after_a_kill_is_not_charged,
            reading::what_was_not_read_in_time_comes_again,
            reading::a_batch_that_is_read_by_an_extractor_of_ones_own_writes_its_marker_alone,
            state::a_redeploy_with_another_role_extractor_or_version_keeps_finished_work,
            state::bisected_recut_and_parallel_batches_keep_progress,
            state::a_stale_writer_cannot_overwrite_newer_state,
            state::state_expires,
            state::the_same_stream_name_in_two_accounts_is_separate,
            state::shards_and_tables_are_separate,
            state::inspect_shows_what_is_unfinished_and_why,
            state::damaged_state_is_reported_and_nothing_runs,
            state::a_damaged_row_hides_no_other_and_can_be_forgotten,
            state::state_of_the_older_libraries_is_taken_over,
            steps::a_kill_repeats_only_the_last_steps,
            steps::a_careful_run_saves_each_step,
            steps::steps_of_a_batch_that_is_done_soon_cost_nothing,
            verdicts::what_is_done_or_was_tried_does_not_expire,
            verdicts::what_is_done_stays_done_when_keys_are_set_later,
            verdicts::what_is_done_stays_done_when_its_bytes_are_refused_later,
            verdicts::messages_are_not_lost_with_the_end_of_another_of_their_record,
            window_ends::an_end_that_keeps_failing_is_put_aside,
            window_ends::an_end_without_records_that_keeps_failing_is_put_aside,
            window_ends::an_end_that_kills_its_process_is_counted_and_put_aside,
            window_ends::a_window_is_put_aside_only_with_the_sinks_receipt,
            window_ends::an_end_that_worked_is_not_remembered,
            window_ends::attempts_of_one_window_are_not_those_of_another,
            window_ends::an_end_that_asks_to_wait_is_not_called_before,
            windows::a_window_gathers_each_message_once,
            windows::the_end_of_a_window_gets_what_was_gathered,
            windows::a_failed_end_of_a_window_is_tried_again,
            windows::a_rejected_window_is_a_dead_record,
            windows::dead_messages_are_in_no_window,
            windows::without_a_fold_the_state_is_handed_on,
        }
    };
    (@each $make:path: $($module:ident::$test:ident,)+) => {
        $(
            // On one thread, so that virtual time passes only when nothing else can go on.
            #[tokio::test]
            async fn $test() {
                $crate::consumer_suite::$module::$test(&$make().await).await;
            }
        )+
    };
}
