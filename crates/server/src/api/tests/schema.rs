//! As much of JSON Schema as the document uses.

use serde_json::Value;

/// Checks a value against a schema of the document.
pub fn check(document: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#'));
        let target = target.ok_or_else(|| format!("{place}: {reference} leads nowhere"))?;
        return check(document, target, value, place);
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[name].as_array() {
            let fits = choices.iter().any(|choice| check(document, choice, value, place).is_ok());
            if !fits {
                return Err(format!("{place}: {value} fits none of {schema}"));
            }
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(document, part, value, place)?;
    }
    check_type(schema, value, place)?;
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return Err(format!("{place}: {value} is none of {choices:?}"));
    }
    if schema.get("const").is_some_and(|wanted| wanted != value) {
        return Err(format!("{place}: {value} is not {}", schema["const"]));
    }
    if let Some(list) = value.as_array() {
        for (at, item) in list.iter().enumerate() {
            check(document, &schema["items"], item, &format!("{place}[{at}]"))?;
        }
    }
    check_object(document, schema, value, place)
}

fn check_type(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let fits = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    if kinds.iter().any(fits) { Ok(()) } else { Err(format!("{place}: {value} is not {kinds:?}")) }
}

fn check_object(
    document: &Value,
    schema: &Value,
    value: &Value,
    place: &str,
) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return Err(format!("{place}: {name} is missing"));
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        let values = &schema["additionalProperties"];
        if values.is_object() {
            for (name, value) in object {
                check(document, values, value, &format!("{place}.{name}"))?;
            }
        }
        return Ok(());
    };
    for (name, value) in object {
        match properties.get(name) {
            Some(schema) => check(document, schema, value, &format!("{place}.{name}"))?,
            None => return Err(format!("{place}: {name} is not in the document")),
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_found() {
    let document = serde_json::json!({ "s": { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] } });
    let schema = serde_json::json!({ "$ref": "#/s" });
    for (value, good) in
        [("{\"a\":1}", true), ("{}", false), ("{\"a\":\"x\"}", false), ("{\"a\":1,\"b\":2}", false)]
    {
        let value = serde_json::from_str(value).unwrap();
        assert_eq!(check(&document, &schema, &value, "v").is_ok(), good, "{value}");
    }
}
