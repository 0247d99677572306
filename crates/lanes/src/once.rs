//! Which messages of an append have been appended before.

use std::collections::HashMap;

use millpond_store::{Item, Key, Result, StoreError};

use crate::message::Message;

/// What became of a message that may have been appended before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Given {
    /// It was appended, under this number.
    New(u64),
    /// Not appended: its mark was there already, and says this.
    Known(Box<Item>),
    /// Not appended: a message before it in the same call has the same mark; that one has this number.
    Repeated(u64),
}

impl Given {
    /// The number of the message in the lane.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the mark that was found names none.
    pub fn number(&self) -> Result<u64> {
        match self {
            Self::New(number) | Self::Repeated(number) => Ok(*number),
            Self::Known(mark) => u64::try_from(mark.attributes.number("num")?).map_err(|_| {
                StoreError::corrupt(format!("mark {}", mark.key), "its number is negative")
            }),
        }
    }
}

/// The messages of one append, sorted into new and known ones.
#[derive(Debug)]
pub struct Onces {
    given: Vec<Option<Given>>,
    /// The messages of the attempt under way, by their place in the call.
    trying: Vec<usize>,
}

impl Onces {
    pub fn new(count: usize) -> Self {
        Self { given: vec![None; count], trying: Vec::new() }
    }

    /// The messages that are still to be appended: of those with the same mark, the first.
    pub fn fresh(&mut self, messages: &[Message]) -> Vec<Message> {
        let mut marks = HashMap::new();
        self.trying.clear();
        let mut fresh = Vec::new();
        for (at, (message, given)) in messages.iter().zip(&self.given).enumerate() {
            let repeats = match &message.once {
                Some(once) => marks.insert(&once.key, at).is_some(),
                None => false,
            };
            if given.is_none() && !repeats {
                self.trying.push(at);
                fresh.push(message.clone());
            }
        }
        fresh
    }

    /// The attempt is in the lane, from this number on.
    pub fn appended(&mut self, first: u64) {
        for (number, at) in (first..).zip(self.trying.drain(..)) {
            if let Some(given) = self.given.get_mut(at) {
                *given = Some(Given::New(number));
            }
        }
    }

    /// Takes note of the marks that an attempt was refused for; whether there were any.
    pub fn found(&mut self, messages: &[Message], error: &StoreError) -> bool {
        let StoreError::Conflict(conflicts) = error else { return false };
        let mut any = false;
        for conflict in conflicts.iter() {
            let Some(current) = &conflict.current else { continue };
            let marked = |at: &&usize| mark(messages, **at) == Some(&conflict.key);
            if let Some(at) = self.trying.iter().find(marked)
                && let Some(given) = self.given.get_mut(*at)
            {
                *given = Some(Given::Known(Box::new(current.clone())));
                any = true;
            }
        }
        any
    }

    /// What became of each, once nothing is left to append.
    pub fn given(self, messages: &[Message]) -> Result<Vec<Given>> {
        let mut first: HashMap<&Key, Given> = HashMap::new();
        let mut all = Vec::with_capacity(self.given.len());
        for (at, given) in self.given.into_iter().enumerate() {
            let given = match (given, mark(messages, at)) {
                (Some(given), Some(key)) => {
                    first.insert(key, given.clone());
                    given
                }
                (Some(given), None) => given,
                (None, key) => match key.and_then(|key| first.get(key)) {
                    Some(known @ Given::Known(_)) => known.clone(),
                    Some(other) => Given::Repeated(other.number()?),
                    None => return Err(StoreError::invalid("append", "left a message out")),
                },
            };
            all.push(given);
        }
        Ok(all)
    }
}

fn mark(messages: &[Message], at: usize) -> Option<&Key> {
    messages.get(at).and_then(|message| message.once.as_ref()).map(|once| &once.key)
}
