//! Messages of segments that were read a moment ago: a segment is often received in several parts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use millpond_lanes::{Message, Place};

use super::core::lock;

/// Bytes that are kept, at most.
const BYTES_MAX: usize = 16 * 1_024 * 1_024;

#[derive(Debug, Default)]
pub struct Bodies(Mutex<Kept>);

/// A segment's messages and their bytes.
type Loaded = (Arc<Vec<Message>>, usize);

#[derive(Debug, Default)]
struct Kept {
    messages: HashMap<(u8, Place), Loaded>,
    order: VecDeque<(u8, Place)>,
    bytes: usize,
}

impl Bodies {
    pub fn get(&self, lane: u8, place: Place) -> Option<Arc<Vec<Message>>> {
        lock(&self.0).messages.get(&(lane, place)).map(|(messages, _)| Arc::clone(messages))
    }

    pub fn keep(&self, lane: u8, place: Place, messages: &Arc<Vec<Message>>) {
        let bytes: usize = messages.iter().map(Message::size).sum();
        // One message is received once as a rule, and a large one would drive out all others.
        if messages.len() < 2 || bytes > BYTES_MAX / 8 {
            return;
        }
        let mut kept = lock(&self.0);
        if kept.messages.insert((lane, place), (Arc::clone(messages), bytes)).is_none() {
            kept.order.push_back((lane, place));
            kept.bytes += bytes;
        }
        while kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.order.pop_front() else { return };
            if let Some((_, bytes)) = kept.messages.remove(&oldest) {
                kept.bytes -= bytes;
            }
        }
    }

    pub fn forget(&self, lane: u8, place: Place) {
        let mut kept = lock(&self.0);
        if let Some((_, bytes)) = kept.messages.remove(&(lane, place)) {
            kept.bytes -= bytes;
            if kept.order.len() > 2 * kept.messages.len() + 64 {
                let Kept { messages, order, .. } = &mut *kept;
                order.retain(|at| messages.contains_key(at));
            }
        }
    }
}
