//! What workers and limits do, on every backend.
//!
//! [`queue_worker_suite!`](crate::queue_worker_suite!) makes a test of each function. They run in virtual time, on a
//! runtime of one thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use millpond_lanes::Ground;
use millpond_queue::worker::{Ended, Ran, RetryPolicy, Wake};
use millpond_queue::{
    Client, Delivery, Limits, Message, Outcome, QueueConfig, Queues, Rate, Receive, RunUntil,
    StatusKeeping, TaskState, Trigger, Worker,
};
use millpond_store::{Environment, FaultPlan, FaultRates, Faulty, Store, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::pace::{Watched, in_virtual_time};
use crate::subject::Subject;

/// Makes a test of every function, over the [`Subject`] that `$make` opens. Attributes before it, such as
/// `#[ignore = "why"]`, go to each test.
#[macro_export]
macro_rules! queue_worker_suite {
    ($(#[$attribute:meta])* $make:path) => {
        $crate::queue_worker_suite! { @each $make, [$(#[$attribute])*]:
            starts_per_second_keep_the_rate_with_16_workers_of_one_process,
            starts_per_second_keep_the_rate_with_16_workers_of_their_own,
            the_running_cap_is_never_exceeded,
            a_throttled_task_is_never_claimed,
            groups_are_limited_each_on_its_own,
            a_worker_stops_when_empty_and_is_woken_by_the_next_send,
            a_wake_up_during_a_run_is_never_lost,
            work_left_at_the_deadline_continues_without_outside_help,
            a_transient_store_error_never_ends_processing,
            a_killed_workers_task_is_taken_again_after_its_lease,
            a_slow_handler_keeps_its_message,
            shutting_down_drains_and_releases_the_rest,
        }
    };
    (@each $make:path, $attributes:tt: $($test:ident,)+) => {
        $( $crate::queue_worker_suite! { @one $make, $attributes, $test } )+
    };
    (@one $make:path, [$($attribute:tt)*], $test:ident) => {
        #[tokio::test]
        $($attribute)*
        async fn $test() {
            $crate::queue_worker_suite::$test(&$make().await).await;
        }
    };
}

/// A subject's store with queues on it.
#[derive(Debug)]
pub struct World {
    subject: Subject,
    watched: Watched,
    /// The store as queues see it, which fails by plan.
    pub faulty: Arc<Faulty<Watched>>,
    name: String,
}

impl World {
    /// Queues on a subject's store.
    pub fn new(subject: &Subject) -> Self {
        let watched = Watched::new(Arc::clone(&subject.store));
        let faulty = Arc::new(Faulty::new(watched.clone(), &subject.environment));
        let name = format!("q{:016x}", Environment::system().rng.next_u64());
        Self { subject: subject.clone(), watched, faulty, name }
    }

    /// Lets time pass while `work` is done.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        in_virtual_time(&self.subject.clock, &self.watched, work).await
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.subject.environment.now()
    }

    /// Waits.
    pub async fn sleep(&self, duration: Duration) {
        self.subject.environment.clock.sleep(duration).await;
    }

    /// The client as another process sees it: nothing of what is known is shared.
    pub async fn process(&self, config: &QueueConfig) -> Client {
        let store = Arc::clone(&self.faulty) as Arc<dyn Store>;
        let queues = Queues::new(&Ground::new(store, &self.subject.environment));
        let queue = queues.create(&self.name, config.clone()).await.unwrap();
        queue.client("worker").unwrap()
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sends messages with the numbers from 0 on.
pub async fn send(client: &Client, count: usize) {
    let messages = (0..count).map(|n| Message::new(n.to_string())).collect();
    for sent in client.send_batch(messages).await.unwrap() {
        sent.unwrap();
    }
}

fn limited(limits: Limits) -> QueueConfig {
    QueueConfig { limits, ..QueueConfig::default() }
}

/// When messages were started.
#[derive(Debug, Clone, Default)]
pub struct Starts(Arc<Mutex<Vec<u64>>>);

impl Starts {
    fn note(&self, now: Timestamp) {
        self.0.lock().unwrap().push(now.as_millis());
    }

    /// The fewest and most within any second, from the first to the last start.
    fn extremes(&self) -> (usize, usize) {
        let mut all = self.0.lock().unwrap().clone();
        all.sort_unstable();
        let (first, last) = (all[0], all[all.len() - 1]);
        let within = |from: u64| all.iter().filter(|at| (from..from + 1_000).contains(*at)).count();
        let counts: Vec<usize> = (first..=last + 1 - 1_000).map(within).collect();
        (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
    }
}

async fn keeps_the_rate(subject: &Subject, processes: usize, concurrency: usize) {
    let world = World::new(subject);
    let rate = Rate { per_second: 50.0, burst: 1 };
    let config = limited(Limits { rate: Some(rate), ..Limits::default() });
    let starts = Starts::default();
    world
        .run(async {
            send(&world.process(&config).await, 110).await;
            let mut runs = Vec::new();
            for _ in 0..processes {
                let client = world.process(&config).await;
                let (starts, clock) = (starts.clone(), Arc::clone(&subject.environment.clock));
                let worker = Worker::new(client, move |_| {
                    starts.note(clock.now());
                    std::future::ready(Outcome::done())
                });
                let worker = worker.concurrency(concurrency);
                runs.push(async move { worker.run_until(RunUntil::empty()).await.unwrap() });
            }
            let reports = join_all(runs).await;
            assert_eq!(reports.iter().map(|report| report.done).sum::<u64>(), 110);
        })
        .await;
    let (fewest, most) = starts.extremes();
    assert!(most <= 51 && fewest >= 48, "{fewest} to {most} starts in a second, of 50");
}

/// Limits: starts per second within +1 %/−3 % (or one message) with 16 workers.
pub async fn starts_per_second_keep_the_rate_with_16_workers_of_one_process(subject: &Subject) {
    keeps_the_rate(subject, 1, 16).await;
}

/// The same with 16 processes on one store.
pub async fn starts_per_second_keep_the_rate_with_16_workers_of_their_own(subject: &Subject) {
    keeps_the_rate(subject, 16, 1).await;
}

/// Limits: the running cap is never exceeded, by several processes together; and it is used.
pub async fn the_running_cap_is_never_exceeded(subject: &Subject) {
    let world = World::new(subject);
    let config = limited(Limits { running: Some(3), ..Limits::default() });
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    world
        .run(async {
            send(&world.process(&config).await, 40).await;
            let mut runs = Vec::new();
            for _ in 0..4 {
                let client = world.process(&config).await;
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                let clock = Arc::clone(&subject.environment.clock);
                let worker = Worker::new(client, move |_| {
                    let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                    let clock = Arc::clone(&clock);
                    async move {
                        let now = running.fetch_add(1, Ordering::AcqRel) + 1;
                        most.fetch_max(now, Ordering::AcqRel);
                        clock.sleep(ms(100)).await;
                        running.fetch_sub(1, Ordering::AcqRel);
                        Outcome::done()
                    }
                });
                let worker = worker.concurrency(4);
                runs.push(async move { worker.run_until(RunUntil::empty()).await.unwrap() });
            }
            let reports = join_all(runs).await;
            assert_eq!(reports.iter().map(|report| report.done).sum::<u64>(), 40);
        })
        .await;
    assert_eq!(most.load(Ordering::Acquire), 3);
}

/// Limits: a throttled task is never claimed, so it loses no attempt and no visibility time.
pub async fn a_throttled_task_is_never_claimed(subject: &Subject) {
    let world = World::new(subject);
    let rate = Rate { per_second: 1.0, burst: 1 };
    let config = QueueConfig {
        status: Some(StatusKeeping { keep: secs(600) }),
        ..limited(Limits { rate: Some(rate), ..Limits::default() })
    };
    world
        .run(async {
            let client = world.process(&config).await;
            send(&client, 3).await;
            assert_eq!(client.receive(&Receive::up_to(10)).await.unwrap().len(), 1);
            for _ in 0..20 {
                assert!(client.receive(&Receive::up_to(10)).await.unwrap().is_empty());
            }
            let pending = client.tasks(TaskState::Pending, false, 10).await.unwrap();
            assert_eq!(pending.len(), 2);
            assert!(pending.iter().all(|task| task.attempts == 0 && task.first_taken.is_none()));
            let count = client.count().await.unwrap();
            assert_eq!((count.available, count.leased), (2, 1));
            let before = world.now();
            let next = client.receive(&Receive::up_to(10).wait(secs(5))).await.unwrap();
            assert_eq!((next.len(), next[0].receives), (1, 1));
            assert_eq!(next[0].leased_until, world.now().plus(config.visibility));
            assert_eq!(world.now().since(before), secs(1), "as soon as the rate allows");
        })
        .await;
}

/// Limits for each group: one at its limit does not hold up those behind it.
pub async fn groups_are_limited_each_on_its_own(subject: &Subject) {
    let world = World::new(subject);
    let group_rate = Some(Rate { per_second: 1.0, burst: 2 });
    let config = limited(Limits { group_rate, ..Limits::default() });
    world
        .run(async {
            let client = world.process(&config).await;
            for group in ["a"; 70].into_iter().chain(["b", "b", "b"]) {
                client.send(Message::new(group).group(group)).await.unwrap();
            }
            let got = client.receive(&Receive::up_to(10)).await.unwrap();
            let mut groups: Vec<_> = got.iter().filter_map(Delivery::text).collect();
            groups.sort_unstable();
            assert_eq!(groups, ["a", "a", "b", "b"]);
            assert!(client.receive(&Receive::up_to(10)).await.unwrap().is_empty());
            let before = world.now();
            let next = client.receive(&Receive::up_to(10).wait(secs(5))).await.unwrap();
            assert!(!next.is_empty() && next.iter().all(|delivery| delivery.receives == 1));
            assert_eq!(world.now().since(before), secs(1));
        })
        .await;
}

/// Worker: stops when empty, woken by the next send.
pub async fn a_worker_stops_when_empty_and_is_woken_by_the_next_send(subject: &Subject) {
    let world = World::new(subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            let trigger = Trigger::new(&client).unwrap();
            let worker = Worker::new(client.clone(), |_| std::future::ready(Outcome::done()));
            for count in [5, 1, 3] {
                send(&client, count).await;
                assert_eq!(trigger.wake().await.unwrap(), Wake::Start);
                assert_eq!(trigger.wake().await.unwrap(), Wake::Starting, "one is enough");
                let Ran::Idle(report) = trigger.run(&worker, secs(60)).await.unwrap() else {
                    panic!("nothing is left to do");
                };
                assert_eq!((report.done, report.ended), (count as u64, Ended::Empty));
                assert!(!report.work_remains);
            }
        })
        .await;
}

/// Worker: whoever sends while a run is under way need not start another, and `busy` is not `done`.
pub async fn a_wake_up_during_a_run_is_never_lost(subject: &Subject) {
    let world = World::new(subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            let trigger = Trigger::new(&client).unwrap();
            let clock = Arc::clone(&subject.environment.clock);
            let again = (client.clone(), trigger.clone());
            let worker = Worker::new(client.clone(), move |delivery: Delivery| {
                let ((client, trigger), clock) = (again.clone(), Arc::clone(&clock));
                async move {
                    clock.sleep(ms(50)).await;
                    let number: usize = delivery.text().unwrap().parse().unwrap();
                    if number < 5 {
                        client.send(Message::new((number + 1).to_string())).await.unwrap();
                        assert_eq!(trigger.wake().await.unwrap(), Wake::Running);
                    }
                    Outcome::done()
                }
            });
            send(&client, 1).await;
            assert_eq!(trigger.wake().await.unwrap(), Wake::Start);
            let other = async {
                world.sleep(ms(120)).await;
                trigger.run(&worker, secs(60)).await.unwrap()
            };
            let (ran, other) = tokio::join!(trigger.run(&worker, secs(60)), other);
            let Ok(Ran::Idle(report)) = ran else { panic!("{ran:?}") };
            assert_eq!((report.done, report.work_remains), (6, false));
            assert_eq!(other, Ran::Busy, "busy is not done");
        })
        .await;
}

/// Worker: work left at the deadline continues without outside help.
pub async fn work_left_at_the_deadline_continues_without_outside_help(subject: &Subject) {
    let world = World::new(subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            let trigger = Trigger::new(&client).unwrap();
            let clock = Arc::clone(&subject.environment.clock);
            let (invoke, mut invoked) = mpsc::unbounded_channel();
            let worker = Worker::new(client.clone(), move |_| {
                let clock = Arc::clone(&clock);
                async move {
                    clock.sleep(ms(100)).await;
                    Outcome::done()
                }
            });
            let worker = worker.concurrency(2).continuation(move |report| {
                assert!(report.work_remains);
                invoke.send(()).unwrap();
                std::future::ready(())
            });
            send(&client, 40).await;
            assert_eq!(trigger.wake().await.unwrap(), Wake::Start);
            let (mut done, mut runs) = (0, 0);
            loop {
                runs += 1;
                match trigger.run(&worker, secs(1)).await.unwrap() {
                    Ran::Continue(report) => {
                        assert_eq!((report.ended, report.released), (Ended::Deadline, 0));
                        done += report.done;
                        invoked.try_recv().expect("the continuation was called");
                    }
                    Ran::Idle(report) => {
                        done += report.done;
                        break;
                    }
                    Ran::Busy => panic!("nobody else runs"),
                }
            }
            assert_eq!(done, 40);
            assert!((2..=4).contains(&runs), "{runs} runs");
            assert!(invoked.try_recv().is_err(), "called without work");
        })
        .await;
}

/// Worker: a transient store error never ends processing while work is pending.
pub async fn a_transient_store_error_never_ends_processing(subject: &Subject) {
    let world = World::new(subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            send(&client, 20).await;
            let worker = Worker::new(client.clone(), |_| std::future::ready(Outcome::done()));
            let worker = worker.concurrency(4).retry(RetryPolicy::AT_ONCE);
            let outage = async {
                world.faulty.follow(FaultPlan::Chance(all_fail()));
                world.sleep(secs(8)).await;
                world.faulty.follow(FaultPlan::Chance(FaultRates {
                    conflict: 0.1,
                    definite: 0.1,
                    unknown_before: 0.05,
                    unknown_after: 0.05,
                    throttle: 0.1,
                    ..FaultRates::default()
                }));
                world.sleep(secs(100)).await;
                world.faulty.follow(FaultPlan::None);
            };
            let until = RunUntil::empty().linger(secs(120));
            let (report, ()) = tokio::join!(worker.run_until(until), outage);
            let report = report.unwrap();
            assert_eq!((report.ended, report.work_remains), (Ended::Empty, false));
            assert!(report.done + report.lost >= 20, "{report:?}");
            assert_eq!(client.count().await.unwrap().total(), 0);
        })
        .await;
}

/// Every request fails.
pub fn all_fail() -> FaultRates {
    FaultRates { definite: 1.0, ..FaultRates::default() }
}

/// Worker: a killed worker's task is taken again after its lease.
pub async fn a_killed_workers_task_is_taken_again_after_its_lease(subject: &Subject) {
    let world = World::new(subject);
    let config = QueueConfig { visibility: secs(20), ..QueueConfig::default() };
    world
        .run(async {
            let client = world.process(&config).await;
            send(&client, 1).await;
            let (started, is_started) = oneshot::channel();
            let started = Mutex::new(Some(started));
            let worker = Worker::new(client, move |_| {
                started.lock().unwrap().take().unwrap().send(()).unwrap();
                std::future::pending()
            });
            let handle = worker.start().unwrap();
            is_started.await.unwrap();
            handle.kill().await;
            let killed = world.now();
            let receives = Arc::new(AtomicUsize::new(0));
            let seen = Arc::clone(&receives);
            let other = Worker::new(world.process(&config).await, move |delivery: Delivery| {
                seen.store(delivery.receives as usize, Ordering::Release);
                std::future::ready(Outcome::done())
            });
            let report = other.run_until(RunUntil::empty()).await.unwrap();
            assert_eq!((report.done, report.work_remains), (0, true), "its lease has not ended");
            assert!(report.due.is_some_and(|due| due <= killed.plus(secs(20))));
            let report = other.run_until(RunUntil::empty().linger(secs(60))).await.unwrap();
            assert_eq!((report.done, receives.load(Ordering::Acquire)), (1, 2));
            assert!(world.now().since(killed) >= secs(19), "not before its lease has ended");
        })
        .await;
}

/// Worker: a handler slower than the lease keeps its message, which is worked on once.
pub async fn a_slow_handler_keeps_its_message(subject: &Subject) {
    let world = World::new(subject);
    let config = QueueConfig {
        visibility: secs(3),
        ..limited(Limits { running: Some(4), ..Limits::default() })
    };
    world
        .run(async {
            let first = world.process(&config).await;
            send(&first, 1).await;
            let calls = Arc::new(AtomicUsize::new(0));
            let worker = |client: Client| {
                let (calls, clock) = (Arc::clone(&calls), Arc::clone(&subject.environment.clock));
                Worker::new(client, move |_| {
                    calls.fetch_add(1, Ordering::AcqRel);
                    let clock = Arc::clone(&clock);
                    async move {
                        clock.sleep(secs(20)).await;
                        Outcome::done()
                    }
                })
            };
            let (one, two) = (worker(first), worker(world.process(&config).await));
            let until = RunUntil::empty().linger(secs(60));
            let (one, two) = tokio::join!(one.run_until(until), two.run_until(until));
            assert_eq!(one.unwrap().done + two.unwrap().done, 1);
            assert_eq!(calls.load(Ordering::Acquire), 1);
        })
        .await;
}

/// Worker: shutting down lets messages finish within the deadline and gives the rest back at once.
pub async fn shutting_down_drains_and_releases_the_rest(subject: &Subject) {
    let world = World::new(subject);
    world
        .run(async {
            let client = world.process(&QueueConfig::default()).await;
            send(&client, 10).await;
            let (started, mut is_started) = mpsc::unbounded_channel();
            let clock = Arc::clone(&subject.environment.clock);
            let worker = Worker::new(client.clone(), move |delivery: Delivery| {
                let number: u64 = delivery.text().unwrap().parse().unwrap();
                started.send(()).unwrap();
                let clock = Arc::clone(&clock);
                async move {
                    clock.sleep(if number.is_multiple_of(2) { secs(1) } else { secs(900) }).await;
                    Outcome::done()
                }
            });
            let handle = worker.concurrency(4).start().unwrap();
            for _ in 0..4 {
                is_started.recv().await.unwrap();
            }
            let before = world.now();
            let report = handle.shutdown(secs(5)).await.unwrap();
            assert_eq!((report.done, report.released, report.lost), (2, 2, 0), "{report:?}");
            assert_eq!((report.ended, report.work_remains), (Ended::Shutdown, true));
            assert!(world.now().since(before) <= secs(6));
            let count = client.count().await.unwrap();
            assert_eq!((count.available, count.leased), (8, 0));
        })
        .await;
}
