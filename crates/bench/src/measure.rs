//! Timing, and what the machine says of a process and its files.

use std::path::Path;
use std::time::Duration;

use millpond_store::{Environment, Rng as _, SeededRng};

use crate::error::{BenchError, Result};

/// Runs `work` and says how long it took.
pub async fn timed<T>(environment: &Environment, work: impl Future<Output = T>) -> (T, Duration) {
    let start = environment.clock.monotonic();
    let outcome = work.await;
    (outcome, environment.clock.monotonic().since(start))
}

/// Per second.
#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
pub fn rate(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

/// Bytes that do not compress.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let rng = SeededRng::new(seed);
    let mut noise: Vec<u8> = std::iter::repeat_with(|| rng.next_u64().to_le_bytes())
        .take(bytes.div_ceil(8))
        .flatten()
        .collect();
    noise.truncate(bytes);
    noise
}

/// Resident memory of a process, in MB, as Linux counts it.
pub fn resident_megabytes(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).map_err(BenchError::file(&path))?;
    let kilobytes = status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
        })
        .ok_or_else(|| BenchError::Wrong(format!("{path} has no VmRSS")))?;
    Ok(kilobytes * 1_024.0 / 1e6)
}

/// Bytes that a directory's files take on disk, in MB.
#[expect(clippy::cast_precision_loss, reason = "a size for people to read")]
pub fn disk_megabytes(directory: &Path) -> Result<f64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).map_err(BenchError::file(&directory))? {
            let entry = entry.map_err(BenchError::file(&directory))?;
            // A file may go away while we look: it then takes nothing.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                directories.push(entry.path());
            } else {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    Ok(bytes as f64 / 1e6)
}
