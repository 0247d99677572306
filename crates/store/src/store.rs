//! The trait itself, with its contract.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::Result;
use crate::hints::ChangeHint;
use crate::item::Item;
use crate::key::{Key, Partition};
use crate::query::{Page, Query};
use crate::write::Write;

/// What a product may know of the store below it: not which one it is, but what is cheap there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Whether what is acknowledged survives the process and the machine's power.
    pub durable: bool,
    /// Items up to this size cost the least to rewrite; what is larger is better kept apart from what changes.
    pub small_item_bytes: usize,
    /// Whether an atomic group costs no more than its writes one by one.
    pub groups_cheap: bool,
    /// Whether leaving an item to its expiry is cheaper than deleting it.
    pub expiry_free: bool,
    /// Whether a relaxed query costs less than a strong read.
    pub relaxed_cheaper: bool,
    /// How long after a write its outcome may still be unknown to its writer, who may then retry it. Zero where
    /// an outcome is never unknown to a writer that lives on.
    pub outcome_window: Duration,
}

/// Items under keys, read with strong consistency and written by compare-and-swap.
///
/// # Contract
/// Each clause names the test that checks it on every backend and every adapter.
///
/// 1. **Reads see every acknowledged write.** A `get` or a strong `query` that starts after a write was
///    acknowledged sees it, from any handle of the same store. (`conformance::reads_see_acknowledged_writes`)
/// 2. **Items come back as they were put**: key, attributes of each type (empty and extreme values too),
///    version and expiry. A put replaces the whole item. (`conformance::items_come_back_intact`)
/// 3. **A query answers in byte order of the sort key**, in both directions, only from its partition, only
///    within its half-open range. (`conformance::queries_are_ordered_and_bounded`)
/// 4. **A query is never cut silently.** A page holds at most the limit and may be shorter; `next` continues
///    exactly behind it, and is absent only when the range is exhausted.
///    (`conformance::pages_join_without_gap_or_repeat`)
/// 5. **`Absent` writes only where nothing is; `Version` only over that version; `Any` always.** Of writers that
///    race with the same expectation exactly one wins. (`conformance::one_of_racing_writers_wins`)
/// 6. **A conflict changes nothing and returns the current item**, or none when the item is absent.
///    (`conformance::conflicts_return_the_current_item`)
/// 7. **A delete of an absent item** is applied under `Any` and `Absent`, and a conflict with no current item under
///    `Version`. (`conformance::deletes_of_absent_items`)
/// 8. **A write knows itself again.** A put whose own version is the current one is answered as applied and
///    changes nothing: retrying after an unknown outcome is safe. (`conformance::a_retried_put_is_known_again`)
/// 9. **A version is never current twice**: a put over a removed item does not revive what others knew of it.
///    (`conformance::stale_versions_stay_stale`)
/// 10. **`write_all` is all or nothing**; a conflict lists each expectation that did not hold, by index. Once it
///     is acknowledged, all of it is there. A query that runs at the same time may see some of its items before and
///     others after it, since DynamoDB's queries are not isolated from transactions. (`conformance::groups_are_atomic`)
/// 11. **A retried group knows itself again** as long as one of its puts is current.
///     (`conformance::a_retried_group_is_known_again`)
/// 12. **`write_each` gives one outcome for each write**, in order; a failing one does not hold up the others.
///     (`conformance::independent_writes_have_their_own_outcomes`)
/// 13. **Expiry is exact**: at the whole second of its expiry an item becomes absent for every read and every
///     expectation, whether or not the backend has removed it. (`conformance::expiry_is_exact`)
/// 14. **Limits are the same everywhere and inclusive**: what is over one is refused with an error that names it,
///     and nothing is written. (`conformance::limits_are_inclusive_and_named`)
/// 15. **A group names each key once**, and has 1 to 100 writes; an empty call is applied and does nothing.
///     (`conformance::groups_name_each_key_once`)
/// 16. **A change hint comes after a change** made through this handle, also when the change came between asking
///     for the hint and waiting on it. Hints may be lost or spurious otherwise: look again, never rely on one.
///     (`conformance::hints_follow_changes`)
/// 17. **Concurrent compare-and-swap loses no update**: increments by many writers add up.
///     (`conformance::concurrent_increments_add_up`)
///
/// A call that is cancelled (its future dropped) may or may not take effect, like an unknown outcome.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    /// What is cheap here.
    fn profile(&self) -> Profile;

    /// The item under `key`, strongly consistent.
    ///
    /// # Errors
    /// Never [`Conflict`](crate::StoreError::Conflict) and never
    /// [`UnknownOutcome`](crate::StoreError::UnknownOutcome).
    async fn get(&self, key: &Key) -> Result<Option<Item>>;

    /// One page of the items in a range; [`collect`](crate::collect) reads all pages.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    async fn query(&self, query: Query) -> Result<Page>;

    /// Changes one item if the expectation holds.
    ///
    /// # Errors
    /// [`Conflict`](crate::StoreError::Conflict) with the current item; any other error says by its
    /// [certainty](crate::StoreError::certainty) whether the write may have happened.
    async fn write(&self, write: Write) -> Result<()>;

    /// Changes up to [`GROUP_WRITES_MAX`](crate::limits::GROUP_WRITES_MAX) items, all or none.
    ///
    /// # Errors
    /// As [`write`](Self::write), for the group as a whole.
    async fn write_all(&self, writes: Vec<Write>) -> Result<()>;

    /// Makes independent writes, batched where the backend can: one outcome for each, in order. No order among
    /// them is promised.
    ///
    /// # Errors
    /// When the call as a whole makes no sense (too many writes, a key twice): then nothing was written.
    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>>;

    /// A hint that something in `partition` may have changed since this call.
    fn changed(&self, partition: &Partition) -> ChangeHint;
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn profile(&self) -> Profile {
        (**self).profile()
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        (**self).get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        (**self).query(query).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        (**self).write(write).await
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        (**self).write_all(writes).await
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        (**self).write_each(writes).await
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        (**self).changed(partition)
    }
}
