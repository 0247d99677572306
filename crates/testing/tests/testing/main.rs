//! The suites themselves, and the adapters that they use.

mod adapters;
mod faults;
mod memory;
