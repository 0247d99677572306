//! The sequencer, on the store in memory.

mod lost_answers;
mod memory;
