//! Strict order within groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use millpond_queue::{Client, Message, Nack, QueueConfig, Receive};

use super::{
    ack_all, counts, drain, elsewhere, process, queue, seconds, send_all, take, take_one, texts,
};
use crate::subject::{Subject, bounded};

fn grouped(group: &str, text: impl Into<String>) -> Message {
    Message::new(text.into()).group(group)
}

/// Strict order under 1, 3, 8 and 15 consumers: 1 group of 100, 3 of 1,000, 10 of 300.
pub async fn groups_keep_their_order_under_many_consumers(subject: &Subject) {
    for (groups, each, consumers) in [(1, 100, 1), (3, 200, 3), (3, 1_000, 8), (10, 300, 15)] {
        let client = queue(subject, QueueConfig::strict()).await;
        let batch: Vec<Message> = (0..each)
            .flat_map(|number| (0..groups).map(move |group| (group, number)))
            .map(|(group, number)| grouped(&group.to_string(), format!("{group}:{number}")))
            .collect();
        for part in batch.chunks(500) {
            send_all(&client, part.to_vec()).await;
        }
        let mut processes = Vec::new();
        for _ in 0..consumers.min(3) {
            processes.push(elsewhere(subject, &client).await);
        }
        let next = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
        let work = (0..consumers).map(|number| {
            let (client, next) = (processes[number % processes.len()].clone(), Arc::clone(&next));
            tokio::spawn(consume_in_order(client, next, groups * each))
        });
        for consumer in bounded("the consumers", join_all(work)).await {
            consumer.unwrap();
        }
        let next = next.lock().unwrap();
        assert_eq!(next.values().copied().sum::<u32>(), groups * each, "messages are missing");
    }
}

/// Receives until all messages have come, and looks that each is the next of its group.
async fn consume_in_order(client: Client, next: Arc<Mutex<BTreeMap<String, u32>>>, all: u32) {
    loop {
        let taken = client.receive(&Receive::up_to(10)).await.unwrap();
        {
            let mut next = next.lock().unwrap();
            for text in texts(&taken) {
                let (group, number) = text.split_once(':').unwrap();
                let next = next.entry(group.to_owned()).or_default();
                assert_eq!(number.parse::<u32>().unwrap(), *next, "group {group} out of order");
                *next += 1;
            }
            if next.values().copied().sum::<u32>() >= all && taken.is_empty() {
                return;
            }
        }
        ack_all(&client, &taken).await;
        tokio::task::yield_now().await;
    }
}

/// A held group delays no other; after its lease ends, the same message comes before its successors.
pub async fn a_held_group_waits_and_delays_no_other(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let other = elsewhere(subject, &client).await;
    send_all(&client, [grouped("a", "a1"), grouped("a", "a2")]).await;
    send_all(&client, [grouped("b", "b1"), grouped("a", "a3"), grouped("b", "b2")]).await;
    let held = take_one(&client).await;
    assert_eq!(held.text(), Some("a1"));
    for (process, expected) in [(&client, "b1"), (&other, "b2")] {
        let taken = take(process, 1).await;
        assert_eq!(texts(&taken), [expected]);
        ack_all(process, &taken).await;
    }
    subject.clock.advance(seconds(30));
    let taken = take(&other, 10).await;
    let of_a: Vec<String> = texts(&taken).into_iter().filter(|t| t.starts_with('a')).collect();
    assert_eq!(of_a[0], "a1", "after the lease ends, the same message is first");
    assert!(of_a.is_sorted());
    let stale = client.ack(&held.receipt).await;
    assert!(stale.is_err(), "the first holder is stale");
    ack_all(&other, &taken).await;
    // What a process has changed itself it believes for a few seconds.
    subject.clock.advance(seconds(6));
    drain(&client).await;
    assert_eq!(counts(&client).await, (0, 0, 0), "{:?}", client.peek(9).await);
}

/// One receive hands out a run of a group; nobody gets what is behind it before it is done.
pub async fn behind_a_run_on_loan_nothing_of_its_group_is_received(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let other = elsewhere(subject, &client).await;
    send_all(&client, (0..10).map(|number| grouped("g", number.to_string()))).await;
    let run = take(&client, 4).await;
    assert_eq!(texts(&run), ["0", "1", "2", "3"]);
    assert!(take(&other, 5).await.is_empty() && take(&client, 5).await.is_empty());
    // Done out of order: the ones still held keep the rest back.
    ack_all(&client, &run[1..]).await;
    assert!(take(&other, 5).await.is_empty() && take(&client, 5).await.is_empty());
    client.nack(&run[0].receipt, Nack { delay: seconds(60), ..Nack::default() }).await.unwrap();
    assert!(take(&other, 5).await.is_empty() && take(&client, 5).await.is_empty());
    subject.clock.advance(seconds(60));
    assert_eq!(texts(&drain(&other).await), ["0", "4", "5", "6", "7", "8", "9"]);
}

/// One receive over several segments, with groups that were served before and ones that were not.
pub async fn one_receive_never_returns_a_message_of_a_group_twice(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    send_all(&client, [grouped("a", "a1"), grouped("b", "b1"), grouped("a", "a2")]).await;
    send_all(&client, [grouped("c", "c1"), grouped("d", "d1")]).await;
    let mut done = Vec::new();
    for _ in 0..2 {
        let first = take(&client, 1).await;
        ack_all(&client, &first).await;
        done.extend(texts(&first));
    }
    let rest = take(&client, 10).await;
    let ids: BTreeSet<_> = rest.iter().map(|delivery| delivery.id).collect();
    assert_eq!(ids.len(), rest.len(), "a message came twice: {:?}", texts(&rest));
    ack_all(&client, &rest).await;
    done.extend(texts(&rest));
    done.extend(texts(&drain(&client).await));
    done.sort();
    assert_eq!(done, ["a1", "a2", "b1", "c1", "d1"]);
}

/// Groups are served by turns: one with a long backlog does not keep the others waiting.
pub async fn groups_rotate_so_that_none_starves(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    send_all(&client, (0..300).map(|number| grouped("long", number.to_string()))).await;
    send_all(&client, ["x", "y", "z"].map(|group| grouped(group, group))).await;
    let mut served = Vec::new();
    for _ in 0..8 {
        let taken = take(&client, 1).await;
        ack_all(&client, &taken).await;
        served.extend(texts(&taken));
    }
    for group in ["x", "y", "z"] {
        assert!(served.contains(&group.to_owned()), "{group} starves: {served:?}");
    }
}

/// The order survives a crash of the consumer, a restart, and senders whose clocks differ.
pub async fn order_survives_crashes_and_skewed_clocks(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let start = subject.environment.now();
    for number in 0..20_u64 {
        // Every other sender's clock is minutes behind or ahead.
        let skew = seconds(number % 4 * 200);
        subject.clock.set_wall(if number % 2 == 0 { start.plus(skew) } else { start.minus(skew) });
        let sender = elsewhere(subject, &client).await;
        sender.send(grouped("g", format!("{number:02}"))).await.unwrap();
    }
    subject.clock.set_wall(start);
    let mut seen = Vec::new();
    for round in 0..100 {
        if seen.len() == 20 {
            break;
        }
        let process = elsewhere(subject, &client).await;
        let taken = take(&process, 3).await;
        if round % 2 == 0 {
            // It crashes with what it holds.
            subject.clock.advance(seconds(31));
            continue;
        }
        ack_all(&process, &taken).await;
        seen.extend(texts(&taken));
    }
    assert_eq!(seen.len(), 20);
    assert!(seen.is_sorted(), "{seen:?}");
}

/// A delayed message keeps its group waiting until it is due, and no other; then the group goes on in order.
pub async fn a_delayed_message_of_a_group_keeps_its_place(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    let delayed = grouped("a", "a1").delay(seconds(60));
    send_all(&client, [delayed, grouped("a", "a2"), grouped("b", "b1")]).await;
    assert_eq!(texts(&drain(&client).await), ["b1"]);
    subject.clock.advance(seconds(59));
    assert!(take(&client, 5).await.is_empty());
    subject.clock.advance(seconds(1));
    assert_eq!(texts(&drain(&client).await), ["a1", "a2"]);
    // One that expires on the way does not block for ever either.
    let dying = grouped("a", "a3").delay(seconds(60)).ttl(seconds(30));
    send_all(&client, [dying, grouped("a", "a4")]).await;
    subject.clock.advance(seconds(61));
    assert_eq!(texts(&drain(&client).await), ["a4"]);
}

/// A batch is numbered in order, or refused entry by entry with the rest in order.
pub async fn a_fifo_batch_is_all_in_order_or_refused_per_entry(subject: &Subject) {
    let config = QueueConfig { message_bytes_max: 10, ..QueueConfig::strict() };
    let client = queue(subject, config).await;
    let batch: Vec<Message> = (0..200)
        .map(|number| match number % 50 {
            7 => grouped("g", "much too long"),
            _ => grouped("g", format!("{number:03}")),
        })
        .collect();
    let outcomes = client.send_batch(batch).await.unwrap();
    let refused: Vec<usize> = (0..200).filter(|at| outcomes[*at].is_err()).collect();
    assert_eq!(refused, [7, 57, 107, 157]);
    let numbers: Vec<u64> = outcomes.iter().flatten().map(|sent| sent.sequence.unwrap()).collect();
    assert!(numbers.iter().copied().eq(0..196), "not contiguous: {numbers:?}");
    let received = drain(&client).await;
    assert_eq!(received.len(), 196);
    assert!(received.windows(2).all(|pair| pair[0].body < pair[1].body));
    assert!(received.iter().map(|delivery| delivery.sequence.unwrap()).eq(0..196));
}

fn attempt(id: &str, max: usize) -> Receive {
    Receive { attempt: Some(id.to_owned()), ..Receive::up_to(max) }
}

/// The same attempt again gets the same messages while they are on loan, in any process; afterwards it is a new one.
pub async fn a_receive_attempt_made_again_gets_the_same_messages(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    send_all(&client, (0..6).map(|number| grouped(&(number % 3).to_string(), number.to_string())))
        .await;
    let first = client.receive(&attempt("one", 2)).await.unwrap();
    assert_eq!(first.len(), 2);
    subject.clock.advance(seconds(20));
    for process in [client.clone(), elsewhere(subject, &client).await] {
        let again = process.receive(&attempt("one", 2)).await.unwrap();
        assert_eq!(texts(&again), texts(&first), "the same attempt, other messages");
        assert!(again.iter().all(|delivery| delivery.receives == 1), "not another delivery");
    }
    // Asked for again, they are on loan from then on.
    subject.clock.advance(seconds(20));
    let others = client.receive(&attempt("two", 10)).await.unwrap();
    let taken: BTreeSet<_> = first.iter().chain(&others).map(|delivery| delivery.id).collect();
    assert_eq!(taken.len(), first.len() + others.len(), "two live leases");
    subject.clock.advance(seconds(11));
    let late = client.receive(&attempt("one", 2)).await.unwrap();
    assert!(late.iter().all(|delivery| delivery.receives == 2), "{late:?}");
    let stolen = elsewhere(subject, &client).await.receive(&attempt("three", 10)).await.unwrap();
    let held: BTreeSet<_> = late.iter().map(|delivery| delivery.id).collect();
    assert!(stolen.iter().all(|delivery| !held.contains(&delivery.id)), "two live leases");
    ack_all(&client, &late).await;
}

/// An attempt id is good for five minutes, and not for messages whose leases were changed.
pub async fn an_attempt_id_ends_after_five_minutes_and_with_a_change(subject: &Subject) {
    let client = queue(subject, QueueConfig::strict()).await;
    send_all(&client, (0..2).map(|number| grouped(&number.to_string(), number.to_string()))).await;
    let ask = Receive { visibility: Some(seconds(3_600)), ..attempt("one", 2) };
    let first = client.receive(&ask).await.unwrap();
    assert_eq!(first.len(), 2);
    client.extend(&first[0].receipt, seconds(1_800)).await.unwrap();
    for process in [client.clone(), elsewhere(subject, &client).await] {
        let again = process.receive(&ask).await.unwrap();
        assert_eq!(texts(&again), texts(&first[1..]), "what was changed is its holder's");
    }
    subject.clock.advance(seconds(299));
    assert_eq!(client.receive(&ask).await.unwrap().len(), 1);
    subject.clock.advance(seconds(1));
    assert!(client.receive(&ask).await.unwrap().is_empty(), "five minutes after the first call");
    subject.clock.advance(seconds(1_501));
    let late = client.receive(&ask).await.unwrap();
    assert_eq!(texts(&late), texts(&first[..1]), "the change was kept");
    ack_all(&client, &first[1..]).await;
}

/// In a queue that is not strict, an attempt id changes nothing.
pub async fn an_attempt_id_means_nothing_in_a_standard_queue(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    send_all(&client, super::numbered(4)).await;
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        for delivery in client.receive(&attempt("one", 1)).await.unwrap() {
            assert!(seen.insert(delivery.id), "delivered twice while on loan");
        }
    }
    assert_eq!(seen.len(), 4);
    subject.clock.advance(seconds(30));
    let again = client.receive(&attempt("one", 4)).await.unwrap();
    assert!(again.iter().all(|delivery| delivery.receives == 2), "{again:?}");
    let other = elsewhere(subject, &client).await;
    assert!(take(&other, 4).await.is_empty(), "two live leases");
}

/// Strict queues of several lanes: a group stays in one of them.
pub async fn groups_keep_their_order_over_lanes(subject: &Subject) {
    let config = QueueConfig { lanes: 4, ..QueueConfig::strict() };
    let queues = process(subject);
    let client = queues.create(&super::name(), config).await.unwrap().main().unwrap();
    for number in 0..40 {
        let group = format!("g{}", number % 8);
        client.send(grouped(&group, format!("{number:02}"))).await.unwrap();
    }
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let received = drain(&elsewhere(subject, &client).await).await;
    assert_eq!(received.len(), 40);
    for delivery in received {
        let text = delivery.text_lossy().into_owned();
        let before = last.insert(delivery.group.unwrap(), text.clone());
        assert!(before.is_none_or(|before| before < text));
    }
}
