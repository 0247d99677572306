//! Failures on purpose, by a script or by chance.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::environment::Environment;
use crate::error::{Result, StoreError};
use crate::hints::ChangeHint;
use crate::item::Item;
use crate::key::{Key, Partition};
use crate::query::{Page, Query};
use crate::store::{Profile, Store};
use crate::write::{Change, Expect, Write, check_each, check_group};

/// What goes wrong with one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The write is refused as if another writer had won, with what is really there. A read fails.
    Conflict,
    /// The request fails and changes nothing.
    Definite,
    /// The caller is told that the outcome is unknown; nothing happened. A read fails.
    UnknownBefore,
    /// The caller is told that the outcome is unknown; it happened. A read fails.
    UnknownAfter,
    /// The request is throttled and changes nothing.
    Throttle,
    /// The request takes this much longer.
    Delay(Duration),
}

/// Chances (0 to 1) of each fault, drawn anew for each request.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FaultRates {
    /// Of [`Fault::Conflict`].
    pub conflict: f64,
    /// Of [`Fault::Definite`].
    pub definite: f64,
    /// Of [`Fault::UnknownBefore`].
    pub unknown_before: f64,
    /// Of [`Fault::UnknownAfter`].
    pub unknown_after: f64,
    /// Of [`Fault::Throttle`].
    pub throttle: f64,
    /// Of [`Fault::Delay`], for up to [`delay_max`](Self::delay_max).
    pub delay: f64,
    /// The longest delay.
    pub delay_max: Duration,
}

/// Which requests fail, and how.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum FaultPlan {
    /// None.
    #[default]
    None,
    /// The requests with these numbers, counted from 0.
    Script(BTreeMap<u64, Fault>),
    /// By chance, from the environment's random numbers: the same seed, the same faults.
    Chance(FaultRates),
}

impl FaultPlan {
    /// One fault, at the request with this number.
    #[must_use]
    pub fn once(request: u64, fault: Fault) -> Self {
        Self::Script(BTreeMap::from([(request, fault)]))
    }
}

/// A store that fails by plan.
#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    environment: Environment,
    plan: Mutex<FaultPlan>,
    requests: AtomicU64,
}

/// How long a caller may retry after an unknown outcome that this adapter made.
const OUTCOME_WINDOW: Duration = Duration::from_secs(60);

impl<S: Store> Faulty<S> {
    /// Wraps `inner`; nothing fails until there is a plan.
    pub fn new(inner: S, environment: &Environment) -> Self {
        Self {
            inner,
            environment: environment.clone(),
            plan: Mutex::default(),
            requests: AtomicU64::new(0),
        }
    }

    /// Follows `plan` from now on, counting requests from 0.
    pub fn follow(&self, plan: FaultPlan) {
        let mut current = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        *current = plan;
        self.requests.store(0, Ordering::Release);
    }

    /// How many requests were made since the plan was set.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Acquire)
    }

    /// The store underneath.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Counts a request and decides its fault. A delay is served here.
    async fn next_fault(&self) -> Option<Fault> {
        let fault = {
            let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            let request = self.requests.fetch_add(1, Ordering::AcqRel);
            match &*plan {
                FaultPlan::None => None,
                FaultPlan::Script(script) => script.get(&request).copied(),
                FaultPlan::Chance(rates) => draw(rates, &self.environment),
            }
        };
        if let Some(Fault::Delay(duration)) = fault {
            self.environment.clock.sleep(duration).await;
            return None;
        }
        fault
    }

    /// The conflict that these writes, one group, could end with: none when they have been applied before, which a store
    /// knows (clause 8 of the contract), or when they expect nothing.
    async fn refuse(&self, writes: &[Write]) -> Result<Option<StoreError>> {
        let mut refused = None;
        for write in writes {
            let current = self.inner.get(&write.key).await?;
            if let (Change::Put { version, .. }, Some(item)) = (&write.change, &current)
                && item.version == *version
            {
                return Ok(None);
            }
            if refused.is_none() && write.expect != Expect::Any {
                refused = Some(StoreError::conflict(write.key.clone(), current));
            }
        }
        Ok(refused)
    }

    async fn fail_read(&self) -> Result<()> {
        match self.next_fault().await {
            None => Ok(()),
            Some(Fault::Throttle) => Err(throttled("read")),
            Some(_) => Err(failed("read")),
        }
    }
}

fn draw(rates: &FaultRates, environment: &Environment) -> Option<Fault> {
    let rng = &environment.rng;
    let chances = [
        (rates.conflict, Fault::Conflict),
        (rates.definite, Fault::Definite),
        (rates.unknown_before, Fault::UnknownBefore),
        (rates.unknown_after, Fault::UnknownAfter),
        (rates.throttle, Fault::Throttle),
    ];
    if let Some((_, fault)) = chances.into_iter().find(|(chance, _)| rng.chance(*chance)) {
        return Some(fault);
    }
    rng.chance(rates.delay).then(|| {
        let micros = u64::try_from(rates.delay_max.as_micros()).unwrap_or(u64::MAX);
        Fault::Delay(Duration::from_micros(rng.below(micros)))
    })
}

fn throttled(operation: &'static str) -> StoreError {
    StoreError::Throttled { operation, detail: "injected".into() }
}

fn failed(operation: &'static str) -> StoreError {
    StoreError::Unavailable { operation, detail: "injected".into(), cause: None }
}

fn unknown(operation: &'static str) -> StoreError {
    StoreError::UnknownOutcome { operation, detail: "injected".into(), cause: None }
}

#[async_trait]
impl<S: Store> Store for Faulty<S> {
    fn profile(&self) -> Profile {
        let inner = self.inner.profile();
        Profile { outcome_window: inner.outcome_window.max(OUTCOME_WINDOW), ..inner }
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.fail_read().await?;
        self.inner.get(key).await
    }

    async fn query(&self, query: Query) -> Result<Page> {
        self.fail_read().await?;
        self.inner.query(query).await
    }

    async fn write(&self, write: Write) -> Result<()> {
        match self.next_fault().await {
            None | Some(Fault::Delay(_)) => self.inner.write(write).await,
            Some(Fault::Conflict) => match self.refuse(std::slice::from_ref(&write)).await? {
                Some(conflict) => Err(conflict),
                None => self.inner.write(write).await,
            },
            Some(Fault::Definite) => Err(failed("write")),
            Some(Fault::Throttle) => Err(throttled("write")),
            Some(Fault::UnknownBefore) => Err(unknown("write")),
            Some(Fault::UnknownAfter) => {
                self.inner.write(write).await?;
                Err(unknown("write"))
            }
        }
    }

    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        check_group(&writes)?;
        match self.next_fault().await {
            None | Some(Fault::Delay(_)) => self.inner.write_all(writes).await,
            Some(Fault::Conflict) => match self.refuse(&writes).await? {
                Some(conflict) => Err(conflict),
                None => self.inner.write_all(writes).await,
            },
            Some(Fault::Definite) => Err(failed("write_all")),
            Some(Fault::Throttle) => Err(throttled("write_all")),
            Some(Fault::UnknownBefore) => Err(unknown("write_all")),
            Some(Fault::UnknownAfter) => {
                self.inner.write_all(writes).await?;
                Err(unknown("write_all"))
            }
        }
    }

    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        check_each(&writes)?;
        let all = |count: usize, error: StoreError| vec![Err(error); count];
        match self.next_fault().await {
            None | Some(Fault::Delay(_)) => self.inner.write_each(writes).await,
            Some(Fault::Conflict) => {
                let mut outcomes = Vec::with_capacity(writes.len());
                for write in writes {
                    outcomes.push(match self.refuse(std::slice::from_ref(&write)).await? {
                        Some(conflict) => Err(conflict),
                        None => self.inner.write(write).await,
                    });
                }
                Ok(outcomes)
            }
            Some(Fault::Definite) => Ok(all(writes.len(), failed("write_each"))),
            Some(Fault::Throttle) => Ok(all(writes.len(), throttled("write_each"))),
            Some(Fault::UnknownBefore) => Ok(all(writes.len(), unknown("write_each"))),
            Some(Fault::UnknownAfter) => {
                let outcomes = self.inner.write_each(writes).await?;
                let hide = |outcome: Result<()>| outcome.and_then(|()| Err(unknown("write_each")));
                Ok(outcomes.into_iter().map(hide).collect())
            }
        }
    }

    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}
