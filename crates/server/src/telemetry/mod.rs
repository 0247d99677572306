//! What operators see: logs and metrics. `docs/telemetry.md` lists every metric, and a test compares.

mod collect;
mod logs;
mod metrics;

pub use collect::Sources;
pub use logs::{log_filter, start_logs};
pub use metrics::{Metrics, Took};
