//! A million waiting messages: memory, reading, opening after a kill, draining.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_store::{Attributes, Environment, Expect, Key, Partition, Query, Store, Write};

use crate::{Bench, noise};

const MESSAGES: u64 = 1_000_000;
/// Groups that are under way at a time while filling and draining.
const AT_ONCE: u64 = 16;

fn key(number: u64) -> Key {
    Key::new("queue/default", number.to_be_bytes().to_vec()).unwrap()
}

/// Writes groups of 100 for all numbers.
async fn in_groups(
    store: &EmbeddedStore,
    numbers: std::ops::Range<u64>,
    write: impl Fn(u64) -> Write,
) {
    let mut groups = tokio::task::JoinSet::new();
    let mut number = numbers.start;
    while number < numbers.end {
        let group: Vec<_> = (number..(number + 100).min(numbers.end)).map(&write).collect();
        number += 100;
        let store = store.clone();
        groups.spawn(async move { store.write_all(group).await.unwrap() });
        if groups.len() as u64 >= AT_ONCE {
            groups.join_next().await.unwrap().unwrap();
        }
    }
    groups.join_all().await;
}

async fn fill(store: &EmbeddedStore, environment: &Environment, messages: u64) {
    let body = Bytes::from(noise(3, 1_024));
    let put = |number| {
        let attributes = Attributes::new().with("body", body.clone());
        Write::put(key(number), attributes, Expect::Absent, environment.version())
    };
    in_groups(store, 0..messages, put).await;
}

/// Fills a store and dies without closing it.
pub async fn fill_and_die(directory: PathBuf, part: u64) {
    let environment = Environment::system();
    let store = EmbeddedStore::open_at(directory, &environment).await.unwrap();
    fill(&store, &environment, MESSAGES / part).await;
    println!("{}", resident_megabytes());
    std::process::abort();
}

fn resident_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1_024.0
}

fn disk_bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some(if metadata.is_dir() { disk_bytes(&entry.path()) } else { metadata.blocks() * 512 })
    });
    sizes.sum()
}

async fn first_ten(bench: &Bench, store: &EmbeddedStore, rounds: u32, reverse: bool) -> f64 {
    let query = Query::new(Partition::new("queue/default").unwrap()).limit(10);
    let query = if reverse { query.reverse() } else { query };
    let reads = async {
        for _ in 0..rounds {
            assert_eq!(store.query(query.clone()).await.unwrap().items.len(), 10);
        }
    };
    bench.timed(reads).await.1.as_secs_f64() * 1e6 / f64::from(rounds)
}

/// Everything about a standing backlog.
pub async fn run(bench: &mut Bench) {
    let messages = MESSAGES / bench.part;
    let directory = bench.directory.join("standing");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).unwrap();
    }
    let fresh = bench.store("fresh").await;
    fill(&fresh, &bench.environment, 10_000).await;
    let fresh_micros = first_ten(bench, &fresh, 1_000, false).await;
    fresh.close().await;

    let program = std::env::current_exe().unwrap();
    let mut worker = Command::new(program);
    worker.arg("fill").arg(&directory).arg(bench.part.to_string());
    let output = worker.output().unwrap();
    let resident: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    bench.row("memory with 1,000,000 x 1 KB waiting", resident, "MB", "<= 300");
    let stored = disk_bytes(&directory);

    let opening = EmbeddedStore::open_at(&directory, &bench.environment);
    let (store, took) = bench.timed(opening).await;
    let store = store.unwrap();
    bench.row(
        "open after a kill, 1,000,000 x 1 KB stored",
        took.as_secs_f64() * 1e3,
        "ms",
        "<= 1000",
    );
    bench.row("first 10 of a fresh store", fresh_micros, "us", "");
    let micros = first_ten(bench, &store, 1_000, false).await;
    bench.row("first 10 of 1,000,000", micros, "us", "");

    let delete = |number| Write::delete(key(number), Expect::Any);
    let drained = in_groups(&store, 0..messages - 2_000, delete);
    let ((), took) = bench.timed(drained).await;
    bench.row("deletes in groups of 100", (messages - 2_000) as f64 / took.as_secs_f64(), "/s", "");
    let micros = first_ten(bench, &store, 1, false).await;
    bench.row("first 10 behind 1,000,000 deleted: the first time", micros, "us", "");
    let micros = first_ten(bench, &store, 1_000, false).await;
    bench.row("first 10 behind 1,000,000 deleted: from then on", micros, "us", "<= 100");
    in_groups(&store, messages - 1_000..messages, delete).await;
    let micros = first_ten(bench, &store, 1_000, true).await;
    bench.row("last 10 before 1,000 deleted", micros, "us", "<= 100");

    bench.clock.sleep(Duration::from_secs(60)).await;
    let left = disk_bytes(&directory);
    bench.row("disk when full", stored as f64 / 1e6, "MB", "");
    bench.row("  left a minute after draining", 100.0 * left as f64 / stored as f64, "%", "<= 10");
    store.close().await;
    let opening = EmbeddedStore::open_at(&directory, &bench.environment);
    let store = opening.await.unwrap();
    let micros = first_ten(bench, &store, 1, false).await;
    bench.row("first 10 of the reopened store: the first time", micros, "us", "");
    store.close().await;
}
