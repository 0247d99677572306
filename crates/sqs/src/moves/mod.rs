//! Message move tasks: bringing dead letters back, or elsewhere, in the background.
//!
//! A task is a row, so that it outlives its node: any other that has the store open carries on with one whose node has
//! not been heard of for a while.

mod row;
mod run;
mod table;

pub use row::{Status, handle_of, place_of_handle};
pub use table::Moves;
