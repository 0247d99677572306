//! The store as a whole: what is in it, whether it is sound, what can be removed.

use http::Method;
use millpond_lanes::cargo::SweepReport;
use millpond_store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::limits::CHECK_RECORDS;
use super::route::Route;
use super::{Api, Backend, sequence};

/// The routes of administration.
pub fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/v1/stats",
            "store_stats",
            "What is in the store, and what it costs.",
            stats,
        ),
        Route::new(
            Method::POST,
            "/v1/check",
            "check_store",
            "Reads everything that queues, topics and sequencers name, and reports damage.",
            check,
        ),
        Route::new(
            Method::POST,
            "/v1/sweep",
            "sweep_store",
            "Finds objects and rows that nothing needs, and removes them unless it is a dry run.",
            sweep,
        ),
    ]
}

/// Nothing to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// What is in the store.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stats {
    /// Millpond's version.
    pub version: String,
    /// The kind of store: embedded or dynamodb.
    pub backend: String,
    /// Whether what is acknowledged survives the process and the machine's power.
    pub durable: bool,
    /// Whether there is an object store for large payload.
    pub objects: bool,
    /// How many queues there are.
    pub queues: usize,
    /// How many topics of queues there are.
    pub queue_topics: usize,
    /// How many topics of the log there are.
    pub topics: usize,
    /// How many sequencers have settings of their own.
    pub sequencers: usize,
    /// Files of an embedded store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Bytes in the files of an embedded store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Requests to the table since this process started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Read units since this process started, as the service reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_units: Option<f64>,
    /// Write units since this process started, as the service reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_units: Option<f64>,
}

/// What is in the store.
pub async fn stats(api: Api, _: NoInput) -> Result<Stats, ApiError> {
    let handles = api.handles();
    let sequencers = sequence::settings::list(api.clone(), sequence::settings::NoInput {}).await?;
    let mut stats = Stats {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        backend: api.0.backend.name().to_owned(),
        durable: api.ground().store.profile().durable,
        objects: api.ground().objects.is_some(),
        queues: handles.queues().list().await?.len(),
        queue_topics: handles.queues().topics().await?.len(),
        topics: handles.log().list().await?.len(),
        sequencers: sequencers.sequencers.len(),
        files: None,
        bytes: None,
        requests: None,
        read_units: None,
        write_units: None,
    };
    match &api.0.backend {
        Backend::Embedded(_, directory) => {
            let directory = directory.clone();
            let walked = tokio::task::spawn_blocking(move || walk(&directory)).await;
            let (files, bytes) = walked.unwrap_or_default();
            (stats.files, stats.bytes) = (Some(files), Some(bytes));
        }
        Backend::DynamoDb(store) => {
            let used = store.meter().read().total();
            stats.requests = Some(used.requests);
            stats.read_units = Some(used.read_units);
            stats.write_units = Some(used.write_units);
        }
        Backend::Other => {}
    }
    Ok(stats)
}

/// Files below a directory, and their bytes. What goes away meanwhile is not counted.
fn walk(directory: &std::path::Path) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let mut left = vec![directory.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => left.push(entry.path()),
                Ok(found) => {
                    files += 1;
                    bytes += found.len();
                }
                Err(_) => {}
            }
        }
    }
    (files, bytes)
}

/// What a check found.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CheckOutput {
    /// Messages of queues whose rows were read.
    pub messages: u64,
    /// Records of topics that were read.
    pub records: u64,
    /// Delivered messages of sequencers that were read.
    pub sequenced: u64,
    /// What is damaged or cannot be read; nothing when all is well.
    pub problems: Vec<String>,
}

/// Reads everything that can be named.
pub async fn check(api: Api, _: NoInput) -> Result<CheckOutput, ApiError> {
    let mut found = CheckOutput::default();
    for name in api.handles().queues().list().await? {
        match Box::pin(check_queue(&api, name.as_str())).await {
            Ok(messages) => found.messages += messages,
            Err(error) => found.problem(format!("queue {name}"), error)?,
        }
    }
    for name in api.handles().log().list().await? {
        match Box::pin(check_topic(&api, &name)).await {
            Ok(records) => found.records += records,
            Err(error) => found.problem(format!("topic {name}"), error)?,
        }
    }
    let named = sequence::settings::list(api.clone(), sequence::settings::NoInput {}).await?;
    // The one that is used when none is named may have no settings of its own.
    let mut names = named.sequencers;
    if !names.iter().any(|name| name == super::MAIN_SEQUENCER) {
        names.push(super::MAIN_SEQUENCER.to_owned());
    }
    for name in names {
        match Box::pin(check_sequencer(&api, &name)).await {
            Ok(messages) => found.sequenced += messages,
            Err(error) => found.problem(format!("sequencer {name}"), error)?,
        }
    }
    Ok(found)
}

impl CheckOutput {
    /// Damage is a finding; a store that cannot be reached is an error.
    fn problem(&mut self, place: String, error: ApiError) -> Result<(), ApiError> {
        if error.body.code == "unavailable" || error.body.code == "throttled" {
            return Err(error);
        }
        self.problems.push(format!("{place}: {error}"));
        Ok(())
    }
}

async fn check_queue(api: &Api, name: &str) -> Result<u64, ApiError> {
    let queue = api.handles().queue(name).await?;
    let mut messages = 0;
    for id in queue.clients().await? {
        messages += queue.client(id.as_str())?.count().await?.total();
    }
    Ok(messages)
}

async fn check_topic(api: &Api, name: &str) -> Result<u64, ApiError> {
    let topic = api.handles().topic(name).await?;
    let mut records = 0;
    for partition in topic.describe().await?.partitions {
        let mut from = partition.earliest;
        while from < partition.latest {
            let batch = topic.read(partition.partition, from, CHECK_RECORDS).await?;
            records += batch.records.len() as u64;
            if batch.next <= from {
                break;
            }
            from = batch.next;
        }
    }
    Ok(records)
}

async fn check_sequencer(api: &Api, name: &str) -> Result<u64, ApiError> {
    let sequencer = api.handles().sequencer(name).await?;
    let mut messages = 0;
    for queue in sequencer.queues().await? {
        let Some(cursor) = sequencer.cursor(queue.as_str()).await? else { continue };
        let mut from = cursor.floor;
        while from < cursor.next {
            let end = cursor.next.min(from + CHECK_RECORDS as u64);
            let read = sequencer.read(queue.as_str(), from..end).await?;
            messages += read.messages().count() as u64;
            from = read.next.max(from + 1);
        }
    }
    Ok(messages)
}

/// Whether to remove what is found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepInput {
    /// Only count. Default: yes.
    dry_run: Option<bool>,
}

/// What a sweep found.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SweepOutput {
    /// Objects looked at.
    pub objects: u64,
    /// Objects that are in use.
    pub named: u64,
    /// Objects too young to tell.
    pub young: u64,
    /// Objects that nothing names.
    pub orphans: u64,
    /// Bytes in them.
    pub orphan_bytes: u64,
    /// Orphans removed: none in a dry run.
    pub removed: u64,
    /// Objects whose name is not one of ours; they are left alone.
    pub foreign: u64,
    /// Expired items of an embedded store that were removed: none in a dry run.
    pub expired: u64,
}

impl From<SweepReport> for SweepOutput {
    fn from(report: SweepReport) -> Self {
        let mut output = Self::default();
        output.add(report);
        output
    }
}

impl SweepOutput {
    fn add(&mut self, report: SweepReport) {
        self.objects += report.objects;
        self.named += report.named;
        self.young += report.young;
        self.orphans += report.orphans;
        self.orphan_bytes += report.orphan_bytes;
        self.removed += report.removed;
        self.foreign += report.foreign;
    }
}

/// Finds what nothing needs.
pub async fn sweep(api: Api, input: SweepInput) -> Result<SweepOutput, ApiError> {
    let dry_run = input.dry_run.unwrap_or(true);
    let mut output = SweepOutput::default();
    if api.ground().objects.is_some() {
        for name in api.handles().queues().list().await? {
            let queue = api.handles().queue(name.as_str()).await?;
            for id in queue.clients().await? {
                output.add(Box::pin(queue.client(id.as_str())?.sweep(dry_run)).await?);
            }
        }
        for name in api.handles().log().list().await? {
            let topic = api.handles().topic(&name).await?;
            output.add(Box::pin(topic.sweep(dry_run)).await?);
        }
    } else if matches!(api.0.backend, Backend::DynamoDb(_)) {
        return Err(StoreError::misconfigured(
            "there is no object store to sweep",
            "name the one that the store is used with, by --objects",
        )
        .into());
    }
    if let (Backend::Embedded(store, _), false) = (&api.0.backend, dry_run) {
        loop {
            let expired = store.sweep_step().await?;
            output.expired += expired as u64;
            if expired == 0 {
                break;
            }
        }
        store.reclaim().await?;
    }
    Ok(output)
}
