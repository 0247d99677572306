//! What the sequencer does, on every backend.
//!
//! [`sequencer_suite!`](crate::sequencer_suite!) makes a test of each function.

mod bounds;
mod gaps;
mod healing;
mod managing;
mod order;
mod reading;
mod world;

pub use bounds::{
    a_batch_is_reported_per_entry, bad_input_is_refused_and_nothing_is_written,
    json_is_put_by_its_properties, start_numbers_fixed_first_seen_and_stored,
    the_window_refuses_with_a_clear_error,
};
pub use gaps::{
    a_declared_gap_is_skipped, a_gap_is_skipped_after_its_time_from_first_sight,
    a_gap_waits_and_missing_ranges_are_listed, a_parked_queue_says_so_and_goes_on,
    late_arrivals_follow_their_policy, messages_in_a_declared_gap_are_delivered,
};
pub use healing::{
    a_queue_nobody_writes_to_is_healed_by_the_sweeper,
    a_store_error_is_never_taken_for_a_new_queue,
    idle_queues_cost_nothing_and_no_stranded_one_is_missed, puts_in_order_leave_the_index_alone,
};
pub use managing::{
    rewind_and_reset_are_explicit, trim_and_retention_remove_only_a_delivered_prefix,
};
pub use order::{
    a_duplicate_announces_nothing_and_stores_nothing, ahead_is_stored_and_not_announced,
    large_items_do_not_stall_at_page_limits,
    parallel_puts_of_every_message_twice_announce_each_once, queues_are_independent,
    shuffled_puts_end_at_the_highest_contiguous_number,
    the_same_number_with_another_payload_is_a_conflict,
};
pub use reading::{
    a_range_returns_its_payloads_in_order, cursor_records_become_ranges,
    readers_of_one_queue_are_independent, subscriptions_tell_every_range_once_in_order,
};
pub use world::{Change, Recorder, World, check_history, message, shuffled};

/// Makes a test of every function, over the [`Subject`](crate::Subject) that `$make` opens. Attributes before it go to
/// each test.
#[macro_export]
macro_rules! sequencer_suite {
    ($(#[$attribute:meta])* $make:path) => {
        $crate::lane_suite! { @each $make, [$(#[$attribute])*]:
            sequencer_suite::shuffled_puts_end_at_the_highest_contiguous_number,
            sequencer_suite::queues_are_independent,
            sequencer_suite::ahead_is_stored_and_not_announced,
            sequencer_suite::a_duplicate_announces_nothing_and_stores_nothing,
            sequencer_suite::the_same_number_with_another_payload_is_a_conflict,
            sequencer_suite::parallel_puts_of_every_message_twice_announce_each_once,
            sequencer_suite::large_items_do_not_stall_at_page_limits,
            sequencer_suite::start_numbers_fixed_first_seen_and_stored,
            sequencer_suite::the_window_refuses_with_a_clear_error,
            sequencer_suite::bad_input_is_refused_and_nothing_is_written,
            sequencer_suite::a_batch_is_reported_per_entry,
            sequencer_suite::json_is_put_by_its_properties,
            sequencer_suite::a_gap_waits_and_missing_ranges_are_listed,
            sequencer_suite::a_gap_is_skipped_after_its_time_from_first_sight,
            sequencer_suite::a_declared_gap_is_skipped,
            sequencer_suite::messages_in_a_declared_gap_are_delivered,
            sequencer_suite::a_parked_queue_says_so_and_goes_on,
            sequencer_suite::late_arrivals_follow_their_policy,
            sequencer_suite::rewind_and_reset_are_explicit,
            sequencer_suite::trim_and_retention_remove_only_a_delivered_prefix,
            sequencer_suite::readers_of_one_queue_are_independent,
            sequencer_suite::a_range_returns_its_payloads_in_order,
            sequencer_suite::subscriptions_tell_every_range_once_in_order,
            sequencer_suite::cursor_records_become_ranges,
            sequencer_suite::a_store_error_is_never_taken_for_a_new_queue,
            sequencer_suite::a_queue_nobody_writes_to_is_healed_by_the_sweeper,
            sequencer_suite::puts_in_order_leave_the_index_alone,
            sequencer_suite::idle_queues_cost_nothing_and_no_stranded_one_is_missed,
            sequencer_faults::every_request_of_every_sequencer_operation_may_fail,
        }
    };
}
