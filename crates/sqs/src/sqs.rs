//! The whole: requests in, answers out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use millpond_lanes::Ground;
use millpond_queue::{QueueError, Queues};
use tokio::sync::watch;

use crate::actions::{Action, CreateQueue, create_queue, run, set_queue_attributes, wait_of};
use crate::call::{Base, Call, Caller, denied};
use crate::error::{Code, Failure, Result};
use crate::maintenance;
use crate::message::uuid_of;
use crate::metrics::{Counted, SqsMetrics};
use crate::moves::Moves;
use crate::options::{AccountId, Region, SqsOptions};
use crate::place::Address;
use crate::registry::Registry;
use crate::signature::Presented;
use crate::watch::Watch;
use crate::wire::{Encoding, Incoming, refusal};

/// The SQS protocol over the queues of a store. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Sqs {
    inner: Arc<Inner>,
}

/// What all clones share.
#[derive(Debug)]
pub struct Inner {
    pub options: SqsOptions,
    pub registry: Arc<Registry>,
    pub moves: Arc<Moves>,
    pub counted: Counted,
    closing: Closing,
}

/// Why the protocol cannot be served.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SqsError {
    /// An option makes no sense. Correct it.
    #[error("{field} {problem}")]
    Option {
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A queue cannot be what it is declared to be. Correct the declaration.
    #[error("queue {name:?}: {problem}")]
    Declared {
        /// Which one.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The queues below failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Tells tasks to end.
#[derive(Debug, Clone)]
pub struct Closing(Arc<watch::Sender<bool>>);

impl Closing {
    fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    /// Returns when it is time to end.
    pub async fn until(&self) {
        let mut closed = self.0.subscribe();
        // The sender lives as long as this.
        let _ = closed.wait_for(|closed| *closed).await;
    }
}

impl Inner {
    pub fn is_closed(&self) -> bool {
        *self.closing.0.borrow()
    }

    /// Returns when waits are to end.
    pub async fn until_closed(&self) {
        self.closing.until().await;
    }
}

impl Sqs {
    /// Opens the queues of a store. Move tasks that were left unfinished, and that no other node works on, are carried
    /// on.
    ///
    /// # Errors
    /// [`SqsError::Option`] when an option makes no sense, [`SqsError::Queue`] when the store fails.
    pub async fn open(ground: &Ground, options: SqsOptions) -> Result<Self, SqsError> {
        check(&options)?;
        let registry = Arc::new(Registry::new(ground, options.attribute_prefix.clone()));
        let closing = Closing::new();
        let moves = Arc::new(Moves::new(&registry, &closing));
        if let Err(failure) = moves.resume().await {
            // It is looked for them again and again.
            tracing::warn!(error = failure.text, "move tasks are not carried on");
        }
        tokio::spawn(Moves::look_after(Arc::downgrade(&moves), closing.clone()));
        let counted = Counted::default();
        tokio::spawn(maintenance::run(Arc::downgrade(&registry), closing.clone()));
        Ok(Self { inner: Arc::new(Inner { options, registry, moves, counted, closing }) })
    }

    /// Sees to it that a queue exists in the server's own region and account and has these attributes and tags, as
    /// CreateQueue and SetQueueAttributes would: for queues that are declared in a configuration. No signature is asked
    /// for. Returns the queue's URL behind `base`.
    ///
    /// # Errors
    /// [`SqsError::Declared`], which says what is wrong.
    pub async fn declare(
        &self,
        name: &str,
        attributes: BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
        base: &str,
    ) -> Result<String, SqsError> {
        let call = Call {
            inner: &self.inner,
            action: Action::CreateQueue,
            caller: self.inner.trusted(None),
            path: None,
            base: Base::Given(base.trim_end_matches('/')),
            now: self.inner.registry.ground.environment.now(),
            watch: None,
        };
        let refused =
            |failure: Failure| SqsError::Declared { name: name.to_owned(), problem: failure.text };
        let request = CreateQueue::new(name.to_owned(), attributes.clone(), tags);
        match Box::pin(create_queue(&call, request)).await {
            Ok(created) => Ok(created.queue_url),
            Err(failure) if failure.code == Code::QueueNameExists => {
                let place = call.place(name);
                Box::pin(set_queue_attributes(&call, &place, &attributes))
                    .await
                    .map_err(refused)?;
                Ok(call.url(&place))
            }
            Err(failure) => Err(refused(failure)),
        }
    }

    /// Answers one request. The caller has bounded its body. It never fails: errors are answers. Dropping the future
    /// means that the client has hung up: what was claimed for it is given back.
    pub async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let inner = &self.inner;
        let environment = &inner.registry.ground.environment;
        let [high, low] = [(); 2].map(|()| u128::from(environment.rng.next_u64()));
        let request_id = uuid_of((high << 64) | low);
        let encoding = Encoding::of(&request);
        let incoming = Incoming::read(&request);
        let action = incoming.as_ref().map_or("Unknown", |incoming| incoming.action.name());
        let (parts, body) = request.into_parts();
        let watch = parts.extensions.get::<Arc<dyn Watch>>();
        if let Some(watch) = watch {
            watch.action(action);
        }
        let answered = match (inner.caller(&parts, &body), incoming) {
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            (Ok(caller), Ok(incoming)) => {
                let call = Call {
                    inner,
                    action: incoming.action,
                    caller,
                    path: Address::of_path(parts.uri.path()),
                    base: Base::Of(&parts),
                    now: environment.now(),
                    watch,
                };
                match call.caller.key.filter(|key| !key.may(action)) {
                    Some(key) => Err(denied(&key.id, call.action, "*")),
                    None => run(&call, &incoming.params, encoding, &request_id).await,
                }
            }
        };
        match answered {
            Ok(response) => {
                inner.counted.answered(action, "OK");
                response
            }
            Err(failure) => {
                tracing::debug!(action, request_id, code = failure.code.name(), "refused");
                inner.counted.answered(action, failure.code.name());
                if let Some(watch) = watch {
                    watch.refused(failure.code.name());
                }
                refusal(encoding, &failure, &request_id)
            }
        }
    }

    #[cfg(test)]
    pub(crate) const fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Whether this request may wait for messages, so that the caller can count it apart from those that never do.
    #[must_use]
    pub fn may_wait(&self, request: &Request<Bytes>) -> bool {
        let Ok(incoming) = Incoming::read(request) else { return false };
        if incoming.action != Action::ReceiveMessage {
            return false;
        }
        match wait_of(&incoming.params) {
            (Some(seconds), _) => seconds > 0,
            // The queue decides. One that is not known yet may.
            (None, url) => {
                let address = match url.filter(|url| !url.is_empty()) {
                    Some(url) => Address::of_url(&url).ok(),
                    None => Address::of_path(request.uri().path()),
                };
                let Some(address) = address else { return false };
                let caller = self.inner.trusted(presented(request).as_ref());
                let account = address.account.unwrap_or(caller.account);
                let (region, name) = (caller.region, address.name);
                let place = crate::place::Place { region, account, name };
                let known = self.inner.registry.glance(&place);
                known.is_none_or(|known| !known.settings.wait.is_zero())
            }
        }
    }

    /// Ends all waits with what they have, and lets no other request wait: for a graceful stop. Move tasks stop after
    /// their current step, and are carried on by whoever opens the store next.
    pub fn close(&self) {
        self.inner.closing.0.send_replace(true);
    }

    /// The queues below, for other doors of the same server: so that all of them know the same of a queue that is
    /// deleted or made anew.
    #[must_use]
    pub fn queues(&self) -> Queues {
        self.inner.registry.queues.clone()
    }

    /// What was counted since the start.
    #[must_use]
    pub fn metrics(&self) -> SqsMetrics {
        self.inner.counted.read()
    }
}

/// What a request says about its signature, if that can be read.
fn presented(request: &Request<Bytes>) -> Option<Presented> {
    let mut copy = Request::builder().uri(request.uri().clone()).body(()).ok()?;
    *copy.headers_mut() = request.headers().clone();
    Presented::read(&copy.into_parts().0).ok().flatten()
}

impl Inner {
    /// Who calls. With keys, only who has signed with one of them.
    fn caller(&self, request: &Parts, body: &[u8]) -> Result<Caller<'_>> {
        let Some(keys) = &self.options.keys else {
            // Nobody is asked for a signature, so that one which cannot be read says nothing.
            return Ok(self.trusted(Presented::read(request).ok().flatten().as_ref()));
        };
        let now = self.registry.ground.environment.now();
        let (key, presented) = keys.signer(request, body, now)?;
        let region = Region::new(&presented.region).map_err(|_| {
            let text = "Credential should be scoped to a valid region.";
            Failure::new(Code::SignatureDoesNotMatch, text)
        })?;
        let account = key.account.clone().unwrap_or_else(|| self.account_of(&key.id));
        Ok(Caller { region, account, key: Some(key) })
    }

    /// Who a request says it is from, where that is not checked.
    fn trusted(&self, presented: Option<&Presented>) -> Caller<'_> {
        let region = presented.and_then(|presented| Region::new(&presented.region).ok());
        Caller {
            region: region.unwrap_or_else(|| self.options.region.clone()),
            account: presented
                .map_or_else(|| self.options.account.clone(), |own| self.account_of(&own.key_id)),
            key: None,
        }
    }

    /// The account of a key: its id when that has the form of one.
    fn account_of(&self, key_id: &str) -> AccountId {
        AccountId::new(key_id).unwrap_or_else(|_| self.options.account.clone())
    }
}

/// Longest prefix of Millpond's own attributes.
const PREFIX_CHARS_MAX: usize = 64;

fn check(options: &SqsOptions) -> Result<(), SqsError> {
    let refused = |field, problem: String| Err(SqsError::Option { field, problem });
    let prefix = &options.attribute_prefix;
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    if !(1..=PREFIX_CHARS_MAX).contains(&prefix.len()) || !prefix.bytes().all(is_allowed) {
        let problem = format!(
            "is {prefix:?}; 1 to {PREFIX_CHARS_MAX} letters, digits, '.', '-' and '_' are accepted"
        );
        return refused("attribute_prefix", problem);
    }
    if let Some(url) = &options.public_url
        && !url.starts_with("http://")
        && !url.starts_with("https://")
    {
        return refused(
            "public_url",
            format!("is {url:?}; it must begin with http:// or https://"),
        );
    }
    let mut ids = BTreeSet::new();
    for key in options.keys.iter().flat_map(|keys| &keys.keys) {
        if key.id.is_empty() || key.id.contains('/') || key.secret.is_empty() {
            let problem =
                format!("has {:?}, whose id or secret is empty, or whose id has a '/'", key.id);
            return refused("keys", problem);
        }
        if !ids.insert(&key.id) {
            return refused("keys", format!("has {:?} twice", key.id));
        }
    }
    Ok(())
}
