//! `millpond demo`: lanes on the embedded engine, with rates.

use std::sync::Arc;

use futures::future::try_join_all;
use millpond_embedded::{EmbeddedStore, Options};
use millpond_lanes::{Ground, Lane as _, LaneConfig, Message, Segment, SequencedLane};
use millpond_store::{Environment, Result, Store, StoreError};

use crate::cli::Demo;
use crate::place::StorePlace;
use crate::progress::{Progress, Rate};

/// Segments that are read at a time, and removed at a time: enough for the store to join their removals.
const READ_AHEAD: usize = 64;

/// Runs the demo to its end.
pub fn run(demo: &Demo) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| StoreError::Unavailable {
        operation: "start",
        detail: error.to_string(),
        cause: Some(Arc::new(error)),
    })?;
    runtime.block_on(run_on(demo))
}

async fn run_on(demo: &Demo) -> Result<()> {
    let environment = Environment::system();
    let StorePlace::Directory(directory) = &demo.store else {
        return Err(StoreError::misconfigured(
            format!("the demo cannot use {}", demo.store),
            "give a directory, such as ./millpond-data",
        ));
    };
    let options = Options::new(directory.clone()).durability(demo.durability.into());
    let store = EmbeddedStore::open(options, &environment).await?;
    let durable = store.profile().durable;
    println!(
        "store      {} ({})",
        demo.store,
        if durable { "durable" } else { "UNSAFE: not synced" }
    );

    let ground = Ground::new(Arc::new(store.clone()), &environment);
    let lane = Arc::new(SequencedLane::open(&ground, "demo", LaneConfig::QUEUE)?);
    let first = lane.tail().await?;
    let appended = append(demo, &environment, &lane).await?;
    let (read, segments) = read_back(demo, &environment, &lane, first).await?;
    let removed = remove(demo, &environment, &lane, &segments).await?;

    let per_segment = demo.messages / (segments.len() as u64).max(1);
    println!("messages   {} of {} bytes, from number {first} on", demo.messages, demo.bytes);
    println!("segments   {} ({per_segment} messages each on average)", segments.len());
    summary("appended", appended, demo);
    summary("read", read, demo);
    summary("removed", removed, demo);
    drop((lane, ground));
    store.close().await;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn summary(what: &str, rate: Rate, demo: &Demo) {
    let megabytes = rate.per_second() * demo.bytes as f64 / 1e6;
    let seconds = rate.elapsed.as_secs_f64();
    println!(
        "{what:10} {:>9.0} msgs/s  {megabytes:>7.1} MB/s  ({seconds:.2} s)",
        rate.per_second()
    );
}

/// The body of a message: its sender's number, so that the reader can check that it has each one once.
fn body(number: u64, bytes: u64) -> Vec<u8> {
    let mut body = number.to_be_bytes().to_vec();
    body.resize(usize::try_from(bytes).unwrap_or(usize::MAX), b'.');
    body
}

async fn append(demo: &Demo, environment: &Environment, lane: &Arc<SequencedLane>) -> Result<Rate> {
    let progress = Progress::start("append", demo.messages, &environment.clock);
    let callers = (0..demo.callers.min(demo.messages)).map(|caller| {
        let (lane, progress) = (Arc::clone(lane), progress.clone());
        let numbers = (caller..demo.messages).step_by(usize::try_from(demo.callers).unwrap_or(1));
        let bytes = demo.bytes;
        tokio::spawn(async move {
            for number in numbers {
                let sent = lane.append(vec![Message::new(body(number, bytes))]).await?;
                sent.into_iter().collect::<Result<Vec<u64>>>()?;
                progress.add(1);
            }
            Ok::<(), StoreError>(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.map_err(|error| StoreError::Poisoned { reason: error.to_string() })??;
    }
    Ok(progress.finish())
}

/// Reads everything from number `first` on, and checks that each message is there once.
async fn read_back(
    demo: &Demo,
    environment: &Environment,
    lane: &SequencedLane,
    first: u64,
) -> Result<(Rate, Vec<Segment>)> {
    let progress = Progress::start("read", demo.messages, &environment.clock);
    let mut seen = vec![false; usize::try_from(demo.messages).unwrap_or(usize::MAX)];
    let mut segments = Vec::new();
    let mut next = Some(lane.scan_from(first).await?.limit(READ_AHEAD));
    while let Some(scan) = next {
        let page = lane.page(scan).await?;
        for segment in page.segments {
            let messages = lane.load(&segment).await?;
            for message in &messages {
                let number = message.body.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
                let at = number.and_then(|number| usize::try_from(number).ok());
                match at.and_then(|at| seen.get_mut(at)) {
                    Some(seen) if !*seen => *seen = true,
                    _ => {
                        return Err(segment_error(
                            &segment,
                            "has a message that was not sent, or twice",
                        ));
                    }
                }
            }
            progress.add(messages.len() as u64);
            segments.push(segment);
        }
        next = page.next;
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        return Err(StoreError::corrupt("lane demo", format!("message {missing} is missing")));
    }
    Ok((progress.finish(), segments))
}

fn segment_error(segment: &Segment, detail: &str) -> StoreError {
    StoreError::corrupt(format!("segment {:?} of lane demo", segment.place), detail)
}

async fn remove(
    demo: &Demo,
    environment: &Environment,
    lane: &SequencedLane,
    segments: &[Segment],
) -> Result<Rate> {
    let progress = Progress::start("remove", demo.messages, &environment.clock);
    for some in segments.chunks(READ_AHEAD) {
        try_join_all(some.iter().map(|segment| lane.finish(segment))).await?;
        progress.add(some.iter().map(|segment| segment.count as u64).sum());
    }
    Ok(progress.finish())
}
