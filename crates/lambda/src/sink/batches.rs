//! What both sinks share: letters are cut into batches, and what has no receipt is sent again, within a bound.

use async_trait::async_trait;
use millpond_consumer::sink::{SinkError, SinkReceipt};
use millpond_store::Environment;

use crate::failure::AwsError;
use crate::limits::AWS_BACKOFF;

/// The most that one request takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub count: usize,
    pub bytes: usize,
}

/// What became of one entry of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// The service has it, under this id.
    Kept(String),
    /// The service does not have it for the moment.
    Again(String),
    /// The service will never have it as it is.
    Refused(String),
}

/// A service that takes batches.
#[async_trait]
pub(super) trait Outlet: Sync {
    type Entry: Clone + Send + Sync;

    /// The bytes that an entry counts for.
    fn size(&self, entry: &Self::Entry) -> usize;

    /// Sends one batch: one fate for each entry, in order.
    async fn send(&self, batch: Vec<Self::Entry>) -> Result<Vec<Fate>, AwsError>;
}

/// Sends all entries, in as few requests as may be: one outcome for each, in order.
pub(super) async fn deliver<O: Outlet>(
    outlet: &O,
    entries: Vec<O::Entry>,
    bounds: Bounds,
    environment: &Environment,
) -> Vec<Result<SinkReceipt, SinkError>> {
    let mut outcomes = Vec::with_capacity(entries.len());
    for batch in cut(outlet, entries, bounds) {
        outcomes.extend(deliver_batch(outlet, batch, environment).await);
    }
    outcomes
}

/// Cuts entries into batches, in order.
fn cut<O: Outlet>(outlet: &O, entries: Vec<O::Entry>, bounds: Bounds) -> Vec<Vec<O::Entry>> {
    let mut batches = Vec::new();
    let (mut batch, mut bytes) = (Vec::new(), 0_usize);
    for entry in entries {
        let size = outlet.size(&entry);
        let full = batch.len() >= bounds.count || bytes.saturating_add(size) > bounds.bytes;
        if full && !batch.is_empty() {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes = bytes.saturating_add(size);
        batch.push(entry);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// Sends one batch, and again what of it has no receipt.
async fn deliver_batch<O: Outlet>(
    outlet: &O,
    batch: Vec<O::Entry>,
    environment: &Environment,
) -> Vec<Result<SinkReceipt, SinkError>> {
    let mut outcomes: Vec<Option<Result<SinkReceipt, SinkError>>> =
        batch.iter().map(|_| None).collect();
    let mut open: Vec<(usize, O::Entry)> = batch.into_iter().enumerate().collect();
    let mut failures = 0;
    let mut last = "it was never answered".to_owned();
    while !open.is_empty() {
        let entries = open.iter().map(|(_, entry)| entry.clone()).collect();
        match outlet.send(entries).await {
            Ok(fates) => {
                let mut fates = fates.into_iter();
                open.retain(|(at, _)| {
                    let none = || Fate::Again("the service gave no receipt".into());
                    let outcome = match fates.next().unwrap_or_else(none) {
                        Fate::Kept(id) => Ok(SinkReceipt(id)),
                        Fate::Refused(problem) => Err(SinkError::Unavailable(problem)),
                        Fate::Again(problem) => {
                            last = problem;
                            return true;
                        }
                    };
                    if let Some(slot) = outcomes.get_mut(*at) {
                        *slot = Some(outcome);
                    }
                    false
                });
            }
            Err(error) if error.is_transient() => last = error.to_string(),
            Err(error) => {
                let error = SinkError::from(error);
                return outcomes
                    .into_iter()
                    .map(|outcome| outcome.unwrap_or_else(|| Err(error.clone())))
                    .collect();
            }
        }
        if open.is_empty() {
            break;
        }
        failures += 1;
        let Some(wait) = AWS_BACKOFF.wait(failures, environment.rng.as_ref()) else { break };
        environment.clock.sleep(wait).await;
    }
    let missing = || Err(SinkError::Unavailable(last.clone()));
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use millpond_store::{Environment, Timestamp, VirtualClock};

    use super::*;

    /// Answers by script; an entry is its size.
    struct Scripted {
        answers: Mutex<Vec<Result<Vec<Fate>, AwsError>>>,
        sent: Mutex<Vec<Vec<usize>>>,
    }

    #[async_trait]
    impl Outlet for Scripted {
        type Entry = usize;

        fn size(&self, entry: &usize) -> usize {
            *entry
        }

        async fn send(&self, batch: Vec<usize>) -> Result<Vec<Fate>, AwsError> {
            self.sent.lock().unwrap().push(batch.clone());
            let mut answers = self.answers.lock().unwrap();
            if answers.is_empty() {
                return Ok(batch.iter().map(|size| Fate::Kept(size.to_string())).collect());
            }
            answers.remove(0)
        }
    }

    fn scripted(answers: Vec<Result<Vec<Fate>, AwsError>>) -> Scripted {
        Scripted { answers: Mutex::new(answers), sent: Mutex::default() }
    }

    fn environment() -> Environment {
        Environment::simulated(VirtualClock::automatic(Timestamp::from_millis(1)), 7)
    }

    const BOUNDS: Bounds = Bounds { count: 3, bytes: 10 };

    fn kept(id: &str) -> Fate {
        Fate::Kept(id.into())
    }

    #[tokio::test]
    async fn batches_keep_both_bounds_and_the_order() {
        let outlet = scripted(vec![]);
        let outcomes =
            deliver(&outlet, vec![1, 2, 3, 4, 5, 6, 12, 1], BOUNDS, &environment()).await;
        let sent = outlet.sent.lock().unwrap().clone();
        assert_eq!(sent, [vec![1, 2, 3], vec![4, 5], vec![6], vec![12], vec![1]]);
        let ids: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap().0).collect();
        assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "12", "1"]);
        assert!(deliver(&outlet, vec![], BOUNDS, &environment()).await.is_empty());
    }

    #[tokio::test]
    async fn only_what_has_no_receipt_is_sent_again() {
        let outlet = scripted(vec![
            Ok(vec![kept("a"), Fate::Again("slow".into()), Fate::Again("slow".into())]),
            Err(AwsError::Unavailable { action: "x", problem: "gone".into() }),
            // The answer is short: what it does not name has no receipt.
            Ok(vec![kept("b")]),
            Ok(vec![kept("c")]),
        ]);
        let outcomes = deliver(&outlet, vec![1, 2, 3], BOUNDS, &environment()).await;
        let ids: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap().0).collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(*outlet.sent.lock().unwrap(), [vec![1, 2, 3], vec![2, 3], vec![2, 3], vec![3]]);
    }

    #[tokio::test]
    async fn attempts_end_and_say_why() {
        let never = || Ok(vec![kept("a"), Fate::Again("ProvisionedThroughputExceeded".into())]);
        let slow = || Ok(vec![Fate::Again("ProvisionedThroughputExceeded".into())]);
        let outlet = scripted(vec![never(), slow(), slow(), slow(), slow(), slow()]);
        let outcomes = deliver(&outlet, vec![1, 2], BOUNDS, &environment()).await;
        assert_eq!(outcomes[0], Ok(SinkReceipt("a".into())));
        let error = outcomes[1].clone().unwrap_err();
        assert!(error.to_string().contains("ProvisionedThroughputExceeded"), "{error}");
        let attempts = AWS_BACKOFF.attempts_max as usize;
        assert_eq!(outlet.sent.lock().unwrap().len(), attempts);
    }

    #[tokio::test]
    async fn a_wrong_set_up_and_a_refused_letter_are_not_tried_again() {
        let wrong =
            AwsError::Misconfigured { problem: "no stream".into(), remedy: "make it".into() };
        let outlet = scripted(vec![
            Ok(vec![Fate::Refused("bad letter".into()), Fate::Again("slow".into())]),
            Err(wrong),
        ]);
        let outcomes = deliver(&outlet, vec![1, 2], BOUNDS, &environment()).await;
        assert!(!outcomes[0].clone().unwrap_err().is_fatal());
        assert!(outcomes[1].clone().unwrap_err().is_fatal());
        assert_eq!(outlet.sent.lock().unwrap().len(), 2);
    }
}
