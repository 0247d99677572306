//! Speed of the embedded engine, beside a bare write-ahead log as the limit of the disk.
//!
//! `cargo run --release -p millpond-embedded --example engine_bench -- [--dir DIR] [--json FILE] [--small]`
//!
//! Prints the rows of the targets that apply to the engine. `--small` runs a tenth of everything.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark ends at the first surprise"
)]

mod standing;
mod wal;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use millpond_embedded::EmbeddedStore;
use millpond_store::{Clock, Environment, Rng, SeededRng, SystemClock};

/// What all measurements need.
pub struct Bench {
    /// Where stores and logs are made.
    pub directory: PathBuf,
    /// The machine's clock and numbers.
    pub environment: Environment,
    /// For measuring.
    pub clock: Arc<dyn Clock>,
    /// Everything is divided by this.
    pub part: u64,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    target: &'static str,
}

impl Bench {
    /// Notes and prints a result.
    pub fn row(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: &'static str,
    ) {
        let name = name.into();
        println!("{name:<58} {value:>12.1} {unit:<6} {target}");
        self.rows.push(Row { name, value, unit, target });
    }

    /// Runs `work` and says how long it took.
    pub async fn timed<T>(&self, work: impl Future<Output = T>) -> (T, Duration) {
        let before = self.clock.monotonic();
        let done = work.await;
        (done, self.clock.monotonic().since(before))
    }

    /// A store in a directory of its own, made anew.
    pub async fn store(&self, name: &str) -> EmbeddedStore {
        let directory = self.directory.join(name);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).unwrap();
        }
        EmbeddedStore::open_at(directory, &self.environment).await.unwrap()
    }
}

/// Bytes that do not compress.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let rng = SeededRng::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Keeps a store full in another process, to be killed.
    if let [_, fill, directory, part] = &arguments[..]
        && fill == "fill"
    {
        return standing::fill_and_die(directory.into(), part.parse().unwrap()).await;
    }
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1).cloned())
    };
    let temporary = tempfile::tempdir().unwrap();
    let environment = Environment::system();
    let mut bench = Bench {
        directory: option("--dir").map_or(temporary.path().to_path_buf(), PathBuf::from),
        clock: Arc::new(SystemClock::new()),
        environment,
        part: if arguments.iter().any(|argument| argument == "--small") { 10 } else { 1 },
        rows: Vec::new(),
    };
    std::fs::create_dir_all(&bench.directory).unwrap();
    writes::single_sends(&mut bench).await;
    writes::log(&mut bench).await;
    standing::run(&mut bench).await;
    if let Some(file) = option("--json") {
        let rows: Vec<_> = bench
            .rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "name": row.name, "value": row.value, "unit": row.unit, "target": row.target,
                })
            })
            .collect();
        std::fs::write(file, serde_json::to_string_pretty(&rows).unwrap()).unwrap();
    }
}
