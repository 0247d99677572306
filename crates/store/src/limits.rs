//! Every bound of the waist, in one place.
//!
//! They are the same on every backend, so that what one store accepts another accepts too. Most are DynamoDB's
//! own, since it is the narrowest backend.

/// Longest partition, in bytes of UTF-8 (DynamoDB's bound for a partition key).
pub const PARTITION_BYTES_MAX: usize = 2_048;

/// Longest sort key, in bytes (DynamoDB's bound for a sort key).
pub const SORT_KEY_BYTES_MAX: usize = 1_024;

/// Longest attribute name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Most attributes in one item.
pub const ATTRIBUTES_MAX: usize = 64;

/// Largest item, keys and names included: 400 × 1,024, DynamoDB's bound.
pub const ITEM_BYTES_MAX: usize = 400 * 1_024;

/// Most writes in one atomic group (DynamoDB's bound for a transaction).
pub const GROUP_WRITES_MAX: usize = 100;

/// Most bytes in one atomic group: 4 × 1,024 × 1,024, DynamoDB's bound for a transaction.
pub const GROUP_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Most independent writes in one call.
pub const EACH_WRITES_MAX: usize = 1_024;

/// Most items in one page of a query.
pub const PAGE_ITEMS_MAX: usize = 1_000;

/// A page of a query ends once it holds this many bytes: 1 MiB, DynamoDB's bound.
pub const PAGE_BYTES_MAX: usize = 1_024 * 1_024;
