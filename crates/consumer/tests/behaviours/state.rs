//! What is remembered between deliveries: what is too much for every backend. The rest is in the suite.

use millpond_consumer::Outcome;
use millpond_consumer::state::legacy::LegacyBatch;
use millpond_testing::consumer_suite::state::{LEGACY, fails};
use serde_json::json;

use crate::support::World;
use crate::support::events::stream;

#[tokio::test]
async fn ten_thousand_messages_of_three_tasks_fit_and_take_linear_work() {
    let mut bytes = Vec::new();
    for count in [5_000_u64, 10_000] {
        let world = World::new();
        let consumer = world
            .planned(fails(&[1]))
            .one("notify", world.calls.handler("notify", |_| Outcome::Done))
            .all("bulk", world.calls.batches("bulk", |all| vec![Outcome::Done; all.len()]))
            .build()
            .unwrap();
        let event = stream(1..=count);
        let (_, report) = world.deliver_at_once(&consumer, &event).await;
        assert_eq!((report.finished as u64, report.saved as u64), (count - 1, count));
        world.calls.take();
        let (_, report) = world.deliver_at_once(&consumer, &event).await;
        assert_eq!(report.finished_before as u64, count - 1);
        assert_eq!(world.calls.all(), [("index".to_owned(), "1".to_owned())]);
        bytes.push(world.meter.take().total().bytes);
    }
    assert!(bytes[1] < bytes[0] * 21 / 10, "{bytes:?}");
}

#[test]
fn state_of_the_older_libraries_is_read_with_dynamodbs_types_too() {
    fn typed(value: &serde_json::Value) -> serde_json::Value {
        match value {
            serde_json::Value::String(text) => json!({"S": text}),
            serde_json::Value::Number(number) => json!({"N": number.to_string()}),
            serde_json::Value::Array(list) => {
                json!({"L": list.iter().map(typed).collect::<Vec<_>>()})
            }
            serde_json::Value::Object(map) => json!({"M": typed_map(map)}),
            serde_json::Value::Bool(_) | serde_json::Value::Null => json!({"NULL": true}),
        }
    }
    fn typed_map(map: &serde_json::Map<String, serde_json::Value>) -> serde_json::Value {
        map.iter()
            .map(|(name, value)| (name.clone(), typed(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
    let plain: serde_json::Value = serde_json::from_str(LEGACY).unwrap();
    let item = json!({"Item": typed_map(plain.as_object().unwrap())}).to_string();
    assert_eq!(LegacyBatch::parse(item.as_bytes()), LegacyBatch::parse(LEGACY.as_bytes()));
    for bad in ["", "[]", "{}", r#"{"streamConsumerId":"X|a|b"}"#, r#"{"streamConsumerId":"K|a"}"#]
    {
        assert!(LegacyBatch::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}
