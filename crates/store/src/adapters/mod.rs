//! Stores that wrap another store. Each keeps the contract of the store it wraps.

pub mod faults;
pub mod latency;
pub mod meter;
pub mod retrying;
