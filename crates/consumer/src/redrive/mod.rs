//! Looking at dead letters, and bringing what is in them back.

mod error;
mod log;
mod one;
mod original;
mod queue;
mod to;
mod which;

pub use error::RedriveError;
pub use log::{list_log, redrive_log};
pub use one::{Fate, Redriven, redrive_one};
pub use original::Original;
pub use queue::{list_queue, redrive_queue};
pub use to::{Destination, ToConsumer, ToLog, ToQueue};
pub use which::Which;
