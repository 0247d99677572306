//! What all files use.

pub use millpond_testing::consumer_suite::world::*;
pub use millpond_testing::consumer_suite::{events, fakes};
