//! The mapping of a stream: of Kinesis, or of a table.

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::invoke::{Deployment, Ended, Function};
use super::plan::Plan;
use super::settings::{Settings, Source};
use super::window::{Delivery, Windows};
use crate::hostile::base64;

/// The lane of a record: those of a key stay in one.
pub fn lane(plan: &Plan, settings: &Settings, n: u64) -> u64 {
    plan.key(n) % settings.parallel
}

/// The source's ARN.
pub fn arn(settings: &Settings) -> &'static str {
    match settings.source {
        Source::Table(_) => super::table::ARN,
        _ => "arn:aws:kinesis:eu-central-1:111122223333:stream/simulated",
    }
}

fn record(plan: &Plan, settings: &Settings, n: u64) -> Value {
    let sequence = number(plan, settings, n);
    if let Source::Table(view) = settings.source {
        return super::table::record(plan, view, n, &sequence);
    }
    json!({
        "kinesis": {
            "partitionKey": format!("key-{}", plan.key(n)), "sequenceNumber": sequence,
            "data": base64(format!("{{\"n\":{n}}}").as_bytes()),
        },
        "eventSource": "aws:kinesis", "eventID": format!("shardId-000000000001:{sequence}"),
        "eventSourceARN": arn(settings),
    })
}

/// The number of a record: rising with `n`, with lengths that differ. Of a table, each shard counts by itself.
fn number(plan: &Plan, settings: &Settings, n: u64) -> String {
    let mine = lane(plan, settings, n);
    let at = match settings.source {
        Source::Table(_) => (0..n).filter(|n| lane(plan, settings, *n) == mine).count() as u64,
        _ => n,
    };
    (9_u128.pow(20) / 7 + u128::from(at) * 10_u128.pow(19)).to_string()
}

/// Delivers everything; returns what the mapping gave up.
pub async fn run(
    function: &Function,
    deployment: &Deployment,
    plan: &Plan,
    settings: &Settings,
) -> Vec<u64> {
    // Several batches of a shard at a time, or several shards: those of a key stay with one.
    let lanes = (0..settings.parallel).map(|number| {
        let records = (0..plan.messages()).filter(move |n| lane(plan, settings, *n) == number);
        let lane = Lane {
            function,
            plan,
            settings,
            number,
            waiting: records.collect(),
            halves: Vec::new(),
            delivered: None,
            windows: Windows::new(settings, number),
        };
        Box::pin(lane.run(deployment))
    });
    join_all(lanes).await.into_iter().flatten().collect()
}

struct Lane<'a> {
    function: &'a Function,
    plan: &'a Plan,
    settings: &'a Settings,
    number: u64,
    waiting: VecDeque<u64>,
    /// What comes before all that waits: halves of a batch that failed, first half on top.
    halves: Vec<Delivery>,
    /// The last record that was delivered.
    delivered: Option<u64>,
    windows: Windows,
}

impl Lane<'_> {
    async fn run(mut self, deployment: &Deployment) -> Vec<u64> {
        let mut given_up = Vec::new();
        // All records are there from the beginning.
        let began = self.function.environment.now();
        let mut tries = 0;
        while let Some(delivery) = self.next() {
            let Some(rest) = self.deliver(deployment, delivery).await else {
                tries = 0;
                continue;
            };
            tries += 1;
            let age = self.function.environment.now().since(began);
            let too_old = self.settings.age_max.is_some_and(|most| age > most);
            if too_old || self.settings.retries_max.is_some_and(|most| tries > most) {
                self.function.truth.note(format_args!("lane {} gives up {rest:?}", self.number));
                self.windows.ended(self.function, &rest, false);
                given_up.extend(rest.records);
                tries = 0;
                continue;
            }
            let pause = Duration::from_millis(500 + self.function.rng.below(5_000));
            self.function.environment.clock.sleep(pause).await;
            self.again(rest);
        }
        given_up
    }

    fn next(&mut self) -> Option<Delivery> {
        if let Some(half) = self.halves.pop() {
            return Some(half);
        }
        let rng = &self.function.rng;
        if self.windows.is_over(self.waiting.front().copied()) {
            return Some(Delivery { is_final: true, ..Delivery::default() });
        }
        if self.waiting.is_empty() {
            return None;
        }
        // What has come by now, not always as much as fits.
        let size = 1 + rng.below(self.settings.batch.min(self.waiting.len() as u64));
        let stretch = self.windows.stretch(self.waiting.iter().copied());
        let records: Vec<u64> = self.waiting.drain(..stretch.min(size as usize)).collect();
        let last = size as usize >= stretch;
        Some(Delivery { is_final: last && rng.chance(0.5), records, is_early: false })
    }

    /// Delivers, and says what is to be delivered again.
    async fn deliver(
        &mut self,
        deployment: &Deployment,
        mut delivery: Delivery,
    ) -> Option<Delivery> {
        let (plan, settings) = (self.plan, self.settings);
        let records = delivery.records.iter().map(|n| record(plan, settings, *n));
        let mut event = json!({"Records": records.collect::<Vec<_>>()});
        self.windows.begin(&delivery, &mut event);
        let label = format!("lane {} {delivery:?}", self.number);
        let known = self.delivered;
        self.delivered = delivery.records.last().copied().max(known);
        let fresh = delivery.records.first().is_some_and(|first| Some(*first) > known);
        let ended = self.function.invoke(deployment, &label, &event.to_string(), fresh).await;
        let Ended::Answered(items, state) = ended else { return Some(delivery) };
        if !self.windows.accepts(state.as_ref()) {
            self.function.truth.note(format_args!("the answer has no state"));
            return Some(delivery);
        }
        let Some(item) = items.first() else {
            self.windows.answered(self.function, state, false);
            let next = self.windows.ended(self.function, &delivery, true);
            self.halves.extend(next);
            return None;
        };
        // An empty name stands for all of it.
        let at = delivery.records.iter().position(|n| number(plan, settings, *n) == *item);
        self.windows.answered(self.function, state, at.is_none());
        delivery.records.drain(..at.unwrap_or(0));
        Some(delivery)
    }

    /// How what failed comes again: as it was, in halves, or cut anew.
    fn again(&mut self, rest: Delivery) {
        if self.settings.bisect && rest.records.len() > 1 {
            let (first, second) = rest.records.split_at(rest.records.len() / 2);
            let first = Delivery { records: first.to_vec(), ..Delivery::default() };
            self.halves.push(Delivery { records: second.to_vec(), ..rest });
            self.halves.push(first);
        } else if self.halves.is_empty() && !rest.is_early && self.function.rng.chance(0.3) {
            // Back to where the iterator stood: the next batch takes more, or less, from there.
            for n in rest.records.into_iter().rev() {
                self.waiting.push_front(n);
            }
        } else {
            self.halves.push(rest);
        }
    }
}
