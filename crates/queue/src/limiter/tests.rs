//! Limits in simulated time: one or many processes on one store, with conflicts, lost answers and crashes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use millpond_lanes::{Ground, Place};
use millpond_store::{
    Environment, FaultPlan, FaultRates, Faulty, Key, MemoryStore, Store, Timestamp, UniqueId,
    VirtualClock,
};
use millpond_testing::{Watched, in_virtual_time};

use super::Limiter;
use super::running::RunningRow;
use crate::config::{Limits, Rate};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

struct World {
    clock: VirtualClock,
    environment: Environment,
    store: Watched,
    faulty: Arc<Faulty<Watched>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = VirtualClock::new(START);
        let environment = Environment::simulated(clock.clone(), seed);
        let store = Watched::new(Arc::new(MemoryStore::new(&environment)));
        let faulty = Arc::new(Faulty::new(store.clone(), &environment));
        Self { clock, environment, store, faulty }
    }

    fn limiter(&self) -> Arc<Limiter> {
        let ground = Ground::new(Arc::clone(&self.faulty) as Arc<dyn Store>, &self.environment);
        Arc::new(Limiter::new(&ground, "q/test/client").unwrap())
    }

    fn now(&self) -> Timestamp {
        self.environment.now()
    }

    async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        in_virtual_time(&self.clock, &self.store, work).await
    }

    async fn sleep(&self, millis: u64) {
        self.environment.clock.sleep(Duration::from_millis(millis)).await;
    }

    fn lease(&self) -> Timestamp {
        self.now().plus(Duration::from_secs(30))
    }

    /// Permits by process, as the row says.
    async fn holders(&self, scope: &str) -> Vec<usize> {
        let sort = format!("{scope}/running").into_bytes();
        let key = Key::new("q/test/client#limits", sort).unwrap();
        let item = self.store.get(&key).await.unwrap();
        let row = item.map(|item| RunningRow::read(&item).unwrap()).unwrap_or_default();
        row.holders.iter().map(|holder| holder.permits).collect()
    }

    /// A worker that starts messages for as long as said, each taking `takes`: when they were started.
    async fn starts(&self, limiter: &Limiter, limits: Limits, takes: u64, lasts: u64) -> Vec<u64> {
        let end = START.plus(Duration::from_millis(lasts));
        let mut started = Vec::new();
        while self.now() < end {
            let now = self.now();
            let Ok(grant) = limiter.ask(&limits, 1, self.lease(), now).await else {
                self.sleep(5).await;
                continue;
            };
            if grant.total() == 0 {
                let wake = grant.wake().expect("who is refused is told when to come again");
                drop(grant);
                self.sleep(millis(wake.since(now)).max(1)).await;
                continue;
            }
            let spot = spot(&self.environment);
            grant.started([(0, spot, 0, 7)].into_iter(), self.lease());
            drop(grant);
            started.push(millis(self.now().since(START)));
            if takes > 0 {
                self.sleep(takes).await;
            }
            limiter.ended((0, spot, 0));
        }
        started
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

fn spot(environment: &Environment) -> Place {
    let id = u128::from(environment.rng.next_u64()) << 64 | u128::from(environment.rng.next_u64());
    Place::Id(UniqueId::from_bytes(id.to_be_bytes()))
}

fn rate(per_second: f64, burst: u32) -> Limits {
    Limits { rate: Some(Rate { per_second, burst }), ..Limits::default() }
}

fn running(cap: u32) -> Limits {
    Limits { running: Some(cap), ..Limits::default() }
}

/// The fewest and most starts within any window of so many milliseconds.
fn extremes(starts: &[u64], window: u64, lasts: u64) -> (usize, usize) {
    let within = |from: u64| {
        starts.partition_point(|start| *start < from + window)
            - starts.partition_point(|start| *start < from)
    };
    let counts: Vec<usize> = (0..=lasts - window).map(within).collect();
    (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
}

/// Sixteen workers start what they are let; `processes` of them each with a limiter of their own.
async fn sixteen(per_second: f64, processes: usize, takes: u64, faults: FaultRates) {
    let lasts = 3_000;
    let world = World::new(7);
    let limiters: Vec<_> = (0..processes).map(|_| world.limiter()).collect();
    world.faulty.follow(FaultPlan::Chance(faults));
    let limits = rate(per_second, 1);
    let workers = (0..16).map(|n| world.starts(&limiters[n % processes], limits, takes, lasts));
    let mut starts: Vec<u64> = world.run(join_all(workers)).await.into_iter().flatten().collect();
    starts.sort_unstable();
    starts.retain(|start| *start < lasts);
    let requests = world.faulty.requests();
    for window in [1_000_u64, 1_500, 2_500] {
        let (fewest, most) = extremes(&starts, window, lasts);
        let exact = per_second * window as f64 / 1_000.0;
        println!(
            "{per_second}/s, {processes} processes, {takes} ms each, {window} ms: {fewest} to {most} of {exact} ({requests} requests)"
        );
        let (fewest, most) = (fewest as f64, most as f64);
        assert!(most <= (exact * 1.01).max(exact + 1.0), "{most} starts of {exact} in {window} ms");
        assert!(
            fewest >= (exact * 0.97).min(exact - 1.0),
            "{fewest} starts of {exact} in {window} ms"
        );
    }
}

#[tokio::test]
async fn sixteen_workers_of_one_process_keep_the_rate() {
    for per_second in [10.0, 100.0, 333.0, 2_000.0] {
        sixteen(per_second, 1, 0, FaultRates::default()).await;
    }
    sixteen(100.0, 1, 100, FaultRates::default()).await;
}

#[tokio::test]
async fn sixteen_processes_keep_the_rate() {
    for per_second in [10.0, 100.0, 333.0, 2_000.0] {
        sixteen(per_second, 16, 0, FaultRates::default()).await;
    }
    sixteen(100.0, 16, 100, FaultRates::default()).await;
}

#[tokio::test]
async fn conflicts_and_lost_answers_do_not_raise_the_rate() {
    let faults = FaultRates { conflict: 0.2, ..FaultRates::default() };
    sixteen(100.0, 16, 0, faults).await;
    sixteen(333.0, 1, 0, faults).await;
    let lasts = 3_000;
    let world = World::new(3);
    let limiters: Vec<_> = (0..4).map(|_| world.limiter()).collect();
    world.faulty.follow(FaultPlan::Chance(FaultRates {
        unknown_after: 0.1,
        unknown_before: 0.1,
        throttle: 0.1,
        ..faults
    }));
    let workers = (0..16).map(|n| world.starts(&limiters[n % 4], rate(100.0, 1), 0, lasts));
    let mut starts: Vec<u64> = world.run(join_all(workers)).await.into_iter().flatten().collect();
    starts.sort_unstable();
    let (fewest, most) = extremes(&starts, 1_000, lasts);
    assert!(most <= 101, "{most} starts in a second");
    assert!(fewest >= 50, "{fewest} starts in a second: it hardly goes on");
}

#[tokio::test]
async fn tokens_are_reserved_in_bulk() {
    let world = World::new(1);
    let limiter = world.limiter();
    let starts = world.run(world.starts(&limiter, rate(1_000.0, 1), 0, 4_000)).await;
    assert!(starts.len() >= 3_900, "{} starts", starts.len());
    let requests = world.faulty.requests();
    assert!(requests <= 80, "{requests} requests for {} starts", starts.len());
}

#[tokio::test]
async fn a_burst_is_as_large_as_said_and_start_times_do_not_bunch_up() {
    let world = World::new(1);
    let limiter = world.limiter();
    world
        .run(async {
            for (pause, expected) in [(0, 5), (10_000, 5), (200, 2), (60_000, 5)] {
                world.sleep(pause).await;
                let mut got = 0;
                for _ in 0..20 {
                    let grant =
                        limiter.ask(&rate(10.0, 5), 1, world.lease(), world.now()).await.unwrap();
                    if grant.total() > 0 {
                        grant.started([(0, Place::Number(1), 0, 0)].into_iter(), world.lease());
                        got += 1;
                    }
                }
                assert_eq!(got, expected, "after {pause} ms");
            }
        })
        .await;
}

#[tokio::test]
async fn what_was_granted_and_not_used_can_be_used_by_the_next() {
    let world = World::new(1);
    let limiter = world.limiter();
    let limits = Limits { running: Some(3), ..rate(10.0, 3) };
    world
        .run(async {
            for _ in 0..5 {
                let grant = limiter.ask(&limits, 10, world.lease(), world.now()).await.unwrap();
                assert_eq!(grant.total(), 3);
            }
        })
        .await;
}

#[tokio::test]
async fn a_changed_rate_takes_effect_at_once() {
    let world = World::new(1);
    let limiter = world.limiter();
    world
        .run(async {
            let limits = rate(0.001, 1);
            let ask = || limiter.ask(&limits, 1, world.lease(), world.now());
            let slow = ask().await.unwrap();
            assert_eq!(slow.total(), 1);
            slow.started([(0, Place::Number(1), 0, 0)].into_iter(), world.lease());
            drop(slow);
            assert_eq!(ask().await.unwrap().total(), 0);
            world.sleep(1_000).await;
            let other = world.limiter();
            let limits = rate(10.0, 1);
            let fast = other.ask(&limits, 1, world.lease(), world.now()).await.unwrap();
            let wake = fast.wake().unwrap();
            assert!(wake.since(world.now()) <= Duration::from_millis(100), "{wake:?}");
        })
        .await;
}

/// Workers of several processes; returns the most that ran at a time.
async fn most_running(world: &World, processes: usize, limits: Limits) -> (usize, usize) {
    let limiters: Vec<_> = (0..processes).map(|_| world.limiter()).collect();
    let now_running = std::cell::Cell::new((0_usize, 0_usize, 0_usize));
    let worker = |n: usize| {
        let (limiter, now_running) = (&limiters[n % processes], &now_running);
        async move {
            let end = START.plus(Duration::from_secs(10));
            while world.now() < end {
                let asked = limiter.ask(&limits, 1, world.lease(), world.now()).await;
                let Some(grant) = asked.ok().filter(|grant| grant.total() > 0) else {
                    world.sleep(20).await;
                    continue;
                };
                let place = spot(&world.environment);
                grant.started([(0, place, 0, 7)].into_iter(), world.lease());
                drop(grant);
                let (running, most, all) = now_running.get();
                now_running.set((running + 1, most.max(running + 1), all + 1));
                world.sleep(world.environment.rng.below(90) + 10).await;
                let (running, most, all) = now_running.get();
                now_running.set((running - 1, most, all));
                limiter.ended((0, place, 0));
            }
        }
    };
    world.run(join_all((0..16).map(worker))).await;
    let (_, most, all) = now_running.get();
    (most, all)
}

#[tokio::test]
async fn the_running_cap_is_never_exceeded_and_is_used() {
    for (processes, cap) in [(1, 3), (4, 5), (16, 5), (16, 1)] {
        let world = World::new(processes as u64);
        let (most, all) = most_running(&world, processes, running(cap)).await;
        assert_eq!(most, cap as usize, "{processes} processes");
        assert!(all >= 100 * cap as usize, "{processes} processes with {cap}: {all} in 10 s");
    }
}

#[tokio::test]
async fn faults_do_not_break_the_running_cap() {
    for seed in 0..3 {
        let world = World::new(seed);
        world.faulty.follow(FaultPlan::Chance(FaultRates {
            conflict: 0.1,
            unknown_after: 0.1,
            unknown_before: 0.1,
            definite: 0.1,
            throttle: 0.1,
            delay: 0.2,
            delay_max: Duration::from_millis(300),
        }));
        let (most, all) = most_running(&world, 4, running(5)).await;
        assert!(most <= 5, "seed {seed}: {most} at a time");
        assert!(all >= 200, "seed {seed}: {all} in 10 s");
    }
}

#[tokio::test]
async fn permits_of_a_crashed_process_come_free_when_its_leases_have_ended() {
    let world = World::new(1);
    let (crashed, other) = (world.limiter(), world.limiter());
    world
        .run(async {
            let lease = world.lease();
            let grant = crashed.ask(&running(2), 2, lease, world.now()).await.unwrap();
            assert_eq!(grant.total(), 2);
            grant.started((0..2).map(|slot| (0, Place::Number(1), slot, 0)), lease);
            drop(grant);
            world.sleep(29_999).await;
            let refused = other.ask(&running(2), 1, world.lease(), world.now()).await.unwrap();
            assert_eq!((refused.total(), refused.wake().is_some()), (0, true));
            drop(refused);
            world.sleep(10_001).await;
            let grant = other.ask(&running(2), 2, world.lease(), world.now()).await.unwrap();
            assert_eq!(grant.total(), 2);
        })
        .await;
}

#[tokio::test]
async fn a_permit_is_held_for_as_long_as_its_lease_is_extended() {
    let world = World::new(1);
    let (holder, other) = (world.limiter(), world.limiter());
    let spot = (0, Place::Number(1), 0);
    world
        .run(async {
            let grant = holder.ask(&running(1), 1, world.lease(), world.now()).await.unwrap();
            grant.started([(0, Place::Number(1), 0, 0)].into_iter(), world.lease());
            drop(grant);
            for _ in 0..6 {
                world.sleep(20_000).await;
                holder.extend(&running(1), spot, world.lease(), world.now()).await.unwrap();
                let refused = other.ask(&running(1), 1, world.lease(), world.now()).await.unwrap();
                assert_eq!(refused.total(), 0, "another's");
            }
            let refused = holder.ask(&running(1), 1, world.lease(), world.now()).await.unwrap();
            assert_eq!(refused.total(), 0, "its own");
            drop(refused);
            holder.ended(spot);
            world.sleep(1_000).await;
            let grant = other.ask(&running(1), 1, world.lease(), world.now()).await.unwrap();
            assert_eq!(grant.total(), 1, "it was given back once it was idle");
        })
        .await;
}

#[tokio::test]
async fn a_lease_that_ends_unsettled_frees_its_permit() {
    let world = World::new(1);
    let limiter = world.limiter();
    world
        .run(async {
            let lease = world.lease();
            let grant = limiter.ask(&running(1), 1, lease, world.now()).await.unwrap();
            grant.started([(0, Place::Number(1), 0, 0)].into_iter(), lease);
            drop(grant);
            world.sleep(30_000).await;
            let grant = limiter.ask(&running(1), 1, world.lease(), world.now()).await.unwrap();
            assert_eq!(grant.total(), 1);
            grant.started([(0, Place::Number(1), 0, 0)].into_iter(), world.lease());
            drop(grant);
            limiter.ended((0, Place::Number(1), 0));
            limiter.give_idle_back().await.unwrap();
            assert_eq!(world.holders("all").await, Vec::<usize>::new());
        })
        .await;
}

#[tokio::test]
async fn groups_have_limits_of_their_own() {
    let world = World::new(1);
    let (one, two) = (world.limiter(), world.limiter());
    let limits = Limits {
        group_rate: Some(Rate { per_second: 10.0, burst: 2 }),
        group_running: Some(3),
        ..Limits::default()
    };
    world
        .run(async {
            let mut started = 0;
            for limiter in [&one, &two] {
                let grant = limiter.ask(&limits, 10, world.lease(), world.now()).await.unwrap();
                let granted = grant.groups(&[(7, 5), (8, 1), (9, 0)], 10).await.unwrap().unwrap();
                let count = |group| granted.get(&group).copied().unwrap_or(0);
                started += count(7);
                assert_eq!(count(8), usize::from(started <= 2), "{granted:?}");
                let messages =
                    (0..count(7)).map(|slot| (0, Place::Number(started as u64), slot, 7));
                grant.started(messages, world.lease());
                grant.started(
                    (0..count(8)).map(|slot| (0, Place::Number(99), slot, 8)),
                    world.lease(),
                );
            }
            assert_eq!(started, 2, "a burst of two, by both together");
            world.sleep(1_000).await;
            let grant = two.ask(&limits, 10, world.lease(), world.now()).await.unwrap();
            let granted = grant.groups(&[(7, 5)], 10).await.unwrap().unwrap();
            assert_eq!(granted[&7], 1, "two of three are in work");
            assert!(grant.wake().is_some(), "there may be more later");
        })
        .await;
}
