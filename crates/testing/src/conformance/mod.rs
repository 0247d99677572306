//! The store's contract, a function for each clause of `Store`'s docs.
//!
//! [`store_conformance!`](crate::store_conformance) makes a test of each.

mod expiry;
mod groups;
mod hints;
mod limits;
mod reads;
mod writes;

pub use expiry::expiry_is_exact;
pub use groups::{
    a_retried_group_is_known_again, groups_are_atomic, groups_name_each_key_once,
    independent_writes_have_their_own_outcomes,
};
pub use hints::hints_follow_changes;
pub use limits::limits_are_inclusive_and_named;
pub use reads::{
    items_come_back_intact, pages_join_without_gap_or_repeat, queries_are_ordered_and_bounded,
    reads_see_acknowledged_writes,
};
pub use writes::{
    a_retried_put_is_known_again, concurrent_increments_add_up, conflicts_return_the_current_item,
    deletes_of_absent_items, one_of_racing_writers_wins, stale_versions_stay_stale,
};

/// Makes a test of every clause, over the [`Subject`](crate::Subject) that `$make` opens. Attributes before it, such
/// as `#[ignore = "why"]`, go to each test.
#[macro_export]
macro_rules! store_conformance {
    ($(#[$attribute:meta])* $make:path) => {
        $crate::store_conformance! { @each $make, [$(#[$attribute])*]:
            reads_see_acknowledged_writes,
            items_come_back_intact,
            queries_are_ordered_and_bounded,
            pages_join_without_gap_or_repeat,
            one_of_racing_writers_wins,
            conflicts_return_the_current_item,
            deletes_of_absent_items,
            a_retried_put_is_known_again,
            stale_versions_stay_stale,
            groups_are_atomic,
            a_retried_group_is_known_again,
            independent_writes_have_their_own_outcomes,
            expiry_is_exact,
            limits_are_inclusive_and_named,
            groups_name_each_key_once,
            hints_follow_changes,
            concurrent_increments_add_up,
        }
    };
    (@each $make:path, $attributes:tt: $($clause:ident,)+) => {
        $( $crate::store_conformance! { @one $make, $attributes, $clause } )+
    };
    (@one $make:path, [$($attribute:tt)*], $clause:ident) => {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            $($attribute)*
            async fn $clause() {
                let subject = $make().await;
                $crate::conformance::$clause(&subject).await;
            }
    };
}
