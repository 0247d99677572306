//! Gaps by hand, setting back, starting over, removing.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::route::Route;
use super::messages::{Passed, QueuePassed};

/// The routes of managing a queue.
pub fn routes() -> Vec<Route> {
    let post = Method::POST;
    vec![
        Route::new(
            post.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/declare-gap",
            "declare_gap",
            "A producer's word that nothing will come for these numbers.",
            declare_gap,
        ),
        Route::new(
            post.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/skip",
            "skip_numbers",
            "Gives up every missing number before this one, by hand.",
            skip,
        ),
        Route::new(
            post.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/rewind",
            "rewind_sequence",
            "Sets the cursor back, in a new epoch.",
            rewind,
        ),
        Route::new(
            post.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/reset",
            "reset_sequence",
            "Starts a queue over, and removes all that is in it.",
            reset,
        ),
        Route::new(
            post,
            "/v1/sequencers/{sequencer}/queues/{queue}/trim",
            "trim_sequence",
            "Removes delivered messages before this number, some at a time.",
            trim,
        ),
    ]
}

/// What the cursor passed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Advanced {
    /// The numbers; missing when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<Passed>,
}

/// Which numbers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GapInput {
    sequencer: String,
    queue: String,
    /// The first number.
    first: u64,
    /// The number behind the last.
    next: u64,
}

/// Declares a gap.
pub async fn declare_gap(api: Api, input: GapInput) -> Result<Advanced, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let passed = Box::pin(sequencer.declare_gap(&input.queue, input.first..input.next)).await?;
    Ok(Advanced { passed: passed.map(Into::into) })
}

/// Up to which number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToInput {
    sequencer: String,
    queue: String,
    /// The number.
    to: u64,
}

/// Skips what is missing.
pub async fn skip(api: Api, input: ToInput) -> Result<Advanced, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let passed = Box::pin(sequencer.skip(&input.queue, input.to)).await?;
    Ok(Advanced { passed: passed.map(Into::into) })
}

/// Sets the cursor back.
pub async fn rewind(api: Api, input: ToInput) -> Result<Advanced, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let passed = Box::pin(sequencer.rewind(&input.queue, input.to)).await?;
    Ok(Advanced { passed: passed.map(Into::into) })
}

/// Starts a queue over.
pub async fn reset(api: Api, input: ToInput) -> Result<Advanced, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    Box::pin(sequencer.reset(&input.queue, input.to)).await?;
    Ok(Advanced { passed: None })
}

/// What was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrimmedOutput {
    /// The first number that is kept now.
    pub floor: u64,
    /// Rows that were removed.
    pub removed: usize,
    /// Whether rows are left to remove: call it again.
    pub more: bool,
}

/// Removes delivered messages.
pub async fn trim(api: Api, input: ToInput) -> Result<TrimmedOutput, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let done = Box::pin(sequencer.trim(&input.queue, input.to)).await?;
    Ok(TrimmedOutput { floor: done.floor, removed: done.removed, more: done.more })
}

/// How much to sweep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepInput {
    sequencer: String,
    /// Every queue there is, not only those in which messages wait. Default: no.
    #[serde(default)]
    all: bool,
}

/// What a sweep did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweptOutput {
    /// Queues that were looked at.
    pub visited: usize,
    /// What their cursors passed.
    pub advanced: Vec<QueuePassed>,
    /// Numbers that were skipped because they did not come in time.
    pub skipped: Vec<QueuePassed>,
    /// Queues that were parked.
    pub parked: Vec<ParkedOutput>,
    /// Queues in which nothing waits any more.
    pub settled: usize,
    /// Queues that could not be looked at.
    pub failed: Vec<SweepFailure>,
}

/// A queue that was parked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ParkedOutput {
    /// The queue.
    pub queue: String,
    /// The number that did not come.
    pub number: u64,
}

/// A queue that could not be looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SweepFailure {
    /// The queue.
    pub queue: String,
    /// Why.
    pub message: String,
}

/// Heals queues that nobody writes to.
pub async fn sweep(api: Api, input: SweepInput) -> Result<SweptOutput, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let swept = if input.all {
        Box::pin(sequencer.sweep_all()).await?
    } else {
        Box::pin(sequencer.sweep()).await?
    };
    let passed =
        |queue: &dyn ToString, first, next| QueuePassed { queue: queue.to_string(), first, next };
    Ok(SweptOutput {
        visited: swept.visited,
        advanced: swept.advanced.iter().map(|(q, a)| passed(q, a.first, a.next)).collect(),
        skipped: swept.skipped.iter().map(|(q, r)| passed(q, r.start, r.end)).collect(),
        parked: swept
            .parked
            .iter()
            .map(|(queue, number)| ParkedOutput { queue: queue.to_string(), number: *number })
            .collect(),
        settled: swept.settled,
        failed: swept
            .failed
            .iter()
            .map(|(queue, error)| SweepFailure {
                queue: queue.to_string(),
                message: error.to_string(),
            })
            .collect(),
    })
}
