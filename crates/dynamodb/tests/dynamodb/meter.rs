//! The meter holds what the service reports.

use crate::support::{Setup, key};
use millpond_store::{
    Attributes, Expect, Key, Meter, Operation, Query, Store as _, Usage, Version, Write,
};
use serde_json::Value;

/// A put of exactly `bytes` bytes as the service counts them: the version has a fixed number of digits.
fn sized(key: &Key, bytes: usize) -> Write {
    let put = |body: usize| {
        let attributes = Attributes::new().with("body", vec![7; body]);
        // The waist counts a version at its longest, 20 digits.
        Write::put(key.clone(), attributes, Expect::Any, Version::from_u64(u64::MAX))
    };
    let write = put(bytes - put(0).size());
    assert_eq!(write.size(), bytes);
    write
}

#[tokio::test]
async fn units_follow_the_size_to_the_byte() {
    let meter = Meter::new();
    let setup = Setup::with(|config| config.meter(meter.clone())).await;
    for (bytes, write_units) in [(1_024, 1.0), (1_025, 2.0), (4_096, 4.0), (4_097, 5.0)] {
        setup.store.write(sized(&key("a"), bytes)).await.unwrap();
        let used = meter.take().of(Operation::Write);
        let wanted = Usage { requests: 1, write_units, bytes: bytes as u64, ..Usage::default() };
        assert_eq!(used, wanted, "a put of {bytes} bytes");
        setup.store.get(&key("a")).await.unwrap();
        let read_units = if bytes > 4_096 { 2.0 } else { 1.0 };
        let used = meter.take().of(Operation::Get);
        let wanted = Usage { requests: 1, read_units, bytes: bytes as u64, ..Usage::default() };
        assert_eq!(used, wanted, "a get of {bytes} bytes");
    }
    let pair = ["a", "b"].map(|sort| sized(&key(sort), 1_024));
    // The first is there under its version: only a fresh one is written.
    setup.store.write(Write::delete(key("a"), Expect::Any)).await.unwrap();
    let _ = meter.take();
    setup.store.write_all(pair.to_vec()).await.unwrap();
    assert_eq!(meter.take().of(Operation::WriteAll).write_units, 4.0);
    setup.store.write_each(pair.to_vec()).await.unwrap();
    assert_eq!(meter.take().of(Operation::WriteEach).write_units, 2.0);
}

/// What an answer says was used, whatever its form.
fn reported(answer: &Value) -> f64 {
    let units = |capacity: &Value| capacity["CapacityUnits"].as_f64().unwrap_or_default();
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(units).sum(),
        one => units(one),
    }
}

#[tokio::test]
async fn the_meter_adds_up_to_the_answers() {
    let setup = Setup::new().await;
    let writes: Vec<_> = (0..30).map(|n| sized(&key(&format!("{n}")), 900 + 20 * n)).collect();
    setup.store.write_each(writes.clone()).await.unwrap();
    for write in &writes[..3] {
        setup.store.get(&write.key).await.unwrap();
    }
    setup.store.query(Query::new(key("a").partition)).await.unwrap();
    setup.store.query(Query::new(key("a").partition).limit(4).relaxed()).await.unwrap();
    let deletes = writes[..5].iter().map(|write| Write::delete(write.key.clone(), Expect::Any));
    setup.store.write_all(deletes.collect()).await.unwrap();
    setup.store.write(setup.put(&writes[9].key, 1, Expect::Absent)).await.unwrap_err();

    let total = setup.store.meter().take().total();
    let answers = setup.proxy.answers();
    assert_eq!(total.requests, answers.len() as u64);
    let said: f64 = answers.iter().map(reported).sum();
    assert!((total.read_units + total.write_units - said).abs() < 1e-9, "{total:?}, not {said}");
    assert!(total.read_units > 0.0 && total.write_units > 0.0);
    for (action, body) in setup.proxy.requests() {
        assert_eq!(body["ReturnConsumedCapacity"], "TOTAL", "{action}");
    }
}
