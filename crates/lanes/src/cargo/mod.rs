//! Cargo: the bytes of messages, written once and never changed.
//!
//! Small cargo travels inside the row. Larger cargo has items of its own, which are left to their expiry where
//! that is free, or an object in an object store, where that is configured and cheaper. Either way it is written
//! before the row that names it, so that no row ever names what is not there; what was written for a row that
//! never came is an orphan, and expires or is [swept](sweep()).

mod hold;
mod objects;
mod reference;
mod shelf;
mod sweep;

pub use objects::Objects;
pub use reference::CargoRef;
pub use shelf::Shelf;
pub use sweep::{Sweep, SweepReport, sweep};

pub(crate) use hold::{Hold, Placement};
