//! What a receiver does with messages on loan.

use std::time::Duration;

use futures::future::join_all;
use millpond_queue::{Nack, QueueError, Receipt, Settled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::content::decode_some;
use super::super::error::{ApiError, ErrorBody};
use super::send::check_batch;

/// What became of a receipt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SettleOutcome {
    /// Whether it was done `now` or `already` before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledName>,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// When it was done.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Settled")]
pub enum SettledName {
    /// By this request.
    Now,
    /// Before.
    Already,
}

/// What became of each receipt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SettleAnswer {
    /// An outcome for each receipt, in order.
    pub outcomes: Vec<SettleOutcome>,
}

impl SettleAnswer {
    fn of(outcomes: Vec<Result<Settled, QueueError>>) -> Self {
        let outcome = |outcome: Result<Settled, QueueError>| match outcome {
            Ok(settled) => {
                let settled = match settled {
                    Settled::Now => SettledName::Now,
                    Settled::Already => SettledName::Already,
                };
                SettleOutcome { settled: Some(settled), error: None }
            }
            Err(error) => SettleOutcome { settled: None, error: Some(*ApiError::from(error).body) },
        };
        Self { outcomes: outcomes.into_iter().map(outcome).collect() }
    }
}

fn receipts(given: Vec<String>) -> Result<Vec<Receipt>, ApiError> {
    check_batch("receipts", given.len())?;
    Ok(given.into_iter().map(Receipt::from_text).collect())
}

/// Which messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receipts {
    queue: String,
    #[serde(default)]
    client: String,
    /// Their receipts, at most 1,000.
    receipts: Vec<String>,
}

/// Acknowledges messages.
pub async fn ack(api: Api, input: Receipts) -> Result<SettleAnswer, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let receipts = receipts(input.receipts)?;
    Ok(SettleAnswer::of(Box::pin(client.ack_batch(&receipts)).await?))
}

/// Gives messages back.
pub async fn release(api: Api, input: Receipts) -> Result<SettleAnswer, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let receipts = receipts(input.receipts)?;
    let work = receipts.iter().map(|receipt| client.release(receipt));
    Ok(SettleAnswer::of(Box::pin(join_all(work)).await))
}

/// Which messages, and for how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// Their receipts, at most 1,000.
    receipts: Vec<String>,
    /// How long from now they stay on loan.
    visibility_ms: u64,
}

/// Extends leases.
pub async fn extend(api: Api, input: ExtendInput) -> Result<SettleAnswer, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let receipts = receipts(input.receipts)?;
    let visibility = Duration::from_millis(input.visibility_ms);
    Ok(SettleAnswer::of(Box::pin(client.extend_batch(&receipts, visibility)).await?))
}

/// Which messages, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NackInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// Their receipts, at most 1,000.
    receipts: Vec<String>,
    /// How long they wait before they are received again. Default: not at all.
    #[serde(default)]
    delay_ms: u64,
    /// What went wrong. Default: nothing in particular.
    #[serde(default)]
    error: String,
}

/// Gives messages back after a failure.
pub async fn nack(api: Api, input: NackInput) -> Result<SettleAnswer, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let receipts = receipts(input.receipts)?;
    let nack = Nack { delay: Duration::from_millis(input.delay_ms), error: input.error };
    let work = receipts.iter().map(|receipt| client.nack(receipt, nack.clone()));
    Ok(SettleAnswer::of(Box::pin(join_all(work)).await))
}

/// Which task, and how it ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// Its receipt.
    receipt: String,
    /// Whether it ended well.
    success: bool,
    /// Its result, or its error, as text.
    result: Option<String>,
    /// The same in base64.
    result_base64: Option<String>,
}

/// Finishes a task.
pub async fn finish(api: Api, input: FinishInput) -> Result<SettleAnswer, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let result = decode_some("result", input.result, input.result_base64)?.unwrap_or_default();
    let receipt = Receipt::from_text(input.receipt);
    let outcome = if input.success {
        Box::pin(client.succeed(&receipt, result)).await
    } else {
        Box::pin(client.fail(&receipt, result)).await
    };
    Ok(SettleAnswer::of(vec![outcome]))
}
