//! Running a handler: order, done and busy, slow handlers, deadlines, hand-offs, poison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use millpond_log::{
    Consumer, ConsumerOptions, DeadLetter, DeadLetters, Failure, GroupConfig, Poison, Record,
    RunEnd, RunOptions, Stop, Topic, TopicConfig, TopicName, Until,
};
use tokio::sync::Semaphore;

use super::{LogSubject, append, number, pass_time, read_all, record, until};
use crate::subject::bounded;

/// Long enough for virtual time to pass while requests to a real server are on their way.
const LEASE: Duration = Duration::from_secs(600);

fn drained() -> RunOptions {
    RunOptions { until: Until::Drained, ..RunOptions::default() }
}

async fn join(topic: &Topic, poison: Poison) -> Consumer {
    let group = GroupConfig { poison, ..GroupConfig::default() };
    let options = ConsumerOptions { lease: LEASE, group, ..ConsumerOptions::default() };
    topic.consumer("g", options).await.unwrap()
}

/// What was handled, by partition, in order.
type Seen = Arc<Mutex<BTreeMap<u32, Vec<u64>>>>;

fn note(seen: &Seen, record: &Record) {
    seen.lock().unwrap().entry(record.partition).or_default().push(number(record));
}

/// Everything is handled once, in order within each partition; then a second run finds nothing to do.
pub async fn a_run_handles_everything_in_order_and_says_done(world: &LogSubject) {
    let topic = world.topic(4).await;
    for n in 0..40 {
        append(&topic, (n % 4) as u32, vec![record(n, 30)]).await;
    }
    let timed = world.timed(&topic).await;
    let consumer = join(&timed, Poison::Block).await;
    let seen = Seen::default();
    let handler = |seen: Seen| {
        move |record: Record| {
            let seen = seen.clone();
            async move {
                note(&seen, &record);
                Ok::<(), Failure>(())
            }
        }
    };
    let report = bounded("the run", consumer.run(handler(seen.clone()), drained())).await.unwrap();
    assert_eq!((report.end, report.handled, report.failures), (RunEnd::Done, 40, 0));
    for (partition, numbers) in &*seen.lock().unwrap() {
        let expected = (0..40).filter(|n| n % 4 == u64::from(*partition));
        assert!(numbers.iter().copied().eq(expected), "{partition}: {numbers:?}");
    }
    let again = bounded("again", consumer.run(handler(seen.clone()), drained())).await.unwrap();
    assert_eq!((again.end, again.handled), (RunEnd::Done, 0));
    let group = topic.describe_group("g").await.unwrap();
    assert!(group.partitions.iter().all(|place| place.lag == 0 && place.owner.is_none()));
}

/// While others hold partitions, a run that has nothing to do says busy; it says done when it is true.
pub async fn contention_is_answered_busy_not_done(world: &LogSubject) {
    let topic = world.topic(2).await;
    append(&topic, 0, vec![record(0, 30)]).await;
    append(&topic, 1, vec![record(1, 30)]).await;
    let timed = world.timed(&topic).await;
    let (holder, late) = (join(&timed, Poison::Block).await, join(&timed, Poison::Block).await);
    assert_eq!(holder.balance().await.unwrap().taken.len(), 1, "its share of two workers");
    let run = async |consumer: &Consumer| {
        let handler = |_: Record| async { Ok::<(), Failure>(()) };
        bounded("the run", consumer.run(handler, drained())).await.unwrap()
    };
    let held = holder.held()[0].partition;
    let report = run(&late).await;
    assert_eq!(report.end, RunEnd::Busy { partitions: vec![held] });
    assert_eq!(report.handled, 1, "what was free was done");
    holder.leave().await.unwrap();
    let report = run(&late).await;
    assert_eq!((report.end, report.handled), (RunEnd::Done, 1));
}

/// A handler that takes many leases' time keeps its partition, and its record is handled once.
pub async fn a_handler_slower_than_the_lease_is_not_run_twice(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, vec![record(0, 30), record(1, 30)]).await;
    let timed = world.timed(&topic).await;
    let slow = join(&timed, Poison::Block).await;
    let calls = Arc::new(AtomicU64::new(0));
    let gate = Arc::new(Semaphore::new(0));
    let stop = Stop::new();
    let running = tokio::spawn({
        let (slow, calls, gate, stop) = (slow.clone(), calls.clone(), gate.clone(), stop.clone());
        async move {
            let handler = move |_: Record| {
                let (calls, gate) = (calls.clone(), gate.clone());
                async move {
                    calls.fetch_add(1, Ordering::SeqCst);
                    gate.acquire().await.unwrap().forget();
                    Ok::<(), Failure>(())
                }
            };
            slow.run(handler, RunOptions { stop, ..RunOptions::default() }).await
        }
    });
    until("the handler", || async { calls.load(Ordering::SeqCst) == 1 }).await;
    let other = join(&timed, Poison::Block).await;
    let beats = async || {
        let group = topic.describe_group("g").await.unwrap();
        let mine = group.workers.into_iter().find(|worker| worker.id == slow.worker().as_str());
        mine.map_or(0, |worker| worker.beats)
    };
    for _ in 0..12 {
        let before = beats().await;
        world.subject.clock.advance(LEASE / 3);
        until("a heartbeat", || async { beats().await > before }).await;
        other.beat().await.unwrap();
        assert!(other.balance().await.unwrap().taken.is_empty(), "a live lease was taken");
    }
    gate.add_permits(2);
    until("both records", || async {
        topic.describe_group("g").await.unwrap().partitions[0].lag == 0
    })
    .await;
    stop.stop();
    let report = bounded("the run", running).await.unwrap().unwrap();
    assert_eq!((report.handled, calls.load(Ordering::SeqCst)), (2, 2));
}

/// A run that must end before everything is done says so, and the next one goes on where it stopped.
pub async fn work_left_at_the_deadline_is_continued(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, (0..20).map(|n| record(n, 30)).collect()).await;
    let timed = world.timed(&topic).await;
    let seen = Seen::default();
    // The seventh, fourteenth, … record takes for ever the first time: the deadline comes while it is handled.
    let stuck: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    for run in 0..3 {
        let consumer = join(&timed, Poison::Block).await;
        let handler = {
            let (stuck, seen) = (stuck.clone(), seen.clone());
            move |record: Record| {
                let (stuck, seen) = (stuck.clone(), seen.clone());
                async move {
                    if number(&record) % 7 == 6 && stuck.lock().unwrap().insert(number(&record)) {
                        std::future::pending::<()>().await;
                    }
                    note(&seen, &record);
                    Ok::<(), Failure>(())
                }
            }
        };
        let (deadline, handoff) = (Some(Duration::from_secs(8)), Duration::from_secs(2));
        let options = RunOptions { deadline, handoff, ..drained() };
        let running = tokio::spawn(async move { consumer.run(handler, options).await });
        let is_stuck = || stuck.lock().unwrap().len() > run;
        until("a record that takes long", || async { is_stuck() || running.is_finished() }).await;
        let second = Duration::from_secs(1);
        pass_time(world, second, "the deadline", || async { running.is_finished() }).await;
        let report = running.await.unwrap().unwrap();
        let expected = if run < 2 { RunEnd::Deadline } else { RunEnd::Done };
        assert_eq!(report.end, expected, "run {run}: {report:?}");
    }
    let seen = seen.lock().unwrap();
    assert!(seen[&0].iter().copied().eq(0..20), "{seen:?}");
}

/// A stop lets the record at hand finish and checkpoints it; one that takes too long is dropped and done again.
pub async fn a_hand_off_lets_the_record_at_hand_finish(world: &LogSubject) {
    let topic = world.topic(1).await;
    append(&topic, 0, (0..5).map(|n| record(n, 30)).collect()).await;
    let timed = world.timed(&topic).await;
    for finishes in [true, false] {
        let consumer = join(&timed, Poison::Block).await;
        let started = Arc::new(AtomicU64::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let stop = Stop::new();
        let running = tokio::spawn({
            let (started, gate, stop) = (started.clone(), gate.clone(), stop.clone());
            async move {
                let handler = move |_: Record| {
                    let (started, gate) = (started.clone(), gate.clone());
                    async move {
                        started.fetch_add(1, Ordering::SeqCst);
                        gate.acquire().await.unwrap().forget();
                        Ok::<(), Failure>(())
                    }
                };
                let options = RunOptions { stop, ..RunOptions::default() };
                consumer.run(handler, options).await
            }
        });
        until("the handler", || async { started.load(Ordering::SeqCst) == 1 }).await;
        stop.stop();
        if finishes {
            gate.add_permits(1);
        }
        // The next record may have been begun before the order came: it is dropped in time.
        let second = Duration::from_secs(1);
        pass_time(world, second, "the end", || async { running.is_finished() }).await;
        let report = bounded("the run", running).await.unwrap().unwrap();
        assert_eq!(report.end, RunEnd::Stopped);
        assert_eq!(report.handled, u64::from(finishes));
        let place = topic.describe_group("g").await.unwrap().partitions.remove(0);
        assert_eq!((place.checkpoint, place.owner), (1, None), "finishes {finishes}");
    }
}

/// By the group's policy, a record that always fails stops its partition, or goes aside after so many attempts.
pub async fn a_poison_record_blocks_or_goes_to_the_dead_letters(world: &LogSubject) {
    let dead = world.topic(1).await;
    let topic = world.topic(2).await;
    for partition in 0..2 {
        append(&topic, partition, (0..3).map(|n| record(n, 30)).collect()).await;
    }
    let timed = world.timed(&topic).await;
    let attempts = Arc::new(AtomicU64::new(0));
    let handler = {
        let attempts = attempts.clone();
        move |record: Record| {
            let attempts = attempts.clone();
            async move {
                if record.partition == 0 && record.offset == 1 {
                    if attempts.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                        panic!("a handler that panics has failed, no more");
                    }
                    return Err(Failure::new("it is poison"));
                }
                Ok(())
            }
        }
    };
    let options = || RunOptions { deadline: Some(Duration::from_secs(600)), ..drained() };
    let run = async |consumer: Consumer| {
        let handler = handler.clone();
        let running = tokio::spawn(async move { consumer.run(handler, options()).await });
        pass_time(world, Duration::from_secs(1), "the run", || async { running.is_finished() })
            .await;
        running.await.unwrap().unwrap()
    };
    let blocked = run(join(&timed, Poison::Block).await).await;
    assert_eq!((blocked.end, blocked.handled, blocked.buried), (RunEnd::Deadline, 4, 0));
    let place = topic.describe_group("g").await.unwrap().partitions.remove(0);
    assert_eq!((place.checkpoint, place.lag), (1, 2));
    assert!(place.fails >= 3, "attempts are counted: {}", place.fails);

    let name = TopicName::new(&dead.name()).unwrap();
    topic.reset("g", Some(0), millpond_log::Seek::Offset(1)).await.unwrap();
    let poison = Poison::DeadLetter { attempts: 3, topic: Some(name) };
    topic.set_poison("g", poison.clone()).await.unwrap();
    attempts.store(0, Ordering::SeqCst);
    let report = run(join(&timed, poison).await).await;
    assert_eq!((report.end, report.handled, report.buried), (RunEnd::Done, 1, 1));
    assert_eq!(attempts.load(Ordering::SeqCst), 3, "exactly three attempts");
    let letters = read_all(&dead, 0).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(number(&letters[0]), 1);
    let header = |name| String::from_utf8(letters[0].header(name).unwrap().to_vec()).unwrap();
    assert_eq!(header("millpond-origin"), format!("{}/0/1", topic.name()));
    assert_eq!(header("millpond-attempts"), "3");
    assert_eq!(header("millpond-reason"), "it is poison");
}

#[derive(Default)]
struct Flaky {
    well: AtomicBool,
    refused: AtomicU64,
    letters: Mutex<Vec<DeadLetter>>,
}

#[async_trait]
impl DeadLetters for Flaky {
    async fn bury(&self, letter: &DeadLetter) -> Result<(), Failure> {
        if !self.well.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(Failure::new("the sink is full"));
        }
        self.letters.lock().unwrap().push(letter.clone());
        Ok(())
    }
}

/// A record is done only when the sink has it.
pub async fn a_sink_that_fails_keeps_the_record(world: &LogSubject) {
    let topic = world.topic_with(TopicConfig::with_partitions(1)).await;
    append(&topic, 0, vec![record(0, 30)]).await;
    let timed = world.timed(&topic).await;
    let consumer = join(&timed, Poison::DeadLetter { attempts: 1, topic: None }).await;
    let handler = |_: Record| async { Err::<(), Failure>(Failure::new("no")) };
    let missing = consumer.run(handler, drained()).await.unwrap_err();
    assert!(missing.to_string().starts_with("sink is missing"), "{missing}");
    let sink = Arc::new(Flaky::default());
    let running = tokio::spawn({
        let options = RunOptions { sink: Some(sink.clone()), ..drained() };
        async move { consumer.run(handler, options).await }
    });
    let second = Duration::from_secs(1);
    pass_time(world, second, "some refusals", || async {
        sink.refused.load(Ordering::SeqCst) >= 3
    })
    .await;
    assert_eq!(topic.describe_group("g").await.unwrap().partitions[0].checkpoint, 0);
    sink.well.store(true, Ordering::SeqCst);
    pass_time(world, second, "the run", || async { running.is_finished() }).await;
    let report = running.await.unwrap().unwrap();
    assert_eq!((report.end, report.buried), (RunEnd::Done, 1));
    assert_eq!(sink.letters.lock().unwrap()[0].reason, "no");
}
