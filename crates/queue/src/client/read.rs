//! A message as it is shown to its receiver.

use millpond_lanes::Message as LaneMessage;
use millpond_store::StoreError;

use super::core::ClientCore;
use crate::error::Result;
use crate::head::Head;
use crate::id::{MessageId, MessagePlace};
use crate::message::Delivery;
use crate::receipt::Claim;
use crate::state::{Lease, Slot};
use crate::view::SegmentView;

impl ClientCore {
    pub(super) async fn delivery(
        &self,
        lane: u8,
        view: &SegmentView,
        slot: usize,
        messages: &[LaneMessage],
        lease: &Lease,
    ) -> Result<Delivery> {
        let place = view.place();
        let corrupt = |what| StoreError::corrupt(format!("segment {place:?}"), what);
        let message = messages.get(slot).ok_or_else(|| corrupt("it has fewer messages"))?;
        let head = Head::decode(&message.head).ok_or_else(|| corrupt("a head cannot be read"))?;
        let claim = Claim { lane, segment: place, slot, token: lease.token };
        let id = MessageId::of(lane, place, slot);
        let record = view.slot(slot).and_then(Slot::record).cloned().unwrap_or_default();
        let body = match &head.shared {
            Some(shared) => shared.fetch(&self.queue.root).await?,
            None => message.body.clone(),
        };
        Ok(Delivery {
            id,
            receipt: self.signer.sign(&claim),
            body,
            attributes: head.attributes,
            group: head.group,
            dedup_id: head.dedup_id,
            priority: lane / self.queue.known_config().lanes.max(1),
            trace: head.trace,
            sent: view.segment.appended,
            sequence: match id.place {
                MessagePlace::Number(number) => Some(number),
                MessagePlace::Slot(..) => None,
            },
            receives: record.receives,
            first_received: record.first,
            leased_until: lease.until,
            origin: head.origin,
            identity: head.identity.unwrap_or_else(|| self.identity(&id)),
        })
    }

    /// The name of a message that was sent here.
    pub fn identity(&self, id: &MessageId) -> String {
        let mut name = String::with_capacity(self.prefix().len() + 40);
        name.push_str(self.prefix());
        name.push('/');
        id.write(&mut name);
        name
    }
}
