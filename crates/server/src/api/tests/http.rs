//! What every route has in common: methods, media types, errors, authorization.

use ::http::{Method, Request, StatusCode};
use bytes::Bytes;
use serde_json::json;

use super::super::ApiError;
use super::{failure, world};

#[tokio::test]
async fn unknown_paths_methods_and_media_types_are_told_apart() {
    let world = world();
    let get = |path: &'static str| world.bad(Method::GET, path, None);
    assert_eq!(get("/v1/nothing").await, failure(404, "no_route", ""));
    assert_eq!(get("/v1/queues/a/b/c/d").await, failure(404, "no_route", ""));
    let wrong = world.bad(Method::DELETE, "/v1/queues", None).await;
    assert_eq!(wrong, failure(405, "method", ""));
    let request = Request::delete("/v1/queues").body(Bytes::new()).unwrap();
    assert_eq!(world.api.handle(request).await.headers()["allow"], "GET");
    let text = Request::put("/v1/queues/q").header("content-type", "text/plain");
    let (status, value) = world.raw(text.body(Bytes::from("{}")).unwrap()).await;
    assert_eq!((status.as_u16(), value["error"]["code"].as_str()), (415, Some("media_type")));
    let with_charset =
        Request::put("/v1/queues/q").header("content-type", "application/json; charset=utf-8");
    let (status, _) = world.raw(with_charset.body(Bytes::new()).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn bad_fields_are_named() {
    let world = world();
    world.put("/v1/queues/q", json!({})).await;
    let send = "/v1/queues/q/messages";
    let message = |message| Some(json!({ "messages": [message] }));
    let cases = [
        (Method::POST, send, Some(json!({})), "messages"),
        (Method::POST, send, Some(json!({ "messages": [], "more": 1 })), "more"),
        (Method::POST, send, message(json!({ "body": 7 })), "messages[0].body"),
        (Method::POST, send, message(json!({ "body": "x", "colour": 1 })), "messages[0].colour"),
        (Method::GET, "/v1/queues/q/messages?max=many", None, "max"),
        (Method::GET, "/v1/queues/q/messages?max=0", None, "max"),
        (Method::GET, "/v1/queues/q/messages?limit=1", None, "limit"),
        (Method::GET, "/v1/queues/q/messages?client=a&client=b", None, "client"),
        (Method::POST, "/v1/queues/q/receive", Some(json!({ "wait_ms": 60_001 })), "wait_ms"),
        (Method::POST, "/v1/queues/q/receive", Some(json!({ "queue": "r" })), "queue"),
        (Method::PUT, "/v1/queues/r", Some(json!({ "config": { "visibility": 0 } })), "visibility"),
        (Method::PUT, "/v1/queues/r", Some(json!({ "config": { "speed": 9 } })), "config.speed"),
        (Method::GET, "/v1/queues/q/messages/nonsense", None, "message id"),
    ];
    for (method, path, body, field) in cases {
        let (status, code, named) = world.bad(method, path, body).await;
        assert_eq!((status, code.as_str(), named.as_str()), (400, "invalid", field), "{path}");
    }
    let request = Request::post(send).header("content-type", "application/json");
    let (status, value) = world.raw(request.body(Bytes::from("{oops")).unwrap()).await;
    assert_eq!((status.as_u16(), value["error"]["field"].as_str()), (400, Some("body")));
}

#[tokio::test]
async fn the_check_of_access_sees_operation_and_queue_and_decides() {
    let world = world();
    world.put("/v1/queues/q", json!({})).await;
    let ground = world.api.ground().clone();
    let api = super::Api::new(&ground, super::Backend::Other).with_authorize(Box::new(
        |parts, _, operation, about| match (operation, about) {
            ("count_messages", Some("q")) if parts.headers.contains_key("authorization") => Ok(()),
            _ => Err(ApiError::new(StatusCode::FORBIDDEN, "access_denied", "not for you")),
        },
    ));
    let ask = |path: &str, header: Option<&str>| {
        let mut request = Request::get(path);
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        api.handle(request.body(Bytes::new()).unwrap())
    };
    assert_eq!(ask("/v1/queues/q/count", Some("key")).await.status(), StatusCode::OK);
    for (path, header) in [
        ("/v1/queues/q/count", None),
        ("/v1/queues/p/count", Some("key")),
        ("/v1/queues", Some("key")),
    ] {
        assert_eq!(ask(path, header).await.status(), StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn requests_that_wait_are_known_however_they_say_it() {
    let world = world();
    let asks = |method: Method, path: &str, body: &str| {
        let request = Request::builder().method(method).uri(path);
        world.api.may_wait(&request.body(Bytes::from(body.to_owned())).unwrap())
    };
    let post = |path: &str, body: &str| asks(Method::POST, path, body);
    let get = |path: &str| asks(Method::GET, path, "");
    let receive = "/v1/queues/q/receive";
    assert!(post(receive, "{\"wait_ms\":5}"));
    assert!(post(receive, "{\"wait\\u005fms\":60000}"));
    assert!(post(receive, "{\"wait_ms\":0,\"wait_ms\":60000}"), "the last one is meant");
    assert!(post("/v1/topics/t/groups/g/poll", "{\"worker\":\"w\",\"wait_ms\":5}"));
    assert!(get("/v1/topics/t/records?partition=0&wait_ms=5"));
    assert!(get("/v1/topics/t/records?partition=0&wait%5Fms=60000"));
    assert!(get("/v1/topics/t/records?partition=0&w%61it_ms=00060000"));
    assert!(get("/v1/sequencers/main/queues/q/ranges?wait%5Fms=60000"));
    for body in ["{}", "", "{\"wait_ms\":0}", "{\"worker\":\"wait_ms\"}", "{\"wait_ms\":5"] {
        assert!(!post(receive, body), "{body}");
    }
    assert!(!post("/v1/queues/q/messages", "{\"messages\":[{\"body\":\"wait_ms\"}]}"));
    assert!(!get("/v1/topics/t/records?partition=0&wait_ms=0"));
    assert!(!get("/v1/queues?wait_ms=5"), "what cannot wait does not");
}

#[test]
fn every_operation_that_can_wait_is_known() {
    let waiting = super::routes::all().into_iter().filter(|route| route.may_wait);
    let mut names: Vec<&str> = waiting.map(|route| route.operation).collect();
    names.sort_unstable();
    assert_eq!(names, ["follow_sequence", "poll_group", "read_records", "receive_messages"]);
}
