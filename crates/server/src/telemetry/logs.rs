//! Logs, on standard error: lines for people, or one JSON object each.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt};

use crate::config::LogFormat;

/// What is logged, as a user says it: `info`, or `info,millpond=debug`.
pub fn log_filter(text: &str) -> Result<Targets, String> {
    text.parse().map_err(|error| {
        format!(
            "{text:?}: {error}; give off, error, warn, info, debug or trace, or info,millpond=debug"
        )
    })
}

/// Starts logging for the whole process.
pub fn start_logs(format: LogFormat, filter: Targets) -> Result<(), TryInitError> {
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Human => {
            lines.with_ansi(std::io::stderr().is_terminal()).with_filter(filter).boxed()
        }
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    tracing_subscriber::registry().with(lines).try_init()
}
