//! Where queues are, and what they wait for.

use std::ops::Range;

use millpond_sequencer::{Cursor, Event, From as Begin, Sequencer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::queue::check_wait;
use super::messages::{NumberedMessage, Passed};
use super::settings::SequencerInput;

/// Names of queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SequenceNames {
    /// The names, in order.
    pub queues: Vec<String>,
}

/// The queues of a sequencer.
pub async fn list(api: Api, input: SequencerInput) -> Result<SequenceNames, ApiError> {
    let sequencer = api.handles().sequencer(input.name()).await?;
    let queues = Box::pin(sequencer.queues()).await?;
    Ok(SequenceNames { queues: queues.iter().map(ToString::to_string).collect() })
}

/// Which queue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequenceInput {
    /// The sequencer.
    pub sequencer: String,
    /// The queue.
    pub queue: String,
}

/// Where a queue is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cursor")]
pub struct CursorOutput {
    /// The queue.
    pub queue: String,
    /// The number that the queue waits for.
    pub next: u64,
    /// The queue's first number.
    pub start: u64,
    /// The first number whose message is still kept.
    pub floor: u64,
    /// How often the cursor was set back.
    pub epoch: u64,
    /// The number at which the epoch began.
    pub base: u64,
    /// Gap records of the queue.
    pub gaps: u64,
    /// Those of them that were declared and are not passed yet.
    pub gaps_ahead: u64,
    /// Late arrivals that were kept aside.
    pub lates: u64,
    /// How often the queue was reset.
    pub life: u64,
    /// The number whose absence parked the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<u64>,
    /// The start number to be, while a reset is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_to: Option<u64>,
}

impl CursorOutput {
    fn of(queue: String, cursor: Cursor) -> Self {
        let Cursor { next, epoch, base, start, floor, gaps, gaps_ahead, lates, life, .. } = cursor;
        let (parked, reset_to) = (cursor.parked, cursor.reset_to);
        Self {
            queue,
            next,
            start,
            floor,
            epoch,
            base,
            gaps,
            gaps_ahead,
            lates,
            life,
            parked,
            reset_to,
        }
    }
}

/// The cursor of a queue that has begun.
pub async fn found(sequencer: &Sequencer, queue: &str) -> Result<Cursor, ApiError> {
    let cursor = sequencer.cursor(queue).await?;
    cursor.ok_or_else(|| {
        let message = format!("queue {queue:?} has not begun: nothing was put, or nothing counted");
        ApiError::not_found(message).field("queue")
    })
}

/// Where a queue's cursor is.
pub async fn cursor(api: Api, input: SequenceInput) -> Result<CursorOutput, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let cursor = found(&sequencer, &input.queue).await?;
    Ok(CursorOutput::of(input.queue, cursor))
}

/// A run of numbers: from `first` up to and without `next`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Run {
    /// The first number.
    pub first: u64,
    /// The number behind the last.
    pub next: u64,
}

fn runs(ranges: Vec<Range<u64>>) -> Vec<Run> {
    ranges.into_iter().map(|range| Run { first: range.start, next: range.end }).collect()
}

/// Numbers that are missing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Missing {
    /// Runs of numbers that are missing, at most 1,000.
    pub missing: Vec<Run>,
}

/// The numbers that are missing.
pub async fn missing(api: Api, input: SequenceInput) -> Result<Missing, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    Ok(Missing { missing: runs(Box::pin(sequencer.missing(&input.queue)).await?) })
}

/// What waits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PendingOutput {
    /// Messages.
    pub count: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// From the awaited number to the greatest that waits.
    pub span: u64,
    /// The waiting numbers, at most 1,000 runs.
    pub runs: Vec<Run>,
}

/// What waits ahead of the cursor.
pub async fn pending(api: Api, input: SequenceInput) -> Result<PendingOutput, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let pending = Box::pin(sequencer.pending(&input.queue)).await?;
    let (count, bytes, span) = (pending.count, pending.bytes, pending.span);
    Ok(PendingOutput { count, bytes, span, runs: runs(pending.runs) })
}

/// From which late arrival on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LateInput {
    sequencer: String,
    queue: String,
    /// The first of them, counted from 0. Default: 0.
    #[serde(default)]
    from: u64,
}

/// Late arrivals.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Late {
    /// In the order in which they came.
    pub messages: Vec<NumberedMessage>,
}

/// Late arrivals that were kept aside.
pub async fn late(api: Api, input: LateInput) -> Result<Late, ApiError> {
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let late = Box::pin(sequencer.late(&input.queue, input.from)).await?;
    Ok(Late { messages: late.into_iter().map(Into::into).collect() })
}

/// From where on, and how long to wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangesInput {
    sequencer: String,
    queue: String,
    /// The first number that is not known yet: `now`, `start`, or a number. Default: now.
    from: Option<String>,
    /// How long to wait, up to 60,000. Default: not at all.
    #[serde(default)]
    wait_ms: u64,
}

/// What happened.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ranges {
    /// The epoch: it rises when the cursor is set back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// What the cursor passed; missing when nothing, within the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<Passed>,
    /// A message that came after its number was skipped, while the request waited; `late_messages` lists all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<NumberedMessage>,
    /// The number whose absence parked the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<u64>,
    /// What to ask `from` next.
    pub next: String,
}

/// What the cursor passed, as soon as there is something.
pub async fn ranges(api: Api, input: RangesInput) -> Result<Ranges, ApiError> {
    let wait = check_wait(input.wait_ms)?;
    let sequencer = api.handles().sequencer(&input.sequencer).await?;
    let cursor = sequencer.cursor(&input.queue).await?;
    // From now on is from where the cursor is now, so that it can be asked again without losing anything.
    let first = match (input.from.as_deref(), &cursor) {
        (None | Some("now"), Some(cursor)) => Some(cursor.next),
        (Some("start"), Some(cursor)) => Some(cursor.floor),
        (None | Some("now" | "start"), None) => None,
        (Some(number), _) => Some(number.parse().map_err(|_| {
            ApiError::invalid("from", format!("is {number:?}; give now, start or a number"))
        })?),
    };
    let next = first.map_or_else(|| "start".to_owned(), |first| first.to_string());
    let mut answer = Ranges { epoch: None, passed: None, late: None, parked: None, next };
    // What was passed already needs no waiting.
    if let (Some(first), Some(cursor)) = (first, &cursor)
        && (cursor.floor..cursor.next).contains(&first)
    {
        answer.epoch = Some(cursor.epoch);
        answer.passed = Some(Passed { first, next: cursor.next });
        answer.next = cursor.next.to_string();
        return Ok(answer);
    }
    let from = first.map_or(Begin::Start, Begin::Number);
    let mut subscription = Box::pin(sequencer.subscribe(&input.queue, from)).await?;
    if wait.is_zero() {
        return Ok(answer);
    }
    let clock = api.environment().clock.clone();
    let announcement = tokio::select! {
        biased;
        announcement = subscription.next() => announcement?,
        () = api.until_closed() => return Ok(answer),
        () = clock.sleep(wait) => return Ok(answer),
    };
    answer.epoch = Some(announcement.epoch);
    match announcement.event {
        Event::Advanced(passed) => {
            answer.next = passed.next.to_string();
            answer.passed = Some(passed.into());
        }
        Event::Late(message) => answer.late = Some(message.into()),
        Event::Parked(number) => answer.parked = Some(number),
    }
    Ok(answer)
}
