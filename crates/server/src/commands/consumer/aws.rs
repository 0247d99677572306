//! Letters in SQS and Kinesis, letters that go there, and event source mappings: asked of AWS by the command itself, since no
//! store knows of them.

use millpond_consumer::Spill;
use millpond_consumer::redrive::{
    Destination, RedriveError, Redriven, ToLog, ToQueue, redrive_log, redrive_queue,
};
use millpond_dynamodb::{ObjectOptions, Objects};
use millpond_lambda::redrive::{KinesisLetters, SqsLetters, ToKinesis, ToSqs};
use millpond_lambda::settings::SinkPlace;
use millpond_lambda::{Aws, AwsError};
use millpond_store::Environment;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Door, set};
use super::super::open::Make;
use super::super::output::Output;
use super::super::target::Target;
use super::letters::{LETTERS, LettersArgs, report};
use crate::api::{Api, ApiError, ErrorBody, LetterOutput};

impl From<RedriveError> for Failure {
    fn from(error: RedriveError) -> Self {
        ApiError::from(error).into()
    }
}

impl From<AwsError> for Failure {
    fn from(error: AwsError) -> Self {
        let code = if error.is_transient() { "unavailable" } else { "misconfigured" };
        Self::Refused(ErrorBody { code: code.to_owned(), message: error.to_string(), field: None })
    }
}

/// Reads a place in AWS.
pub fn place(text: &str) -> Result<SinkPlace, String> {
    match text.parse() {
        Ok(place @ (SinkPlace::Sqs { .. } | SinkPlace::Kinesis { .. })) => Ok(place),
        Err(error) if text.starts_with("sqs:") || text.starts_with("kinesis:") => Err(error),
        _ => Err(
            "it should be sqs:URL or kinesis:STREAM; queues and topics have options of their own"
                .into(),
        ),
    }
}

/// Whether AWS must be asked.
pub const fn is_in_aws(place: &SinkPlace) -> bool {
    matches!(place, SinkPlace::Sqs { .. } | SinkPlace::Kinesis { .. })
}

/// The way to AWS: region, credentials and endpoints by the SDK's usual ways.
pub async fn load() -> Result<Aws, Failure> {
    Ok(Aws::load(&Environment::system()).await?)
}

/// Lists letters that are in AWS.
pub async fn list(out: Output, from: &SinkPlace, args: &LettersArgs) -> Result<(), Failure> {
    let (aws, which) = (load().await?, args.which());
    let mut left = args.looked_at_max();
    let mut rows = Vec::new();
    match from {
        SinkPlace::Sqs { url } => {
            let found = Box::pin(SqsLetters::new(&aws, url).list(&which, left)).await?;
            rows.extend(found.iter().map(LetterOutput::of).map(|letter| json!(letter)));
        }
        SinkPlace::Kinesis { stream } => {
            let letters = KinesisLetters::new(&aws, stream);
            for shard in shards(&letters, args).await? {
                let after = args.after.as_deref();
                let listed = Box::pin(letters.list(&shard, after, &which, left)).await?;
                for (sequence, letter) in &listed.found {
                    let mut row = json!(LetterOutput::of(letter));
                    set(&mut row, "shard", shard.as_str().into());
                    set(&mut row, "sequence", sequence.as_str().into());
                    rows.push(row);
                }
                left = left.saturating_sub(listed.looked_at);
                if left == 0 {
                    break;
                }
            }
        }
        SinkPlace::Queue { .. } | SinkPlace::Log { .. } => {}
    }
    out.list(LETTERS, &rows)
}

/// The shards that are meant.
async fn shards(letters: &KinesisLetters, args: &LettersArgs) -> Result<Vec<String>, Failure> {
    match &args.shard {
        Some(shard) => Ok(vec![shard.clone()]),
        None => Ok(Box::pin(letters.shards()).await?),
    }
}

/// Brings letters back, where one end at least is in AWS. The other is a store that is opened here.
pub async fn redrive(
    target: &Target,
    out: Output,
    (from, to): (&SinkPlace, &SinkPlace),
    args: &LettersArgs,
) -> Result<(), Failure> {
    let stored = !is_in_aws(from) || !is_in_aws(to);
    if stored && target.server.is_some() {
        let problem = "what is in AWS is brought to, or from, a store that this command opens itself: \
                       name it with --store, or name the server's queue as sqs:URL";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let door = if stored { Some(Door::open(target, Make::No).await?) } else { None };
    let outcome = Box::pin(redrive_at(target, door.as_ref(), (from, to), args)).await;
    if let Some(door) = door {
        door.close().await;
    }
    report(out, &outcome?)
}

async fn redrive_at(
    target: &Target,
    door: Option<&Door>,
    (from, to): (&SinkPlace, &SinkPlace),
    args: &LettersArgs,
) -> Result<Value, Failure> {
    let (aws, which) = (load().await?, args.which());
    let spill = match &target.objects {
        Some(url) => {
            let objects = Objects::open(url, &ObjectOptions::default())?;
            Some(Spill::new(objects.store, objects.prefix))
        }
        None => None,
    };
    let (spill, max) = (spill.as_ref(), args.looked_at_max());
    let to = destination(&aws, door, to).await?;
    match from {
        SinkPlace::Sqs { url } => {
            let letters = SqsLetters::new(&aws, url);
            Ok(described(&Box::pin(letters.redrive(&*to, &which, spill, max)).await?))
        }
        SinkPlace::Queue { queue, client } => {
            let dead = api(door)?.handles().client(queue, client).await?;
            Ok(described(&Box::pin(redrive_queue(&dead, &*to, &which, spill, max)).await?))
        }
        SinkPlace::Log { topic } => {
            let dead = api(door)?.handles().topic(topic).await?;
            let redriven = redrive_log(&dead, args.offset(), &*to, &which, spill, max);
            let (redriven, next) = Box::pin(redriven).await?;
            let mut answer = described(&redriven);
            set(&mut answer, "next", next.into());
            Ok(answer)
        }
        SinkPlace::Kinesis { stream } => {
            let letters = KinesisLetters::new(&aws, stream);
            let (mut all, mut left) = (Redriven::default(), max);
            let mut places = Vec::new();
            for shard in shards(&letters, args).await? {
                let begin = (shard.as_str(), args.after.as_deref());
                let done = Box::pin(letters.redrive(begin, &*to, &which, spill, left)).await?;
                all.sent += done.found.sent;
                all.skipped += done.found.skipped;
                all.failed.extend(done.found.failed);
                places.push(json!({ "shard": shard, "after": done.after }));
                left = left.saturating_sub(done.looked_at);
                if left == 0 {
                    break;
                }
            }
            let mut answer = described(&all);
            set(&mut answer, "shards", places.into());
            Ok(answer)
        }
    }
}

async fn destination(
    aws: &Aws,
    door: Option<&Door>,
    to: &SinkPlace,
) -> Result<Box<dyn Destination>, Failure> {
    Ok(match to {
        SinkPlace::Sqs { url } => Box::new(ToSqs::new(aws, url)),
        SinkPlace::Kinesis { stream } => Box::new(ToKinesis::new(aws, stream)),
        SinkPlace::Queue { queue, client } => {
            Box::new(ToQueue(api(door)?.handles().client(queue, client).await?))
        }
        SinkPlace::Log { topic } => Box::new(ToLog(api(door)?.handles().topic(topic).await?)),
    })
}

fn api(door: Option<&Door>) -> Result<&Api, Failure> {
    match door {
        Some(Door::Here(here)) => Ok(&here.0),
        _ => Err(Failure::Usage("name the store with --store".to_owned())),
    }
}

/// What a redrive did, as the API says it.
fn described(redriven: &Redriven) -> Value {
    json!({
        "sent": redriven.sent, "skipped": redriven.skipped,
        "failed": redriven.failed.len(), "failures": redriven.failed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_in_aws_are_taken() {
        assert!(place("kinesis:dead").is_ok() && place("sqs:https://sqs.x/1/dead").is_ok());
        for (bad, said) in
            [("queue:dead", "options of their own"), ("sqs:dead", "URL"), ("dead", "sqs:URL")]
        {
            let error = place(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
