//! What operators see: logs, metrics and traces. `docs/telemetry.md` lists every metric and every span, and tests compare.

mod collect;
mod logs;
mod metrics;
mod traces;

pub use collect::Sources;
pub use logs::{log_filter, start_logs};
pub use metrics::{Metrics, Took};
pub use traces::{Traced, TracedStore, Traces, TracesError};
