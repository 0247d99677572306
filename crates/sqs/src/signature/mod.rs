//! Signature Version 4: who signed a request, and whether the signature is right.

mod canonical;
mod presented;
mod time;
mod verify;

pub use presented::Presented;
pub use verify::verify;
