//! A consumer over a Millpond queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use millpond_queue::{Client, Delivery, Nack, QueueError, Receive};
use millpond_store::Timestamp;

use super::{Run, loans};
use crate::consumer::Consumer;
use crate::extract::Data;
use crate::limits::LOAN_DEFAULT;
use crate::position::{RecordKey, Sequence};
use crate::report::Report;
use crate::run::{Answer, Lost};
use crate::source::{Record, Scope, SourceKind};

/// Runs a consumer over a client of a Millpond queue. The consumer counts attempts and sends dead letters; the queue's
/// own limit of receives, if it has one, should be well above the consumer's attempts.
///
/// Messages are on loan while they are worked on, and their loans are extended for as long. One that is lost all the same
/// (the process was paused, or the queue could not be reached for too long) is given up: what runs for it is stopped,
/// nothing more is begun, and it is neither acknowledged nor given back.
#[derive(Debug, Clone)]
pub struct QueueSource {
    consumer: Consumer,
    client: Client,
    batch: usize,
    time: Duration,
    loan: Duration,
    wait: Duration,
}

impl QueueSource {
    /// Batches of up to 100 messages, each with up to 30 seconds, on loan for 30 seconds at a time; no wait when the queue is
    /// empty.
    #[must_use]
    pub const fn new(consumer: Consumer, client: Client) -> Self {
        let (time, wait) = (Duration::from_secs(30), Duration::ZERO);
        Self { consumer, client, batch: 100, time, loan: LOAN_DEFAULT, wait }
    }

    /// Most messages in a batch.
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// The time that a batch has.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// How long messages are on loan at a time: so long after a process died, others get what it held.
    #[must_use]
    pub fn loan(self, loan: Duration) -> Self {
        Self { loan, ..self }
    }

    /// How long to wait for messages when there are none.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Receives one batch, handles it, acknowledges what is finished and gives the rest back. Nothing when the queue is
    /// empty.
    ///
    /// # Errors
    /// When the queue cannot be reached. What was received comes again when its loan ends.
    pub async fn poll(&self) -> Result<Option<Report>, QueueError> {
        let clock = Arc::clone(&self.consumer.settings().environment.clock);
        let ask = Receive::up_to(self.batch).wait(self.wait).visibility(self.loan);
        let deliveries = self.client.receive(&ask).await?;
        if deliveries.is_empty() {
            return Ok(None);
        }
        let arn = format!("queue/{}/{}", self.client.queue(), self.client.id());
        // A queue that is made anew under its name numbers its messages anew.
        let shard = self.client.incarnation().to_owned();
        let scope = Arc::new(Scope { kind: SourceKind::Queue, arn, shard });
        let records = deliveries.iter().map(|delivery| record(&scope, delivery)).collect();
        let deadline = clock.now().plus(self.time);
        let lost = Arc::new(Lost::default());
        let work = self.consumer.handle_records(records, Arc::clone(&lost), deadline);
        tokio::pin!(work);
        let answer = tokio::select! {
            biased;
            answer = &mut work => answer,
            // When there is nothing left to keep.
            () = loans::keep(&self.client, clock.as_ref(), self.loan, &deliveries, &lost) => work.await,
        };
        self.settle(&deliveries, &answer, &lost).await?;
        Ok(Some(answer.report))
    }

    /// Acknowledges what is finished and gives the rest back, as far as it is on loan.
    async fn settle(
        &self,
        deliveries: &[Delivery],
        answer: &Answer,
        lost: &Lost,
    ) -> Result<(), QueueError> {
        let whole = answer.items.iter().any(String::is_empty);
        let unfinished: HashMap<&str, Duration> = answer
            .items
            .iter()
            .map(|item| (item.as_str(), answer.waits.get(item).copied().unwrap_or_default()))
            .collect();
        let mut finished = Vec::new();
        for delivery in deliveries {
            let item = delivery.id.to_string();
            if lost.has(&item) {
                continue;
            }
            match unfinished.get(item.as_str()) {
                None if !whole => finished.push(delivery.receipt.clone()),
                wait => self.give_back(delivery, wait.copied().unwrap_or_default()).await,
            }
        }
        if finished.is_empty() {
            return Ok(());
        }
        for settled in self.client.ack_batch(&finished).await? {
            // The loan ended, and another has the message. Where that was noticed only now, it runs again there: a
            // finished message whose loss is not known needs no row.
            if let Err(error) = settled {
                tracing::warn!(%error, "a finished message could not be acknowledged");
            }
        }
        Ok(())
    }

    async fn give_back(&self, delivery: &Delivery, delay: Duration) {
        let nack = Nack { delay, error: "not finished by its consumer".into() };
        if let Err(error) = self.client.nack(&delivery.receipt, nack).await {
            tracing::warn!(%error, "an unfinished message could not be given back before its loan ends");
        }
    }

    /// Handles batches until the queue is empty, or the deadline comes.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub async fn run_until(&self, deadline: Timestamp) -> Result<Run, QueueError> {
        let mut run = Run::default();
        let clock = Arc::clone(&self.consumer.settings().environment.clock);
        while clock.now() < deadline {
            let left = deadline.since(clock.now());
            let bounded = self.clone().time(self.time.min(left));
            let Some(report) = Box::pin(bounded.poll()).await? else {
                return Ok(run);
            };
            run.add(&report);
            if report.finished == 0 {
                clock.sleep(super::PAUSE.min(left)).await;
            }
        }
        run.cut_off = true;
        Ok(run)
    }
}

fn record(scope: &Arc<Scope>, delivery: &Delivery) -> Record {
    let id = delivery.id.to_string();
    Record {
        scope: Arc::clone(scope),
        key: RecordKey::Id(id.as_str().into()),
        sequence: delivery.sequence.map(Sequence::from),
        item: id.clone(),
        id,
        partition_key: delivery.group.clone(),
        data: Data { bytes: delivery.body.clone(), value: None },
        raw: delivery.body.clone(),
        arrived: Some(delivery.sent),
        receives: Some(delivery.receives),
    }
}
