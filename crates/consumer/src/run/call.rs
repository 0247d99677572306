//! One call of a handler: in a task of its own, so that a panic or a blocked thread stays there.

use std::any::Any;
use std::time::Duration;

use millpond_store::Clock;
use tokio::task::{JoinError, JoinHandle};

use crate::outcome::cut;

/// How a call ended.
#[derive(Debug)]
pub(super) enum Ended<T> {
    Returned(T),
    Panicked(String),
}

/// Stops a task that nobody waits for any more.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `work`, and says how long that took. When this future is dropped, the work is stopped.
pub(super) async fn call<T, W>(clock: &dyn Clock, work: W) -> (Ended<T>, Duration)
where
    T: Send + 'static,
    W: Future<Output = T> + Send + 'static,
{
    let begun = clock.monotonic();
    let mut task = AbortOnDrop(tokio::spawn(work));
    let ended = match (&mut task.0).await {
        Ok(value) => Ended::Returned(value),
        Err(error) => Ended::Panicked(describe(error)),
    };
    (ended, clock.monotonic().since(begun))
}

fn describe(error: JoinError) -> String {
    if !error.is_panic() {
        return "the handler was stopped".into();
    }
    cut(&format!("the handler panicked: {}", text(error.into_panic().as_ref())))
}

/// What a panic says.
pub(super) fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".into())
}
