//! The delivery state of a segment's messages, as kept in its row.
//!
//! ```text
//! format  1 byte, 1
//! then runs of messages that are in the same state: count varint, kind 1 byte, then
//!   0 fresh
//!   1 done
//!   2 waiting    record, token 8 bytes (of the lease that ended), due time
//!   3 leased     record, token 8 bytes, until time, worker bytes
//!   4 held       record
//!   5 succeeded  record, at time, worker bytes, result bytes
//!   6 failed     the same
//!   7 leased, and its holder has changed until when: as 3
//! record: receives varint, first time, last time, error bytes,
//!         attempts: count varint, each its time and 1 byte: 0 open, 1 lapsed, 2 released, 3 failed
//! ```
//! A time is its distance from the segment's own in milliseconds, as a zigzag varint. No state at all means that
//! every message is fresh.

use bytes::Bytes;
use millpond_lanes::codec::{Reader, put_bytes, put_varint};
use millpond_store::Timestamp;

use crate::limits::ATTEMPTS_KEPT;
use crate::origin::{Attempt, Ended};

const FORMAT: u8 = 1;

/// What is known of a message's deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// How often it was received.
    pub receives: u32,
    /// When it was received for the first time.
    pub first: Timestamp,
    /// The last error that a receiver reported.
    pub error: String,
    /// The last deliveries, oldest first.
    pub attempts: Vec<Attempt>,
    /// Whether its holder has changed until when it is on loan.
    pub extended: bool,
}

/// The right to work on a message for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What the receipt must show.
    pub token: u64,
    /// When it ends.
    pub until: Timestamp,
    /// Who holds it, if said.
    pub worker: String,
}

/// How a task ended, when that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Whether it succeeded.
    pub success: bool,
    /// When.
    pub at: Timestamp,
    /// Who did it, if said.
    pub worker: String,
    /// The result, or the error.
    pub result: Bytes,
}

/// The state of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// Never received.
    Fresh,
    /// Back after a delivery, from `due` on.
    Waiting { record: Record, ended_by: u64, due: Timestamp },
    /// On loan.
    Leased { record: Record, lease: Lease },
    /// Held back until somebody lets it go.
    Held { record: Record },
    /// Finished; nothing more is known.
    Done,
    /// Finished, and how.
    Ended { record: Record, ending: Ending },
}

impl Slot {
    /// Whether the message is finished. It never reverts.
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done | Self::Ended { .. })
    }

    /// What is known of its deliveries.
    pub const fn record(&self) -> Option<&Record> {
        match self {
            Self::Waiting { record, .. }
            | Self::Leased { record, .. }
            | Self::Held { record }
            | Self::Ended { record, .. } => Some(record),
            Self::Fresh | Self::Done => None,
        }
    }

    /// The lease, also one that has run out.
    pub const fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Leased { lease, .. } => Some(lease),
            _ => None,
        }
    }

    /// When the message can be received, going by its state alone; never when it is done or held.
    pub fn free_at(&self) -> Option<Timestamp> {
        match self {
            Self::Fresh => Some(Timestamp::from_millis(0)),
            Self::Waiting { due, .. } => Some(*due),
            Self::Leased { lease, .. } => Some(lease.until),
            Self::Held { .. } | Self::Done | Self::Ended { .. } => None,
        }
    }

    /// Takes the message on loan.
    pub fn claim(&mut self, now: Timestamp, lease: Lease) {
        let mut record = self.record().cloned().unwrap_or_default();
        if record.receives == 0 {
            record.first = now;
        }
        record.receives = record.receives.saturating_add(1);
        record.end_attempt(Ended::Lapsed);
        record.extended = false;
        record.attempts.push(Attempt { at_ms: now.as_millis(), ended: Ended::Open });
        if record.attempts.len() > ATTEMPTS_KEPT {
            record.attempts.remove(0);
        }
        *self = Self::Leased { record, lease };
    }

    /// Gives a message on loan back.
    pub fn give_back(&mut self, due: Timestamp, ended: Ended, error: Option<String>) {
        let Self::Leased { record, lease } = self else { return };
        let mut record = std::mem::take(record);
        record.end_attempt(ended);
        record.extended = false;
        if let Some(error) = error {
            record.error = error;
        }
        *self = Self::Waiting { record, ended_by: lease.token, due };
    }
}

impl Slot {
    /// The last delivery of a message that waits does not count: nobody worked on it.
    pub fn uncount(&mut self) {
        if let Self::Waiting { record, .. } = self {
            record.receives = record.receives.saturating_sub(1);
            record.attempts.pop();
        }
    }
}

impl Record {
    fn end_attempt(&mut self, ended: Ended) {
        if let Some(last) = self.attempts.last_mut().filter(|last| last.ended == Ended::Open) {
            last.ended = ended;
        }
    }
}

/// Reads the state of `count` messages; nothing when the bytes are anything else.
pub fn decode(bytes: &[u8], count: usize, base: Timestamp) -> Option<Vec<Slot>> {
    if bytes.is_empty() {
        return Some(vec![Slot::Fresh; count]);
    }
    let mut reader = Times { reader: Reader::new(bytes), base };
    if reader.reader.byte()? != FORMAT {
        return None;
    }
    let mut slots = Vec::with_capacity(count);
    while !reader.reader.is_empty() {
        let run = reader.reader.length().filter(|run| (1..=count - slots.len()).contains(run))?;
        let slot = reader.slot()?;
        slots.resize(slots.len() + run, slot);
    }
    (slots.len() == count).then_some(slots)
}

/// The state as stored.
pub fn encode(slots: &[Slot], base: Timestamp) -> Bytes {
    if slots.iter().all(|slot| *slot == Slot::Fresh) {
        return Bytes::new();
    }
    let mut out = vec![FORMAT];
    for run in slots.chunk_by(|a, b| a == b) {
        put_varint(&mut out, run.len() as u64);
        if let Some(slot) = run.first() {
            put_slot(&mut out, slot, base);
        }
    }
    out.into()
}

fn put_slot(out: &mut Vec<u8>, slot: &Slot, base: Timestamp) {
    match slot {
        Slot::Fresh => out.push(0),
        Slot::Done => out.push(1),
        Slot::Waiting { record, ended_by, due } => {
            out.push(2);
            put_record(out, record, base);
            out.extend_from_slice(&ended_by.to_be_bytes());
            put_time(out, *due, base);
        }
        Slot::Leased { record, lease } => {
            out.push(if record.extended { 7 } else { 3 });
            put_record(out, record, base);
            out.extend_from_slice(&lease.token.to_be_bytes());
            put_time(out, lease.until, base);
            put_bytes(out, lease.worker.as_bytes());
        }
        Slot::Held { record } => {
            out.push(4);
            put_record(out, record, base);
        }
        Slot::Ended { record, ending } => {
            out.push(if ending.success { 5 } else { 6 });
            put_record(out, record, base);
            put_time(out, ending.at, base);
            put_bytes(out, ending.worker.as_bytes());
            put_bytes(out, &ending.result);
        }
    }
}

fn put_record(out: &mut Vec<u8>, record: &Record, base: Timestamp) {
    put_varint(out, u64::from(record.receives));
    put_time(out, record.first, base);
    put_bytes(out, record.error.as_bytes());
    put_varint(out, record.attempts.len() as u64);
    for attempt in &record.attempts {
        put_time(out, Timestamp::from_millis(attempt.at_ms), base);
        out.push(match attempt.ended {
            Ended::Open => 0,
            Ended::Lapsed => 1,
            Ended::Released => 2,
            Ended::Failed => 3,
        });
    }
}

fn put_time(out: &mut Vec<u8>, time: Timestamp, base: Timestamp) {
    let after = time.as_millis().wrapping_sub(base.as_millis()).cast_signed();
    put_varint(out, (after << 1 ^ after >> 63).cast_unsigned());
}

struct Times<'a> {
    reader: Reader<'a>,
    base: Timestamp,
}

impl Times<'_> {
    fn time(&mut self) -> Option<Timestamp> {
        let zigzag = self.reader.varint()?;
        let after = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
        Some(Timestamp::from_millis(self.base.as_millis().wrapping_add(after.cast_unsigned())))
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.reader.bytes()?.to_vec()).ok()
    }

    fn token(&mut self) -> Option<u64> {
        self.reader.array().map(u64::from_be_bytes)
    }

    fn record(&mut self) -> Option<Record> {
        let receives = u32::try_from(self.reader.varint()?).ok()?;
        let first = self.time()?;
        let error = self.text()?;
        let count = self.reader.length().filter(|count| *count <= ATTEMPTS_KEPT)?;
        let mut attempts = Vec::with_capacity(count);
        for _ in 0..count {
            let at_ms = self.time()?.as_millis();
            let ended = match self.reader.byte()? {
                0 => Ended::Open,
                1 => Ended::Lapsed,
                2 => Ended::Released,
                3 => Ended::Failed,
                _ => return None,
            };
            attempts.push(Attempt { at_ms, ended });
        }
        Some(Record { receives, first, error, attempts, extended: false })
    }

    fn slot(&mut self) -> Option<Slot> {
        let kind = self.reader.byte()?;
        Some(match kind {
            0 => Slot::Fresh,
            1 => Slot::Done,
            2 => {
                let (record, ended_by) = (self.record()?, self.token()?);
                Slot::Waiting { record, ended_by, due: self.time()? }
            }
            3 | 7 => {
                let (record, token) = (self.record()?, self.token()?);
                let record = Record { extended: kind == 7, ..record };
                let (until, worker) = (self.time()?, self.text()?);
                Slot::Leased { record, lease: Lease { token, until, worker } }
            }
            4 => Slot::Held { record: self.record()? },
            5 | 6 => {
                let record = self.record()?;
                let (at, worker) = (self.time()?, self.text()?);
                let result = Bytes::copy_from_slice(self.reader.bytes()?);
                Slot::Ended { record, ending: Ending { success: kind == 5, at, worker, result } }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

    const BASE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn time() -> impl Strategy<Value = Timestamp> {
        prop_oneof![any::<u64>(), 1_699_999_000_000..1_700_001_000_000_u64]
            .prop_map(Timestamp::from_millis)
    }

    fn record() -> impl Strategy<Value = Record> {
        let ended = prop_oneof![Just(Ended::Open), Just(Ended::Lapsed), Just(Ended::Failed)];
        let attempt =
            (time(), ended).prop_map(|(at, ended)| Attempt { at_ms: at.as_millis(), ended });
        (any::<u32>(), time(), ".{0,9}", vec(attempt, 0..ATTEMPTS_KEPT)).prop_map(
            |(receives, first, error, attempts)| {
                let extended = false;
                Record { receives, first, error, attempts, extended }
            },
        )
    }

    fn slot() -> impl Strategy<Value = Slot> {
        let leased = (record(), any::<bool>(), any::<u64>(), time(), ".{0,9}").prop_map(
            |(record, extended, token, until, worker)| Slot::Leased {
                record: Record { extended, ..record },
                lease: Lease { token, until, worker },
            },
        );
        let ended = (record(), any::<bool>(), time(), vec(any::<u8>(), 0..20)).prop_map(
            |(record, success, at, result)| Slot::Ended {
                record,
                ending: Ending { success, at, worker: "w".into(), result: result.into() },
            },
        );
        prop_oneof![
            Just(Slot::Fresh),
            Just(Slot::Done),
            (record(), any::<u64>(), time()).prop_map(|(record, ended_by, due)| Slot::Waiting {
                record,
                ended_by,
                due
            }),
            leased,
            record().prop_map(|record| Slot::Held { record }),
            ended,
        ]
    }

    proptest! {
        #[test]
        fn states_round_trip(slots in vec(slot(), 1..64)) {
            let bytes = encode(&slots, BASE);
            prop_assert_eq!(decode(&bytes, slots.len(), BASE), Some(slots));
        }

        #[test]
        fn hostile_bytes_never_panic(mut bytes in vec(any::<u8>(), 1..100), count in 0..64_usize) {
            bytes[0] = FORMAT;
            if let Some(slots) = decode(&bytes, count, BASE) {
                prop_assert_eq!(slots.len(), count);
            }
        }
    }

    #[test]
    fn a_claimed_segment_stays_within_the_room_that_rows_keep() {
        let mut slots = vec![Slot::Fresh; 64];
        let until = BASE.plus(std::time::Duration::from_secs(30));
        for slot in &mut slots {
            slot.claim(BASE, Lease { token: u64::MAX, until, worker: String::new() });
        }
        let bytes = encode(&slots, BASE);
        assert!(bytes.len() <= 64, "{} bytes", bytes.len());
    }

    #[test]
    fn deliveries_are_remembered_with_how_they_ended() {
        let mut slot = Slot::Fresh;
        let lease = |token| Lease { token, until: BASE, worker: String::new() };
        slot.claim(BASE, lease(1));
        slot.claim(BASE, lease(2));
        slot.give_back(BASE, Ended::Failed, Some("no".into()));
        let record = slot.record().unwrap();
        assert_eq!((record.receives, record.error.as_str()), (2, "no"));
        let ended: Vec<_> = record.attempts.iter().map(|attempt| attempt.ended).collect();
        assert_eq!(ended, [Ended::Lapsed, Ended::Failed]);
    }
}
