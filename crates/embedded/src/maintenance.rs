//! Background work: removing expired items and reclaiming space.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use millpond_store::{Direction, Result, StoreError};

use crate::cargo::{Cursor, survey};
use crate::engine::{Engine, EngineError, Table, Waste};
use crate::limits::{
    MAINTENANCE_INTERVAL, RECLAIM_ROWS_MIN, RECLAIM_SHARE_BUSY, RECLAIM_SHARE_IDLE,
    RECLAIM_STEPS_MAX, SWEEP_ROWS_MAX, SWEEP_STEPS_MAX,
};
use crate::record::unseal;
use crate::rowkey;
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
    for _ in 0..RECLAIM_STEPS_MAX {
        if !cargo_step(inner, &mut pace.cargo).await? {
            break;
        }
    }
    let deletes = inner.shared.deletes.load(Ordering::Relaxed);
    let waste = inner.shared.engine.waste();
    if pace.is_worth_reclaiming(deletes, waste) || pace.is_reclaiming {
        pace.is_reclaiming = reclaim_rows(inner, RECLAIM_STEPS_MAX).await?;
        pace.reclaimed = deletes;
    }
    Ok(())
}

/// Removes up to [`SWEEP_ROWS_MAX`] expired items.
pub(crate) async fn sweep_step(inner: &Inner) -> Result<usize> {
    inner.shared.check_running()?;
    let now = inner.shared.clock.now().as_millis() / 1_000;
    let not_due = Bytes::copy_from_slice(&now.saturating_add(1).to_be_bytes());
    let [fence, _] = rowkey::expiry_fences();
    let after_fence = rowkey::successor(&fence);
    let mut due = Vec::new();
    inner.shared.scan(
        Table::Expiry,
        (after_fence, not_due),
        Direction::Forward,
        |key, row, _| {
            unseal(Table::Expiry, key, row)?;
            due.push(key.clone());
            Ok(if due.len() < SWEEP_ROWS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        },
    )?;
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

/// Removes everything from the files that is waste.
pub(crate) async fn reclaim(inner: &Inner) -> Result<()> {
    let mut progress = CargoProgress::default();
    while cargo_step(inner, &mut progress).await? {}
    while reclaim_rows(inner, RECLAIM_STEPS_MAX).await? {}
    Ok(())
}

/// How far the rewriting of cargo files has come.
#[derive(Debug, Default)]
pub(crate) struct CargoProgress {
    cursor: Option<Cursor>,
    /// The last file that was looked through.
    done: Option<u64>,
}

/// Moves some rows out of a cargo file that is mostly waste. Returns whether there may be more to do.
pub(crate) async fn cargo_step(inner: &Inner, progress: &mut CargoProgress) -> Result<bool> {
    inner.shared.check_running()?;
    let cursor = match progress.cursor {
        Some(cursor) => cursor,
        None => {
            let found: Result<usize> = inner.ask(Work::FindWasteful, 0).await?.into_iter().sum();
            let file = found? as u64;
            // A file is empty once it was looked through, and then it is gone.
            if file == 0 || progress.done == Some(file) {
                return Ok(false);
            }
            Cursor { file, at: 0 }
        }
    };
    let sight = inner.shared.sight();
    let step_bytes = inner.shared.cargo.step_bytes;
    let surveyed = in_background(inner, move || survey(&sight, cursor, step_bytes)).await?;
    let Some((rows, next)) = surveyed.map_err(|error| inner.shared.locate(error))? else {
        *progress = CargoProgress { cursor: None, done: Some(cursor.file) };
        return Ok(true);
    };
    progress.cursor = Some(next);
    if !rows.is_empty() {
        let bytes = rows.iter().map(|moved| moved.row.len()).sum();
        let moved: Result<usize> = inner.ask(Work::Move(rows), bytes).await?.into_iter().sum();
        tracing::debug!(place = inner.shared.place, ?next, moved = moved?, "moved cargo");
    }
    Ok(true)
}

/// Removes deleted rows from the tables, in up to `steps` steps. Returns whether there may be more to do.
async fn reclaim_rows(inner: &Inner, steps: usize) -> Result<bool> {
    // Views keep what they can see. With a fresh one the engine may let go of all that is older, first of rows
    // (before a step), then of files (after it).
    renew(inner).await?;
    with_engine(inner, |engine| engine.flush()).await?;
    let mut unfinished = true;
    for _ in 0..steps {
        renew(inner).await?;
        unfinished = with_engine(inner, |engine| engine.compact_step()).await?;
        if !unfinished {
            break;
        }
    }
    renew(inner).await?;
    with_engine(inner, |engine| engine.flush()).await?;
    tracing::debug!(place = inner.shared.place, waste = ?inner.shared.engine.waste(), "reclaimed");
    Ok(unfinished)
}

async fn with_engine<T: Send + 'static>(
    inner: &Inner,
    work: impl FnOnce(&dyn Engine) -> Result<T, EngineError> + Send + 'static,
) -> Result<T> {
    let shared = Arc::clone(&inner.shared);
    let done = in_background(inner, move || work(&*shared.engine)).await?;
    done.map_err(|error| inner.shared.read_error("reclaim", error))
}

async fn in_background<T: Send + 'static>(
    inner: &Inner,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StoreError::Unavailable {
        operation: "reclaim",
        detail: format!("{}: a step did not finish", inner.shared.place),
        cause: Some(Arc::new(error)),
    })
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
    /// Whether the last reclaim left something to do.
    is_reclaiming: bool,
    cargo: CargoProgress,
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
