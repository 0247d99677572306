//! A batch while it is worked on.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millpond_store::Timestamp;

use super::answer::Answer;
use super::budget::Budget;
use super::call::{Ended, call};
use super::entry::Entry;
use super::lost::Lost;
use super::prepare::prepare;
use super::read::Reading;
use crate::message::{Attempt, Message};
use crate::report::{Report, TaskReport};
use crate::settings::{Order, Settings};
use crate::source::{Event, Scope, Window};
use crate::state::{Address, Marker};

pub(super) struct Batch<'a> {
    pub settings: &'a Settings,
    pub budget: Budget,
    pub entries: Vec<Entry>,
    /// Whether messages run one by one, each noted before it runs.
    pub careful: bool,
    pub markers: Vec<(Address, Marker)>,
    /// What was counted while handlers ran.
    pub tasks: Mutex<BTreeMap<String, TaskReport>>,
    pub saved: AtomicUsize,
    /// Nothing more is to run in this delivery.
    pub stopped: AtomicBool,
    /// Messages that others have by now.
    pub lost: Arc<Lost>,
    /// The tumbling window that the batch is of.
    pub window: Option<Window>,
    /// The window's end is to be tried again, and the whole batch with it.
    pub window_open: bool,
    /// What the extractor is at.
    pub reading: Reading,
    /// What went wrong while handlers ran, and whether it stays until somebody corrects the set-up.
    noted: Mutex<Vec<(String, bool)>>,
}

/// Works on the records of a batch until all is done, or the time is up.
pub(crate) async fn run(
    settings: &Settings,
    event: Event,
    lost: Arc<Lost>,
    deadline: Timestamp,
) -> Answer {
    let Event { records, window, only } = event;
    let budget = Budget::new(&settings.environment, deadline, settings.timeout_share);
    let mut report =
        Report { consumer: settings.name.to_string(), records: records.len(), ..Report::default() };
    if let Some(scope) = records.iter().find_map(|record| match record {
        Ok(record) => Some(&record.scope),
        Err(unusable) => unusable.scope.as_ref(),
    }) {
        report.source.clone_from(&scope.arn);
        report.shard.clone_from(&scope.shard);
    }
    let entries = prepare(settings, records, only, &mut report);
    let mut batch = Batch {
        settings,
        budget,
        entries,
        careful: false,
        markers: Vec::new(),
        tasks: Mutex::default(),
        saved: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
        lost,
        window,
        window_open: false,
        reading: Reading::none(),
        noted: Mutex::default(),
    };
    if settings.extractor.is_harmless() {
        batch.read_at_once(&mut report);
    }
    if batch.entries.is_empty() {
        // The end of a window, of which nothing more has come.
        batch.gather(&mut report).await;
        batch.bury(&mut report).await;
        batch.finish_unrun().await;
    } else if batch.begin_all(&mut report).await {
        report.cut_off |= batch.budget.clone().until_cut(batch.work()).await.is_none();
        batch.freeze();
        batch.add_counts(&mut report);
        batch.gather(&mut report).await;
        batch.finish(&mut report).await;
    }
    batch.answer(report).await
}

impl<'a> Batch<'a> {
    /// Loads state and runs the first hook; `false` when nothing can be run.
    async fn begin_all(&mut self, report: &mut Report) -> bool {
        let budget = self.budget.clone();
        match budget.until_cut(self.load(report)).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.note(error.to_string(), error.is_fatal());
                // Nothing ran, so that the next delivery need not be careful.
                let _ = budget.until_finish(self.close(false)).await;
                return false;
            }
            None => {
                report.cut_off = true;
                if self.stop_reading(report) {
                    self.finish_unrun().await;
                }
                return false;
            }
        }
        let Some(hook) = self.settings.hooks.before.as_ref().filter(|_| !self.entries.is_empty())
        else {
            return true;
        };
        let messages = self.unsettled();
        let hook = Arc::clone(hook);
        let clock = Arc::clone(&self.settings.environment.clock);
        let work = call(clock.as_ref(), async move { hook(messages).await });
        let problem = match self.budget.until_cut(work).await {
            Some((Ended::Returned(Ok(())), _)) => return true,
            Some((Ended::Returned(Err(error)) | Ended::Panicked(error), _)) => error,
            None => "it did not end in time".into(),
        };
        self.note(format!("the hook before the batch failed: {problem}"), false);
        // The batch ends as it should, so that the next one need not be careful.
        self.finish_unrun().await;
        false
    }

    /// The messages that are to be worked on, for a hook.
    fn unsettled(&self) -> Vec<Message> {
        let name: Arc<str> = "before".into();
        let time = self.budget.time();
        let unsettled = self.in_order().filter(|entry| !entry.progress().is_settled(self.settings));
        let message = |content: &Arc<_>| {
            let attempt = Attempt::new(&name, 1, &time, std::collections::BTreeSet::new());
            Message::new(Arc::clone(content), attempt)
        };
        unsettled.filter_map(|entry| entry.content().map(message)).collect()
    }

    /// Takes a problem down.
    pub fn note(&self, problem: String, fatal: bool) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push((problem, fatal));
    }

    /// All problems so far, and the first that stays until somebody corrects the set-up.
    pub fn take_noted(&self, report: &mut Report) -> Option<String> {
        let noted = std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner));
        let mut fatal = None;
        for (problem, stays) in noted {
            if stays && fatal.is_none() {
                fatal = Some(problem.clone());
            }
            report.problem(problem);
        }
        report.saved = self.saved.load(Ordering::Relaxed);
        fatal
    }

    pub fn address(&self, scope: &Arc<Scope>) -> Address {
        Address { consumer: Arc::clone(&self.settings.name), scope: Arc::clone(scope) }
    }

    pub fn pick<'b>(&'b self, places: &'b [usize]) -> impl Iterator<Item = &'b Entry> {
        places.iter().filter_map(|place| self.entries.get(*place))
    }

    /// The entries of each source and shard.
    pub fn scopes(&self) -> Vec<(Arc<Scope>, Vec<usize>)> {
        let mut scopes: BTreeMap<Arc<Scope>, Vec<usize>> = BTreeMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some((scope, _)) = super::load::place(entry) {
                scopes.entry(scope).or_default().push(at);
            }
        }
        scopes.into_iter().collect()
    }

    /// The messages in their order, chain or not.
    pub fn in_order(&self) -> impl Iterator<Item = &Entry> {
        let mut entries: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.content().is_some()).collect();
        entries.sort_by(|a, b| match (a.content(), b.content()) {
            (Some(a), Some(b)) => a.order(b),
            _ => a.index.cmp(&b.index),
        });
        entries.into_iter()
    }

    /// Messages that wait for each other, in order; chains in the order of their first messages.
    pub fn chains(&self) -> Vec<Vec<usize>> {
        let mut chains: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<(&Scope, Option<&str>), usize> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(content) = entry.content() else { continue };
            let key = content.key.as_deref().or(content.partition_key.as_deref());
            let chain = match (self.settings.order, key) {
                (Order::None, _) | (Order::PerKey, None) => None,
                (Order::PerShard, _) => Some((content.scope.as_ref(), None)),
                (Order::PerKey, Some(key)) => Some((content.scope.as_ref(), Some(key))),
            };
            let next = chains.len();
            let place = chain.map_or(next, |chain| *known.entry(chain).or_insert(next));
            match chains.get_mut(place) {
                Some(chain) => chain.push(at),
                None => chains.push(vec![at]),
            }
        }
        for chain in &mut chains {
            chain.sort_by(|a, b| {
                let content = |at: &usize| self.entries.get(*at).and_then(Entry::content);
                match (content(a), content(b)) {
                    (Some(a), Some(b)) => a.order(b),
                    _ => a.cmp(b),
                }
            });
        }
        chains
    }
}
