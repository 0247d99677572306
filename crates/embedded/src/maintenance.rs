//! Background work: removing expired items and reclaiming space.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use millpond_store::{Direction, Result, StoreError};

use crate::engine::{Engine, EngineError, Table, Waste};
use crate::limits::{
    MAINTENANCE_INTERVAL, RECLAIM_ROWS_MIN, RECLAIM_SHARE_BUSY, RECLAIM_SHARE_IDLE, SWEEP_ROWS_MAX,
    SWEEP_STEPS_MAX,
};
use crate::record::unseal;
use crate::store::Inner;
use crate::writer::Work;

/// Ticks without a delete after which deletes have paused.
const IDLE_TICKS: u32 = 3;

/// Works until the store is gone or stopped.
pub(crate) async fn run(store: Weak<Inner>) {
    let mut pace = Pace::default();
    loop {
        let Some(clock) = store.upgrade().map(|inner| Arc::clone(&inner.shared.clock)) else {
            return;
        };
        clock.sleep(MAINTENANCE_INTERVAL).await;
        let Some(inner) = store.upgrade() else { return };
        if inner.shared.check_running().is_err() {
            return;
        }
        if let Err(error) = tick(&inner, &mut pace).await {
            tracing::warn!(place = inner.shared.place, %error, "maintenance failed, will try again");
        }
    }
}

async fn tick(inner: &Inner, pace: &mut Pace) -> Result<()> {
    for _ in 0..SWEEP_STEPS_MAX {
        if sweep_step(inner).await? < SWEEP_ROWS_MAX {
            break;
        }
    }
    let deletes = inner.shared.deletes.load(Ordering::Relaxed);
    if pace.is_worth_reclaiming(deletes, inner.shared.engine.waste()) {
        reclaim(inner).await?;
        pace.reclaimed = deletes;
    }
    Ok(())
}

/// Removes up to [`SWEEP_ROWS_MAX`] expired items.
pub(crate) async fn sweep_step(inner: &Inner) -> Result<usize> {
    inner.shared.check_running()?;
    let now = inner.shared.clock.now().as_millis() / 1_000;
    let not_due = Bytes::copy_from_slice(&now.saturating_add(1).to_be_bytes());
    let mut due = Vec::new();
    inner.shared.scan(Table::Expiry, (Bytes::new(), not_due), Direction::Forward, |key, row| {
        unseal(Table::Expiry, key, row)?;
        due.push(key.clone());
        Ok(if due.len() < SWEEP_ROWS_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    if due.is_empty() {
        return Ok(0);
    }
    let looked_at = due.len();
    let bytes = due.iter().map(Bytes::len).sum();
    let outcomes = inner.ask(Work::Sweep(due), bytes).await?;
    let swept: Result<usize> = outcomes.into_iter().sum();
    let swept = swept?;
    tracing::debug!(place = inner.shared.place, looked_at, swept, "swept expired items");
    // Entries that turned out stale count too: they may hide more behind them.
    Ok(looked_at)
}

/// Removes deleted rows from the files.
pub(crate) async fn reclaim(inner: &Inner) -> Result<()> {
    // Views keep what they can see. With a fresh one the engine may let go of all that is older, first of rows
    // (before the compaction), then of files (after it).
    renew(inner).await?;
    in_background(inner, |engine| {
        engine.flush()?;
        engine.compact()
    })
    .await?;
    renew(inner).await?;
    in_background(inner, |engine| engine.flush()).await?;
    tracing::debug!(place = inner.shared.place, waste = ?inner.shared.engine.waste(), "reclaimed");
    Ok(())
}

async fn in_background(
    inner: &Inner,
    work: impl FnOnce(&dyn Engine) -> Result<(), EngineError> + Send + 'static,
) -> Result<()> {
    let shared = Arc::clone(&inner.shared);
    let done = tokio::task::spawn_blocking(move || work(&*shared.engine)).await;
    let done = done.map_err(|error| StoreError::Unavailable {
        operation: "reclaim",
        detail: "the compaction did not finish".to_owned(),
        cause: Some(Arc::new(error)),
    })?;
    done.map_err(|error| inner.shared.read_error("reclaim", error))
}

async fn renew(inner: &Inner) -> Result<()> {
    let outcomes = inner.ask(Work::Renew, 0).await?;
    outcomes.into_iter().try_for_each(|outcome| outcome.map(|_| ()))
}

/// When to reclaim.
#[derive(Debug, Default)]
struct Pace {
    /// Deletes at the last tick, and how many ticks ago they last changed.
    seen: u64,
    idle: u32,
    /// Deletes at the last reclaim.
    reclaimed: u64,
}

impl Pace {
    fn is_worth_reclaiming(&mut self, deletes: u64, waste: Waste) -> bool {
        self.idle = if deletes == self.seen { self.idle.saturating_add(1) } else { 0 };
        self.seen = deletes;
        let deleted = waste.tombstones.max(deletes - self.reclaimed);
        let share = if self.idle >= IDLE_TICKS { RECLAIM_SHARE_IDLE } else { RECLAIM_SHARE_BUSY };
        deleted >= RECLAIM_ROWS_MIN && deleted.saturating_mul(share) >= waste.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reclaiming_waits_for_waste_and_for_a_pause() {
        let mut pace = Pace::default();
        let some = Waste { rows: 100_000, tombstones: 2_000 };
        assert!(!pace.is_worth_reclaiming(2_000, some), "deletes go on and little is to be won");
        assert!(!pace.is_worth_reclaiming(2_000, some));
        assert!(!pace.is_worth_reclaiming(2_000, some));
        assert!(pace.is_worth_reclaiming(2_000, some), "deletes have paused");
        let much = Waste { rows: 100_000, tombstones: 25_000 };
        assert!(pace.is_worth_reclaiming(30_000, much), "a quarter is waste");
        let few = Waste { rows: 10, tombstones: 10 };
        pace.reclaimed = 30_000;
        assert!(!pace.is_worth_reclaiming(30_000, few), "a handful is not worth it");
    }
}
