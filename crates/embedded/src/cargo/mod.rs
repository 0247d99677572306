//! Cargo files: large rows are written once, into files that are only appended to.
//!
//! A commit whose large rows are worth it appends them to the current file, syncs that, and only then has the engine
//! commit stubs that point there. So a stub never points at bytes that are not on disk, and the stub decides what is
//! there: whatever lies behind the end that the table `cargo` names was never acknowledged.
//!
//! For each file the table holds its end and how many of its bytes are in use, changed in the commits that change
//! them. A file of which nothing is in use is removed; from one that is mostly waste the rest is moved away in bounded
//! steps.

mod file;
mod files;
mod moves;
mod place;

pub(crate) use files::{Files, Hold, Load};
pub(crate) use moves::{Cursor, Moved, survey};
pub(crate) use place::Place;
