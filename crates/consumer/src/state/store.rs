//! State in any store of Millpond.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _};
use millpond_store::limits::EACH_WRITES_MAX;
use millpond_store::{
    Environment, Expect, Expiry, Item, Key, Partition, Query, SortKey, SortRange, Store,
    StoreError, Version, Write, collect,
};

use super::duplicates::{self, Known};
use super::marker::{self, Marker, Open, Span};
use super::message::MessageState;
use super::{Address, Change, State, StateError, Stored, row};
use crate::limits::{
    CONFLICTS_MAX, GETS_AT_A_TIME, MARKER_KEPT, MARKERS_SEEN_MAX, SAVE_BACKOFF, SAVES_AT_A_TIME,
    STATE_KEPT_DEFAULT, STATE_ROWS_MAX,
};
use crate::position::{Position, RecordKey};

/// State in a store: a row for each message that is not simply done, in the partition
/// `consumer/NAME/SHARD/ARN`.
#[derive(Debug, Clone)]
pub struct StoreState {
    store: Arc<dyn Store>,
    environment: Environment,
    kept: Duration,
    /// Sources that have their row in the list of sources.
    listed: Arc<Mutex<HashSet<Partition>>>,
}

/// A row of state, as the inspect command shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Whose it is.
    pub position: Position,
    /// What it says.
    pub state: MessageState,
    /// When it ends.
    pub expiry: Option<Expiry>,
}

/// A source that a consumer has kept state of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownSource {
    /// Its ARN.
    pub arn: String,
    /// Its shard; empty when it has none.
    pub shard: String,
}

impl StoreState {
    /// State in this store, kept for 14 days after it last changed.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, environment: &Environment) -> Self {
        let environment = environment.clone();
        Self { store, environment, kept: STATE_KEPT_DEFAULT, listed: Arc::default() }
    }

    /// Keeps state for this long after it last changed: longer than the source keeps its records.
    #[must_use]
    pub fn kept(self, kept: Duration) -> Self {
        Self { kept, ..self }
    }

    /// The sources of a consumer that state was kept of.
    ///
    /// # Errors
    /// As the store's.
    pub async fn sources(&self, consumer: &str) -> Result<Vec<KnownSource>, StateError> {
        let query = Query::new(Partition::new(format!("consumer/{consumer}"))?);
        let rows = collect(self.store.as_ref(), query, STATE_ROWS_MAX).await?;
        let text = |item: &Item, name| item.attributes.text(name).map(str::to_owned);
        let read = |item: &Item| {
            Ok::<_, StoreError>(KnownSource {
                arn: text(item, "arn")?,
                shard: text(item, "shard")?,
            })
        };
        let mut sources = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        sources.sort();
        Ok(sources)
    }

    /// All rows of a source and shard, in order; those that cannot be read are named.
    ///
    /// # Errors
    /// As the store's.
    pub async fn rows(
        &self,
        address: &Address,
    ) -> Result<Vec<Result<StateRow, StateError>>, StateError> {
        let row = |item: &Item| {
            let (position, Stored { state, .. }) = read(item)?;
            Ok(StateRow { position, state, expiry: item.expiry })
        };
        Ok(self.items(address).await?.iter().map(row).collect())
    }

    /// Forgets a message, by its name in [`rows`](Self::rows): the text of its position, or what an unreadable row is called.
    /// When it comes again, it is as if for the first time. Returns how many rows had that name.
    ///
    /// # Errors
    /// As the store's, and when the row changes meanwhile: forget it again.
    pub async fn forget(&self, address: &Address, message: &str) -> Result<usize, StateError> {
        let mut forgotten = 0;
        for item in self.items(address).await? {
            if name(&item) != message {
                continue;
            }
            match self.store.write(Write::delete(item.key, Expect::Version(item.version))).await {
                Ok(()) => forgotten += 1,
                Err(StoreError::Conflict(_)) => {
                    return Err(StateError::Contended { position: message.to_owned() });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(forgotten)
    }

    /// The rows of messages, as they are stored.
    async fn items(&self, address: &Address) -> Result<Vec<Item>, StoreError> {
        let range = SortRange::prefix(SortKey::new(b"s".as_slice())?);
        let query = Query::new(partition(address)?).range(range);
        collect(self.store.as_ref(), query, STATE_ROWS_MAX).await
    }

    fn write(&self, key: Key, state: &MessageState, expect: Expect) -> Write {
        let now = self.environment.now();
        let write = Write::put(key, row::encode(state, now), expect, self.environment.version());
        write.expires(Expiry::at(now.plus(self.kept)))
    }

    /// The rows between the first and the last of these.
    async fn load_range(
        &self,
        address: &Address,
        (first, last): (&Position, &Position),
    ) -> Result<HashMap<Position, Stored>, StateError> {
        let mut end = last.prefix();
        // The prefix ends with a digit, so that there is always a next one.
        if let Some(byte) = end.last_mut() {
            *byte = byte.saturating_add(1);
        }
        let range = SortRange::between(SortKey::new(first.prefix())?, SortKey::new(end)?);
        let query = Query::new(partition(address)?).range(range);
        let items = collect(self.store.as_ref(), query, STATE_ROWS_MAX).await?;
        items.iter().map(read).collect()
    }

    async fn load_one(
        &self,
        address: &Address,
        position: Position,
    ) -> Result<Option<(Position, Stored)>, StateError> {
        let key = key(address, position.sort_key()?)?;
        self.store.get(&key).await?.as_ref().map(read).transpose()
    }

    async fn recall_one(&self, address: &Address, id: String) -> Result<Option<Known>, StateError> {
        let key = key(address, duplicates::sort_key(&id)?)?;
        Ok(self.store.get(&key).await?.and_then(|item| Known::decode(&id, &item)))
    }

    /// Saves some changes, writing again over what others wrote meanwhile.
    async fn save_some(
        &self,
        address: &Address,
        changes: Vec<Change>,
    ) -> Vec<Result<Stored, StateError>> {
        let mut outcomes: Vec<Option<Result<Stored, StateError>>> = vec![None; changes.len()];
        let mut waiting = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let key = change.position.sort_key().and_then(|sort| key(address, sort));
            let expect =
                change.base.as_ref().map_or(Expect::Absent, |base| Expect::Version(base.version));
            match key {
                Ok(key) => {
                    waiting.push((at, self.write(key, &change.now, expect), change.now.clone()));
                }
                Err(error) => set(&mut outcomes, at, Err(error.into())),
            }
        }
        for round in 1..=CONFLICTS_MAX {
            if waiting.is_empty() {
                break;
            }
            let writes = waiting.iter().map(|(_, write, _)| write.clone()).collect();
            let answers = match self.store.write_each(writes).await {
                Ok(answers) => answers,
                Err(error) => vec![Err(error); waiting.len()],
            };
            let (mut again, mut failed) = (Vec::new(), false);
            for ((at, write, state), answer) in waiting.into_iter().zip(answers) {
                let Some(change) = changes.get(at) else { continue };
                match answer {
                    Ok(()) => {
                        let version = write.version().expect("a put has a version");
                        set(&mut outcomes, at, Ok(Stored { state, version }));
                    }
                    Err(StoreError::Conflict(conflicts)) => {
                        let current = conflicts.first().current.as_ref();
                        match self.onto(write.key, change, current) {
                            Ok((write, state)) => again.push((at, write, state)),
                            Err(error) => set(&mut outcomes, at, Err(error)),
                        }
                    }
                    // The same write again: a store knows it by its version. A row that is not saved makes a careful run
                    // blame a message that did nothing.
                    Err(error) => {
                        if error.is_transient() {
                            again.push((at, write, state));
                            failed = true;
                        }
                        set(&mut outcomes, at, Err(error.into()));
                    }
                }
            }
            waiting = again;
            if failed {
                let Some(wait) = SAVE_BACKOFF.wait(round, self.environment.rng.as_ref()) else {
                    break;
                };
                self.environment.clock.sleep(wait).await;
            }
        }
        let contended =
            |change: &Change| StateError::Contended { position: change.position.to_string() };
        let outcomes = outcomes.into_iter().zip(&changes);
        outcomes
            .map(|(outcome, change)| outcome.unwrap_or_else(|| Err(contended(change))))
            .collect()
    }

    /// The same change over what another wrote.
    fn onto(
        &self,
        key: Key,
        change: &Change,
        current: Option<&Item>,
    ) -> Result<(Write, MessageState), StateError> {
        let Some(current) = current else {
            return Ok((self.write(key, &change.now, Expect::Absent), change.now.clone()));
        };
        let (_, theirs) = read(current)?;
        let nothing = MessageState::default();
        let base = change.base.as_ref().map_or(&nothing, |base| &base.state);
        let merged = MessageState::merge(&theirs.state, base, &change.now);
        let write = self.write(key, &merged, Expect::Version(theirs.version));
        Ok((write, merged))
    }

    /// Adds a source to the list, once for each process.
    async fn list(&self, address: &Address) -> Result<(), StoreError> {
        let partition = partition(address)?;
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).contains(&partition);
        if known {
            return Ok(());
        }
        let scope = &address.scope;
        let sort = format!("{}\0{}", scope.arn, scope.shard).into_bytes();
        // A key has less room than an ARN may take.
        let sort = SortKey::new(sort.get(..1_024).map_or(sort.clone(), <[u8]>::to_vec))?;
        let key = Key::of(Partition::new(format!("consumer/{}", address.consumer))?, sort);
        let attributes = millpond_store::Attributes::new()
            .with("arn", scope.arn.as_str())
            .with("shard", scope.shard.as_str());
        let kept = Expiry::at(self.environment.now().plus(self.kept * 2));
        let version = self.environment.version();
        self.store.write(Write::put(key, attributes, Expect::Any, version).expires(kept)).await?;
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).insert(partition);
        Ok(())
    }

    fn marker_write(
        &self,
        address: &Address,
        open: &Open,
        expect: Expect,
    ) -> Result<Write, StoreError> {
        let now = self.environment.now();
        let key = key(address, open.sort.clone())?;
        let write = Write::put(key, open.encode(now)?, expect, open.version);
        Ok(write.expires(Expiry::at(now.plus(MARKER_KEPT))))
    }
}

/// A write that met what an earlier try of the same writer had written, whose answer was lost, is applied: in the version of
/// that try, if it was another.
fn known_again(
    written: Result<(), StoreError>,
    tried: &[Version],
) -> Result<Option<Version>, StoreError> {
    match written {
        Err(StoreError::Conflict(conflicts)) => {
            let current = conflicts.first().current.as_ref().map(|item| item.version);
            match current.filter(|version| tried.contains(version)) {
                Some(version) => Ok(Some(version)),
                None => Err(StoreError::Conflict(conflicts)),
            }
        }
        other => other.map(|()| None),
    }
}

fn set<T>(outcomes: &mut [Option<T>], at: usize, outcome: T) {
    if let Some(slot) = outcomes.get_mut(at) {
        *slot = Some(outcome);
    }
}

/// A shard's id has no slash and a consumer's name neither, so that no two addresses share a partition.
fn partition(address: &Address) -> Result<Partition, StoreError> {
    let Address { consumer, scope } = address;
    Partition::new(format!("consumer/{consumer}/{}/{}", scope.shard, scope.arn))
}

fn key(address: &Address, sort: SortKey) -> Result<Key, StoreError> {
    Ok(Key::of(partition(address)?, sort))
}

/// What the row of a message is called.
fn name(item: &Item) -> String {
    let position = Position::from_sort_key(&item.key.sort);
    position.map_or_else(|| item.key.sort.to_string(), |position| position.to_string())
}

fn read(item: &Item) -> Result<(Position, Stored), StateError> {
    let unreadable = |problem: String| StateError::Unreadable { position: name(item), problem };
    let position = Position::from_sort_key(&item.key.sort)
        .ok_or_else(|| unreadable("its key is not that of a message".into()))?;
    let state = row::decode(&item.attributes).map_err(unreadable)?;
    Ok((position, Stored { state, version: item.version }))
}

#[async_trait]
impl State for StoreState {
    async fn load(
        &self,
        address: &Address,
        positions: &[Position],
    ) -> Result<Vec<Option<Stored>>, StateError> {
        let stream = |position: &&Position| position.sequence().is_some();
        let first = positions.iter().filter(stream).min();
        let last = positions.iter().filter(stream).max();
        let mut found = match first.zip(last) {
            Some(ends) => self.load_range(address, ends).await?,
            None => HashMap::new(),
        };
        let single = positions.iter().filter(|position| position.sequence().is_none());
        let loads: Vec<_> =
            single.cloned().map(|position| self.load_one(address, position)).collect();
        let rows: Vec<_> =
            futures::stream::iter(loads).buffer_unordered(GETS_AT_A_TIME).try_collect().await?;
        found.extend(rows.into_iter().flatten());
        Ok(positions.iter().map(|position| found.remove(position)).collect())
    }

    async fn save(
        &self,
        address: &Address,
        changes: Vec<Change>,
    ) -> Vec<Result<Stored, StateError>> {
        if changes.is_empty() {
            return Vec::new();
        }
        // The list is for people: that it could not be written keeps nothing else from being saved.
        if let Err(error) = self.list(address).await {
            tracing::warn!(%error, "a source could not be added to the consumer's list");
        }
        let chunks = changes.chunks(EACH_WRITES_MAX).map(<[_]>::to_vec);
        let saves: Vec<_> = chunks.map(|chunk| self.save_some(address, chunk)).collect();
        let saved: Vec<_> = futures::stream::iter(saves).buffered(SAVES_AT_A_TIME).collect().await;
        saved.into_iter().flatten().collect()
    }

    async fn open(&self, address: &Address, span: Span) -> Result<Marker, StateError> {
        let (Some(first), Some(last)) = (span.first().cloned(), span.last().cloned()) else {
            return Ok(Marker { suspect: false, span, own: None, others: Vec::new() });
        };
        let sort = marker::sort_key(&first)?;
        let end =
            marker::sort_key(&last)?.as_bytes().iter().copied().chain([0]).collect::<Vec<_>>();
        let range = SortRange::between(SortKey::new(b"m".as_slice())?, SortKey::new(end)?);
        // A stale answer misses at most a marker of this very moment; the write below meets its own.
        let query = Query::new(partition(address)?)
            .range(range)
            .reverse()
            .limit(MARKERS_SEEN_MAX)
            .relaxed();
        let page = self.store.query(query).await?;
        let mut others: Vec<Open> = page.items.iter().map(Open::decode).collect();
        others.retain(|open| open.touches(&span));
        let mut expect = Expect::Absent;
        let mut tried = Vec::new();
        for _ in 0..CONFLICTS_MAX {
            if let Some(own) = others.iter().find(|open| open.sort == sort) {
                expect = Expect::Version(own.version);
            }
            let earlier = others.iter().find(|open| open.sort == sort);
            // What an earlier batch with the same beginning reached further stays under suspicion.
            let far = earlier.and_then(|open| open.last.clone()).filter(|far| *far > last);
            let own = Open {
                sort: sort.clone(),
                version: self.environment.version(),
                first: Some(first.clone()),
                last: Some(far.unwrap_or_else(|| last.clone())),
            };
            tried.push(own.version);
            let written = self.store.write(self.marker_write(address, &own, expect)?).await;
            match known_again(written, &tried) {
                Ok(version) => {
                    let own = Open { version: version.unwrap_or(own.version), ..own };
                    let suspect = !others.is_empty();
                    others.retain(|open| open.sort != sort);
                    others.push(own.clone());
                    return Ok(Marker { suspect, span, own: Some(own.version), others });
                }
                Err(StoreError::Conflict(conflicts)) => {
                    others.retain(|open| open.sort != sort);
                    match &conflicts.first().current {
                        Some(item) => others.push(Open::decode(item)),
                        None => expect = Expect::Absent,
                    }
                }
                Err(StoreError::UnknownOutcome { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StateError::Contended { position: "a batch's marker".into() })
    }

    async fn close(
        &self,
        address: &Address,
        marker: Marker,
        left: Vec<RecordKey>,
    ) -> Result<(), StateError> {
        let unanswered: HashSet<&RecordKey> = left.iter().collect();
        let mut answered = marker.span.records;
        answered.retain(|record| !unanswered.contains(record));
        let Some(answered) = Span::of(answered) else {
            return Ok(());
        };
        let mut writes = Vec::new();
        for open in marker.others {
            let mut rest = open.without(&answered);
            if marker.own == Some(open.version)
                && let Some(left) = Span::of(left.clone())
            {
                let last = rest.as_ref().and_then(|rest| rest.last.clone());
                let last = last.or_else(|| left.last().cloned());
                rest = Some(Open { first: left.first().cloned(), last, ..open.clone() });
            }
            let expect = Expect::Version(open.version);
            writes.push(match rest {
                Some(rest) => {
                    let rest = Open { version: self.environment.version(), ..rest };
                    self.marker_write(address, &rest, expect)?
                }
                None => Write::delete(key(address, open.sort)?, expect),
            });
        }
        for outcome in self.store.write_each(writes).await? {
            match outcome {
                // Another has taken the batch over since, and answers for it.
                Ok(()) | Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn recall(
        &self,
        address: &Address,
        ids: &[String],
    ) -> Result<Vec<Option<Known>>, StateError> {
        let recalls: Vec<_> = ids.iter().cloned().map(|id| self.recall_one(address, id)).collect();
        futures::stream::iter(recalls).buffered(GETS_AT_A_TIME).try_collect().await
    }

    async fn remember(
        &self,
        address: &Address,
        known: Vec<Known>,
        window: Duration,
    ) -> Result<(), StateError> {
        let until = Expiry::at(self.environment.now().plus(window));
        let mut seen = HashSet::new();
        let mut writes = Vec::new();
        for one in known.iter().filter(|one| seen.insert(one.id.clone())) {
            let key = key(address, duplicates::sort_key(&one.id)?)?;
            let version = self.environment.version();
            writes.push(Write::put(key, one.encode()?, Expect::Absent, version).expires(until));
        }
        for chunk in writes.chunks(EACH_WRITES_MAX) {
            for outcome in self.store.write_each(chunk.to_vec()).await? {
                match outcome {
                    Ok(()) | Err(StoreError::Conflict(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}
