//! The consumer itself.

use std::sync::Arc;

use bytes::Bytes;
use millpond_store::Timestamp;

use crate::builder::Builder;
use crate::error::BatchFailed;
use crate::report::Report;
use crate::response::{self, Responses};
use crate::run::{self, Answer, Lost};
use crate::settings::Settings;
use crate::source::{Event, Record, Unusable};

/// Processes batches message by message. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Consumer(Arc<Settings>);

impl Consumer {
    /// Begins a consumer. Its name is part of the key of all its state: keep it when you deploy.
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(settings))
    }

    /// The consumer's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Handles an event as Lambda delivers it, and returns what the function must answer. It returns before the deadline,
    /// whatever hangs.
    ///
    /// # Errors
    /// Only with [`Responses::Error`], when something is unfinished: return the error from the function.
    pub async fn handle(
        &self,
        event: &[u8],
        deadline: Timestamp,
    ) -> Result<(Bytes, Report), Box<BatchFailed>> {
        let event = Event::parse(event).unwrap_or_else(|error| {
            // The whole of it is one dead record; nothing in it can come again by itself.
            let raw = Bytes::copy_from_slice(event);
            let record = Box::new(Unusable::new(raw, error.to_string()));
            let (records, window) = (vec![Err(record)], Event::window_of(event));
            Event { records, window, only: None }
        });
        let Answer { items, state, report, .. } =
            Box::pin(run::run(&self.0, event, Arc::default(), deadline)).await;
        if self.0.responses == Responses::Error && !report.is_complete() {
            return Err(Box::new(BatchFailed { report }));
        }
        Ok((response::partial(&items, state.as_deref()), report))
    }

    /// Handles records of a source that is no Lambda event, and says which come again.
    pub(crate) async fn handle_records(
        &self,
        records: Vec<Record>,
        lost: Arc<Lost>,
        deadline: Timestamp,
    ) -> Answer {
        let records = records.into_iter().map(Ok).collect();
        let event = Event { records, ..Event::default() };
        Box::pin(run::run(&self.0, event, lost, deadline)).await
    }

    /// Handles what a dead letter is about.
    pub(crate) async fn handle_again(&self, event: Event, deadline: Timestamp) -> Report {
        Box::pin(run::run(&self.0, event, Arc::default(), deadline)).await.report
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0
    }
}
