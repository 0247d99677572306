//! The OpenAPI document: complete, sound, and the same as the file.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::{openapi, routes};

fn documented(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| -> Vec<(String, String)> {
        methods.as_object().unwrap().keys().map(|m| (m.to_uppercase(), path.clone())).collect()
    };
    paths.iter().flat_map(of).collect()
}

#[test]
fn every_route_is_documented_and_everything_documented_is_a_route() {
    let routes = routes::all();
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file()).unwrap()).unwrap();
    let mut known: BTreeSet<(String, String)> =
        routes.iter().map(|r| (r.method.to_string(), r.path.to_owned())).collect();
    assert_eq!(known.len(), routes.len(), "a route is there twice");
    known.insert(("GET".to_owned(), openapi::PATH.to_owned()));
    assert_eq!(known, documented(&openapi::document(&routes)));
    assert_eq!(known, documented(&file));
}

fn file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json")
}

#[test]
fn the_file_is_the_document_that_is_served() {
    let document = openapi::document(&routes::all());
    let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
    // To write it anew: MILLPOND_WRITE_OPENAPI=1 cargo test -p millpond the_file_is
    if std::env::var_os("MILLPOND_WRITE_OPENAPI").is_some() {
        std::fs::write(file(), &text).unwrap();
    }
    let written = std::fs::read_to_string(file()).unwrap();
    assert!(written == text, "docs/openapi.json is old: write it with MILLPOND_WRITE_OPENAPI=1");
}

#[test]
fn operations_have_unique_names_and_references_lead_somewhere() {
    let document = openapi::document(&routes::all());
    let mut names = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            assert!(operation["summary"].as_str().is_some_and(|summary| summary.ends_with('.')));
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(parameter["description"] != "", "{name}: {parameter}");
            }
        }
    }
    check_references(&document, &document);
}

fn check_references(document: &Value, value: &Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                let target = document.pointer(reference.trim_start_matches('#'));
                assert!(target.is_some(), "{reference} leads nowhere");
            }
            object.values().for_each(|value| check_references(document, value));
        }
        Value::Array(list) => list.iter().for_each(|value| check_references(document, value)),
        _ => {}
    }
}
