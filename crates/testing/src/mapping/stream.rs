//! The mapping of a stream.

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::join_all;

use super::invoke::{Deployment, Ended, Function};
use super::plan::Plan;
use super::settings::Settings;

fn record(plan: &Plan, n: u64) -> String {
    // {"n":N} in base64, by hand: this crate has no other use for a codec.
    let data = base64(format!("{{\"n\":{n}}}").as_bytes());
    let sequence = number(n);
    format!(
        concat!(
            r#"{{"kinesis":{{"partitionKey":"key-{key}","sequenceNumber":"{sequence}","data":"{data}"}},"#,
            r#""eventSource":"aws:kinesis","eventID":"shardId-000000000001:{sequence}","#,
            r#""eventSourceARN":"arn:aws:kinesis:eu-central-1:111122223333:stream/simulated"}}"#
        ),
        key = plan.key(n),
        sequence = sequence,
        data = data,
    )
}

/// The number of a record: rising with `n`, with lengths that differ.
fn number(n: u64) -> String {
    (9_u128.pow(20) / 7 + u128::from(n) * 10_u128.pow(19)).to_string()
}

fn event(plan: &Plan, batch: &[u64]) -> String {
    let records: Vec<String> = batch.iter().map(|n| record(plan, *n)).collect();
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}

/// Delivers everything; returns what the mapping gave up.
pub async fn run(
    function: &Function,
    deployment: &Deployment,
    plan: &Plan,
    settings: &Settings,
) -> Vec<u64> {
    // Several batches of a shard at a time: those of a key stay with one.
    let lanes = (0..settings.parallel).map(|lane| {
        let records =
            (0..plan.messages()).filter(move |n| plan.key(*n) % settings.parallel == lane);
        Box::pin(run_lane(function, deployment, plan, settings, lane, records.collect()))
    });
    join_all(lanes).await.into_iter().flatten().collect()
}

async fn run_lane(
    function: &Function,
    deployment: &Deployment,
    plan: &Plan,
    settings: &Settings,
    lane: u64,
    mut waiting: VecDeque<u64>,
) -> Vec<u64> {
    let mut given_up = Vec::new();
    // All records are there from the beginning.
    let began = function.environment.now();
    // Halves of a batch that failed, first half on top.
    let mut halves: Vec<Vec<u64>> = Vec::new();
    let mut tries = 0;
    loop {
        let mut batch = match halves.pop() {
            Some(half) => half,
            None if waiting.is_empty() => return given_up,
            None => {
                // A window: what has come by now, not always as much as fits.
                let size = 1 + function.rng.below(settings.batch.min(waiting.len() as u64));
                waiting.drain(..size as usize).collect()
            }
        };
        let label = format!("lane {lane} {batch:?}");
        let ended = function.invoke(deployment, &label, &event(plan, &batch)).await;
        let rest = match ended {
            Ended::Answered(items) => match items.first() {
                None => {
                    tries = 0;
                    continue;
                }
                // An empty name stands for all of it.
                Some(item) => match batch.iter().position(|n| number(*n) == *item) {
                    Some(at) => batch.split_off(at),
                    None => batch,
                },
            },
            Ended::Failed => batch,
        };
        tries += 1;
        let age = function.environment.now().since(began);
        let too_old = settings.age_max.is_some_and(|most| age > most);
        if too_old || settings.retries_max.is_some_and(|most| tries > most) {
            function.truth.note(format_args!("lane {lane} gives up {rest:?}"));
            given_up.extend(rest);
            tries = 0;
            continue;
        }
        function
            .environment
            .clock
            .sleep(Duration::from_millis(500 + function.rng.below(5_000)))
            .await;
        again(function, settings, rest, &mut waiting, &mut halves);
    }
}

/// How what failed comes again: as it was, in halves, or cut anew.
fn again(
    function: &Function,
    settings: &Settings,
    rest: Vec<u64>,
    waiting: &mut VecDeque<u64>,
    halves: &mut Vec<Vec<u64>>,
) {
    if settings.bisect && rest.len() > 1 {
        let (first, second) = rest.split_at(rest.len() / 2);
        halves.push(second.to_vec());
        halves.push(first.to_vec());
    } else if halves.is_empty() && function.rng.chance(0.3) {
        // Back to where the iterator stood: the next batch takes more, or less, from there.
        for n in rest.into_iter().rev() {
            waiting.push_front(n);
        }
    } else {
        halves.push(rest);
    }
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}
