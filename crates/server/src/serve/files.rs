//! Open files: every connection is one, and the usual limit of 1,024 is less than what a queue server needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Limits;
use crate::http::limits::FILES_KEPT;

/// Asks the system for as many open files as it gives, and takes no more connections than fit.
pub fn fit(limits: &mut Limits) {
    let wanted = limits.connections_max as u64 + FILES_KEPT;
    let before = getrlimit(Resource::Nofile);
    if before.current.is_some_and(|current| current < wanted) {
        let current = before.maximum.map_or(wanted, |most| most.min(wanted));
        // A refusal leaves the limit as it was, which is looked at next.
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: before.maximum });
    }
    if let Some(files) = getrlimit(Resource::Nofile).current {
        shrink(limits, files);
    }
}

fn shrink(limits: &mut Limits, files: u64) {
    let room = usize::try_from(files.saturating_sub(FILES_KEPT)).unwrap_or(usize::MAX);
    // With very few files, connections get half of them.
    let room = room.max(usize::try_from(files / 2).unwrap_or(usize::MAX)).max(2);
    if limits.connections_max <= room {
        return;
    }
    limits.connections_max = room;
    // Waits leave a quarter of the connections to others.
    limits.waits_max = limits.waits_max.min((room - room / 4).max(1)).min(room - 1);
    tracing::warn!(
        open_files_max = files,
        connections_max = limits.connections_max,
        waits_max = limits.waits_max,
        "the system's limit of open files (ulimit -n) leaves room for fewer connections than configured"
    );
}
