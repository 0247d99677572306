//! Reading what was delivered, and seeing what waits.

use std::collections::BTreeSet;
use std::ops::Range;

use millpond_store::{StoreError, Timestamp, collect};

use crate::cursor::Cursor;
use crate::error::{Result, SequencerError};
use crate::gap::{Gap, StoredGap};
use crate::item::Row;
use crate::limits::{LISTING_MAX, PENDING_ROWS_MAX, READ_BYTES_MAX, READ_MAX, RUNS_MAX};
use crate::message::Message;
use crate::names::{kind, life_numbers, number_of, numbers};
use crate::plan::uncovered;
use crate::sequencer::{Place, Sequencer};

/// A message in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Its number.
    pub seq: u64,
    /// When it was put.
    pub at: Timestamp,
    /// The message.
    pub message: Message,
}

impl Delivered {
    pub(crate) fn from_row(row: Row) -> Self {
        Self { seq: row.seq, at: row.at, message: row.message }
    }
}

/// What a queue holds at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A message.
    Message(Delivered),
    /// Numbers that were skipped, cut to the range that was asked for.
    Gap(Gap),
}

/// An answer to `read`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    /// Messages and gaps, by rising number. Together they are every number from the first asked for up to `next`.
    pub outputs: Vec<Output>,
    /// The number behind the last one in the answer. It is less than what was asked for when the answer is full.
    pub next: u64,
}

impl Read {
    /// The messages alone.
    pub fn messages(&self) -> impl Iterator<Item = &Delivered> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Message(message) => Some(message),
            Output::Gap(_) => None,
        })
    }
}

/// What waits ahead of a queue's cursor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pending {
    /// Messages.
    pub count: u64,
    /// Bytes of their payload.
    pub bytes: u64,
    /// From the awaited number to the greatest that waits, both included; zero when nothing waits.
    pub span: u64,
    /// The waiting numbers as runs without a break, at most [`RUNS_MAX`].
    pub runs: Vec<Range<u64>>,
}

impl Sequencer {
    /// The messages of a range, in order, and the gaps among them. The range must lie within what was delivered and is
    /// still kept.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`], which says what is there; or as the store's.
    pub async fn read(&self, queue: &str, range: Range<u64>) -> Result<Read> {
        let place = self.place(queue)?;
        let cursor = match self.stored_cursor(&place).await? {
            Some(stored) => stored.cursor,
            None => Cursor::starting(range.start.min(range.end)),
        };
        check_range(&place, &cursor, &range)?;
        self.read_range(&place, &cursor, range).await
    }

    pub(crate) async fn read_range(
        &self,
        place: &Place,
        cursor: &Cursor,
        range: Range<u64>,
    ) -> Result<Read> {
        let gaps = self.gaps_within(place, cursor, &range).await?;
        let mut gaps = gaps.into_iter().peekable();
        let mut read = Read { outputs: Vec::new(), next: range.start };
        let mut bytes = 0;
        let mut next = Some(numbers(&place.partition, kind::ITEM, range.start, range.end)?);
        while let Some(query) = next {
            let page = self.store.query(query).await?;
            for item in &page.items {
                let seq = number_of(&item.key)?;
                while let Some(gap) = gaps.next_if(|gap| gap.first == read.next) {
                    read.next = gap.end;
                    read.outputs.push(Output::Gap(gap));
                }
                if seq < read.next {
                    // It came after its number was skipped.
                    continue;
                }
                if seq > read.next {
                    return self.missing_row(place, &range, read.next).await;
                }
                let row = Row::decode(item)?;
                bytes += row.message.payload.len();
                read.outputs.push(Output::Message(Delivered::from_row(row)));
                read.next = seq + 1;
                if read.outputs.len() >= READ_MAX || bytes >= READ_BYTES_MAX {
                    return Ok(read);
                }
            }
            next = page.next;
        }
        while let Some(gap) = gaps.next_if(|gap| gap.first == read.next) {
            read.next = gap.end;
            read.outputs.push(Output::Gap(gap));
        }
        if read.next < range.end {
            return self.missing_row(place, &range, read.next).await;
        }
        Ok(read)
    }

    /// Gaps that touch a range, cut to it.
    async fn gaps_within(
        &self,
        place: &Place,
        cursor: &Cursor,
        range: &Range<u64>,
    ) -> Result<Vec<Gap>> {
        if cursor.gaps == 0 || range.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Vec<Gap> =
            self.gap_over(place, cursor.life, range.start).await?.into_iter().collect();
        let behind = range.start + 1;
        let query = life_numbers(&place.partition, kind::GAP, cursor.life, behind, range.end)?;
        for item in collect(self.store.as_ref(), query, LISTING_MAX).await? {
            found.push(StoredGap::decode(&item)?.gap);
        }
        let cut = |gap: Gap| Gap {
            first: gap.first.max(range.start),
            end: gap.end.min(range.end),
            ..gap
        };
        Ok(found.into_iter().map(cut).collect())
    }

    /// A delivered number without a message or a gap: removed meanwhile, or damage.
    async fn missing_row(&self, place: &Place, range: &Range<u64>, seq: u64) -> Result<Read> {
        if let Some(stored) = self.stored_cursor(place).await? {
            check_range(place, &stored.cursor, range)?;
        }
        let detail = format!("number {seq} was delivered and is not there");
        Err(StoreError::corrupt(format!("queue {}", place.queue), detail).into())
    }

    /// What waits ahead of a queue's cursor.
    ///
    /// # Errors
    /// As the store's; also when more than [`PENDING_ROWS_MAX`] messages wait.
    pub async fn pending(&self, queue: &str) -> Result<Pending> {
        let place = self.place(queue)?;
        let next = self.next_of(&place).await?.next;
        let mut pending = Pending::default();
        let query = numbers(&place.partition, kind::ITEM, next, u64::MAX)?;
        for item in collect(self.store.as_ref(), query, PENDING_ROWS_MAX).await? {
            let seq = number_of(&item.key)?;
            pending.count += 1;
            pending.bytes += item.attributes.bytes("body")?.len() as u64;
            pending.span = seq - next + 1;
            if let Some(run) = pending.runs.last_mut().filter(|run| run.end == seq) {
                run.end += 1;
            } else if pending.runs.len() < RUNS_MAX {
                pending.runs.push(seq..seq + 1);
            }
        }
        Ok(pending)
    }

    /// The numbers that are missing: between what the queue waits for and the greatest that waits, without what was
    /// declared as a gap; at most [`RUNS_MAX`] runs of them.
    ///
    /// # Errors
    /// As [`pending`](Self::pending).
    pub async fn missing(&self, queue: &str) -> Result<Vec<Range<u64>>> {
        let place = self.place(queue)?;
        let cursor = self.next_of(&place).await?;
        let query = numbers(&place.partition, kind::ITEM, cursor.next, u64::MAX)?;
        let items = collect(self.store.as_ref(), query, PENDING_ROWS_MAX).await?;
        let items = items.iter().map(|item| number_of(&item.key));
        let items = items.collect::<Result<BTreeSet<u64>>>()?;
        let gaps = match cursor.gaps_ahead {
            0 => Vec::new(),
            _ => self.gaps_from(&place, cursor.life, cursor.next, RUNS_MAX).await?.0,
        };
        let last_gap = gaps.last().map_or(cursor.next, |stored| stored.gap.end);
        let end = items.last().map_or(cursor.next, |seq| seq + 1).max(last_gap);
        let free = uncovered(cursor.next, end, &items, &gaps);
        Ok(free.into_iter().take(RUNS_MAX).map(|(first, end)| first..end).collect())
    }

    async fn next_of(&self, place: &Place) -> Result<Cursor> {
        let (first, _) = match self.stored_cursor(place).await? {
            Some(stored) => return Ok(stored.cursor),
            None => self.stored_numbers(place, 0, 1).await?,
        };
        let first = first.first().copied().unwrap_or(0);
        Ok(match self.config.start {
            crate::config::Start::At(start) => Cursor::starting(start),
            _ => Cursor::starting(first),
        })
    }
}

pub(crate) fn check_range(place: &Place, cursor: &Cursor, range: &Range<u64>) -> Result<()> {
    let refuse = |what, asked| {
        let (queue, first, next) = (place.queue.to_string(), cursor.floor, cursor.next);
        Err(SequencerError::OutOfRange { queue, what, asked, first, next })
    };
    if range.start < cursor.floor || range.start > cursor.next {
        return refuse("range start", range.start);
    }
    if range.end > cursor.next {
        return refuse("range end", range.end);
    }
    if range.end < range.start {
        let problem = format!("{range:?} ends before it begins");
        return Err(SequencerError::invalid("range", problem));
    }
    Ok(())
}
