//! What the main function of every binary does.

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::error::FunctionError;

/// Modules that would write events and bodies to the log when asked for their finest level. Messages are nobody's
/// business but their handlers'.
const DISCREET: [&str; 3] =
    ["lambda_runtime=info", "lambda_runtime_api_client=info", "aws_smithy_runtime=info"];

/// Sets the log up (JSON lines; the level from `RUST_LOG`, or `AWS_LAMBDA_LOG_LEVEL`, or else `info`), runs the function,
/// and says why when it cannot go on.
pub async fn start(function: impl Future<Output = Result<(), FunctionError>>) -> ExitCode {
    let level = |name| std::env::var(name).ok().filter(|level| !level.is_empty());
    let asked = level("RUST_LOG").or_else(|| level("AWS_LAMBDA_LOG_LEVEL"));
    let filter = filter(asked.as_deref());
    // A program that has set its log up before keeps it.
    let _ = tracing_subscriber::fmt().json().with_env_filter(filter).try_init();
    match function.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the function cannot go on");
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn filter(asked: Option<&str>) -> EnvFilter {
    let filter = asked.and_then(|asked| EnvFilter::try_new(asked).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("info"));
    let directives = DISCREET.iter().filter_map(|directive| directive.parse().ok());
    directives.fold(filter, EnvFilter::add_directive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_never_logged_whatever_level_is_asked_for() {
        for asked in [None, Some("trace"), Some("debug,lambda_runtime=trace"), Some("not=a=level")]
        {
            let filter = filter(asked).to_string();
            for directive in DISCREET {
                assert!(filter.contains(directive), "{asked:?}: {filter}");
            }
            assert!(!filter.contains("lambda_runtime=trace"), "{filter}");
        }
        assert!(filter(Some("warn")).to_string().contains("warn"));
    }
}
