//! Metrics of a batch as a log line that CloudWatch reads: the embedded metric format.

use millpond_consumer::Report;
use millpond_store::Timestamp;
use serde_json::{Map, Value, json};

/// The namespace of all metrics.
pub(crate) const NAMESPACE: &str = "Millpond";

/// Writes the counters of a batch to the log. CloudWatch makes metrics of them, by consumer, at no request.
pub(crate) fn emit(report: &Report, now: Timestamp) {
    // A line by itself: the log's own form would hide the fields from CloudWatch.
    println!("{}", line(report, now));
}

fn line(report: &Report, now: Timestamp) -> Value {
    let counters = report.metrics();
    let named: Vec<Value> =
        counters.iter().map(|(name, _)| json!({ "Name": name, "Unit": "Count" })).collect();
    let mut fields = Map::new();
    fields.insert(
        "_aws".into(),
        json!({
            "Timestamp": now.as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": NAMESPACE,
                "Dimensions": [["Consumer"]],
                "Metrics": named,
            }],
        }),
    );
    fields.insert("Consumer".into(), report.consumer.as_str().into());
    for (name, count) in counters {
        fields.insert(name.into(), count.into());
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_declared_and_has_its_value() {
        let report = Report { consumer: "orders".into(), records: 7, ..Report::default() };
        let line = line(&report, Timestamp::from_millis(5));
        assert_eq!((&line["Consumer"], &line["consumer_records"]), (&"orders".into(), &7.into()));
        let declared = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
        assert_eq!(declared.len(), report.metrics().len());
        for metric in declared {
            assert!(line[metric["Name"].as_str().unwrap()].is_u64(), "{metric}");
        }
        assert_eq!(line["_aws"]["Timestamp"], 5);
    }
}
