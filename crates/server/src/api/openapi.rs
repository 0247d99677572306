//! The OpenAPI document, made of the routes and the types that they take and answer.

use http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::error::ErrorBody;
use super::route::Route;

/// Where the document is.
pub const PATH: &str = "/v1/openapi.json";

/// Names that are parameters although the method has a body.
const IN_QUERY: &str = "client";

const DESCRIPTION: &str = "What the SQS protocol cannot say: queues with clients, order, status and dead letters, the \
sequencer, the log with its groups, consumers' state and dead letters, and the store itself. Names in paths are percent-encoded. Bytes are text where they are text, else \
base64 in a field whose name ends in `_base64`. Times and durations are milliseconds. An error is an object `error` with \
`code`, `message` and perhaps `field`; in batches each entry has its own.";

/// The whole document.
pub fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = SchemaGenerator::new(settings);
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        let method = route.method.as_str().to_ascii_lowercase();
        if let Some(path) = path.as_object_mut() {
            path.insert(method, operation(route, &mut generator));
        }
    }
    let itself = json!({ "get": {
        "operationId": "openapi",
        "summary": "This document.",
        "responses": { "200": { "description": "The document.", "content": { "application/json": { "schema": { "type": "object" } } } } },
    } });
    paths.insert(PATH.to_owned(), itself);
    let error = generator.subschema_for::<ErrorBody>().to_value();
    let mut schemas = generator.take_definitions(true);
    schemas.insert(
        "ErrorAnswer".to_owned(),
        json!({ "type": "object", "properties": { "error": error }, "required": ["error"] }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Millpond",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let input = (route.input)(generator).to_value();
    let output = (route.output)(generator).to_value();
    let in_path = |name: &str| route.path.contains(&format!("{{{name}}}"));
    let required = |name: &str| {
        let list = input.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry == name))
    };
    let (mut parameters, mut body, mut body_required) = (Vec::new(), Map::new(), Vec::new());
    let properties = input.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let place = match name.as_str() {
            name if in_path(name) => Some("path"),
            name if !route.has_body() || name == IN_QUERY => Some("query"),
            _ => None,
        };
        match place {
            Some(place) => parameters.push(parameter(name, place, required(name), schema)),
            None => {
                body.insert(name.clone(), schema.clone());
                if required(name) {
                    body_required.push(name.clone());
                }
            }
        }
    }
    let mut operation = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "Done.",
                "content": { "application/json": { "schema": output } },
            },
            "default": {
                "description": "What went wrong.",
                "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorAnswer" } } },
            },
        },
    });
    if route.method != Method::GET && route.method != Method::DELETE {
        let needed = !body_required.is_empty();
        let schema = json!({
            "type": "object",
            "properties": body,
            "required": body_required,
            "additionalProperties": false,
        });
        let content = json!({ "application/json": { "schema": schema } });
        if let Some(operation) = operation.as_object_mut() {
            let body = json!({ "required": needed, "content": content });
            operation.insert("requestBody".to_owned(), body);
        }
    }
    operation
}

fn parameter(name: &str, place: &str, required: bool, schema: &Value) -> Value {
    let mut schema = schema.clone();
    let own = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let description = match (name, own.as_ref().and_then(Value::as_str)) {
        (_, Some(description)) => description,
        ("client", None) => "The client of the queue. Default: the main one.",
        ("queue", None) => "The queue's name.",
        ("topic", None) => "The topic's name.",
        ("group", None) => "The group's name.",
        ("sequencer", None) => "The sequencer's name.",
        ("reader", None) => "The reader's name.",
        ("consumer", None) => "The consumer's name.",
        _ => "",
    };
    json!({
        "name": name,
        "in": place,
        "required": required || place == "path",
        "description": description,
        "schema": schema,
    })
}
