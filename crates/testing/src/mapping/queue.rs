//! The mapping of a queue, standard or FIFO.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::invoke::{Deployment, Ended, Function};
use super::plan::Plan;
use super::settings::{Settings, Source};

fn message(plan: &Plan, n: u64, receives: u32, fifo: bool) -> String {
    let (arn, extra) = if fifo {
        let group = plan.key(n);
        let extra =
            format!(r#","SequenceNumber":"188494960000{n:08}","MessageGroupId":"key-{group}""#);
        ("simulated.fifo", extra)
    } else {
        ("simulated", String::new())
    };
    format!(
        concat!(
            r#"{{"messageId":"id-{n}","receiptHandle":"h","body":"{{\"n\":{n}}}","#,
            r#""attributes":{{"ApproximateReceiveCount":"{receives}"{extra}}},"eventSource":"aws:sqs","#,
            r#""eventSourceARN":"arn:aws:sqs:eu-central-1:111122223333:{arn}"}}"#
        ),
        n = n,
        receives = receives,
        extra = extra,
        arn = arn,
    )
}

/// Delivers everything; returns what the mapping gave up, which is nothing: a queue without a dead-letter queue.
pub async fn run(
    function: &Function,
    deployment: &Deployment,
    plan: &Plan,
    settings: &Settings,
) -> Vec<u64> {
    let fifo = settings.source == Source::Fifo;
    let mut waiting: BTreeMap<u64, u32> = (0..plan.messages()).map(|n| (n, 0)).collect();
    while !waiting.is_empty() {
        let batch = pick(function, plan, settings, &waiting);
        for n in &batch {
            *waiting.get_mut(n).unwrap() += 1;
        }
        let messages: Vec<String> =
            batch.iter().map(|n| message(plan, *n, waiting[n], fifo)).collect();
        let event = format!(r#"{{"Records":[{}]}}"#, messages.join(","));
        let label = format!("queue {batch:?}");
        let fresh = batch.iter().all(|n| waiting[n] == 1);
        let ended = function.invoke(deployment, &label, &event, fresh).await;
        if let Ended::Answered(items, _) = ended {
            let unfinished: HashSet<String> = items.into_iter().collect();
            let whole = unfinished.contains("");
            for n in batch.iter().filter(|n| !whole && !unfinished.contains(&format!("id-{n}"))) {
                waiting.remove(n);
            }
        }
        function
            .environment
            .clock
            .sleep(Duration::from_millis(100 + function.rng.below(5_000)))
            .await;
    }
    Vec::new()
}

/// What a poller gets: any messages, of a FIFO queue the oldest of some groups.
fn pick(
    function: &Function,
    plan: &Plan,
    settings: &Settings,
    waiting: &BTreeMap<u64, u32>,
) -> Vec<u64> {
    let size = 1 + function.rng.below(settings.batch.min(waiting.len() as u64));
    let mut numbers: Vec<u64> = waiting.keys().copied().collect();
    if settings.source == Source::Fifo {
        let groups: HashSet<u64> =
            (0..settings.keys).filter(|_| function.rng.chance(0.6)).collect();
        let some: Vec<u64> = numbers
            .iter()
            .copied()
            .filter(|n| groups.contains(&plan.key(*n)))
            .take(size as usize)
            .collect();
        if !some.is_empty() {
            return some;
        }
        numbers.truncate(size as usize);
        return numbers;
    }
    let mut batch = Vec::new();
    for _ in 0..size {
        batch.push(numbers.swap_remove(function.rng.below(numbers.len() as u64) as usize));
    }
    batch
}
