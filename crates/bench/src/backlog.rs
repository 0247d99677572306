//! A million messages: memory while they wait, opening after a kill, reading behind what was consumed, and disk
//! after draining.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;
use millpond_embedded::EmbeddedStore;
use millpond_lanes::{Ground, Lane as _, LaneConfig, Message, UnorderedLane};
use millpond_store::Environment;

use crate::error::{BenchError, Result};
use crate::measure::{disk_megabytes, noise, resident_megabytes, timed};
use crate::report::{Report, Target};
use crate::sends::join;

const MESSAGES: u64 = 1_000_000;
const BODY_BYTES: usize = 1_024;
const CALLERS: u64 = 64;
/// Rows that are read and removed at a time.
const DRAIN: usize = 500;
/// A message of its own row each, which is the hardest for reading behind what was consumed.
const ALONE: LaneConfig = LaneConfig { segment_messages_max: 1, ..LaneConfig::QUEUE };

/// Fill a store, say so, and wait to be killed.
#[derive(Debug, clap::Args)]
pub struct Fill {
    dir: PathBuf,
    messages: u64,
}

pub async fn fill(fill: &Fill, environment: &Environment) -> Result<()> {
    let store = EmbeddedStore::open_at(&fill.dir, environment).await?;
    let ground = Ground::new(Arc::new(store), environment);
    let body = Bytes::from(noise(BODY_BYTES, 4));
    let callers = (0..CALLERS).map(|caller| {
        let lane = UnorderedLane::open(&ground, "backlog", ALONE);
        let (body, share) = (body.clone(), fill.messages / CALLERS);
        let count = share + if caller == 0 { fill.messages % CALLERS } else { 0 };
        tokio::spawn(async move {
            let lane = lane?;
            for _ in 0..count {
                let sent = lane.append(vec![Message::new(body.clone())]).await?;
                sent.into_iter().collect::<Result<Vec<_>, _>>()?;
            }
            Ok(())
        })
    });
    join(callers.collect()).await?;
    println!("filled");
    std::io::stdout().flush().map_err(BenchError::file("standard output"))?;
    // Bounded: the parent kills this process long before.
    environment.clock.sleep(Duration::from_secs(300)).await;
    Ok(())
}

pub async fn measure(
    directory: &Path,
    percent: u64,
    environment: &Environment,
    report: &mut Report,
) -> Result<()> {
    let messages = MESSAGES * percent / 100;
    let directory = directory.join("backlog");
    let (filled, filling) = timed(environment, async { fill_and_kill(&directory, messages) }).await;
    report.judge("backlog: memory with the messages waiting", filled?, "MB", Target::AtMost(300.0));
    report.note(
        "backlog: filling, one row a message",
        crate::measure::rate(messages, filling),
        "msgs/s",
    );
    let stored = disk_megabytes(&directory)?;
    report.note("backlog: disk with the messages waiting", stored, "MB");

    let (store, opening) =
        timed(environment, EmbeddedStore::open_at(&directory, environment)).await;
    let store = store?;
    report.judge("backlog: opening after a kill", opening.as_secs_f64(), "s", Target::AtMost(1.0));

    let ground = Ground::new(Arc::new(store.clone()), environment);
    let fresh = UnorderedLane::open(&ground, "fresh", ALONE)?;
    let lane = UnorderedLane::open(&ground, "backlog", ALONE)?;
    let (drained, draining) = timed(environment, drain(&lane)).await;
    let drained = drained?;
    if drained != messages {
        return Err(BenchError::Wrong(format!("{drained} of {messages} messages were there")));
    }
    report.note("backlog: draining", crate::measure::rate(messages, draining), "msgs/s");
    for target in [&fresh, &lane] {
        target.append(vec![Message::new(noise(BODY_BYTES, 5)); 10]).await?;
    }
    let new = read_ten(environment, &fresh).await?;
    let behind = read_ten(environment, &lane).await?;
    report.note("backlog: first 10 of a fresh lane", new, "us");
    report.judge("backlog: first 10 behind what was consumed", behind, "us", Target::AtMost(100.0));
    report.judge(
        "backlog: the same, against a fresh lane",
        behind / new,
        "times",
        Target::AtMost(2.0),
    );

    environment.clock.sleep(Duration::from_secs(60)).await;
    let left = disk_megabytes(&directory)?;
    report.judge("backlog: disk a minute after draining", left / stored, "", Target::AtMost(0.1));
    drop((fresh, lane, ground));
    store.close().await;

    // A new process has remembered nothing.
    let store = EmbeddedStore::open_at(&directory, environment).await?;
    let ground = Ground::new(Arc::new(store.clone()), environment);
    let lane = UnorderedLane::open(&ground, "backlog", ALONE)?;
    let reopened = read_ten(environment, &lane).await?;
    report.judge("backlog: first 10 after opening again", reopened, "us", Target::AtMost(100.0));
    drop((lane, ground));
    store.close().await;
    Ok(())
}

/// Has another process fill the store and kills it; returns the memory it used.
fn fill_and_kill(directory: &Path, messages: u64) -> Result<f64> {
    let this = std::env::current_exe().map_err(BenchError::file("own program"))?;
    let mut child = Command::new(this)
        .arg("fill")
        .arg(directory)
        .arg(messages.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(BenchError::file("own program"))?;
    let said = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).lines().next(),
        None => None,
    };
    let memory = resident_megabytes(child.id());
    child.kill().map_err(BenchError::file("own program"))?;
    child.wait().map_err(BenchError::file("own program"))?;
    match said {
        Some(Ok(line)) if line == "filled" => memory,
        _ => Err(BenchError::Wrong("the process that fills the store failed".to_owned())),
    }
}

async fn drain(lane: &UnorderedLane) -> Result<u64> {
    let mut drained = 0;
    let mut next = Some(lane.scan()?.limit(DRAIN));
    while let Some(scan) = next {
        let page = lane.page(scan).await?;
        try_join_all(page.segments.iter().map(|segment| lane.finish(segment))).await?;
        drained += page.segments.len() as u64;
        next = page.next;
    }
    Ok(drained)
}

/// The median time, in microseconds, to read the first ten messages from the start of a lane.
async fn read_ten(environment: &Environment, lane: &UnorderedLane) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..101 {
        let (read, elapsed) = timed(environment, async {
            let page = lane.page(lane.scan()?.limit(10)).await?;
            let mut messages = 0;
            for segment in &page.segments {
                messages += lane.load(segment).await?.len();
            }
            Ok::<usize, BenchError>(messages)
        })
        .await;
        if read? != 10 {
            return Err(BenchError::Wrong("ten messages were there, not all were read".to_owned()));
        }
        times.push(elapsed.as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    times
        .get(times.len() / 2)
        .copied()
        .ok_or_else(|| BenchError::Wrong("nothing was timed".to_owned()))
}
