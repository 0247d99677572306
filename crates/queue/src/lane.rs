//! The two kinds of lane behind one face.

use bytes::Bytes;
use millpond_lanes::{
    Append, Given, Ground, Lane as _, LaneConfig, Message, Place, Scan, Segment, SegmentPage,
    SequencedLane, UnorderedLane,
};
use millpond_store::{ChangeHint, Result, StoreError, Write};

use crate::id::{MessageId, MessagePlace};

/// A lane of a client's queue.
#[derive(Debug)]
pub struct QueueLane {
    number: u8,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Loose(UnorderedLane),
    Strict(SequencedLane),
}

/// What became of an appended message.
#[derive(Debug)]
pub struct Appended {
    pub id: MessageId,
    pub duplicate: bool,
}

/// Calls the same method on either kind of lane.
macro_rules! either {
    ($self:ident, $lane:ident => $call:expr) => {
        match &$self.kind {
            Kind::Loose($lane) => $call,
            Kind::Strict($lane) => $call,
        }
    };
}

impl QueueLane {
    pub fn open(
        ground: &Ground,
        name: &str,
        number: u8,
        config: LaneConfig,
        strict: bool,
    ) -> Result<Self> {
        let kind = if strict {
            Kind::Strict(SequencedLane::open(ground, name, config)?)
        } else {
            Kind::Loose(UnorderedLane::open(ground, name, config)?)
        };
        Ok(Self { number, kind })
    }

    /// Appends messages in order.
    pub async fn append(&self, messages: Vec<Message>) -> Result<Vec<Result<Appended>>> {
        let lane = self.number;
        Ok(match &self.kind {
            Kind::Loose(loose) => loose
                .append(messages)
                .await?
                .into_iter()
                .map(|position| {
                    let position = position?;
                    let id = MessageId::of(lane, Place::Id(position.segment), position.slot);
                    Ok(Appended { id, duplicate: false })
                })
                .collect(),
            Kind::Strict(strict) => strict
                .append_once(messages)
                .await?
                .into_iter()
                .map(|given| appended_once(lane, &given?))
                .collect(),
        })
    }

    /// Appends one message under an id of its own in a loose lane, so that doing it again does nothing; in a strict
    /// lane its mark does the same.
    pub async fn append_move(&self, mut append: Append, message: Message) -> Result<MessageId> {
        match &self.kind {
            Kind::Loose(loose) => {
                let id = loose.append_prepared(&mut append).await?;
                Ok(MessageId::of(self.number, Place::Id(id), 0))
            }
            Kind::Strict(_) => {
                let outcome = self.append(vec![message]).await?.pop();
                outcome
                    .unwrap_or_else(|| Err(StoreError::invalid("move", "was not made")))
                    .map(|appended| appended.id)
            }
        }
    }

    pub fn scan(&self) -> Result<Scan> {
        either!(self, lane => lane.scan())
    }

    pub async fn page(&self, scan: Scan) -> Result<SegmentPage> {
        either!(self, lane => lane.page(scan).await)
    }

    /// The number that the next message will have; zero in a lane without numbers.
    pub async fn tail(&self) -> Result<u64> {
        match &self.kind {
            Kind::Loose(_) => Ok(0),
            Kind::Strict(lane) => lane.tail().await,
        }
    }

    pub async fn get(&self, place: Place) -> Result<Option<Segment>> {
        either!(self, lane => lane.get(place).await)
    }

    /// The segment that a message is in, and its slot there.
    pub async fn find(&self, place: MessagePlace) -> Result<Option<(Segment, usize)>> {
        match (&self.kind, place) {
            (Kind::Loose(lane), MessagePlace::Slot(id, slot)) => {
                let segment = lane.get(Place::Id(id)).await?;
                let slot = usize::from(slot);
                Ok(segment.filter(|segment| slot < segment.count).map(|segment| (segment, slot)))
            }
            (Kind::Strict(lane), MessagePlace::Number(number)) => {
                let page = lane.page(lane.scan_from(number).await?.limit(1)).await?;
                let found = page.segments.into_iter().find_map(|segment| {
                    let slot = usize::try_from(number.checked_sub(segment.first()?)?).ok()?;
                    (slot < segment.count).then_some((segment, slot))
                });
                Ok(found)
            }
            _ => Ok(None),
        }
    }

    pub async fn load(&self, segment: &Segment) -> Result<Vec<Message>> {
        either!(self, lane => lane.load(segment).await)
    }

    pub async fn update(&self, segment: &Segment, state: Bytes) -> Result<Segment> {
        either!(self, lane => lane.update(segment, state).await)
    }

    pub async fn finish(&self, segment: &Segment, also: Vec<Write>) -> Result<()> {
        either!(self, lane => lane.finish_with(segment, also).await)
    }

    pub fn current(&self, conflict: &StoreError) -> Result<Option<Segment>> {
        either!(self, lane => lane.current(conflict))
    }

    pub fn changed(&self) -> ChangeHint {
        either!(self, lane => lane.changed())
    }
}

fn appended_once(lane: u8, given: &Given) -> Result<Appended> {
    let lane = match given {
        Given::Known(mark) => u8::try_from(mark.attributes.number("lane")?)
            .map_err(|_| StoreError::corrupt(format!("mark {}", mark.key), "names no lane"))?,
        Given::New(_) | Given::Repeated(_) => lane,
    };
    let place = MessagePlace::Number(given.number()?);
    let duplicate = !matches!(given, Given::New(_));
    Ok(Appended { id: MessageId { lane, place }, duplicate })
}
