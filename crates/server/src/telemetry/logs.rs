//! Logs, on standard error: lines for people, or one JSON object each.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer, Registry, fmt};

use crate::config::LogFormat;

/// What is logged, as a user says it: `info`, or `info,millpond=debug`.
pub fn log_filter(text: &str) -> Result<Targets, String> {
    let wrong = |part: &str| {
        format!(
            "{part:?} is no level; give off, error, warn, info, debug or trace, or by module, as in \
             info,millpond=debug"
        )
    };
    let mut filter = Targets::new();
    for part in text.split(',') {
        let level = |level: &str| match level.trim() {
            // The parser would take it for `error`.
            "" => Err(wrong(part)),
            level => level.parse::<LevelFilter>().map_err(|_| wrong(part)),
        };
        filter = match part.split_once('=') {
            Some((module, named)) => filter.with_target(module.trim(), level(named)?),
            None => filter.with_default(level(part)?),
        };
    }
    Ok(filter)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_given_for_all_or_by_module() {
        let level = tracing::Level::DEBUG;
        let filter = log_filter("warn,millpond=debug").unwrap();
        assert!(filter.would_enable("millpond::http", &level));
        assert!(!filter.would_enable("hyper", &level));
        assert!(!log_filter("off").unwrap().would_enable("millpond", &tracing::Level::ERROR));
        for text in ["loud", "", "info,", "millpond=loud"] {
            assert!(log_filter(text).unwrap_err().contains("trace"), "{text}");
        }
    }
}
