//! Workers in virtual time: what every backend does, and the rest.

use std::sync::Arc;

use millpond_store::MemoryStore;
use millpond_testing::Subject;

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

millpond_testing::queue_worker_suite!(memory);

mod support {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// What handlers saw, in order.
    #[derive(Debug, Clone, Default)]
    pub struct Log(Arc<Mutex<Vec<String>>>);

    impl Log {
        pub fn note(&self, what: impl Into<String>) {
            self.0.lock().unwrap().push(what.into());
        }

        pub fn all(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    pub const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    pub const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }
}

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond_queue::worker::{Ended, Ran, RetryPolicy, Wake};
use millpond_queue::{
    DeadLetters, Delivery, Message, Outcome, QueueConfig, QueueError, RunUntil, StatusKeeping,
    TaskState, Trigger, Worker,
};
use millpond_store::{FaultPlan, FaultRates};
use millpond_testing::queue_worker_suite::{World, all_fail, send};
use support::{Log, ms, secs};

fn keeps_status() -> QueueConfig {
    let status = Some(StatusKeeping { keep: secs(3_600) });
    QueueConfig { status, ..QueueConfig::default() }
}

#[tokio::test]
async fn a_panicking_handler_has_failed_and_the_worker_goes_on() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&keeps_status()).await;
            send(&client, 3).await;
            let worker = Worker::new(client.clone(), |delivery: Delivery| async move {
                assert!(delivery.text() != Some("1") || delivery.receives > 1, "number one");
                Outcome::done()
            });
            let worker =
                worker.concurrency(1).retry(RetryPolicy { jitter: 0.0, ..RetryPolicy::default() });
            let report = worker.run_until(RunUntil::empty()).await.unwrap();
            assert_eq!((report.done, report.retried, report.work_remains), (2, 1, true));
            let pending = client.tasks(TaskState::Pending, false, 9).await.unwrap();
            assert_eq!(pending[0].error.as_deref(), Some("the handler panicked: number one"));
            assert_eq!(report.due, Some(world.now().plus(secs(1))), "it waits for a second");
            let report = worker.run_until(RunUntil::empty().linger(secs(2))).await.unwrap();
            assert_eq!((report.done, report.work_remains), (1, false));
        })
        .await;
}

#[tokio::test]
async fn a_handler_that_takes_too_long_has_failed() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&keeps_status()).await;
            send(&client, 1).await;
            let clock = Arc::clone(&subject.environment.clock);
            let worker = Worker::new(client.clone(), move |delivery: Delivery| {
                let clock = Arc::clone(&clock);
                async move {
                    clock.sleep(secs(u64::from(delivery.receives == 1) * 999)).await;
                    Outcome::done()
                }
            });
            let worker = worker.timeout(secs(2)).retry(RetryPolicy::AT_ONCE);
            let report = worker.run_until(RunUntil::empty()).await.unwrap();
            assert_eq!((report.retried, report.done), (1, 1));
        })
        .await;
}

#[tokio::test]
async fn outcomes_become_states_with_results_and_errors() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&keeps_status()).await;
            send(&client, 5).await;
            let worker = Worker::new(client.clone(), |delivery: Delivery| {
                ready(match delivery.text().unwrap() {
                    "0" => Outcome::Done("fine".into()),
                    "1" => Outcome::Fail("never".into()),
                    "2" => Outcome::Retry { after: Some(secs(77)), error: "later".into() },
                    "3" => Outcome::Done(vec![0; 513].into()),
                    _ if delivery.receives == 1 => Outcome::Release,
                    _ => Outcome::done(),
                })
            });
            let report = worker.name("w1").run_until(RunUntil::empty()).await.unwrap();
            assert_eq!((report.done, report.failed, report.retried, report.released), (3, 1, 1, 1));
            assert_eq!(report.due, Some(world.now().plus(secs(77))));
            let success = client.tasks(TaskState::Success, false, 9).await.unwrap();
            assert_eq!(success[0].result.as_deref(), Some(b"fine".as_slice()));
            assert_eq!((success[1].result.as_ref(), success.len()), (None, 3));
            assert_eq!(success[0].worker.as_deref(), Some("w1"));
            let failure = client.tasks(TaskState::Failure, false, 9).await.unwrap();
            assert_eq!(failure[0].error.as_deref(), Some("never"));
            let pending = client.tasks(TaskState::Pending, false, 9).await.unwrap();
            assert_eq!(pending[0].error.as_deref(), Some("later"));
        })
        .await;
}

#[tokio::test]
async fn a_batch_handler_gets_many_and_says_what_became_of_each() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&keeps_status()).await;
            send(&client, 25).await;
            let sizes = Log::default();
            let seen = sizes.clone();
            let worker = Worker::batch(client.clone(), 10, move |all: Vec<Delivery>| {
                seen.note(all.len().to_string());
                let outcome = |delivery: &Delivery| match delivery.text() {
                    Some("7") => Outcome::Fail("seven".into()),
                    _ => Outcome::done(),
                };
                // It says nothing of the last of a full batch.
                ready(all.iter().take(9).map(outcome).collect())
            });
            let until = RunUntil::count(25);
            let report = worker.concurrency(1).run_until(until).await.unwrap();
            assert_eq!(sizes.all(), ["10", "10", "5"]);
            assert_eq!((report.done, report.failed, report.retried), (22, 1, 2));
            assert_eq!((report.ended, report.work_remains), (Ended::Count, true));
        })
        .await;
}

#[tokio::test]
async fn a_strict_queues_groups_are_worked_on_in_order_also_after_a_failure() {
    let subject = memory().await;
    let world = World::new(&subject);
    let config = QueueConfig::strict();
    world
        .run(async {
            let client = world.process(&config).await;
            let most_receives = Arc::new(AtomicUsize::new(0));
            let receives = Arc::clone(&most_receives);
            let groups = ["a", "b", "c"];
            let messages = (0..20).flat_map(|n| {
                groups.map(|group| Message::new(format!("{group}{n:02}")).group(group))
            });
            for sent in client.send_batch(messages.collect()).await.unwrap() {
                sent.unwrap();
            }
            let log = Log::default();
            let (seen, clock) = (log.clone(), Arc::clone(&subject.environment.clock));
            let failed = Arc::new(AtomicUsize::new(0));
            let failures = Arc::clone(&failed);
            let worker = Worker::new(client, move |delivery: Delivery| {
                let (seen, clock) = (seen.clone(), Arc::clone(&clock));
                let text = delivery.text().unwrap().to_owned();
                // Those behind a failed one are given back untouched: they lose no attempt.
                let fails = text.ends_with('5') && delivery.receives == 1;
                failures.fetch_add(usize::from(fails), Ordering::AcqRel);
                receives.fetch_max(delivery.receives as usize, Ordering::AcqRel);
                async move {
                    clock.sleep(ms(10)).await;
                    if fails {
                        return Outcome::Retry { after: Some(ms(500)), error: "once".into() };
                    }
                    seen.note(text);
                    Outcome::done()
                }
            });
            let report = worker.run_until(RunUntil::empty().linger(secs(60))).await.unwrap();
            assert_eq!((report.done, report.work_remains), (60, false), "{report:?}");
            assert_eq!(failed.load(Ordering::Acquire), 6);
            assert_eq!(most_receives.load(Ordering::Acquire), 2);
            for group in groups {
                let all = log.all();
                let of: Vec<_> = all.iter().filter(|text| text.starts_with(group)).collect();
                assert!(of.is_sorted() && of.len() == 20, "{of:?}");
            }
        })
        .await;
}

#[tokio::test]
async fn what_still_runs_at_the_deadline_is_given_back_and_the_deadline_is_kept() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            send(&client, 5).await;
            let hooks = Arc::new(AtomicUsize::new(0));
            let called = Arc::clone(&hooks);
            let worker = Worker::new(client.clone(), |_| std::future::pending()).concurrency(2);
            let worker = worker.continuation(move |report| {
                called.fetch_add(1, Ordering::AcqRel);
                assert!(report.released == 2 && report.due.is_none());
                ready(())
            });
            let began = world.now();
            let report = worker.run_until(RunUntil::deadline(secs(10))).await.unwrap();
            assert_eq!(world.now().since(began), secs(10));
            assert_eq!((report.ended, report.released), (Ended::Deadline, 2));
            assert_eq!(hooks.load(Ordering::Acquire), 1);
            assert_eq!(client.count().await.unwrap().available, 5);
            client.purge().await.unwrap();
            let report = worker.run_until(RunUntil::deadline(secs(10))).await.unwrap();
            assert_eq!((report.ended, report.work_remains), (Ended::Deadline, false));
            assert_eq!(hooks.load(Ordering::Acquire), 1, "called without work");
        })
        .await;
}

#[tokio::test]
async fn a_store_that_fails_for_good_does_not_outlive_the_deadline() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            send(&client, 4).await;
            let worker = Worker::new(client.clone(), |_| std::future::pending()).concurrency(2);
            let outage = async {
                world.sleep(secs(3)).await;
                world.faulty.follow(FaultPlan::Chance(all_fail()));
            };
            let began = world.now();
            let (report, ()) = tokio::join!(worker.run_until(RunUntil::deadline(secs(10))), outage);
            let report = report.unwrap();
            assert!(world.now().since(began) <= secs(15), "{:?}", world.now().since(began));
            assert_eq!(
                (report.ended, report.lost, report.work_remains),
                (Ended::Deadline, 2, true)
            );
        })
        .await;
}

#[tokio::test]
async fn what_trying_again_cannot_mend_ends_a_run_with_its_error() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            let worker = Worker::new(client.clone(), |_| ready(Outcome::done()));
            let handle = worker.start().unwrap();
            world.sleep(secs(1)).await;
            let store = Arc::clone(&world.faulty) as Arc<dyn millpond_store::Store>;
            let ground = millpond_lanes::Ground::new(store, &subject.environment);
            let queues = millpond_queue::Queues::new(&ground);
            queues.open(client.queue().as_str()).await.unwrap().delete().await.unwrap();
            world.sleep(secs(60)).await;
            assert!(handle.is_finished());
            let error = handle.shutdown(Duration::ZERO).await.unwrap_err();
            assert!(matches!(error, QueueError::NotFound { .. }), "{error}");
            let bad = worker.clone().concurrency(0).run_until(RunUntil::empty()).await.unwrap_err();
            assert!(bad.to_string().starts_with("concurrency"), "{bad}");
            let bad = worker.run_until(RunUntil::count(0)).await.unwrap_err();
            assert!(bad.to_string().starts_with("count"), "{bad}");
        })
        .await;
}

#[tokio::test]
async fn failures_lead_to_the_dead_letters_with_their_error() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let plain = world.process(&QueueConfig::default()).await;
            let store = Arc::clone(&world.faulty) as Arc<dyn millpond_store::Store>;
            let ground = millpond_lanes::Ground::new(store, &subject.environment);
            let queues = millpond_queue::Queues::new(&ground);
            let dead_letters =
                Some(DeadLetters { queue: plain.queue().to_string(), receives_max: 3 });
            let config = QueueConfig { dead_letters, ..QueueConfig::default() };
            let queue = queues.create("failing", config).await.unwrap();
            let client = queue.client("worker").unwrap();
            send(&client, 1).await;
            let worker = Worker::new(client, |_| ready(Outcome::retry("no way")));
            let report = worker.run_until(RunUntil::empty().linger(secs(60))).await.unwrap();
            assert_eq!((report.retried, report.work_remains), (3, false));
            let dead = plain.peek(9).await.unwrap();
            let origin = dead[0].message.origin.as_ref().unwrap();
            assert_eq!((origin.receives, origin.error.as_deref()), (3, Some("no way")));
        })
        .await;
}

#[tokio::test]
async fn upkeep_goes_on_while_a_worker_runs() {
    let subject = memory().await;
    let world = World::new(&subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            client.send(Message::new("old").ttl(secs(1)).delay(ms(900))).await.unwrap();
            let worker = Worker::new(client.clone(), |_| std::future::pending());
            client.send(Message::new("busy")).await.unwrap();
            let handle = worker.concurrency(1).start().unwrap();
            world.sleep(secs(12)).await;
            assert_eq!(client.totals().await.unwrap().of(millpond_queue::Event::Expired), 1);
            handle.shutdown(Duration::ZERO).await.unwrap();
        })
        .await;
}

/// Senders that send and wake at any moment, runs that are short, a store that fails: in the end all is done, with no
/// help but that of wake-ups and continuations.
#[tokio::test]
async fn no_wake_up_is_ever_lost() {
    let mut rests = 0;
    for seed in 0..8_u64 {
        let subject = memory().await;
        let world = World::new(&subject);
        rests += world
            .run(async {
                let client = world.process(&QueueConfig::default()).await;
                let trigger = Trigger::new(&client).unwrap();
                let (invoke, mut invoked) = tokio::sync::mpsc::unbounded_channel();
                let again = invoke.clone();
                let done = Arc::new(AtomicUsize::new(0));
                let (count, clock) = (Arc::clone(&done), Arc::clone(&subject.environment.clock));
                let worker = Worker::new(client.clone(), move |_| {
                    let (count, clock) = (Arc::clone(&count), Arc::clone(&clock));
                    async move {
                        clock.sleep(ms(7)).await;
                        count.fetch_add(1, Ordering::AcqRel);
                        Outcome::done()
                    }
                });
                let worker = worker.concurrency(2).continuation(move |_| {
                    let _ = again.send(());
                    ready(())
                });
                world.faulty.follow(FaultPlan::Chance(FaultRates {
                    delay: 0.5,
                    delay_max: ms(5 + 10 * seed),
                    ..FaultRates::default()
                }));
                let rng = &subject.environment.rng;
                let sends = async {
                    for n in 0..60 {
                        client.send(Message::new(n.to_string())).await.unwrap();
                        if trigger.wake().await.unwrap() == Wake::Start {
                            invoke.send(()).unwrap();
                        }
                        world.sleep(ms(rng.below(120))).await;
                    }
                };
                let runs = async {
                    let mut idle = 0;
                    while invoked.recv().await.is_some() {
                        let ran = trigger.run(&worker, ms(400)).await.unwrap();
                        idle += usize::from(matches!(ran, Ran::Idle(_)));
                        if done.load(Ordering::Acquire) == 60 && matches!(ran, Ran::Idle(_)) {
                            return idle;
                        }
                    }
                    idle
                };
                let (idle, ()) = tokio::join!(runs, sends);
                idle
            })
            .await;
    }
    assert!(rests > 20, "it hardly ever rested in between: {rests} times");
}
