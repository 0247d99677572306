//! Messages of a Millpond queue stay on loan while they are worked on.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_queue::{Client, Delivery, QueueError, Receipt};
use millpond_store::{Clock, Monotonic};

use crate::limits::LOAN_EXTENDED_AT;
use crate::run::Lost;

/// Extends the loans of a batch, for as long as it is let. What cannot be extended in time is lost. Ends when all are.
pub(super) async fn keep(
    client: &Client,
    clock: &dyn Clock,
    loan: Duration,
    deliveries: &[Delivery],
    lost: &Lost,
) {
    let every = loan / LOAN_EXTENDED_AT;
    let mut held: BTreeMap<usize, Monotonic> =
        (0..deliveries.len()).map(|at| (at, clock.monotonic())).collect();
    while !held.is_empty() {
        clock.sleep(every).await;
        let asked = clock.monotonic();
        let places: Vec<usize> = held.keys().copied().collect();
        let receipts: Vec<Receipt> = places
            .iter()
            .filter_map(|at| deliveries.get(*at).map(|one| one.receipt.clone()))
            .collect();
        // A queue that hangs must not keep a loan from being noticed as lost.
        let extended = tokio::select! {
            biased;
            extended = client.extend_batch(&receipts, loan) => extended,
            () = clock.sleep(every) => Ok(Vec::new()),
        };
        let mut outcomes = extended
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "loans could not be extended");
                Vec::new()
            })
            .into_iter();
        for at in places {
            let (Some(one), Some(since)) = (deliveries.get(at), held.get_mut(&at)) else {
                continue;
            };
            let gone = match outcomes.next() {
                Some(Ok(_)) => {
                    *since = asked;
                    false
                }
                Some(Err(QueueError::LeaseLost { .. })) => true,
                // Not known. By the time of the next try, it might be another's.
                Some(Err(_)) | None => clock.monotonic().since(*since) + every >= loan,
            };
            if gone {
                tracing::warn!(message = %one.id, "a message was lost to others while it was worked on");
                lost.add(&one.id.to_string());
                held.remove(&at);
            }
        }
    }
}
