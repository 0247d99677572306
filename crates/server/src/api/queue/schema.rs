//! A queue's configuration in the OpenAPI document. The type is the library's, which knows no schemas; a test keeps
//! both in step.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

fn millis(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": format!("{description} In milliseconds.") })
}

fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn rate(description: &str) -> Value {
    json!({
        "type": ["object", "null"],
        "description": description,
        "properties": {
            "per_second": { "type": "number" },
            "burst": count("How many may start at once after a pause."),
        },
        "required": ["per_second", "burst"],
        "additionalProperties": false,
    })
}

fn optional(properties: &Value, required: &[&str], description: &str) -> Value {
    json!({
        "type": ["object", "null"],
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn order() -> Value {
    let both = |first: &str, second: &str| {
        json!({
            "type": "object",
            "properties": { first: millis("Longest wait."), second: millis("For how long.") },
            "required": [first, second],
            "additionalProperties": false,
        })
    };
    json!({
        "description": "Which message comes first.",
        "oneOf": [
            { "type": "string", "enum": ["fifo", "lifo"] },
            {
                "type": "object",
                "properties": { "priority": {
                    "type": "object",
                    "properties": { "aging": millis("After this, a message counts one level higher.") },
                    "required": ["aging"],
                    "additionalProperties": false,
                } },
                "required": ["priority"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": { "adaptive": both("target", "interval") },
                "required": ["adaptive"],
                "additionalProperties": false,
            },
        ],
    })
}

fn strict() -> Value {
    let choice = |of: &[&str], description: &str| json!({ "type": "string", "enum": of, "description": description });
    let properties = json!({
        "dedup": choice(&["by_id", "by_content"], "Which messages count as sent before."),
        "dedup_scope": choice(&["queue", "group"], "Within what a deduplication id is unique."),
        "poison": choice(&["skip", "block", "park"], "What becomes of a group whose first message fails too often."),
    });
    optional(&properties, &[], "Strict order within each group. Cannot be changed later.")
}

fn shedding() -> Value {
    let target = json!({ "target": millis("Longest wait."), "interval": millis("For how long.") });
    let properties = json!({
        "age_max": { "type": ["integer", "null"], "description": "Those older than this, in milliseconds." },
        "depth_max": { "type": ["integer", "null"], "description": "The oldest, when more than this wait." },
        "delay": optional(&target, &["target", "interval"], "Those that wait too long while a backlog stands."),
        "side_queue": { "type": ["string", "null"], "description": "The queue that gets them." },
    });
    optional(&properties, &[], "Which messages are dropped when there are too many.")
}

fn limits() -> Value {
    json!({
        "type": "object",
        "description": "How fast, and how many at a time, messages are handed out.",
        "properties": {
            "rate": rate("Messages a second, for a client's queue."),
            "running": { "type": ["integer", "null"], "description": "Messages in work at a time." },
            "group_rate": rate("Messages a second, for each group."),
            "group_running": { "type": ["integer", "null"], "description": "Messages in work at a time, for each group." },
        },
        "additionalProperties": false,
    })
}

/// The schema of a configuration.
pub fn queue_config(_: &mut SchemaGenerator) -> Schema {
    let dead = json!({
        "queue": { "type": "string", "description": "The queue that they go to." },
        "receives_max": count("How often a message is received before."),
    });
    let status = json!({ "keep": millis("How long after its end.") });
    json_schema!({
        "type": "object",
        "properties": {
            "order": order(),
            "strict": strict(),
            "visibility": millis("How long a received message is invisible to others."),
            "retention": millis("How long a message is kept at most."),
            "delay": millis("How long a sent message waits before it is delivered."),
            "dead_letters": optional(&dead, &["queue", "receives_max"], "Where messages go that were received too often."),
            "message_bytes_max": count("Largest message in bytes."),
            "lanes": count("Lanes that a client's messages are spread over. Cannot be changed later."),
            "priorities": count("Levels of priority. Cannot be changed later."),
            "status": optional(&status, &["keep"], "Whether and how long what became of a message is kept."),
            "shedding": shedding(),
            "limits": limits(),
            "keeps_age": { "type": "boolean", "description": "Whether a message that is moved here keeps its age." },
        },
        "additionalProperties": false,
    })
}

/// The schema of a change of a configuration.
pub fn queue_patch(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "A JSON merge patch of the configuration: what is null is taken away.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_queue::{
        DeadLetters, DelayTarget, Limits, QueueConfig, Rate, Shedding, StatusKeeping,
    };
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn names(value: &Value) -> BTreeSet<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    }

    #[test]
    fn the_schema_names_exactly_the_fields_of_a_configuration() {
        let delay = DelayTarget { target: Duration::ZERO, interval: Duration::ZERO };
        let rate = Rate { per_second: 1.0, burst: 1 };
        let config = QueueConfig {
            dead_letters: Some(DeadLetters { queue: "dead".into(), receives_max: 3 }),
            status: Some(StatusKeeping { keep: Duration::ZERO }),
            shedding: Some(Shedding { delay: Some(delay), ..Shedding::default() }),
            keeps_age: true,
            limits: Limits { rate: Some(rate), group_rate: Some(rate), ..Limits::default() },
            ..QueueConfig::strict()
        };
        let written = serde_json::to_value(config).unwrap();
        let schema = queue_config(&mut SchemaGenerator::default()).to_value();
        assert_eq!(names(&written), names(&schema["properties"]));
        for part in ["strict", "dead_letters", "status", "shedding", "limits"] {
            assert_eq!(names(&written[part]), names(&schema["properties"][part]["properties"]));
        }
    }
}
