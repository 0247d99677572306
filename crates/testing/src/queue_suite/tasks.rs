//! Messages as tasks whose status is kept.

use std::time::Duration;

use millpond_queue::{
    Client, Ended, Message, Nack, QueueConfig, QueueError, Receive, StatusKeeping, TaskState,
};

use super::{
    elsewhere, numbered, queue, seconds, send_all, take, take_one, texts, with_dead_letters,
};
use crate::subject::Subject;

fn kept(config: QueueConfig) -> QueueConfig {
    QueueConfig { status: Some(StatusKeeping { keep: seconds(3_600) }), ..config }
}

fn by(worker: &str) -> Receive {
    Receive { worker: worker.to_owned(), ..Receive::default() }
}

/// PENDING, TAKEN, back to PENDING, TAKEN, then SUCCESS or FAILURE with what came of it.
pub async fn task_status_follows_its_life(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, kept(config)).await;
        let other = elsewhere(subject, &client).await;
        let created = subject.environment.now();
        let good = client.send(Message::new("good").group("a")).await.unwrap().id;
        let bad = client.send(Message::new("bad").group("b")).await.unwrap().id;
        let status = async |id| other.status(id).await.unwrap().unwrap();
        let pending = status(&good).await;
        assert_eq!(
            (pending.state, pending.attempts, pending.worker),
            (TaskState::Pending, 0, None)
        );
        assert_eq!((pending.created, pending.first_taken), (created, None));

        subject.clock.advance(seconds(1));
        let first = client.receive(&by("worker 1")).await.unwrap().remove(0);
        assert_eq!(first.id, good);
        let taken = status(&good).await;
        assert_eq!((taken.state, taken.attempts), (TaskState::Taken, 1));
        assert_eq!(taken.worker.as_deref(), Some("worker 1"));
        assert_eq!(taken.first_taken, Some(created.plus(seconds(1))));
        let nack = Nack { error: "try again".into(), ..Nack::default() };
        client.nack(&first.receipt, nack).await.unwrap();
        let back = status(&good).await;
        assert_eq!((back.state, back.error.as_deref()), (TaskState::Pending, Some("try again")));
        let second = client.receive(&by("worker 2")).await.unwrap().remove(0);
        subject.clock.advance(seconds(30));
        assert_eq!(status(&second.id).await.state, TaskState::Pending, "its lease has run out");

        let held = take(&client, 2).await;
        for delivery in &held {
            if delivery.id == good {
                client.succeed(&delivery.receipt, "42").await.unwrap();
            } else {
                client.fail(&delivery.receipt, "impossible").await.unwrap();
            }
        }
        let success = status(&good).await;
        assert_eq!(
            (success.state, success.result.as_deref()),
            (TaskState::Success, Some(&b"42"[..]))
        );
        assert_eq!(success.ended, Some(created.plus(seconds(31))));
        assert!(success.history.iter().any(|attempt| attempt.ended == Ended::Failed));
        let failure = status(&bad).await;
        assert_eq!(failure.state, TaskState::Failure);
        assert_eq!((failure.error.as_deref(), failure.result), (Some("impossible"), None));
        assert!(take(&client, 5).await.is_empty(), "a failed task is not tried again");
        subject.clock.advance(seconds(3_599));
        assert_eq!(status(&good).await.state, TaskState::Success);
        subject.clock.advance(seconds(2));
        assert!(other.status(&good).await.unwrap().is_none(), "kept beyond its expiry");
        assert!(other.status(&bad).await.unwrap().is_none());
    }
}

/// Each transition only from its predecessor, and by its holder.
pub async fn task_transitions_need_their_predecessor_and_holder(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, kept(config)).await;
        let id = client.send(Message::new("x")).await.unwrap().id;
        let stale = take_one(&client).await;
        subject.clock.advance(seconds(30));
        let held = take_one(&client).await;
        for refused in [
            client.succeed(&stale.receipt, "stolen").await,
            client.fail(&stale.receipt, "stolen").await,
            client.release(&stale.receipt).await,
        ] {
            assert!(matches!(refused, Err(QueueError::LeaseLost { .. })), "{refused:?}");
        }
        assert_eq!(client.status(&id).await.unwrap().unwrap().state, TaskState::Taken);
        client.succeed(&held.receipt, "mine").await.unwrap();
        // What has ended stays as it ended.
        let _ = client.fail(&held.receipt, "after all").await;
        let _ = client.succeed(&stale.receipt, "stolen").await;
        assert!(client.release(&held.receipt).await.is_err());
        let status = client.status(&id).await.unwrap().unwrap();
        assert_eq!(
            (status.state, status.result.as_deref()),
            (TaskState::Success, Some(&b"mine"[..]))
        );
    }
}

async fn listed(client: &Client, state: TaskState, newest: bool, max: usize) -> Vec<String> {
    let tasks = client.tasks(state, newest, max).await.unwrap();
    tasks.iter().map(|task| task.id.to_string()).collect()
}

/// Tasks are listed by state, oldest or newest first, over open and finished segments.
pub async fn tasks_are_listed_by_state_and_age(subject: &Subject) {
    for config in [QueueConfig::default(), QueueConfig::strict()] {
        let client = queue(subject, kept(config)).await;
        let mut ids = Vec::new();
        for batch in [3, 2, 4] {
            let of_group = |(at, message): (usize, Message)| message.group(format!("{batch}/{at}"));
            let batch = numbered(batch).into_iter().enumerate().map(of_group).collect();
            for outcome in client.send_batch(batch).await.unwrap() {
                ids.push(outcome.unwrap().id.to_string());
            }
            subject.clock.advance(Duration::from_millis(5));
        }
        let mut taken = Vec::new();
        while taken.len() < 6 {
            taken.extend(take(&client, 1).await);
        }
        taken.sort_by_key(|delivery| delivery.id);
        let taken_ids: Vec<String> = taken.iter().map(|one| one.id.to_string()).collect();
        // Groups of one segment are served by turns: what was taken comes first in the list.
        ids.sort_by_key(|id| (!taken_ids.contains(id), id.clone()));
        for (at, delivery) in taken.iter().enumerate() {
            match at {
                0..=3 => client.succeed(&delivery.receipt, "ok").await.unwrap(),
                4 => client.fail(&delivery.receipt, "no").await.unwrap(),
                _ => continue,
            };
        }
        assert_eq!(listed(&client, TaskState::Success, false, 10).await, ids[0..4]);
        assert_eq!(listed(&client, TaskState::Failure, false, 10).await, ids[4..5]);
        assert_eq!(listed(&client, TaskState::Taken, false, 10).await, ids[5..6]);
        let mut pending = ids[6..].to_vec();
        assert_eq!(listed(&client, TaskState::Pending, false, 2).await, pending[..2]);
        pending.reverse();
        assert_eq!(listed(&client, TaskState::Pending, true, 10).await, pending);
        assert_eq!(listed(&client, TaskState::Success, true, 1).await, ids[3..4]);
    }
}

/// A task that is moved, purged or expired is no task any more; a queue without status says so.
pub async fn what_left_the_queue_is_no_task(subject: &Subject) {
    let (client, dead) = with_dead_letters(subject, 1, kept(QueueConfig::default())).await;
    let id = client.send(Message::new("x")).await.unwrap().id;
    client.nack(&take_one(&client).await.receipt, Nack::default()).await.unwrap();
    assert!(client.status(&id).await.unwrap().is_none());
    assert_eq!(texts(&take(&dead, 1).await), ["x"]);
    send_all(&client, numbered(3)).await;
    client.purge().await.unwrap();
    assert!(client.tasks(TaskState::Pending, false, 10).await.unwrap().is_empty());
    let error = dead.status(&id).await.unwrap_err();
    assert!(matches!(error, QueueError::Invalid { field: "status", .. }), "{error:?}");
    let large = client.succeed(&take_one_of(&client).await, vec![0; 513]).await.unwrap_err();
    assert!(matches!(large, QueueError::TooLarge { what: "result", limit: 512, .. }), "{large:?}");
}

async fn take_one_of(client: &Client) -> millpond_queue::Receipt {
    client.send(Message::new("y")).await.unwrap();
    take_one(client).await.receipt
}
