//! Readers: independent places in one queue.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::queue::check_max;
use super::super::route::Route;
use super::messages::ReadAnswer;
use super::queues::SequenceInput;

/// The routes of readers.
pub fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/v1/sequencers/{sequencer}/queues/{queue}/readers",
            "list_readers",
            "Readers of a queue that have committed something, each with its place.",
            list,
        ),
        Route::new(
            Method::GET,
            "/v1/sequencers/{sequencer}/queues/{queue}/readers/{reader}/messages",
            "read_as_reader",
            "Messages and gaps from a reader's place on; it does not move.",
            read,
        ),
        Route::new(
            Method::POST,
            "/v1/sequencers/{sequencer}/queues/{queue}/readers/{reader}/commit",
            "commit_reader",
            "Says that everything before a number was dealt with; it never moves back.",
            commit,
        ),
        Route::new(
            Method::POST,
            "/v1/sequencers/{sequencer}/queues/{queue}/readers/{reader}/seek",
            "seek_reader",
            "Moves a reader, back or forward.",
            seek,
        ),
    ]
}

/// A queue's readers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Readers {
    /// The readers.
    pub readers: Vec<ReaderPlace>,
}

/// A reader, and where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReaderPlace {
    /// Its name.
    pub reader: String,
    /// The number that it reads next.
    pub next: u64,
}

/// The readers of a queue.
pub async fn list(api: Api, input: SequenceInput) -> Result<Readers, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let readers = Box::pin(sequencer.readers(&input.queue)).await?;
    let place = |(reader, next)| ReaderPlace { reader, next };
    Ok(Readers { readers: readers.into_iter().map(place).collect() })
}

/// Which reader, and how much.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    sequencer: String,
    queue: String,
    reader: String,
    /// Most numbers, up to 10,000. Default: 100.
    max: Option<usize>,
}

/// Reads from a reader's place on.
pub async fn read(api: Api, input: ReadInput) -> Result<ReadAnswer, ApiError> {
    let max = check_max(input.max)? as u64;
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let reader = sequencer.reader(&input.queue, &input.reader)?;
    Ok(Box::pin(reader.read(max)).await?.into())
}

/// Where to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceInput {
    sequencer: String,
    queue: String,
    reader: String,
    /// The number that it is to read next.
    next: u64,
}

/// Says what was dealt with.
pub async fn commit(api: Api, input: PlaceInput) -> Result<ReaderPlace, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let reader = sequencer.reader(&input.queue, &input.reader)?;
    let next = Box::pin(reader.commit(input.next)).await?;
    Ok(ReaderPlace { reader: input.reader, next })
}

/// Moves a reader.
pub async fn seek(api: Api, input: PlaceInput) -> Result<ReaderPlace, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let reader = sequencer.reader(&input.queue, &input.reader)?;
    let next = Box::pin(reader.seek(input.next)).await?;
    Ok(ReaderPlace { reader: input.reader, next })
}
