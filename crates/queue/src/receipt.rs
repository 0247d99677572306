//! Receipts: what a receiver shows to acknowledge, extend or give back.
//!
//! ```text
//! format  1 byte, 1
//! lane    1 byte
//! kind    1 byte: 0 unordered, 1 sequenced
//! place   16 bytes (unordered: the segment's id) or 8 (sequenced: its first number, big-endian)
//! slot    1 byte
//! lease   8 bytes, big-endian: the token of the lease
//! tag     16 bytes: the beginning of HMAC-SHA-256 over the queue, the client and all of the above
//! ```
//! as URL-safe base64 without padding.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use millpond_lanes::Place;
use millpond_lanes::codec::Reader;
use millpond_store::UniqueId;
use sha2::Sha256;

use crate::error::{QueueError, Result};
use crate::id::MessageId;

const FORMAT: u8 = 1;
const TAG_LEN: usize = 16;
/// Longer than any receipt: what is over it is not looked at.
const TEXT_BYTES_MAX: usize = 128;

/// What a receiver shows to acknowledge a message, extend its lease or give it back. It can be kept as text and used
/// by another process on the same store.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Receipt(String);

impl Receipt {
    /// A receipt that was kept as text. It is checked when it is used.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The receipt as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A receipt is a right: logs do not need all of it.
        write!(f, "Receipt({}…)", self.0.get(..8).unwrap_or_default())
    }
}

/// What a receipt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub lane: u8,
    pub segment: Place,
    pub slot: usize,
    pub token: u64,
}

impl Claim {
    pub fn message(&self) -> MessageId {
        MessageId::of(self.lane, self.segment, self.slot)
    }
}

/// Makes and checks the receipts of one client's queue.
#[derive(Clone)]
pub struct Signer {
    mac: Hmac<Sha256>,
}

impl Signer {
    /// `key` is the store's; `scope` names the queue and the client.
    pub fn new(key: &[u8], scope: &str) -> Self {
        let mut mac = Hmac::new_from_slice(key).expect("a key of any length will do");
        mac.update(&(scope.len() as u64).to_be_bytes());
        mac.update(scope.as_bytes());
        Self { mac }
    }

    pub fn sign(&self, claim: &Claim) -> Receipt {
        let mut bytes = encode(claim);
        let tag = self.mac.clone().chain_update(&bytes).finalize().into_bytes();
        bytes.extend(tag.iter().take(TAG_LEN));
        Receipt(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub fn check(&self, receipt: &Receipt) -> Result<Claim> {
        let invalid = |reason| QueueError::ReceiptInvalid { reason };
        if receipt.0.len() > TEXT_BYTES_MAX {
            return Err(invalid("it is too long"));
        }
        let bytes =
            URL_SAFE_NO_PAD.decode(&receipt.0).map_err(|_| invalid("it is not base64 text"))?;
        let said = bytes.len().checked_sub(TAG_LEN).ok_or_else(|| invalid("it is cut"))?;
        let (said, tag) = bytes.split_at(said);
        let mac = self.mac.clone().chain_update(said);
        mac.verify_truncated_left(tag)
            .map_err(|_| invalid("it was changed, or belongs to another queue, client or store"))?;
        decode(said).ok_or_else(|| invalid("it is of an unknown format"))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

fn encode(claim: &Claim) -> Vec<u8> {
    let mut bytes = vec![FORMAT, claim.lane];
    match claim.segment {
        Place::Id(id) => {
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        Place::Number(number) => {
            bytes.push(1);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
    }
    bytes.push(u8::try_from(claim.slot).expect("a segment has 64 messages"));
    bytes.extend_from_slice(&claim.token.to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Claim> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != FORMAT {
        return None;
    }
    let lane = reader.byte()?;
    let segment = match reader.byte()? {
        0 => Place::Id(UniqueId::from_bytes(reader.array()?)),
        1 => Place::Number(u64::from_be_bytes(reader.array()?)),
        _ => return None,
    };
    let slot = usize::from(reader.byte()?);
    let token = u64::from_be_bytes(reader.array()?);
    reader.is_empty().then_some(Claim { lane, segment, slot, token })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn claim(number: u64) -> Claim {
        Claim { lane: 3, segment: Place::Number(number), slot: 63, token: 7 }
    }

    proptest! {
        #[test]
        fn receipts_round_trip(id in any::<[u8; 16]>(), lane in any::<u8>(), slot in 0..64_usize, token in any::<u64>()) {
            let signer = Signer::new(b"key", "queue/client");
            for segment in [Place::Id(UniqueId::from_bytes(id)), Place::Number(token ^ 5)] {
                let claim = Claim { lane, segment, slot, token };
                prop_assert_eq!(signer.check(&signer.sign(&claim)).ok(), Some(claim));
            }
        }

        #[test]
        fn any_change_is_refused(at in any::<proptest::sample::Index>(), to in "[A-Za-z0-9_-]") {
            let signer = Signer::new(b"key", "queue/client");
            let good = signer.sign(&claim(9)).0;
            let mut bad = good.clone();
            let at = at.index(bad.len());
            bad.replace_range(at..=at, &to);
            prop_assert!(bad == good || signer.check(&Receipt(bad)).is_err());
        }
    }

    #[test]
    fn other_keys_queues_and_pieces_are_refused() {
        let signer = Signer::new(b"key", "queue/client");
        let receipt = signer.sign(&claim(1));
        assert!(Signer::new(b"kez", "queue/client").check(&receipt).is_err());
        assert!(Signer::new(b"key", "queue/clienu").check(&receipt).is_err());
        for cut in 0..receipt.0.len() {
            assert!(signer.check(&Receipt(receipt.0[..cut].to_owned())).is_err());
        }
        assert!(signer.check(&Receipt("x".repeat(10_000))).is_err());
    }
}
