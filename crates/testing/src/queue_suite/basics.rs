//! Sending, receiving and acknowledging; isolation; sizes; batches.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use millpond_lanes::Ground;
use millpond_queue::{
    Attribute, AttributeValue, Message, Queue, QueueConfig, QueueError, Queues, Receive, Settled,
};
use millpond_store::{Fault, FaultPlan, Faulty, Query};

use super::{
    ack_all, counts, drain, name, numbered, process, queue, seconds, send, send_all, take,
    take_one, texts,
};
use crate::subject::Subject;

/// Send 1, count 1, receive body and attributes intact, acknowledge, count 0.
pub async fn one_message_goes_all_the_way(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    let body = Bytes::from((0..=255).collect::<Vec<u8>>());
    let mut message = Message::new(body.clone())
        .attribute("text", AttributeValue::String("grüße / \u{1f600}".into()))
        .attribute("number", AttributeValue::Number("-12.50".into()))
        .attribute("bytes", AttributeValue::Binary(Bytes::from_static(&[0, 255, 7])));
    let labelled = Attribute { value: AttributeValue::String("x".into()), label: "uuid".into() };
    message.attributes.insert("labelled".into(), labelled);
    message.trace = Some("Root=1-2-3".into());
    message.group = Some("customer 7".into());
    let sent = client.send(message.clone()).await.unwrap();
    assert_eq!(counts(&client).await, (1, 0, 0));

    let looked_at = client.get(&sent.id).await.unwrap().unwrap();
    assert_eq!(looked_at.message.body, body, "get shows the message");
    assert_eq!(client.peek(5).await.unwrap(), [looked_at], "so does peek, and neither takes it");

    let delivery = take_one(&client).await;
    assert_eq!((delivery.id, &delivery.body), (sent.id, &body));
    assert_eq!(delivery.attributes, message.attributes);
    assert_eq!((delivery.trace, delivery.group), (message.trace, message.group));
    assert_eq!((delivery.receives, delivery.sent), (1, subject.environment.now()));
    assert_eq!(counts(&client).await, (0, 1, 0));
    assert_eq!(client.ack(&delivery.receipt).await.unwrap(), Settled::Now);
    assert_eq!(counts(&client).await, (0, 0, 0));
    assert!(client.get(&sent.id).await.unwrap().is_none());
    assert!(client.peek(5).await.unwrap().is_empty());
}

/// Two queues, two clients of one queue, and five queues with 500 each.
pub async fn queues_and_clients_never_see_each_others_messages(subject: &Subject) {
    let queues = process(subject);
    let (one, two) = (name(), name());
    let ids = ["", "a", "a/0", "a#once", "a%2f", "ä\u{1f600}"];
    for queue in [&one, &two] {
        let queue = queues.create(queue, QueueConfig::default()).await.unwrap();
        for id in ids {
            let text = format!("{}/{id}", queue.name());
            queue.client(id).unwrap().send(Message::new(text)).await.unwrap();
        }
    }
    let mut pairs = BTreeSet::new();
    for queue in queues.list().await.unwrap() {
        if *queue.as_str() == one || *queue.as_str() == two {
            for id in queues.open(queue.as_str()).await.unwrap().clients().await.unwrap() {
                pairs.insert((queue.to_string(), id.to_string()));
            }
        }
    }
    let all = [&one, &two].into_iter().flat_map(|q| ids.map(|id| (q.clone(), id.to_owned())));
    assert_eq!(pairs, all.collect(), "list returns every pair");
    for (queue, id) in pairs {
        let client = queues.open(&queue).await.unwrap().client(&id).unwrap();
        assert_eq!(texts(&drain(&client).await), [format!("{queue}/{id}")]);
    }
}

/// Five queues with 500 messages each, filled and emptied side by side.
pub async fn five_queues_of_500_stay_apart(subject: &Subject) {
    let queues = process(subject);
    let mut clients = Vec::new();
    for _ in 0..5 {
        let queue = queues.create(&name(), QueueConfig::default()).await.unwrap();
        clients.push(queue.main().unwrap());
    }
    for part in 0..5 {
        for (number, client) in clients.iter().enumerate() {
            let texts = (0..100).map(|n| Message::new(format!("{number}:{}", part * 100 + n)));
            send_all(client, texts).await;
        }
    }
    for (number, client) in clients.iter().enumerate() {
        let received: Vec<String> = texts(&drain(client).await);
        let sent: Vec<String> = (0..500).map(|n| format!("{number}:{n}")).collect();
        assert_eq!(received, sent);
    }
}

/// Min and max are kept, and no message comes twice in one receive.
pub async fn min_and_max_of_a_receive_are_kept(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    for part in numbered(150).chunks(30) {
        send_all(&client, part.to_vec()).await;
    }
    for max in [1, 7, 64, 70] {
        let taken = take(&client, max).await;
        let ids: BTreeSet<_> = taken.iter().map(|delivery| delivery.id).collect();
        assert_eq!((taken.len(), ids.len()), (max, max));
    }
    let rest = take(&client, 100).await;
    assert_eq!(rest.len(), 150 - 142);
    // With nothing to wait for, fewer than the least are handed out all the same.
    send(&client, &["one"]).await;
    let ask = Receive { min: 5, ..Receive::up_to(10) };
    assert_eq!(client.receive(&ask).await.unwrap().len(), 1);
    let none = Receive { min: 0, ..Receive::up_to(10) };
    assert!(client.receive(&none).await.unwrap().is_empty());
}

/// At wait 0, a queue with messages gives them at once, and one without gives none.
pub async fn receive_without_waiting_answers_at_once(subject: &Subject) {
    let client = queue(subject, QueueConfig::default()).await;
    assert!(take(&client, 10).await.is_empty());
    for round in 0..20 {
        send(&client, &[&round.to_string()]).await;
        let taken = take(&client, 10).await;
        assert_eq!(texts(&taken), [round.to_string()], "an empty answer of a queue that is not");
        ack_all(&client, &taken).await;
        assert!(take(&client, 10).await.is_empty());
        subject.clock.advance(seconds(round));
    }
}

/// Bytes count, not characters; the limit itself is accepted.
pub async fn size_limits_count_bytes_and_the_limit_is_accepted(subject: &Subject) {
    let config = QueueConfig { message_bytes_max: 100, ..QueueConfig::default() };
    let client = queue(subject, config).await;
    // 40 bytes of body, and an attribute of 4 + 6 + 50.
    let exactly =
        Message::new("ä".repeat(20)).attribute("name", AttributeValue::String("x".repeat(50)));
    assert_eq!(exactly.size(), 100);
    client.send(exactly.clone()).await.unwrap();
    let over = Message { body: Bytes::from("x".repeat(41)), ..exactly };
    let error = client.send(over).await.unwrap_err();
    assert!(
        matches!(error, QueueError::TooLarge { what: "message", size: 101, limit: 100, .. }),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "message has 101 bytes, at most 100 are accepted");
    assert_eq!(counts(&client).await, (1, 0, 0), "something was written");

    let large = queue(subject, QueueConfig::default()).await;
    let body = Bytes::from(vec![7; 1_024 * 1_024]);
    large.send(Message::new(body.clone())).await.unwrap();
    assert_eq!(take_one(&large).await.body, body);
    let over = large.send(Message::new(vec![7; 1_024 * 1_024 + 1])).await.unwrap_err();
    assert!(matches!(over, QueueError::TooLarge { .. }), "{over:?}");
}

/// No messages are no work; each entry of a batch has its own outcome.
pub async fn a_batch_is_reported_per_entry(subject: &Subject) {
    let config = QueueConfig { message_bytes_max: 10, ..QueueConfig::default() };
    let client = queue(subject, config).await;
    assert!(client.send_batch(Vec::new()).await.unwrap().is_empty());
    assert!(client.ack_batch(&[]).await.unwrap().is_empty());
    assert!(client.queue().as_str().starts_with("q-"));
    let mixed = ["1", "far too long", "2", "far too long too", "3"];
    let outcomes = client.send_batch(mixed.map(Message::new).to_vec()).await.unwrap();
    let good: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true, false, true]);
    let taken = take(&client, 10).await;
    assert_eq!(texts(&taken), ["1", "2", "3"]);
    for (delivery, sent) in taken.iter().zip(outcomes.iter().flatten()) {
        assert_eq!(delivery.id, sent.id, "the outcome names the message");
    }

    let mut receipts: Vec<_> = taken.iter().map(|delivery| delivery.receipt.clone()).collect();
    receipts.insert(1, millpond_queue::Receipt::from_text("nonsense"));
    let outcomes = client.ack_batch(&receipts).await.unwrap();
    let good: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true, true]);
    assert_eq!(counts(&client).await, (0, 0, 0));
}

/// A message whose attributes alone are near the limit keeps nothing else of its batch back.
pub async fn a_heavy_head_does_not_fail_its_batch(subject: &Subject) {
    let config = QueueConfig { message_bytes_max: 4 * 1_024 * 1_024, ..QueueConfig::default() };
    let client = queue(subject, config).await;
    let heavy = (0..20).fold(Message::new("heavy"), |message, number| {
        message.attribute(format!("a{number}"), AttributeValue::String("x".repeat(100_000)))
    });
    let batch = vec![Message::new("before"), heavy, Message::new("behind")];
    let outcomes = client.send_batch(batch).await.unwrap();
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok(), "{outcomes:?}");
    let received = texts(&drain(&client).await);
    match &outcomes[1] {
        Ok(_) => assert_eq!(received, ["before", "heavy", "behind"]),
        Err(error) => {
            assert!(matches!(error, QueueError::TooLarge { .. }), "{error:?}");
            assert_eq!(received, ["before", "behind"]);
        }
    }
}

/// Full segments whose messages have everything that a row's index can say of them.
pub async fn messages_with_groups_delays_and_ends_fill_segments(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, config).await;
        let messages = (0..130).map(|number| {
            Message::new("x".repeat(200 + number))
                .group(format!("group {}", number % 7))
                .delay(seconds(300_000))
                .ttl(seconds(900_000))
                .attribute("n", AttributeValue::Number(number.to_string()))
        });
        send_all(&client, messages).await;
        assert_eq!(counts(&client).await, (0, 0, 130));
        assert!(take(&client, 10).await.is_empty());
        subject.clock.advance(seconds(300_000));
        let mut taken = Vec::new();
        while taken.len() < 130 {
            let more = take(&client, 200).await;
            assert!(!more.is_empty(), "only {} of 130 came", taken.len());
            ack_all(&client, &more).await;
            taken.extend(more);
        }
        assert_eq!(counts(&client).await, (0, 0, 0));
    }
}

/// How many rows are left of a queue and its client `c`, except for those that go by themselves.
async fn left_of(subject: &Subject, queue: &Queue) -> usize {
    let prefix = format!("q/{}~{}", queue.name(), queue.incarnation());
    let mut left = 0;
    for partition in [format!("{prefix}/c/0"), prefix] {
        let query = Query::new(millpond_store::Partition::new(partition).unwrap());
        let all = subject.all(query).await;
        left += all.iter().filter(|item| item.expiry.is_none()).count();
    }
    left
}

/// Wherever a deletion is cut off by a store that fails from then on, the queue is there whole, or gone; and what is left of it can be removed.
pub async fn a_deletion_that_is_cut_off_is_carried_on(subject: &Subject) {
    let environment = subject.impatient();
    let store = Arc::new(Faulty::new(subject.store.clone(), &environment));
    let queues = Queues::new(&Ground::new(store.clone(), &environment));
    let mut cut_off = 0;
    for request in 0..12 {
        let queue = queues.create(&name(), QueueConfig::default()).await.unwrap();
        let client = queue.client("c").unwrap();
        send_all(&client, numbered(100)).await;
        let faults = (request..100).map(|request| (request, Fault::Definite));
        store.follow(FaultPlan::Script(faults.collect()));
        let outcome = queue.delete().await;
        store.follow(FaultPlan::None);
        let elsewhere = process(subject);
        if elsewhere.open(queue.name().as_str()).await.is_ok() {
            assert!(outcome.is_err());
            assert_eq!(counts(&client).await, (100, 0, 0), "request {request}");
            continue;
        }
        cut_off += usize::from(left_of(subject, &queue).await > 0);
        for remains in elsewhere.remains().await.unwrap() {
            // The store may be one that other tests use too.
            if remains.name() == queue.name() {
                remains.remove().await.unwrap();
            }
        }
        assert_eq!(left_of(subject, &queue).await, 0, "request {request}");
        let left = elsewhere.remains().await.unwrap();
        assert!(left.iter().all(|remains| remains.name() != queue.name()), "request {request}");
    }
    assert!(cut_off > 0, "no deletion was cut off half-way");
}

/// After a deletion nothing is left, and a queue of the same name is another one.
pub async fn a_deleted_queue_is_gone_and_its_name_is_free(subject: &Subject) {
    let queues = process(subject);
    let queue = queues.create(&name(), QueueConfig::default()).await.unwrap();
    let old = queue.client("c").unwrap();
    send_all(&old, numbered(100)).await;
    let receipt = take_one(&old).await.receipt;
    queue.delete().await.unwrap();
    assert!(matches!(queue.delete().await, Err(QueueError::NotFound { .. })));
    assert!(matches!(old.send(Message::new("x")).await, Err(QueueError::NotFound { .. })));
    assert!(!queues.list().await.unwrap().contains(queue.name()));
    assert_eq!(left_of(subject, &queue).await, 0);
    let again = queues.create(queue.name().as_str(), QueueConfig::strict()).await.unwrap();
    let new = again.client("c").unwrap();
    assert_eq!(counts(&new).await, (0, 0, 0));
    let foreign = new.ack(&receipt).await.unwrap_err();
    assert!(matches!(foreign, QueueError::ReceiptInvalid { .. }), "{foreign:?}");
}
