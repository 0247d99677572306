//! A sequenced lane under load: what senders and a consumer do, and what must be there afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use millpond_embedded::EmbeddedStore;
use millpond_lanes::{Ground, Lane as _, LaneConfig, Message, Place, Segment, SequencedLane};
use millpond_store::{Environment, Rng, SeededRng};

use crate::load::print;
use crate::report::Acknowledged;

const NAME: &str = "lane";
/// The consumer leaves about this many messages.
const KEPT: u64 = 500;

fn open(store: &EmbeddedStore, environment: &Environment) -> anyhow::Result<SequencedLane> {
    let ground = Ground::new(Arc::new(store.clone()), environment);
    Ok(SequencedLane::open(&ground, NAME, LaneConfig::QUEUE)?)
}

/// The message that a sender sends as its `serial`th: the body follows from the head.
fn message(sender: u32, serial: u64) -> Message {
    let rng = SeededRng::new(serial ^ (u64::from(sender) << 48));
    // From nothing to 2 KB, so that cargo travels in each way there is.
    let words = rng.below(16) * rng.below(16);
    let body: Vec<u8> = (0..words).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
    let head = [sender.to_be_bytes().as_slice(), serial.to_be_bytes().as_slice()].concat();
    Message { head: head.into(), ..Message::new(body) }
}

fn sender_of(message: &Message) -> anyhow::Result<(u32, u64)> {
    let (sender, serial) = message.head.split_first_chunk().context("no sender")?;
    let serial: &[u8; 8] = serial.try_into().context("no serial number")?;
    Ok((u32::from_be_bytes(*sender), u64::from_be_bytes(*serial)))
}

#[derive(Clone)]
pub(crate) struct LaneLoad {
    lane: Arc<SequencedLane>,
    /// Serial numbers of this cycle begin here.
    serials: u64,
}

impl LaneLoad {
    pub(crate) fn open(
        store: &EmbeddedStore,
        environment: &Environment,
        cycle: u32,
    ) -> anyhow::Result<Self> {
        Ok(Self { lane: Arc::new(open(store, environment)?), serials: u64::from(cycle) << 32 })
    }

    /// Appends messages without end.
    pub(crate) async fn append(self, sender: u32) -> anyhow::Result<()> {
        for serial in self.serials.. {
            for number in self.lane.append(vec![message(sender, serial)]).await? {
                print(Acknowledged::Appended { sender, number: number? })?;
            }
        }
        Ok(())
    }

    /// Finishes the oldest segments, one at a time. Where it was, it remembers: behind it are husks.
    pub(crate) async fn finish(self) -> anyhow::Result<()> {
        let mut position = 0;
        loop {
            let mut scan = Some(self.lane.scan()?.from(Place::Number(position))?.limit(100));
            while let Some(page) = scan {
                let page = self.lane.page(page).await?;
                for segment in &page.segments {
                    position = end(segment)?;
                    while self.lane.tail().await? < position + KEPT {
                        tokio::task::yield_now().await;
                    }
                    self.lane.finish(segment).await?;
                    print(Acknowledged::Finished { number: position })?;
                }
                scan = page.next;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn end(segment: &Segment) -> anyhow::Result<u64> {
    Ok(segment.first().context("no number")? + u64::try_from(segment.count)?)
}

/// What was acknowledged of the lane.
#[derive(Debug, Default)]
pub(crate) struct LaneExpected {
    /// Behind the last number that was given.
    appended: u64,
    /// Behind the last number that was finished.
    finished: u64,
}

impl LaneExpected {
    pub(crate) fn appended(&mut self, number: u64) {
        self.appended = self.appended.max(number + 1);
    }

    pub(crate) fn finished(&mut self, number: u64) {
        self.finished = self.finished.max(number);
    }

    /// Everything acknowledged and not finished is there, in order, without gap or repeat; the consumer and the
    /// lane's writer may each have been one segment ahead of their last report.
    pub(crate) async fn check(&mut self, store: &EmbeddedStore) -> anyhow::Result<()> {
        let lane = open(store, &Environment::system())?;
        let (mut next, mut first) = (None, None);
        let mut serials: BTreeMap<u32, u64> = BTreeMap::new();
        let mut scan = Some(lane.scan()?);
        while let Some(page) = scan {
            let page = lane.page(page).await?;
            for segment in &page.segments {
                let start = segment.first().context("no number")?;
                ensure!(next.is_none_or(|next| next == start), "a gap before {start}: {next:?}");
                (next, first) = (Some(end(segment)?), first.or(Some(start)));
                for found in lane.load(segment).await? {
                    let (sender, serial) = sender_of(&found)?;
                    ensure!(found == message(sender, serial), "a message of {sender} has changed");
                    let last = serials.insert(sender, serial);
                    ensure!(last < Some(serial), "sender {sender}: {serial} after {last:?}");
                }
            }
            scan = page.next;
        }
        let tail = lane.tail().await?;
        let (first, next) = (first.unwrap_or(tail), next.unwrap_or(tail));
        ensure!(next == tail, "the last message is before {next}, the tail is {tail}");
        ensure!(tail >= self.appended, "{} was given, the tail is {tail}", self.appended);
        let ahead = u64::try_from(LaneConfig::QUEUE.segment_messages_max)?;
        ensure!(
            (self.finished..=self.finished + ahead).contains(&first),
            "messages up to {} were finished, and the first is {first}",
            self.finished
        );
        (self.appended, self.finished) = (tail, first);
        Ok(())
    }
}
