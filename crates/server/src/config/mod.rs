//! What `serve` is told: by flag, by environment variable, by file, in that order of precedence.
//!
//! Every setting has one name: `--body-timeout`, `MILLPOND_BODY_TIMEOUT` and `body_timeout` in the file are the
//! same one. Settings of a table whose name they begin with leave it out there: `--traces-endpoint` is `endpoint` in
//! `[traces]`. Queues and access keys can only be given in the file, or in a file that it names.

mod check;
mod effective;
mod error;
mod file;
mod keys;
mod listen;
mod pick;
mod queues;
mod settings;
mod span;
mod traces;

pub use check::check;
pub use effective::{Config, Limits, LogFormat, MetricsFor, TlsFiles};
pub use error::ConfigError;
pub use listen::exposed;
pub use queues::DeclaredQueue;
pub use settings::ServeFlags;
pub use traces::TraceConfig;
