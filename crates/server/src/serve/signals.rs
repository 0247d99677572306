//! When the operator wants the server to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::ServeError;

/// SIGTERM, as service managers send it, and SIGINT, as a terminal does.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on, the signals end nothing by themselves.
    pub fn listen() -> Result<Self, ServeError> {
        let one = |kind| {
            signal(kind)
                .map_err(|source| ServeError::System { what: "signals cannot be caught", source })
        };
        Ok(Self {
            terminate: one(SignalKind::terminate())?,
            interrupt: one(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
