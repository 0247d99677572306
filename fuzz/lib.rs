//! What the targets for the SQS protocol share: a server in memory, under virtual time, that is asked one thing. Those for
//! the consumer are in `millpond_testing::hostile`, for its tests too.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use millpond_lanes::Ground;
use millpond_sqs::{AccessKey, AccessKeys, Sqs, SqsOptions};
use millpond_store::{Environment, MemoryStore, Timestamp, VirtualClock};

/// Asks a server, whose queue `q` is there, and checks that the answer does not blame the server.
pub fn ask(request: Request<Bytes>, guarded: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let clock = VirtualClock::new(Timestamp::from_millis(1_800_000_000_000));
        let environment = Environment::simulated(clock.clone(), 7);
        let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
        let keys = guarded.then(|| AccessKeys { keys: vec![AccessKey::new("AKID", "secret")] });
        let options = SqsOptions { keys, quiet_periods: false, ..SqsOptions::default() };
        let sqs = Sqs::open(&ground, options).await.expect("a server");
        if !guarded {
            let create = Request::post("/?Action=CreateQueue&QueueName=q").body(Bytes::new());
            sqs.handle(create.expect("a request")).await;
        }
        let _ = sqs.may_wait(&request);
        let passes = async {
            loop {
                tokio::task::yield_now().await;
                clock.advance(Duration::from_secs(1));
            }
        };
        tokio::select! {
            biased;
            answer = sqs.handle(request) => {
                assert!(answer.status().as_u16() < 500, "{:?}", answer.body());
                assert!(!guarded || answer.status().as_u16() >= 400, "nobody is let in");
            }
            () = passes => {}
        }
    });
}

/// A request in the JSON encoding.
pub fn json(action: &str, body: Vec<u8>) -> Request<Bytes> {
    Request::post("/000000000000/q")
        .header("x-amz-target", format!("AmazonSQS.{action}"))
        .body(Bytes::from(body))
        .expect("a request")
}
