//! The template: what it names exists, and it allows what is needed and no more.

use std::collections::BTreeSet;

use millpond_dynamodb::Role;
use millpond_lambda::settings::NAMES;
use serde_json::Value;

fn template() -> Value {
    let text = include_str!("../../template.yaml");
    plain(serde_yaml_ng::from_str(text).expect("the template is YAML"))
}

/// YAML as JSON; `!Sub x` becomes `{"Sub": x}`.
fn plain(yaml: serde_yaml_ng::Value) -> Value {
    use serde_yaml_ng::Value as Yaml;
    match yaml {
        Yaml::Mapping(map) => map
            .into_iter()
            .map(|(key, value)| (key.as_str().unwrap_or_default().to_owned(), plain(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Yaml::Sequence(items) => items.into_iter().map(plain).collect(),
        Yaml::Tagged(tagged) => {
            let name = tagged.tag.to_string().trim_start_matches('!').to_owned();
            serde_json::json!({ name: plain(tagged.value) })
        }
        other => serde_json::to_value(other).unwrap(),
    }
}

fn functions(template: &Value) -> Vec<(&String, &Value)> {
    let resources = template["Resources"].as_object().unwrap().iter();
    resources.filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function").collect()
}

fn each(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                visit(key, value);
                each(value, visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, visit)),
        _ => {}
    }
}

#[test]
fn every_binary_is_deployed_and_every_deployed_function_is_a_binary() {
    let template = template();
    let deployed: BTreeSet<_> = functions(&template)
        .iter()
        .map(|(_, function)| {
            // What `cargo lambda` has built is deployed as it is: there is nothing in it for `sam build` to build.
            assert_eq!(function["Metadata"], serde_json::json!({"SkipBuild": true}));
            let code = function["Properties"]["CodeUri"].as_str().unwrap();
            code.strip_prefix("../../target/lambda/").unwrap().to_owned()
        })
        .collect();
    let built = [
        env!("CARGO_BIN_EXE_stream-consumer"),
        env!("CARGO_BIN_EXE_sequencer-intake"),
        env!("CARGO_BIN_EXE_sequencer-ranges"),
        env!("CARGO_BIN_EXE_queue-worker"),
        env!("CARGO_BIN_EXE_log-consumer"),
    ];
    let built: BTreeSet<_> = built
        .iter()
        .map(|path| std::path::Path::new(path).file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(deployed, built);
}

#[test]
fn every_variable_is_one_that_functions_read() {
    let mut seen = 0;
    each(&template(), &mut |key, value| {
        if key == "Variables" {
            for name in value.as_object().unwrap().keys() {
                assert!(NAMES.contains(&name.as_str()), "{name} is read by no function");
                seen += 1;
            }
        }
    });
    assert!(seen > 10, "only {seen} variables were found");
}

#[test]
fn everything_that_is_referred_to_is_there() {
    let template = template();
    let names = |part: &str| template[part].as_object().unwrap().keys().cloned();
    let mut known: BTreeSet<String> = names("Resources").chain(names("Parameters")).collect();
    known.extend(
        ["Partition", "Region", "AccountId", "StackName", "NoValue"].map(|n| format!("AWS::{n}")),
    );
    let mut seen = 0;
    each(&template, &mut |key, value| {
        let text = value.as_str().unwrap_or_default();
        let referred: Vec<&str> = match key {
            "Ref" => vec![text],
            "GetAtt" => vec![text.split('.').next().unwrap()],
            "Sub" => text
                .split("${")
                .skip(1)
                .map(|part| part.split(['}', '.']).next().unwrap())
                .collect(),
            _ => vec![],
        };
        for name in referred {
            assert!(known.contains(name), "{name} is referred to and not there");
            seen += 1;
        }
    });
    assert!(seen > 30, "only {seen} references were found");
}

#[test]
fn batches_are_answered_in_part_and_filters_are_json() {
    let template = template();
    let (mut sources, mut patterns) = (0, 0);
    for (name, function) in functions(&template) {
        for (_, event) in function["Properties"]["Events"].as_object().unwrap() {
            let properties = &event["Properties"];
            let is_batch =
                ["Kinesis", "DynamoDB", "SQS"].contains(&event["Type"].as_str().unwrap());
            // The log's worker takes any event as a wake-up.
            if is_batch && name != "LogConsumer" {
                let types = &properties["FunctionResponseTypes"];
                assert_eq!(types[0], "ReportBatchItemFailures", "{name}");
                assert_eq!(properties["MaximumRetryAttempts"], -1, "{name} counts attempts itself");
                sources += 1;
            }
        }
        each(function, &mut |key, value| {
            if key == "Pattern" {
                let text = value.as_str().or(value["Sub"].as_str()).unwrap();
                serde_json::from_str::<Value>(text)
                    .unwrap_or_else(|error| panic!("{text}: {error}"));
                patterns += 1;
            }
        });
    }
    assert_eq!((sources, patterns), (3, 2));
}

#[test]
fn no_filter_drops_a_record_of_a_producer_without_a_letter() {
    for (name, function) in functions(&template()) {
        for (_, event) in function["Properties"]["Events"].as_object().unwrap() {
            let filtered = event["Properties"].get("FilterCriteria").is_some();
            // What is in the table's own stream, Millpond itself has written.
            assert!(!filtered || event["Type"] == "DynamoDB", "{name}");
        }
    }
}

/// Alarms on a metric, each with what it is about.
fn alarms<'a>(template: &'a Value, metric: &str) -> Vec<(String, &'a Value)> {
    let resources = template["Resources"].as_object().unwrap().values();
    let alarms = resources.map(|resource| &resource["Properties"]);
    let alarms = alarms.filter(|alarm| alarm["MetricName"] == metric);
    alarms
        .map(|alarm| {
            let about = &alarm["Dimensions"][0]["Value"];
            (about.as_str().or(about["Ref"].as_str()).unwrap_or_default().to_owned(), alarm)
        })
        .collect()
}

#[test]
fn a_tripped_breaker_raises_an_alarm_that_stays() {
    let template = template();
    let mut guarded = 0;
    for (name, function) in functions(&template) {
        let variables = &function["Properties"]["Environment"]["Variables"];
        if variables["MILLPOND_BREAKER"] != "on" {
            continue;
        }
        guarded += 1;
        let tripped = alarms(&template, "consumer_tripped");
        let consumer = variables["MILLPOND_CONSUMER"].as_str().unwrap();
        let (_, alarm) = tripped.iter().find(|(about, _)| about == consumer).expect(name);
        // A disabled mapping sends one datapoint, and then nothing.
        assert_eq!((&alarm["EvaluationPeriods"], &alarm["Threshold"]), (&1.into(), &0.into()));
        assert_eq!(alarm["TreatMissingData"], "ignore");
    }
    assert_eq!(guarded, 1);
}

#[test]
fn every_function_has_its_alarms_and_every_metric_exists() {
    let template = template();
    let about = |metric: &str| -> BTreeSet<String> {
        alarms(&template, metric).into_iter().map(|(about, _)| about).collect()
    };
    let watched: BTreeSet<String> = about("IteratorAge").union(&about("Errors")).cloned().collect();
    let all: BTreeSet<String> =
        functions(&template).iter().map(|(name, _)| (*name).clone()).collect();
    assert_eq!(watched, all);
    // The stream consumer's letters are in SQS, which has a metric of its own.
    let expected = ["sequencer-intake", "sequencer-ranges"].map(str::to_owned);
    assert_eq!(about("consumer_dead_letters"), expected.into());
    assert_eq!(alarms(&template, "ApproximateNumberOfMessagesVisible").len(), 1);
    let known = millpond_consumer::Report::default().metrics();
    each(&template["Resources"], &mut |key, value| {
        if key == "Properties" && value["Namespace"] == "Millpond" {
            let metric = value["MetricName"].as_str().unwrap();
            assert!(known.iter().any(|(name, _)| *name == metric), "nothing counts {metric}");
        }
    });
}

#[test]
fn the_policy_is_the_consumers_and_nothing_is_allowed_in_general() {
    let template = template();
    let policy = &template["Resources"]["ConsumerPolicy"]["Properties"]["PolicyDocument"];
    let actions = |at: usize| -> Vec<&str> {
        let actions = policy["Statement"][at]["Action"].as_array().unwrap();
        actions.iter().map(|action| action.as_str().unwrap().split_once(':').unwrap().1).collect()
    };
    assert_eq!(actions(0), Role::Consumer.actions());
    assert_eq!(actions(1), Role::Consumer.object_actions());
    let mut wild = Vec::new();
    each(&template, &mut |key, value| {
        if key == "Statement" {
            for statement in value.as_array().unwrap() {
                let action = statement["Action"].to_string();
                assert!(!action.contains('*'), "{action}");
                if statement["Resource"] == "*" {
                    wild.push(statement["Action"].clone());
                }
            }
        }
    });
    assert_eq!(wild, ["lambda:ListEventSourceMappings"], "which cannot be confined");
}

#[test]
fn who_continues_itself_may_do_so_for_ever() {
    let template = template();
    for (name, function) in functions(&template) {
        let text = function.to_string();
        let continues = text.contains("lambda:InvokeFunction");
        let allowed = function["Properties"]["RecursiveLoop"] == "Allow";
        assert_eq!(continues, allowed, "{name}");
        assert_eq!(continues, ["QueueWorker", "LogConsumer"].contains(&name.as_str()), "{name}");
    }
}
