//! The two encodings: AWS JSON 1.0, and the Query protocol with XML answers.

mod answer;
mod form;
mod incoming;
mod number;
mod xml;

pub use answer::{answer, refusal};
pub use incoming::{Encoding, Incoming, Params};
pub use number::Whole;
