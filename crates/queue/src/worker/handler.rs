//! Handlers, whatever their type.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Outcome, Report};
use crate::message::Delivery;

pub(super) type OneHandler = Arc<dyn Fn(Delivery) -> BoxFuture<'static, Outcome> + Send + Sync>;
pub(super) type BatchHandler =
    Arc<dyn Fn(Vec<Delivery>) -> BoxFuture<'static, Vec<Outcome>> + Send + Sync>;

/// What messages are handed to.
#[derive(Clone)]
pub(super) enum Handling {
    One(OneHandler),
    Batch { size: usize, handler: BatchHandler },
}

impl Handling {
    pub fn one<F, R>(handler: F) -> Self
    where
        F: Fn(Delivery) -> R + Send + Sync + 'static,
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self::One(Arc::new(move |delivery| Box::pin(handler(delivery))))
    }

    /// How many messages one call gets.
    pub const fn size(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Batch { size, .. } => *size,
        }
    }

    /// Hands messages over.
    pub async fn call(&self, mut deliveries: Vec<Delivery>) -> Vec<Outcome> {
        match self {
            Self::One(handler) => match deliveries.pop() {
                Some(delivery) => vec![handler(delivery).await],
                None => Vec::new(),
            },
            Self::Batch { handler, .. } => handler(deliveries).await,
        }
    }
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a handler of up to {}", self.size())
    }
}

/// What is called when work remains at the deadline.
#[derive(Clone)]
pub(super) struct Continuation(pub Arc<dyn Fn(Report) -> BoxFuture<'static, ()> + Send + Sync>);

impl fmt::Debug for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a continuation")
    }
}
