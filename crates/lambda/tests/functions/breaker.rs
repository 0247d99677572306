//! A wrong set-up stops exactly the mapping through which the event came.

use std::time::Duration;

use serde_json::json;

use crate::lambda_api::{LambdaApi, mapping};
use crate::support::engine::Engine;
use crate::support::events::{STREAM, kinesis, sequence};
use crate::support::function::Start;
use crate::support::runtime_api::{FUNCTION_ARN, RuntimeApi};
use crate::trial::{Notes, fine, told};

const TIME: Duration = Duration::from_secs(60);

fn mappings() -> Vec<serde_json::Value> {
    let other_account = STREAM.replace("123456789012", "999999999999");
    let other_region = STREAM.replace("eu-central-1", "eu-west-1");
    let longer = format!("{STREAM}-archive");
    let alias = format!("{FUNCTION_ARN}:live");
    vec![
        mapping("account", &other_account, FUNCTION_ARN, "Enabled"),
        mapping("region", &other_region, FUNCTION_ARN, "Enabled"),
        mapping("longer", &longer, FUNCTION_ARN, "Enabled"),
        mapping("alias", STREAM, &alias, "Enabled"),
        mapping("own", STREAM, FUNCTION_ARN, "Enabled"),
        mapping("after", &longer, FUNCTION_ARN, "Enabled"),
    ]
}

#[tokio::test]
async fn a_missing_table_disables_exactly_the_mapping_of_the_event() {
    let engine = Engine::without_table().await;
    let api = RuntimeApi::start().await;
    let lambda = LambdaApi::with_mappings(mappings(), 2).await;
    let start = |breaker: &str| {
        Start::binary(env!("CARGO_BIN_EXE_stream-consumer"))
            .store(&engine.endpoint())
            .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
            .set("MILLPOND_BREAKER", breaker)
    };
    let event = kinesis(1, &[fine(1), fine(2)]);
    let off = start("off").start(&api);
    assert_eq!(api.invoke(&event, TIME).await.failures(), [sequence(1)]);
    assert_eq!((lambda.pages(), lambda.updates()), (0, vec![]));
    drop(off);

    let api = RuntimeApi::start().await;
    let _on = start("on").start(&api);
    let answer = api.invoke(&event, TIME).await;
    assert_eq!(answer.failures(), [sequence(1)], "nothing of the batch is lost");
    let updates = lambda.updates();
    assert_eq!(updates.len(), 1, "{updates:?}");
    assert_eq!((updates[0].0.as_str(), &updates[0].1["Enabled"]), ("own", &json!(false)));
    assert_eq!(lambda.pages(), 3, "all pages are looked through");
}

#[tokio::test]
async fn what_handlers_do_never_trips_the_breaker() {
    let (engine, api, notes) = (Engine::start().await, RuntimeApi::start().await, Notes::new());
    let lambda = LambdaApi::with_mappings(mappings(), 0).await;
    let _function = notes
        .start("trial::consumer_function")
        .store(&engine.endpoint())
        .set("AWS_ENDPOINT_URL_LAMBDA", &lambda.endpoint())
        .set("MILLPOND_BREAKER", "on")
        .start(&api);
    let messages = [told(1, "panic"), told(2, "fail"), told(3, "reject")];
    let answer = api.invoke(&kinesis(1, &messages), TIME).await;
    assert_eq!(answer.failures(), [sequence(1)]);
    assert_eq!((lambda.pages(), lambda.updates()), (0, vec![]));
}
