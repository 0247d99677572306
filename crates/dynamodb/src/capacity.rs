//! What the service says that a request used.

use aws_sdk_dynamodb::types::ConsumedCapacity;
use millpond_store::{Meter, Operation, Usage};

use crate::failure::Effect;

/// Counts one request that was answered, with the units that the service reports. A refused condition is charged
/// too, but the service does not report by how much: it counts as a request only.
pub(crate) fn record<'a>(
    meter: &Meter,
    operation: Operation,
    effect: Effect,
    bytes: usize,
    consumed: impl IntoIterator<Item = &'a ConsumedCapacity>,
) {
    let mut usage = Usage { requests: 1, bytes: bytes as u64, ..Usage::default() };
    for capacity in consumed {
        let all = capacity.capacity_units().unwrap_or_default();
        let read = capacity.read_capacity_units();
        let write = capacity.write_capacity_units();
        match (read, write, effect) {
            (None, None, Effect::Read) => usage.read_units += all,
            (None, None, Effect::Write) => usage.write_units += all,
            // A transaction that is recognised as done before costs reads.
            _ => {
                usage.read_units += read.unwrap_or_default();
                usage.write_units += write.unwrap_or_default();
            }
        }
    }
    meter.record(operation, usage);
}

/// Counts one request that failed.
pub(crate) fn record_failed(meter: &Meter, operation: Operation) {
    let usage = Usage { requests: 1, ..Usage::default() };
    meter.record(operation, usage);
}
