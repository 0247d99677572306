//! Changing a segment's state.
//!
//! What several callers change in one segment at the same time becomes one conditional write. Against other
//! processes, the change is made anew on what they wrote.

use std::sync::{Arc, Mutex};

use millpond_lanes::{Place, Segment};
use millpond_store::{Attributes, Expect, Expiry, Key, StoreError, Write};
use tokio::sync::oneshot;

use super::core::{ClientCore, lock, no_lane};
use crate::error::Result;
use crate::lane::QueueLane;
use crate::limits::EDIT_CONFLICTS_MAX;
use crate::view::SegmentView;

/// A change of a segment, which may be tried several times. It gets nothing when the segment is finished, and says
/// whether it changed anything.
type Change = Box<dyn FnMut(Option<&mut SegmentView>) -> bool + Send>;

/// A change that waits to be written.
pub struct Pending {
    change: Change,
    done: oneshot::Sender<Result<Option<SegmentView>, StoreError>>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pending")
    }
}

impl ClientCore {
    /// Changes a segment. `change` may run several times; what it returned last counts. Returns that, and the
    /// segment as it is now (nothing when it is finished).
    pub async fn edit<T: Send + 'static>(
        self: &Arc<Self>,
        lane: u8,
        place: Place,
        mut change: impl FnMut(Option<&mut SegmentView>) -> (T, bool) + Send + 'static,
    ) -> Result<(T, Option<SegmentView>)> {
        let (done, answer) = oneshot::channel();
        let value = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&value);
        let change: Change = Box::new(move |view| {
            let (value, changed) = change(view);
            *lock(&kept) = Some(value);
            changed
        });
        let starts = {
            let mut edits = lock(&self.edits);
            let waiting = edits.get_mut(&(lane, place));
            let starts = waiting.is_none();
            let pending = Pending { change, done };
            match waiting {
                Some(waiting) => waiting.push(pending),
                None => {
                    edits.insert((lane, place), vec![pending]);
                }
            }
            starts
        };
        if starts {
            // A task of its own: the caller may go away, and others wait for the same write.
            tokio::spawn(Writer { core: Arc::clone(self), lane, place }.run());
        }
        let view = answer.await.unwrap_or_else(|_| Err(writer_ended()))?;
        let value = lock(&value).take();
        value.map(|value| (value, view)).ok_or_else(|| writer_ended().into())
    }
}

/// Writes what waits for one segment.
struct Writer {
    core: Arc<ClientCore>,
    lane: u8,
    place: Place,
}

impl Writer {
    async fn run(self) {
        loop {
            let pending = {
                let mut edits = lock(&self.core.edits);
                let waiting = edits.get_mut(&(self.lane, self.place)).map(std::mem::take);
                match waiting {
                    Some(waiting) if !waiting.is_empty() => waiting,
                    _ => {
                        edits.remove(&(self.lane, self.place));
                        return;
                    }
                }
            };
            self.write(pending).await;
        }
    }

    async fn write(&self, mut pending: Vec<Pending>) {
        let outcome = self.write_all(&mut pending).await;
        for Pending { done, .. } in pending {
            // A caller that has gone away does not want to know.
            let _ = done.send(outcome.clone());
        }
    }

    async fn write_all(&self, pending: &mut [Pending]) -> Result<Option<SegmentView>, StoreError> {
        let lanes = self.core.known_lanes();
        let lane = lanes.get(usize::from(self.lane)).ok_or_else(|| no_lane(self.lane))?;
        let known = self.core.known(self.lane, self.place);
        let mut is_known_for_sure = known.is_none();
        let mut current = match known {
            Some(view) => Some(view.under(&self.core.queue.known_config())),
            None => self.view_of(lane.get(self.place).await?)?,
        };
        let mut conflict = None;
        for _ in 0..EDIT_CONFLICTS_MAX {
            let Some(mut view) = current.take() else {
                // What is finished stays so: nobody writes anything.
                for each in pending.iter_mut() {
                    (each.change)(None);
                }
                self.core.finished(self.lane, self.place, self.core.now());
                return Ok(None);
            };
            let changed = pending
                .iter_mut()
                .fold(false, |changed, each| (each.change)(Some(&mut view)) | changed);
            if !changed && !is_known_for_sure {
                // No write will tell whether what is remembered is still true: a refusal must not rest on it.
                current = self.view_of(lane.get(self.place).await?)?;
                is_known_for_sure = true;
                continue;
            }
            if !changed {
                self.core.saw(self.lane, view.clone(), self.core.now(), conflict.is_some());
                return Ok(Some(view));
            }
            match self.store(lane, &mut view).await {
                Ok(open) => return Ok(open.then_some(view)),
                Err(error) if error.is_conflict() => {
                    let segment = match lane.current(&error)? {
                        Some(segment) => Some(segment),
                        // Finished, or refused for another reason: only what is there can tell.
                        None => lane.get(self.place).await?,
                    };
                    current = self.view_of(segment)?;
                    is_known_for_sure = true;
                    conflict = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(conflict.unwrap_or_else(writer_ended))
    }

    fn view_of(&self, segment: Option<Segment>) -> Result<Option<SegmentView>, StoreError> {
        let config = self.core.queue.known_config();
        segment.map(|segment| SegmentView::of(segment, &config)).transpose()
    }

    /// Writes a changed segment, or removes it when all is done. Says whether it is still there.
    async fn store(&self, lane: &QueueLane, view: &mut SegmentView) -> Result<bool, StoreError> {
        if view.is_done() {
            let also = self.archive(view)?;
            lane.finish(&view.segment, also).await?;
            self.core.finished(self.lane, self.place, self.core.now());
            self.core.tell_unlocked(self.lane);
            return Ok(false);
        }
        let written = lane.update(&view.segment, view.encode()).await?;
        view.written(written);
        let now = self.core.now();
        self.core.saw(self.lane, view.clone(), now, true);
        if view.availability(now).0 > 0 {
            self.core.freed.notify_one();
        } else {
            self.core.tell_unlocked(self.lane);
        }
        Ok(true)
    }

    /// What is kept of a finished segment, when that is asked for.
    fn archive(&self, view: &SegmentView) -> Result<Vec<Write>, StoreError> {
        let config = self.core.queue.known_config();
        let Some(status) = config.status else { return Ok(Vec::new()) };
        let kept = Expiry::at(self.core.now().plus(status.keep));
        let key = archive_key(self.core.prefix(), self.lane, view.place())?;
        let put = Write::put(
            key,
            archived(&view.segment, view),
            Expect::Any,
            self.core.queue.root.environment().version(),
        );
        Ok(vec![put.expires(kept)])
    }
}

fn archived(segment: &Segment, view: &SegmentView) -> Attributes {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Attributes::new()
        .with("at", number(segment.appended.as_millis()))
        .with("n", number(segment.count as u64))
        .with("st", view.encode())
}

/// Where the states of a finished segment are kept.
pub fn archive_key(prefix: &str, lane: u8, place: Place) -> Result<Key, StoreError> {
    let sort = match place {
        Place::Id(id) => id.as_bytes().to_vec(),
        Place::Number(number) => number.to_be_bytes().to_vec(),
    };
    Key::new(format!("{prefix}/{lane}#ended"), sort)
}

fn writer_ended() -> StoreError {
    StoreError::UnknownOutcome {
        operation: "change of a segment",
        detail: "its writer ended before it could say".to_owned(),
        cause: None,
    }
}
