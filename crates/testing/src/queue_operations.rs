//! Random operations on a queue.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// One operation. The first number chooses the process, others choose among what is there, wrapping around.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Sends messages of these groups, delayed and ending after so many seconds when not 0.
    Send(u8, Vec<u8>, u8, u8),
    /// Receives up to so many, the newest first if asked.
    Receive(u8, u8, bool),
    /// Acknowledges with one of the receipts that were ever given.
    Ack(u8, u8),
    /// Gives back with a delay, failed or not.
    GiveBack(u8, u8, u8, bool),
    /// Extends a lease by so many seconds.
    Extend(u8, u8, u8),
    /// Seconds pass.
    Advance(u8),
    /// A process ends, and another begins in its place.
    Reopen(u8),
    /// Everything is removed.
    Purge(u8),
}

/// Up to `most` random operations.
pub fn operations(most: usize) -> impl Strategy<Value = Vec<Operation>> {
    let process = || 0..2_u8;
    let often_zero = || prop_oneof![4 => Just(0_u8), 1 => 1..40_u8];
    let operation = prop_oneof![
        5 => (process(), vec(0..3_u8, 1..5), often_zero(), often_zero())
            .prop_map(|(by, groups, delay, ttl)| Operation::Send(by, groups, delay, ttl)),
        6 => (process(), 1..5_u8, any::<bool>()).prop_map(|(by, max, newest)| Operation::Receive(by, max, newest)),
        4 => (process(), any::<u8>()).prop_map(|(by, at)| Operation::Ack(by, at)),
        2 => (process(), any::<u8>(), often_zero(), any::<bool>())
            .prop_map(|(by, at, delay, failed)| Operation::GiveBack(by, at, delay, failed)),
        1 => (process(), any::<u8>(), 1..60_u8).prop_map(|(by, at, time)| Operation::Extend(by, at, time)),
        3 => (1..40_u8).prop_map(Operation::Advance),
        1 => process().prop_map(Operation::Reopen),
        1 => Just(Operation::Purge(0)),
    ];
    vec(operation, 1..most)
}
