//! Another process acts before every single request of an operation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use millpond_lanes::Ground;
use millpond_queue::{Client, Message, Nack, QueueConfig, QueueError, Queues, Redrive, Settled};
use millpond_store::{
    ChangeHint, Item, Key, Page, Partition, Profile, Query, Result, Store, Write,
};

use super::{
    ack_all, counts, drain, elsewhere, open_in, queue, seconds, send_all, take, take_one, texts,
    with_dead_letters,
};
use crate::subject::Subject;

/// Requests that are tried: no operation here has more.
const REQUESTS_MAX: u64 = 12;

/// A store in which something happens before the request of a certain number.
#[derive(Debug)]
struct Interposed {
    inner: Arc<dyn Store>,
    left: AtomicU64,
    act: Mutex<Option<Act>>,
}

struct Act(BoxFuture<'static, ()>);

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Act")
    }
}

impl Interposed {
    /// Before the request of this number, counted from 0, `act` happens.
    fn before(&self, request: u64, act: impl Future<Output = ()> + Send + 'static) {
        *self.act.lock().unwrap() = Some(Act(Box::pin(act)));
        self.left.store(request + 1, Ordering::SeqCst);
    }

    /// Whether it has happened.
    fn has_acted(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    async fn count(&self) {
        let one_less = |left: u64| left.checked_sub(1);
        let last = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) == Ok(1);
        let act = if last { self.act.lock().unwrap().take() } else { None };
        if let Some(Act(act)) = act {
            act.await;
        }
    }
}

#[async_trait]
impl Store for Interposed {
    fn profile(&self) -> Profile {
        self.inner.profile()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.count().await;
        self.inner.get(key).await
    }
    async fn query(&self, query: Query) -> Result<Page> {
        self.count().await;
        self.inner.query(query).await
    }
    async fn write(&self, write: Write) -> Result<()> {
        self.count().await;
        self.inner.write(write).await
    }
    async fn write_all(&self, writes: Vec<Write>) -> Result<()> {
        self.count().await;
        self.inner.write_all(writes).await
    }
    async fn write_each(&self, writes: Vec<Write>) -> Result<Vec<Result<()>>> {
        self.count().await;
        self.inner.write_each(writes).await
    }
    fn changed(&self, partition: &Partition) -> ChangeHint {
        self.inner.changed(partition)
    }
}

/// A client in a process into which others can come between.
async fn interposed(subject: &Subject, client: &Client) -> (Arc<Interposed>, Client) {
    let inner = subject.store.clone();
    let store = Arc::new(Interposed { inner, left: AtomicU64::new(0), act: Mutex::new(None) });
    let queues = Queues::new(&Ground::new(store.clone(), &subject.impatient()));
    let client = open_in(&queues, client).await;
    (store, client)
}

fn both() -> [QueueConfig; 2] {
    [QueueConfig::default(), QueueConfig::strict()]
}

/// A send that comes between any two requests of a purge: sent again, it is there once or not at all.
pub async fn a_send_between_any_two_requests_of_a_purge(subject: &Subject) {
    for at in 0..REQUESTS_MAX {
        let client = queue(subject, QueueConfig::strict()).await;
        let message = |n: u32| Message::new(n.to_string()).group("g").dedup_id(n.to_string());
        send_all(&client, (0..70).map(message)).await;
        let (store, purger) = interposed(subject, &client).await;
        let sender = elsewhere(subject, &client).await;
        let racing = message(100);
        let sent = racing.clone();
        store.before(at, async move {
            sender.send(sent).await.unwrap();
        });
        purger.purge().await.unwrap();
        if !store.has_acted() {
            assert!(at > 2, "a purge of {at} requests");
            return;
        }
        let left = counts(&client).await.0;
        let again = client.send(racing).await.unwrap();
        assert_eq!(again.duplicate, left == 1, "before request {at}: {left} left");
        assert_eq!(texts(&drain(&client).await), ["100"], "before request {at}");
    }
}

/// Another receive between any two requests of one: no message goes to both, none is left out.
pub async fn a_receive_between_any_two_requests_of_another(subject: &Subject) {
    for config in both() {
        for (at, max) in (0..REQUESTS_MAX).flat_map(|at| [(at, 3), (at, 100)]) {
            let client = queue(subject, config.clone()).await;
            let of = |n: u32| Message::new(format!("{n:02}")).group((n % 5).to_string());
            for part in [0..9, 9..18, 18..20] {
                send_all(&client, part.map(of)).await;
            }
            let (store, receiver) = interposed(subject, &client).await;
            let other = elsewhere(subject, &client).await;
            let stolen = Arc::new(Mutex::new(Vec::new()));
            let to = Arc::clone(&stolen);
            store.before(at, async move {
                let taken = take(&other, 7).await;
                ack_all(&other, &taken[..taken.len() / 2]).await;
                to.lock().unwrap().extend(texts(&taken));
            });
            let mut all = texts(&take(&receiver, max).await);
            assert!(all.len() <= max, "more than was asked for");
            all.extend(stolen.lock().unwrap().clone());
            let mut once = all.clone();
            once.sort();
            once.dedup();
            assert_eq!(
                once.len(),
                all.len(),
                "before request {at}, a message went to both: {all:?}"
            );
            subject.clock.advance(seconds(31));
            all.extend(texts(&drain(&elsewhere(subject, &client).await).await));
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 20, "before request {at}, a message is lost");
        }
    }
}

/// The lease ends and another takes the message between any two requests of an ack: one of them has it.
pub async fn a_lapse_between_any_two_requests_of_an_ack(subject: &Subject) {
    for config in both() {
        for at in 0..REQUESTS_MAX {
            let client = queue(subject, config.clone()).await;
            send_all(&client, ["x", "y"].map(|text| Message::new(text).group(text))).await;
            let (store, holder) = interposed(subject, &client).await;
            let held = take(&holder, 2).await;
            let held = held.iter().find(|delivery| delivery.text() == Some("x")).unwrap().clone();
            let other = elsewhere(subject, &client).await;
            let (thief, clock) = (other.clone(), subject.clock.clone());
            let stolen = Arc::new(Mutex::new(Vec::new()));
            let to = Arc::clone(&stolen);
            store.before(at, async move {
                clock.advance(seconds(30));
                let taken = take(&thief, 2).await;
                to.lock().unwrap().extend(taken);
            });
            let outcome = holder.ack(&held.receipt).await;
            let stolen = stolen.lock().unwrap().clone();
            let x = stolen.iter().find(|delivery| delivery.text() == Some("x"));
            match (&outcome, x) {
                (Ok(Settled::Now), None) => {}
                (Err(QueueError::LeaseLost { .. }), Some(x)) => {
                    assert_eq!(other.ack(&x.receipt).await.unwrap(), Settled::Now);
                }
                _ => panic!("before request {at}: {outcome:?}, stolen {stolen:?}"),
            }
            subject.clock.advance(seconds(31));
            assert_eq!(texts(&drain(&client).await), ["y"], "before request {at}");
        }
    }
}

/// Another process takes over between any two requests of a move to the dead letters, and of the way back.
pub async fn a_move_that_another_takes_over_is_made_once(subject: &Subject) {
    for config in both() {
        for at in 0..REQUESTS_MAX {
            let (client, dead) = with_dead_letters(subject, 1, config.clone()).await;
            send_all(&client, [Message::new("x").group("g")]).await;
            let (store, holder) = interposed(subject, &client).await;
            let held = take_one(&holder).await;
            let (other, clock) = (elsewhere(subject, &client).await, subject.clock.clone());
            store.before(at, async move {
                clock.advance(seconds(31));
                assert!(take(&other, 5).await.is_empty(), "received more often than the limit");
            });
            let _ = holder.nack(&held.receipt, Nack::default()).await;
            subject.clock.advance(seconds(31));
            assert!(take(&elsewhere(subject, &client).await, 5).await.is_empty());
            let fresh = elsewhere(subject, &dead).await;
            assert_eq!(counts(&fresh).await, (1, 0, 0), "before request {at}");

            let (store, driver) = interposed(subject, &dead).await;
            let (other, clock) = (elsewhere(subject, &dead).await, subject.clock.clone());
            store.before(at, async move {
                clock.advance(seconds(31));
                other.redrive(&Redrive::default()).await.unwrap();
            });
            let _ = driver.redrive(&Redrive::default()).await;
            subject.clock.advance(seconds(31));
            elsewhere(subject, &dead).await.redrive(&Redrive::default()).await.unwrap();
            assert_eq!(counts(&dead).await, (0, 0, 0), "before request {at}");
            let back = drain(&elsewhere(subject, &client).await).await;
            assert_eq!(texts(&back), ["x"], "before request {at}");
        }
    }
}

/// A consumer of the dead letters gets none that is being brought back, however short the queue's own timeout; and one
/// that gets it all the same, since the move took too long, does not stop the rest.
pub async fn a_consumer_of_the_dead_letters_does_not_stop_a_redrive(subject: &Subject) {
    for (config, pause) in both().into_iter().flat_map(|config| {
        [Duration::from_millis(5), seconds(31)].map(|pause| (config.clone(), pause))
    }) {
        for at in 0..REQUESTS_MAX {
            let (client, dead) = with_dead_letters(subject, 1, config.clone()).await;
            let handle = super::process(subject).open(dead.queue().as_str()).await.unwrap();
            let short = QueueConfig {
                visibility: Duration::from_millis(1),
                ..(*handle.config().await.unwrap()).clone()
            };
            handle.update_config(short).await.unwrap();
            send_all(&client, [Message::new("x").group("g")]).await;
            let held = take_one(&client).await;
            client.nack(&held.receipt, Nack::default()).await.unwrap();
            take(&client, 1).await;
            let (store, driver) = interposed(subject, &dead).await;
            let (other, clock) = (elsewhere(subject, &dead).await, subject.clock.clone());
            let taken = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&taken);
            store.before(at, async move {
                clock.advance(pause);
                count.store(take(&other, 5).await.len() as u64, Ordering::SeqCst);
            });
            let moved = driver.redrive(&Redrive::default()).await.unwrap().moved as u64;
            if pause < seconds(1) {
                assert_eq!(moved + taken.load(Ordering::SeqCst), 1, "before request {at}");
            }
        }
    }
}
