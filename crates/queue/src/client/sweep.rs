//! Removing objects of the object store that no message names.

use millpond_lanes::LaneKind;
use millpond_lanes::cargo::{Sweep, SweepReport, sweep};

use super::core::ClientCore;
use crate::error::Result;

impl ClientCore {
    /// Looks through the objects of all lanes, one after the other.
    pub async fn sweep(&self, dry_run: bool) -> Result<SweepReport> {
        let config = self.queue.config().await?;
        let kind = if config.strict.is_some() { LaneKind::Sequenced } else { LaneKind::Unordered };
        let prefix = self.prefix();
        let mut sum = SweepReport::default();
        for number in 0..self.known_lanes().len() {
            let lane = Sweep { dry_run, ..Sweep::new(format!("{prefix}/{number}"), kind) };
            let found = sweep(&self.queue.root.ground, &lane).await?;
            sum.objects += found.objects;
            sum.named += found.named;
            sum.young += found.young;
            sum.orphans += found.orphans;
            sum.orphan_bytes += found.orphan_bytes;
            sum.removed += found.removed;
            sum.foreign += found.foreign;
        }
        Ok(sum)
    }
}
