//! A consumer over a Millpond log.

use std::sync::Arc;
use std::time::Duration;

use millpond_log::{Assignment, Consumer as Group, LogError, Record as LogRecord};
use millpond_store::Timestamp;

use super::Run;
use crate::consumer::Consumer;
use crate::extract::Data;
use crate::position::{RecordKey, Sequence};
use crate::report::Report;
use crate::run::Lost;
use crate::source::{Record, Scope, SourceKind};

/// Runs a consumer over the partitions of a topic that a group's worker holds. A partition is a shard, an offset a
/// sequence number; the checkpoint is the lowest offset that is not finished.
///
/// The worker's heart beats while a batch is worked on. When it could not for so long that others may have taken over, the
/// batch is given up: what runs is stopped and not counted, nothing more is begun, and nothing is checkpointed.
#[derive(Debug, Clone)]
pub struct LogSource {
    consumer: Consumer,
    topic: String,
    group: Group,
    batch: usize,
    time: Duration,
}

impl LogSource {
    /// Batches of up to 100 records, each with up to 30 seconds. The topic's name is part of the key of the state, as is
    /// what tells it apart from others of that name.
    #[must_use]
    pub fn new(consumer: Consumer, topic: &str, group: Group) -> Self {
        let (topic, time) = (topic.to_owned(), Duration::from_secs(30));
        Self { consumer, topic, group, batch: 100, time }
    }

    /// Most records in a batch.
    #[must_use]
    pub fn batch(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    /// The time that a batch has.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Handles what is there in each partition that this worker holds or may take: one batch each.
    ///
    /// # Errors
    /// When the log cannot be reached.
    pub async fn pass(&self) -> Result<Vec<Report>, LogError> {
        self.group.beat().await?;
        self.group.balance().await?;
        let mut reports = Vec::new();
        for assignment in self.group.held() {
            match Box::pin(self.partition(assignment)).await {
                Ok(report) => reports.extend(report),
                // Another took it over: what is not checkpointed is handled there, by the same state.
                Err(LogError::LeaseLost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(reports)
    }

    async fn partition(&self, assignment: Assignment) -> Result<Option<Report>, LogError> {
        let batch = self.group.poll(assignment, self.batch).await?;
        if let Some(gap) = batch.gap {
            tracing::warn!(
                from = gap.from,
                to = gap.to,
                "records were removed before they were read"
            );
        }
        if batch.records.is_empty() {
            return Ok(None);
        }
        // A topic that is made anew under its name counts from 0 again.
        let shard = format!("{}-{:016x}", assignment.partition, self.group.incarnation());
        let scope =
            Arc::new(Scope { kind: SourceKind::Log, arn: format!("log/{}", self.topic), shard });
        let records = batch.records.iter().map(|found| record(&scope, found)).collect();
        let environment = &self.consumer.settings().environment;
        let deadline = environment.now().plus(self.time);
        let lost = Arc::new(Lost::default());
        let work = self.consumer.handle_records(records, Arc::clone(&lost), deadline);
        tokio::pin!(work);
        let answer = tokio::select! {
            biased;
            answer = &mut work => answer,
            () = self.keep(assignment) => {
                tracing::warn!(partition = assignment.partition, "a partition was lost to others while it was worked on");
                for record in &batch.records {
                    lost.add(&record.offset.to_string());
                }
                // What is done by now is saved for those who have it.
                return Ok(Some(work.await.report));
            }
        };
        let lowest = answer.items.first().map(|item| item.parse().unwrap_or(0));
        let first = batch.records.first().map_or(batch.next, |record| record.offset);
        match lowest {
            None => self.group.checkpoint(assignment, batch.next).await?,
            Some(lowest) => {
                let lowest: u64 = lowest;
                self.group.checkpoint(assignment, lowest.max(first)).await?;
                // Taken again, it is read from the checkpoint on.
                self.group.release(assignment).await?;
            }
        }
        Ok(Some(answer.report))
    }

    /// Keeps the lease alive while handlers run. Ends when it cannot be trusted any more: a beat that fails or hangs is none,
    /// as long as another is in time.
    async fn keep(&self, assignment: Assignment) {
        let clock = &self.consumer.settings().environment.clock;
        let every = self.group.beat_interval();
        let mut wait = every;
        while let Some(left) = self.group.trusted() {
            if !self.group.held().contains(&assignment) {
                return;
            }
            let beat = async {
                clock.sleep(wait).await;
                tokio::select! {
                    biased;
                    beaten = self.group.beat() => beaten.map_err(|error| error.to_string()),
                    () = clock.sleep(every / 2) => Err("it took too long".to_owned()),
                }
            };
            wait = tokio::select! {
                biased;
                beaten = beat => match beaten {
                    Ok(()) => every,
                    Err(error) => {
                        tracing::warn!(error, "a heartbeat failed");
                        every / 2
                    }
                },
                () = clock.sleep(left) => every,
            };
        }
    }

    /// Handles batches until nothing is left in the partitions that this worker holds, or the deadline comes. Others may
    /// hold some too.
    ///
    /// # Errors
    /// As [`pass`](Self::pass).
    pub async fn run_until(&self, deadline: Timestamp) -> Result<Run, LogError> {
        let mut run = Run::default();
        let clock = Arc::clone(&self.consumer.settings().environment.clock);
        while clock.now() < deadline {
            let left = deadline.since(clock.now());
            let bounded = self.clone().time(self.time.min(left));
            let reports = Box::pin(bounded.pass()).await?;
            if reports.is_empty() {
                return Ok(run);
            }
            for report in &reports {
                run.add(report);
            }
            if reports.iter().all(|report| report.finished == report.finished_before) {
                clock.sleep(super::PAUSE.min(left)).await;
            }
        }
        run.cut_off = true;
        Ok(run)
    }
}

fn record(scope: &Arc<Scope>, found: &LogRecord) -> Record {
    let sequence = Sequence::from(found.offset);
    let id = format!("{}/{}/{}", scope.arn, scope.shard, found.offset);
    Record {
        scope: Arc::clone(scope),
        key: RecordKey::Sequence(sequence.clone(), None),
        item: found.offset.to_string(),
        sequence: Some(sequence),
        id,
        partition_key: found.key.as_ref().map(|key| String::from_utf8_lossy(key).into_owned()),
        data: Data { bytes: found.payload.clone(), value: None },
        raw: found.payload.clone(),
        arrived: Some(found.timestamp),
        receives: None,
    }
}
