//! Named handlers.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::message::Message;
use crate::outcome::{IntoOutcome, IntoOutcomes, Outcome};
use crate::report::Report;
use crate::source::Window;

pub(crate) type One = Arc<dyn Fn(Message) -> BoxFuture<'static, Outcome> + Send + Sync>;
pub(crate) type All = Arc<dyn Fn(Vec<Message>) -> BoxFuture<'static, Vec<Outcome>> + Send + Sync>;
pub(crate) type Before =
    Arc<dyn Fn(Vec<Message>) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
pub(crate) type Afterwards = Arc<dyn Fn(Report) -> BoxFuture<'static, ()> + Send + Sync>;

pub(crate) type Fold = Arc<dyn Fn(&mut Value, &Message) + Send + Sync>;
pub(crate) type End = Arc<dyn Fn(Window, Value) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A named handler.
#[derive(Clone)]
pub(crate) struct Task {
    pub name: Arc<str>,
    pub handler: Handler,
}

#[derive(Clone)]
pub(crate) enum Handler {
    /// For each message by itself.
    One(One),
    /// For all messages of a batch at once.
    All(All),
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.handler {
            Handler::One(_) => "one",
            Handler::All(_) => "all",
        };
        write!(f, "{kind}({:?})", self.name)
    }
}

impl Handler {
    pub fn one<F, R>(handler: F) -> Self
    where
        F: Fn(Message) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcome> + Send + 'static,
    {
        Self::One(Arc::new(move |message| {
            let work = handler(message);
            Box::pin(async move { work.await.into_outcome() })
        }))
    }

    pub fn all<F, R>(handler: F) -> Self
    where
        F: Fn(Vec<Message>) -> R + Send + Sync + 'static,
        R: Future<Output: IntoOutcomes> + Send + 'static,
    {
        Self::All(Arc::new(move |messages: Vec<Message>| {
            let count = messages.len();
            let work = handler(messages);
            Box::pin(async move { work.await.into_outcomes(count) })
        }))
    }
}

/// What is done with tumbling windows.
#[derive(Clone, Default)]
pub(crate) struct Windows {
    /// Adds a finished message to a window's state.
    pub fold: Option<Fold>,
    /// What is done with the state at the window's end.
    pub end: Option<End>,
}

/// What runs around the handlers of a batch.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub before: Option<Before>,
    pub before_finish: Option<Afterwards>,
    pub after: Option<Afterwards>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("before", &self.before.is_some())
            .field("before_finish", &self.before_finish.is_some())
            .field("after", &self.after.is_some())
            .finish()
    }
}
