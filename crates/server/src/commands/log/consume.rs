//! Reading as a worker of a group.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use millpond_store::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed};
use super::super::output::Output;
use super::super::values::{duration, millis};
use super::groups::Start;
use super::records::{RECORDS, tell_gap};
use crate::api::limits::WAIT_MS_MAX;

const EXAMPLES: &str = "Examples:
  millpond log consume orders --group billing                 what is there, once
  millpond log consume orders --group billing --follow --json | ./handle
                                                              goes on until interrupted
  millpond log consume orders --group billing --max 10 --checkpoint end

Run it several times at once and the workers share the partitions. What was printed and not checkpointed is printed
again by whoever reads the partition next.";

/// What to consume.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Consume {
    /// The topic.
    topic: String,
    /// The group; it is made if it is not there.
    #[arg(long, value_name = "NAME")]
    group: String,
    /// Waits for more until interrupted.
    #[arg(long)]
    follow: bool,
    /// When what was printed counts as done.
    #[arg(long, value_enum, default_value_t = When::Every)]
    checkpoint: When,
    /// Ends after so many records.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
    /// How long to wait for records, or for partitions of a worker that is gone, before it ends.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", conflicts_with = "follow")]
    wait: Duration,
    /// Records that are printed between two checkpoints.
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batch: u64,
    /// Where the group begins, if it is not there yet.
    #[arg(long, value_enum, default_value_t = Start::Earliest)]
    start: Start,
    /// What the worker's id begins with, as `log lag` shows it.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    worker: String,
    /// How long this worker may be silent before others take its partitions; workers of a group should agree on it.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    lease: Duration,
}

/// When what was printed counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// After each batch, once it is printed.
    Every,
    /// At the end, also when interrupted.
    End,
}

/// Reads as a worker until nothing is left, or until interrupted; what is printed is checkpointed, and the worker leaves.
pub async fn consume(door: &Door, out: Output, args: Consume) -> Result<(), Failure> {
    let mut work = Work {
        door,
        out,
        args: &args,
        worker: String::new(),
        after: None,
        printed: 0,
        due: BTreeMap::new(),
    };
    let outcome = tokio::select! {
        biased;
        outcome = work.run() => outcome,
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    let ended = tokio::select! {
        biased;
        ended = work.end() => ended,
        // Told again: others wait for the lease to end.
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    outcome.and(ended)
}

struct Work<'a> {
    door: &'a Door,
    out: Output,
    args: &'a Consume,
    worker: String,
    /// The last answer that arrived.
    after: Option<u64>,
    printed: u64,
    /// What was printed and is not checkpointed, by partition: token and next offset.
    due: BTreeMap<u64, (u64, u64)>,
}

impl Work<'_> {
    async fn ask(&self, what: &str, body: Value) -> Result<Value, Failure> {
        let path = ["topics", &self.args.topic, "groups", &self.args.group, what];
        self.door.ask(Ask::post(&path, body)).await
    }

    async fn join(&mut self) -> Result<(), Failure> {
        let body = json!({
            "worker": self.args.worker,
            "lease_ms": millis(self.args.lease),
            "start": self.args.start.name(),
        });
        let joined = self.ask("join", body).await?;
        self.worker = field(&joined, "worker").as_str().unwrap_or_default().to_owned();
        self.after = None;
        Ok(())
    }

    async fn run(&mut self) -> Result<(), Failure> {
        self.join().await?;
        let clock = SystemClock::new();
        let mut idle_since = clock.monotonic();
        loop {
            let left = self.args.max.map_or(u64::MAX, |max| max - self.printed);
            if left == 0 {
                return Ok(());
            }
            let idle = clock.monotonic().since(idle_since);
            let wait = match self.args.follow {
                true => WAIT_MS_MAX,
                false => millis(self.args.wait.saturating_sub(idle)).min(WAIT_MS_MAX),
            };
            let answer = match self.poll(left.min(self.args.batch), wait).await {
                Err(Failure::Refused(error)) if error.code == "not_joined" => {
                    eprintln!("millpond: {}; joining again", error.message);
                    self.due.clear();
                    self.join().await?;
                    continue;
                }
                answer => answer?,
            };
            let others = field(&answer, "others").as_array().cloned().unwrap_or_default();
            let batches = listed(answer, "batches");
            if batches.is_empty() {
                if !self.args.follow && clock.monotonic().since(idle_since) >= self.args.wait {
                    tell_others(&others);
                    return Ok(());
                }
                continue;
            }
            self.print(batches)?;
            if self.args.checkpoint == When::Every {
                self.checkpoint().await?;
            }
            idle_since = clock.monotonic();
        }
    }

    async fn poll(&mut self, max: u64, wait_ms: u64) -> Result<Value, Failure> {
        let body = json!({
            "worker": self.worker, "max": max, "after": self.after, "wait_ms": wait_ms,
        });
        let answer = self.ask("poll", body).await?;
        self.after = field(&answer, "poll").as_u64();
        Ok(answer)
    }

    fn print(&mut self, batches: Vec<Value>) -> Result<(), Failure> {
        for batch in batches {
            let number = |name: &str| field(&batch, name).as_u64().unwrap_or_default();
            let (partition, token, next) = (number("partition"), number("token"), number("next"));
            tell_gap(&batch, partition);
            let records = listed(batch, "records");
            if !records.is_empty() {
                self.out.more(RECORDS, &records, self.printed == 0)?;
                self.printed += records.len() as u64;
            }
            self.due.insert(partition, (token, next));
        }
        Ok(())
    }

    /// Says that what was printed is done. What another worker has by now, it prints again.
    async fn checkpoint(&mut self) -> Result<(), Failure> {
        while let Some((&partition, &(token, next))) = self.due.first_key_value() {
            let body = json!({
                "worker": self.worker, "partition": partition, "token": token, "next": next,
            });
            match self.ask("checkpoint", body).await {
                Ok(_) => {}
                Err(Failure::Refused(error)) if error.code == "lease_lost" => {
                    eprintln!("millpond: {}", error.message);
                }
                Err(error) => return Err(error),
            }
            self.due.remove(&partition);
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Failure> {
        if self.worker.is_empty() {
            return Ok(());
        }
        let checkpointed = self.checkpoint().await;
        let left = self.ask("leave", json!({ "worker": self.worker })).await;
        checkpointed.and(left.map(|_| ()))
    }
}

fn tell_others(others: &[Value]) {
    if others.is_empty() {
        return;
    }
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    eprintln!(
        "millpond: partitions {} are with other workers, and what is left there is theirs; one that is gone loses them \
         after its lease: wait for that with --wait TIME or --follow",
        others.join(", ")
    );
}
