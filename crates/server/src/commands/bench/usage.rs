//! What processes use: time of the processor, and bytes that they write. From `/proc`, so on Linux only.
//!
//! The load clients of other servers, in `compare/`, include this file.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The unit of times in `/proc`: a hundredth of a second on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// What processes have used so far, or used meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Time of the processor.
    pub cpu: Duration,
    /// Bytes that went to files.
    pub written: u64,
}

impl Usage {
    /// Of this process.
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Of a process and those that it has started, and they in turn.
    pub fn of(id: u32) -> Option<Self> {
        let all: BTreeMap<u32, Stat> = fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|id| Some((id, Stat::read(id)?)))
            .collect();
        all.get(&id)?;
        let mut sum = Self::default();
        for (one, stat) in &all {
            if is_below(&all, *one, id) {
                sum.cpu += stat.cpu;
                sum.written += written(*one);
            }
        }
        Some(sum)
    }

    /// What was used since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            written: self.written.saturating_sub(before.written),
        }
    }
}

/// The part of `/proc/ID/stat` that matters.
struct Stat {
    parent: u32,
    /// Its own and that of children that have ended.
    cpu: Duration,
}

impl Stat {
    fn read(id: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name, in brackets, may hold anything; behind it are numbers. Those of times are the 14th to 17th of all.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u32>().ok()).sum();
        Some(Self { parent: fields.get(1)?.parse().ok()?, cpu: TICK * ticks })
    }
}

/// Whether `one` is `root` or has it above itself. Ids may be used again while this looks: it gives up after a while.
fn is_below(all: &BTreeMap<u32, Stat>, mut one: u32, root: u32) -> bool {
    const DEPTH_MAX: usize = 32;
    for _ in 0..DEPTH_MAX {
        if one == root {
            return true;
        }
        match all.get(&one) {
            Some(stat) => one = stat.parent,
            None => return false,
        }
    }
    false
}

fn written(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or_default()
}
