//! Sequenced lanes: the store gives the numbers.

use std::sync::{Mutex, PoisonError};

use millpond_store::{Certainty, Expect, Expiry, Result, Store as _, StoreError, Write};

use crate::append::{Append, Attempt};
use crate::commit::{Bounds, Commit, GroupCommit};
use crate::config::{Ground, LaneConfig};
use crate::lane::Lane;
use crate::lane::private::HasRows;
use crate::limits::{APPEND_CONFLICTS_MAX, HUSK_KEPT};
use crate::message::Message;
use crate::rows::{Removal, Rows};
use crate::scan::Scan;
use crate::segment::{Husk, Kind, Place, Row, Segment};
use crate::tail::{Tail, TailView};

/// A lane whose messages have contiguous numbers from 0. A row's key is the number of its first message, and a
/// writer takes the number behind the last row by putting there if nothing is: of two writers one wins it, the
/// other goes behind. For FIFO queues and log partitions.
///
/// A removed row stays as a husk for a while, and the last row for as long as it is the last, so that no number is
/// ever given twice. See `docs/guarantees.md`, I5.
#[derive(Debug)]
pub struct SequencedLane {
    writer: GroupCommit<Sequence>,
}

#[derive(Debug)]
struct Sequence {
    rows: Rows,
    tail: Tail,
    /// The husk of a row that was the last when it was removed, to be let go once it is not.
    resting: Mutex<Option<Husk>>,
}

impl SequencedLane {
    /// Opens the lane called `name`. There is nothing to create: a lane begins with its first message.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] or [`StoreError::Invalid`] when the name cannot be one.
    pub fn open(ground: &Ground, name: &str, config: LaneConfig) -> Result<Self> {
        let rows = Rows::open(ground, name, config, Kind::Sequenced)?;
        let tail = Tail::new(&ground.environment);
        let sequence = Sequence { rows, tail, resting: Mutex::new(None) };
        let bounds = Bounds {
            messages_max: config.segment_messages_max,
            bytes_max: config.segment_bytes_max,
            // A second one would have to be numbered before the first is stored.
            in_flight_max: 1,
        };
        Ok(Self { writer: GroupCommit::new(sequence, bounds) })
    }

    fn sequence(&self) -> &Sequence {
        self.writer.commit()
    }

    /// Appends messages in order, together with what others append at the same time; each gets its number. When
    /// one fails, those behind it in the same call are not tried.
    ///
    /// # Errors
    /// When a message is too large; then nothing is appended. Each message has its own outcome otherwise.
    pub async fn append(&self, messages: Vec<Message>) -> Result<Vec<Result<u64>>> {
        self.writer.append(messages).await
    }

    /// Appends one prepared segment by itself, and returns the number of its first message. When the outcome is
    /// unknown, call it again with the same append.
    ///
    /// # Errors
    /// As the store's; by their certainty the segment may be in the lane.
    pub async fn append_prepared(&self, append: &mut Append) -> Result<u64> {
        self.sequence().append(append).await
    }

    /// The number that the next message will have.
    ///
    /// # Errors
    /// As the store's.
    pub async fn tail(&self) -> Result<u64> {
        self.sequence().look_at_tail().await.map(|view| view.next)
    }

    /// A scan that begins with the segment in which the message with this number is.
    ///
    /// # Errors
    /// As the store's.
    pub async fn scan_from(&self, number: u64) -> Result<Scan> {
        // A row that begins with the number itself is found by the scan; only one that began before is not.
        let before = self.rows().last_row(Some(Place::Number(number.saturating_add(1)))).await?;
        let start = match before {
            Some(row) if row.end()? > number => row.place(),
            _ => Place::Number(number),
        };
        self.scan()?.from(start)
    }
}

impl HasRows for SequencedLane {
    fn rows(&self) -> &Rows {
        &self.sequence().rows
    }
}

impl Lane for SequencedLane {
    /// Its numbers are never given again.
    async fn finish(&self, segment: &Segment) -> Result<()> {
        self.sequence().finish(segment).await
    }
}

impl Commit for Sequence {
    type Position = u64;

    async fn commit(&self, messages: Vec<Message>) -> Result<Vec<u64>> {
        let mut append = Append::new(&self.rows.environment, &messages)?;
        let first = self.append(&mut append).await?;
        Ok((first..).take(messages.len()).collect())
    }
}

impl Sequence {
    async fn append(&self, append: &mut Append) -> Result<u64> {
        for conflicts in 0..APPEND_CONFLICTS_MAX {
            let attempt = self.next_attempt(append, conflicts).await?;
            let place = Place::Number(attempt.number);
            let error = match self.rows.write_append(append, place).await {
                Ok(()) if self.tail.is_stale(attempt.tail_seen) => {
                    self.take_back(append, place).await?;
                    continue;
                }
                Ok(()) => return Ok(self.appended(append, attempt.number)),
                Err(error) => error,
            };
            if !error.is_conflict() {
                if error.certainty() == Certainty::Unknown {
                    append.open_attempt = Some(attempt);
                }
                self.tail.forget();
                return Err(error);
            }
            match self.rows.refused_row(&error, place)? {
                // Ours, from an attempt whose answer was lost.
                Some(row) if row.id() == append.id => {
                    return Ok(self.appended(append, attempt.number));
                }
                // Another's: ours was not applied and, the number being taken, never will be.
                Some(row) => {
                    append.open_attempt = None;
                    self.tail.saw(row.end()?);
                }
                // Nothing there: the refusal was not about the row. An open attempt stays open.
                None => self.tail.forget(),
            }
        }
        Err(StoreError::Throttled {
            operation: "append",
            detail: format!("other writers won {APPEND_CONFLICTS_MAX} numbers in a row"),
        })
    }

    /// The number to try: the one whose outcome is open, or the one behind the tail.
    async fn next_attempt(&self, append: &Append, conflicts: u32) -> Result<Attempt> {
        if let Some(attempt) = append.open_attempt {
            if self.tail.is_stale(attempt.tail_seen) {
                return Err(StoreError::UnknownOutcome {
                    operation: "append",
                    detail: format!("number {} was tried too long ago to find out", attempt.number),
                    cause: None,
                });
            }
            return Ok(attempt);
        }
        // After a second conflict the tail has moved by more than one row: look where it is.
        let known = if conflicts < 2 { self.tail.fresh() } else { None };
        let view = match known {
            Some(view) => view,
            None => self.look_at_tail().await?,
        };
        Ok(Attempt { number: view.next, tail_seen: view.seen })
    }

    async fn look_at_tail(&self) -> Result<TailView> {
        let seen = self.tail.start_look();
        let last = self.rows.last_row(None).await?;
        let next = last.as_ref().map_or(Ok(0), Row::end)?;
        Ok(self.tail.looked(next, seen))
    }

    fn appended(&self, append: &mut Append, number: u64) -> u64 {
        append.open_attempt = None;
        self.tail.saw(number + append.count as u64);
        number
    }

    /// The write took so long that the number may have been given and removed in between. If nobody has seen the
    /// row, it is taken back and appended anew; if somebody has, it is in use and stays.
    async fn take_back(&self, append: &mut Append, place: Place) -> Result<()> {
        self.tail.forget();
        tracing::warn!(lane = %self.rows.lane, ?place, "an append took too long and is made anew");
        match self.rows.undo(append, place).await {
            Err(error) if error.is_conflict() => {
                let detail = "it took too long, and its row has been changed since".to_owned();
                Err(StoreError::UnknownOutcome { operation: "append", detail, cause: None })
            }
            undone => undone,
        }
    }

    async fn finish(&self, segment: &Segment) -> Result<()> {
        let end = Row::Segment(segment.clone()).end()?;
        let is_last = match self.tail.reached() {
            Some(next) if next > end => false,
            _ => self.look_at_tail().await?.next <= end,
        };
        let now = self.rows.environment.now();
        let removal = if is_last {
            Removal::Husk(None)
        } else if now.since(segment.appended) >= HUSK_KEPT * 2 {
            // No writer that still counts saw the tail before this row was there.
            Removal::Delete
        } else {
            Removal::Husk(Some(Expiry::at(now.plus(HUSK_KEPT))))
        };
        let husk = self.rows.remove(segment, removal).await?;
        let rested = {
            let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
            let rested =
                if is_last { std::mem::replace(&mut *resting, husk) } else { resting.take() };
            rested.filter(|husk| husk.place < segment.place)
        };
        if let Some(husk) = rested {
            self.let_go(husk).await;
        }
        Ok(())
    }

    /// Gives the husk of a row that is no longer the last an end. If that fails, a small row stays, and no more.
    async fn let_go(&self, husk: Husk) {
        let expiry = Expiry::at(self.rows.environment.now().plus(HUSK_KEPT));
        let expect = Expect::Version(husk.version);
        let version = self.rows.environment.version();
        let ending = Husk { expiry: Some(expiry), version, ..husk };
        let write: Result<Write> = self.rows.put_husk(&ending, expect);
        let outcome = match write {
            Ok(write) => self.rows.store.write(write).await,
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(lane = %self.rows.lane, %error, "a husk stays");
        }
    }
}
