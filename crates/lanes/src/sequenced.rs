//! Sequenced lanes: the store gives the numbers.

use std::sync::{Mutex, PoisonError};

use millpond_store::{Certainty, Expect, Expiry, Result, Store as _, StoreError, Write};

use crate::append::{Append, Attempt};
use crate::cargo::Shelf;
use crate::carry::Carry;
use crate::commit::{Bounds, Commit, GroupCommit};
use crate::config::{Ground, LaneConfig};
use crate::lane::Lane;
use crate::lane::private::HasRows;
use crate::limits::{APPEND_CONFLICTS_MAX, HUSK_KEPT};
use crate::message::Message;
use crate::once::Onces;
use crate::rows::{Removal, Rows};
use crate::scan::Scan;
use crate::segment::{Husk, Kind, Place, Row, Segment};
use crate::tail::{Tail, TailView};

pub use crate::once::Given;

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

/// Why a segment was not appended.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// The lane has seen a greater fence token.
    Fenced {
        /// The greatest one.
        current: u64,
    },
    /// What was to be written beside it found something else than it expected.
    Beside(StoreError),
    /// The store; by its certainty the segment may be in the lane.
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) | Refusal::Beside(error) => error,
            Refusal::Fenced { current } => {
                Self::invalid("fence token", format!("is less than {current}, which came before"))
            }
        }
    }
}

/// A row's numbers, and what it hands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The first number.
    pub first: u64,
    /// The number behind the last.
    pub end: u64,
    /// What the row hands on.
    pub carry: Carry,
    /// Whether its messages are still there.
    pub is_there: bool,
}

impl Stretch {
    fn of(row: &Row) -> Result<Self> {
        let first = match row.place() {
            Place::Number(first) => first,
            Place::Id(_) => 0,
        };
        let is_there = matches!(row, Row::Segment(_));
        Ok(Self { first, end: row.end()?, carry: row.carry(), is_there })
    }
}

fn is_about_beside(append: &Append, error: &StoreError) -> bool {
    match (&append.terms.beside, error) {
        (Some(beside), StoreError::Conflict(conflicts)) => {
            conflicts.iter().any(|conflict| conflict.key == beside.key)
        }
        _ => false,
    }
}

fn too_late() -> StoreError {
    StoreError::Unavailable {
        operation: "append",
        detail: "it took too long and was taken back".to_owned(),
        cause: None,
    }
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
        Ok(Self::over(ground, Rows::open(ground, name, config, Kind::Sequenced)?, config))
    }

    /// The same for a lane whose cargo may be in objects that it shares with others.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_shelf(
        ground: &Ground,
        name: &str,
        config: LaneConfig,
        shelf: &Shelf,
    ) -> Result<Self> {
        let shelf = Some(shelf.name.clone());
        let rows = Rows::open_with_shelf(ground, name, config, Kind::Sequenced, shelf)?;
        Ok(Self::over(ground, rows, config))
    }

    fn over(ground: &Ground, rows: Rows, config: LaneConfig) -> Self {
        let tail = Tail::new(&ground.environment);
        let sequence = Sequence { rows, tail, resting: Mutex::new(None) };
        let bounds = Bounds {
            messages_max: config.segment_messages_max,
            bytes_max: config.segment_bytes_max,
            // A second one would have to be numbered before the first is stored.
            in_flight_max: 1,
        };
        Self { writer: GroupCommit::new(sequence, bounds) }
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
        let given = self.writer.append(messages).await?;
        Ok(given.into_iter().map(|given| given?.number()).collect())
    }

    /// The same for messages that may be [marked](Message::once): one whose mark is found is not appended, and its
    /// outcome says what was kept with the mark.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub async fn append_once(&self, messages: Vec<Message>) -> Result<Vec<Result<Given>>> {
        self.writer.append(messages).await
    }

    /// Appends one prepared segment by itself, and returns the number of its first message. When the outcome is
    /// unknown, call it again with the same append.
    ///
    /// # Errors
    /// As the store's; by their certainty the segment may be in the lane.
    pub async fn append_prepared(&self, append: &mut Append) -> Result<u64> {
        self.sequence().append(append).await.map_err(StoreError::from)
    }

    /// The same for an append under [terms](crate::Terms): says which of them was not met.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was appended, unless its store error says otherwise.
    pub async fn append_under_terms(&self, append: &mut Append) -> Result<u64, Refusal> {
        self.sequence().append(append).await
    }

    /// Whether an append's cargo would travel outside its row, so that it is worth a place in a shared object.
    ///
    /// # Errors
    /// None in practice.
    pub fn needs_room(&self, append: &Append) -> Result<bool> {
        self.rows().needs_room(append)
    }

    /// The last stretch of numbers that begins before `number`, or the last of all; nothing in a lane that never
    /// had one. Removed ones count as long as their husk is there, as the last of all always is.
    ///
    /// # Errors
    /// As the store's.
    pub async fn last_before(&self, number: Option<u64>) -> Result<Option<Stretch>> {
        let row = self.rows().last_row(number.map(Place::Number)).await?;
        row.as_ref().map(Stretch::of).transpose()
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
    async fn finish_with(&self, segment: &Segment, also: Vec<Write>) -> Result<()> {
        self.sequence().finish(segment, also).await
    }
}

impl Commit for Sequence {
    type Position = Given;

    async fn commit(&self, messages: Vec<Message>) -> Result<Vec<Given>> {
        let mut once = Onces::new(messages.len());
        loop {
            let fresh = once.fresh(&messages);
            if fresh.is_empty() {
                return once.given(&messages);
            }
            let mut append = Append::new(&self.rows.environment, &fresh)?;
            match self.append(&mut append).await.map_err(StoreError::from) {
                Ok(first) => once.appended(first),
                // Fewer are left to append each time, so this ends.
                Err(error) if once.found(&messages, &error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Sequence {
    async fn append(&self, append: &mut Append) -> Result<u64, Refusal> {
        for conflicts in 0..APPEND_CONFLICTS_MAX {
            let attempt = self.next_attempt(append, conflicts).await?;
            let place = Place::Number(attempt.number);
            if append.open_attempt.is_none() {
                Self::check_fence(append, attempt.before)?;
                append.follow(attempt.before);
            }
            let error = match self.rows.write_append(append, place).await {
                Ok(()) if self.tail.is_stale(attempt.tail_seen) => {
                    self.take_back(append, place).await?;
                    if append.terms.beside.is_some() {
                        // What was written beside it went with it: its writer must look at that first.
                        return Err(too_late().into());
                    }
                    continue;
                }
                Ok(()) => return Ok(self.appended(append, attempt.number)),
                Err(error) => error,
            };
            if !error.is_conflict() {
                self.tail.forget();
                if append.open_attempt.is_some() {
                    // Of an earlier attempt nobody knows yet whether it was applied.
                    return Err(error.after_unknown("append").into());
                }
                if error.certainty() == Certainty::Unknown {
                    append.open_attempt = Some(attempt);
                }
                return Err(error.into());
            }
            match self.rows.refused_row(&error, place)? {
                // Ours, from an attempt whose answer was lost.
                Some(row) if row.id() == append.id => {
                    return Ok(self.appended(append, attempt.number));
                }
                // Another's: ours was not applied and, the number being taken, never will be.
                Some(row) => {
                    append.open_attempt = None;
                    self.tail.saw(row.end()?, row.carry());
                }
                // The number is free, so that no attempt was applied: what is written beside it is refused.
                None if is_about_beside(append, &error) => {
                    append.open_attempt = None;
                    return Err(Refusal::Beside(error));
                }
                // Nothing there, but a mark: what is marked has been appended before.
                None if append.is_marked_by(&error) => return Err(error.into()),
                // Nothing there: the refusal was not about the row. An open attempt stays open, also one that was only
                // open within the request.
                None => {
                    if matches!(&error, StoreError::Conflict(found) if found.after_unknown()) {
                        append.open_attempt.get_or_insert(attempt);
                    }
                    self.tail.forget();
                }
            }
        }
        let error = StoreError::Throttled {
            operation: "append",
            detail: format!("other writers won {APPEND_CONFLICTS_MAX} numbers in a row"),
        };
        let uncertain = append.open_attempt.is_some();
        Err(if uncertain { error.after_unknown("append") } else { error }.into())
    }

    /// A greater token came before: this writer has been replaced.
    fn check_fence(append: &Append, before: Carry) -> Result<(), Refusal> {
        match append.terms.fence {
            Some(fence) if fence < before.fence => Err(Refusal::Fenced { current: before.fence }),
            _ => Ok(()),
        }
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
        Ok(Attempt { number: view.next, tail_seen: view.seen, before: view.carry })
    }

    async fn look_at_tail(&self) -> Result<TailView> {
        let seen = self.tail.start_look();
        let last = self.rows.last_row(None).await?;
        let next = last.as_ref().map_or(Ok(0), Row::end)?;
        let carry = last.as_ref().map(Row::carry).unwrap_or_default();
        Ok(self.tail.looked(next, carry, seen))
    }

    fn appended(&self, append: &mut Append, number: u64) -> u64 {
        append.open_attempt = None;
        self.tail.saw(number + append.count as u64, append.carry);
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

    async fn finish(&self, segment: &Segment, also: Vec<Write>) -> Result<()> {
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
        let husk = self.rows.remove(segment, removal, also).await?;
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
