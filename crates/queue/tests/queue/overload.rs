//! Ten times more work than there is capacity for, for a minute of simulated time: what becomes of it with shedding,
//! beside a plain FIFO queue.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_queue::{
    Client, DelayTarget, Event, Message, Order, QueueConfig, Queues, Receive, Shedding,
};
use millpond_store::{Clock as _, Environment, MemoryStore, Timestamp, VirtualClock};

/// One task is worked on at a time, and takes this long.
const STEP: Duration = Duration::from_millis(20);
/// Tasks that arrive in that time under overload.
const OVERLOAD: usize = 10;
const OVERLOADED: Duration = Duration::from_secs(60);
/// How long a task is of use to whoever asked for it.
const USEFUL: Duration = Duration::from_secs(1);
const TARGET: Duration = Duration::from_millis(100);
const INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct Seen {
    sent: usize,
    /// Ages of completed tasks during the overload.
    ages: Vec<Duration>,
    steps: usize,
    /// When a task that was sent after the overload was first done as fast as in an idle queue.
    recovered: Option<Duration>,
}

impl Seen {
    fn young(&self) -> f64 {
        let young = self.ages.iter().filter(|age| **age <= USEFUL).count();
        young as f64 / self.ages.len() as f64
    }

    fn goodput(&self) -> f64 {
        let young = self.ages.iter().filter(|age| **age <= USEFUL).count();
        young as f64 / self.steps as f64
    }
}

async fn work(client: &Client, clock: &VirtualClock) -> Option<(Timestamp, Duration)> {
    let task = client.receive(&Receive::default()).await.unwrap().pop();
    clock.advance(STEP);
    let task = task?;
    client.ack(&task.receipt).await.unwrap();
    Some((task.sent, clock.now().since(task.sent)))
}

async fn overload(config: QueueConfig) -> (Seen, Client) {
    let clock = VirtualClock::new(Timestamp::from_millis(1_800_000_000_000));
    let environment = Environment::simulated(clock.clone(), 11);
    let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
    let client = Queues::new(&ground).create("tasks", config).await.unwrap().main().unwrap();
    let mut seen = Seen::default();
    let start = clock.now();
    while clock.now().since(start) < OVERLOADED {
        for _ in 0..OVERLOAD {
            client.send(Message::new("task")).await.unwrap();
            seen.sent += 1;
        }
        seen.steps += 1;
        seen.ages.extend(work(&client, &clock).await.map(|(_, age)| age));
    }
    let ended = clock.now();
    // Half of capacity from now on, for as long as it takes, up to a bound.
    for step in 0..500 {
        if step % 2 == 0 {
            client.send(Message::new("task")).await.unwrap();
            seen.sent += 1;
        }
        if let Some((sent, age)) = work(&client, &clock).await
            && sent >= ended
            && age <= 2 * STEP
        {
            seen.recovered.get_or_insert(clock.now().since(ended));
        }
    }
    (seen, client)
}

fn print(name: &str, seen: &Seen) {
    println!(
        "{name:12} completed {:5}, younger than 1 s {:5.1} %, goodput {:5.1} % of capacity, \
         fresh tasks as when idle after {}",
        seen.ages.len(),
        100.0 * seen.young(),
        100.0 * seen.goodput(),
        seen.recovered.map_or("never".to_owned(), |after| format!("{after:?}")),
    );
}

#[tokio::test]
async fn overload_x10_newest_keep_completing_and_old_ones_are_shed_oldest_first() {
    let delay = Some(DelayTarget { target: TARGET, interval: INTERVAL });
    let shedding = Some(Shedding { age_max: Some(USEFUL), delay, ..Shedding::default() });
    let order = Order::Adaptive { target: TARGET, interval: INTERVAL };
    let config = QueueConfig { order, shedding, ..QueueConfig::default() };
    let (adaptive, client) = overload(config).await;
    let (fifo, _) = overload(QueueConfig::default()).await;
    print("adaptive", &adaptive);
    print("fifo", &fifo);

    assert!(adaptive.young() >= 0.9, "{} of what is done is of use", adaptive.young());
    assert!(adaptive.goodput() >= 0.95, "{} of capacity", adaptive.goodput());
    let recovered = adaptive.recovered.expect("fresh tasks should be fast again");
    assert!(recovered <= 2 * INTERVAL, "recovered after {recovered:?}");
    assert!(fifo.young() < 0.2, "the baseline shows that it matters: {}", fifo.young());

    // Nothing vanished: what is not done is shed, and counted by its reason, or still waits.
    let totals = client.totals().await.unwrap();
    let shed = totals.of(Event::ShedAge) + totals.of(Event::ShedDelay);
    let waiting = client.count().await.unwrap().total();
    assert!(shed > 0);
    assert_eq!(adaptive.sent as u64, totals.of(Event::Acked) + shed + waiting);
}
