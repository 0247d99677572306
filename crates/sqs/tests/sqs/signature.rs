//! Signatures: who is let in, and what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

use std::collections::BTreeMap;

use crate::common::{World, form_request, json_request, matches_fixture};
use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use http::Request;
use millpond_sqs::{AccessKey, AccessKeys, SqsOptions};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use proptest::sample::Index;
use serde_json::json;
use sha2::{Digest as _, Sha256};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// When every test begins.
pub const TIME: &str = "20270115T080000Z";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Signs as a client does, by the published recipe and independently of the crate.
pub fn sign(
    request: Request<Bytes>,
    id: &str,
    secret: &str,
    region: &str,
    time: &str,
) -> Request<Bytes> {
    let (mut parts, body) = request.into_parts();
    parts.headers.insert("x-amz-date", time.parse().unwrap());
    let mut names: Vec<String> =
        parts.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.retain(|name| name == "host" || name == "content-type" || name.starts_with("x-amz-"));
    names.sort();
    let headers: String = names
        .iter()
        .map(|name| format!("{name}:{}\n", parts.headers[name.as_str()].to_str().unwrap().trim()))
        .collect();
    let signed = names.join(";");
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let canonical = format!(
        "{}\n{path}\n{query}\n{headers}\n{signed}\n{}",
        parts.method,
        hex(&Sha256::digest(&body))
    );
    let day = &time[..8];
    let scope = format!("{day}/{region}/sqs/aws4_request");
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = mac(format!("AWS4{secret}").as_bytes(), day);
    for part in [region, "sqs", "aws4_request"] {
        key = mac(&key, part);
    }
    let signature = hex(&mac(&key, &to_sign));
    let header = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={signed}, Signature={signature}"
    );
    parts.headers.insert("authorization", header.parse().unwrap());
    Request::from_parts(parts, body)
}

fn good(action: &str, body: &serde_json::Value) -> Request<Bytes> {
    sign(json_request(action, body), "AKID", SECRET, "us-east-1", TIME)
}

pub async fn guarded() -> World {
    let limited = AccessKey {
        actions: vec!["SendMessage".into(), "Get*".into(), "List*".into()],
        queues: vec!["orders-*".into()],
        ..AccessKey::new("LIMITED", "secret")
    };
    let keys =
        vec![AccessKey::new("AKID", SECRET), AccessKey::new("123456789012", "other"), limited];
    World::with(SqsOptions { keys: Some(AccessKeys { keys }), ..SqsOptions::default() }).await
}

#[tokio::test]
async fn who_signs_with_a_known_key_is_let_in() {
    let world = guarded().await;
    let created = world.raw(good("CreateQueue", &json!({"QueueName": "q"}))).await.ok().json();
    assert_eq!(created["QueueUrl"], "http://queue.test:9324/000000000000/q");
    let form =
        form_request("/000000000000/q", &[("Action", "SendMessage"), ("MessageBody", "a b&c")]);
    world.raw(sign(form, "AKID", SECRET, "us-east-1", TIME)).await.ok();
    let get = Request::get("/000000000000/q?Action=GetQueueAttributes&AttributeName.1=All")
        .header("host", "queue.test:9324")
        .body(Bytes::new())
        .unwrap();
    // A client sorts and encodes the query.
    let answer = world.raw(sign(get, "AKID", SECRET, "us-east-1", TIME)).await.ok();
    assert!(answer.text.contains("<Name>ApproximateNumberOfMessages</Name><Value>1</Value>"));
}

#[tokio::test]
async fn the_account_and_region_are_those_of_the_key_and_its_scope() {
    let world = guarded().await;
    let create = json_request("CreateQueue", &json!({"QueueName": "q"}));
    let created =
        world.raw(sign(create, "123456789012", "other", "eu-west-1", TIME)).await.ok().json();
    let url = created["QueueUrl"].as_str().unwrap();
    assert!(url.ends_with("/123456789012/q"), "{url}");
    let missing = world.raw(good("GetQueueUrl", &json!({"QueueName": "q"}))).await;
    assert_eq!(missing.error().0, "QueueDoesNotExist");
    // A key reaches no other account's queues.
    let theirs =
        world.raw(good("SendMessage", &json!({"QueueUrl": url, "MessageBody": "x"}))).await;
    assert_eq!(theirs.error().0, "AccessDeniedException");
}

#[tokio::test]
async fn errors_are_as_the_service_answers() {
    let world = guarded().await;
    let list = || json_request("ListQueues", &json!({}));
    matches_fixture("unsigned.json", &world.raw(list()).await);
    matches_fixture("unsigned.xml", &world.form("/", &[("Action", "ListQueues")]).await);
    let unknown = world.raw(sign(list(), "NOBODY", SECRET, "us-east-1", TIME)).await;
    matches_fixture("unknown_key.json", &unknown);
    let wrong = world.raw(sign(list(), "AKID", "guess", "us-east-1", TIME)).await;
    matches_fixture("wrong_secret.json", &wrong);
    let mut cut = sign(list(), "AKID", SECRET, "us-east-1", TIME);
    let half =
        "AWS4-HMAC-SHA256 Credential=AKID/20270115/us-east-1/sqs/aws4_request, SignedHeaders=host";
    cut.headers_mut().insert("authorization", half.parse().unwrap());
    matches_fixture("incomplete.json", &world.raw(cut).await);
    let basic =
        Request::post("/").header("authorization", "Basic eDp5").body(Bytes::new()).unwrap();
    assert_eq!(world.raw(basic).await.error().0, "IncompleteSignature");
    let late = world.raw(sign(list(), "AKID", SECRET, "us-east-1", "20270115T074459Z")).await;
    matches_fixture("late.json", &late);
}

#[tokio::test]
async fn a_signature_is_good_for_fifteen_minutes_either_way() {
    let world = guarded().await;
    let list =
        |time| sign(json_request("ListQueues", &json!({})), "AKID", SECRET, "us-east-1", time);
    for good in ["20270115T074500Z", "20270115T081500Z"] {
        world.raw(list(good)).await.ok();
    }
    for bad in ["20270115T074459Z", "20270115T081501Z", "20260115T080000Z"] {
        assert_eq!(world.raw(list(bad)).await.error().0, "InvalidSignatureException", "{bad}");
    }
}

#[tokio::test]
async fn the_host_and_all_headers_of_the_protocol_must_be_signed() {
    let world = guarded().await;
    let mut more = good("ListQueues", &json!({}));
    more.headers_mut().insert("x-amz-extra", "1".parse().unwrap());
    let (code, text) = world.raw(more).await.error();
    assert_eq!(code, "InvalidSignatureException");
    assert!(text.contains("'x-amz-extra' must be a 'SignedHeader'"), "{text}");
    let mut other = good("ListQueues", &json!({}));
    other.headers_mut().insert("x-amz-target", "AmazonSQS.CreateQueue".parse().unwrap());
    assert_eq!(world.raw(other).await.error().0, "InvalidSignatureException");
    let mut unsigned = good("ListQueues", &json!({}));
    unsigned.headers_mut().insert("user-agent", "changed on the way".parse().unwrap());
    world.raw(unsigned).await.ok();
}

#[tokio::test]
async fn each_key_has_its_actions_and_queues() {
    let world = guarded().await;
    for name in ["orders-1", "bills"] {
        world.raw(good("CreateQueue", &json!({"QueueName": name}))).await.ok();
    }
    let ask = |action: &str, body| {
        sign(json_request(action, &body), "LIMITED", "secret", "us-east-1", TIME)
    };
    let url = |name: &str| format!("http://queue.test:9324/000000000000/{name}");
    let send = |name: &str| json!({"QueueUrl": url(name), "MessageBody": "x"});
    world.raw(ask("SendMessage", send("orders-1"))).await.ok();
    let batch = json!({"QueueUrl": url("orders-1"), "Entries": [{"Id": "a", "MessageBody": "x"}]});
    world.raw(ask("SendMessageBatch", batch)).await.ok();
    world.raw(ask("GetQueueUrl", json!({"QueueName": "orders-1"}))).await.ok();
    let listed = world.raw(ask("ListQueues", json!({}))).await.ok().json();
    assert_eq!(listed["QueueUrls"], json!([url("orders-1")]), "others are not shown");
    // Neither are others' queues that have their dead letters in one of its own.
    let policy = json!({"RedrivePolicy": crate::common::redrive("orders-1", 1)});
    for name in ["bills", "orders-2"] {
        let body = json!({"QueueName": name});
        world.raw(good("CreateQueue", &body)).await.ok();
        let body = json!({"QueueUrl": url(name), "Attributes": policy});
        world.raw(good("SetQueueAttributes", &body)).await.ok();
    }
    let sources = json!({"QueueUrl": url("orders-1")});
    let listed = world.raw(ask("ListDeadLetterSourceQueues", sources)).await.ok().json();
    assert_eq!(listed["queueUrls"], json!([url("orders-2")]));
    for (action, body) in [
        ("SendMessage", send("bills")),
        ("GetQueueUrl", json!({"QueueName": "bills"})),
        ("ReceiveMessage", json!({"QueueUrl": url("orders-1")})),
        ("DeleteQueue", json!({"QueueUrl": url("orders-1")})),
    ] {
        let (code, text) = world.raw(ask(action, body)).await.error();
        assert_eq!(code, "AccessDeniedException", "{action}");
        let denied =
            format!("User: LIMITED is not authorized to perform: sqs:{}", action.to_lowercase());
        assert!(text.starts_with(&denied), "{text}");
    }
}

/// A query that is signed for an hour: the parameters are sorted and come before `X`.
fn presigned(path: &str, parameters: &str) -> String {
    let scope = "20270115/us-east-1/sqs/aws4_request";
    let query = format!(
        "{parameters}&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F{}\
         &X-Amz-Date={TIME}&X-Amz-Expires=3600&X-Amz-SignedHeaders=host",
        scope.replace('/', "%2F")
    );
    let canonical = format!(
        "GET\n{path}\n{query}\nhost:queue.test:9324\n\nhost\n{}",
        hex(&Sha256::digest(b""))
    );
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{TIME}\n{scope}\n{}",
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = mac(format!("AWS4{SECRET}").as_bytes(), "20270115");
    for part in ["us-east-1", "sqs", "aws4_request"] {
        key = mac(&key, part);
    }
    format!("{query}&X-Amz-Signature={}", hex(&mac(&key, &to_sign)))
}

fn get(path: &str, query: &str) -> Option<Request<Bytes>> {
    let request = Request::get(format!("{path}?{query}")).header("host", "queue.test:9324");
    request.body(Bytes::new()).ok()
}

const PATH: &str = "/000000000000/q";

#[tokio::test]
async fn a_presigned_address_works_until_it_expires() {
    let world = guarded().await;
    world.raw(good("CreateQueue", &json!({"QueueName": "q"}))).await.ok();
    let query = presigned(PATH, "Action=ReceiveMessage");
    let ask = |query: &str| world.raw(get(PATH, query).unwrap());
    ask(&query).await.ok();
    let changed = query.replace("ReceiveMessage", "PurgeQueue");
    assert_eq!(ask(&changed).await.error().0, "SignatureDoesNotMatch");
    world.pass(3_600);
    ask(&query).await.ok();
    world.pass(1);
    assert_eq!(ask(&query).await.error().0, "SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_signed_query_that_can_be_read_in_two_ways_is_refused() {
    let world = guarded().await;
    world.raw(good("CreateQueue", &json!({"QueueName": "q"}))).await.ok();
    let signed = |query: &str| sign(get(PATH, query).unwrap(), "AKID", SECRET, "us-east-1", TIME);
    let plus = "Action=SendMessage&MessageBody=a%2Bb";
    let twice = "Action=SendMessage&MessageBody=a&MessageBody=b";
    let encoded = "Action=SendMessage&MessageBody=a&Messag%65Body=b";
    for (query, changed) in [
        (plus, "Action=SendMessage&MessageBody=a+b"),
        (twice, "Action=SendMessage&MessageBody=b&MessageBody=a"),
        (twice, twice),
        (twice, encoded),
    ] {
        let mut request = signed(query);
        *request.uri_mut() = format!("{PATH}?{changed}").parse().unwrap();
        assert_eq!(world.raw(request).await.error().0, "SignatureDoesNotMatch", "{changed}");
        let presigned = presigned(PATH, query).replace(query, changed);
        let answer = world.raw(get(PATH, &presigned).unwrap()).await;
        assert_eq!(answer.error().0, "SignatureDoesNotMatch", "{changed}");
    }
    world.raw(signed(plus)).await.ok();
    let body = json!({"QueueUrl": format!("http://queue.test:9324{PATH}")});
    let got = world.raw(good("ReceiveMessage", &body)).await.ok().json();
    assert_eq!(got["Messages"][0]["Body"], "a+b");
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    let world = World::new().await;
    let refused = async |options| {
        millpond_sqs::Sqs::open(&world.ground, options).await.unwrap_err().to_string()
    };
    let keys = |keys| Some(AccessKeys { keys });
    let twice = keys(vec![AccessKey::new("a", "b"), AccessKey::new("a", "c")]);
    assert_eq!(
        refused(SqsOptions { keys: twice, ..SqsOptions::default() }).await,
        "keys has \"a\" twice"
    );
    let empty = keys(vec![AccessKey::new("a", "")]);
    assert!(
        refused(SqsOptions { keys: empty, ..SqsOptions::default() })
            .await
            .contains("secret is empty")
    );
    let url = Some("queues.test".to_owned());
    assert!(
        refused(SqsOptions { public_url: url, ..SqsOptions::default() })
            .await
            .starts_with("public_url")
    );
    let options = SqsOptions { attribute_prefix: String::new(), ..SqsOptions::default() };
    assert!(refused(options).await.starts_with("attribute_prefix"));
}

/// What of a signed request is changed.
fn tamper(request: Request<Bytes>, part: usize, at: &Index, to: u8) -> Option<Request<Bytes>> {
    let (mut parts, body) = request.into_parts();
    let replace = |text: &[u8]| {
        let mut text = text.to_vec();
        let at = at.index(text.len());
        let changed = text[at] != to;
        text[at] = to;
        changed.then_some(text)
    };
    let mut body = body;
    match part {
        0 => body = Bytes::from(replace(&body)?),
        1 => {
            let path = String::from_utf8(replace(b"/000000000000/q")?).ok()?;
            parts.uri = path.parse().ok()?;
        }
        2 => {
            let method = replace(b"POST")?;
            parts.method = http::Method::from_bytes(&method).ok()?;
        }
        _ => {
            let names = ["authorization", "host", "x-amz-date", "x-amz-target", "content-type"];
            let name = names[part % names.len()];
            let value = replace(parts.headers[name].as_bytes())?;
            // Spaces around a value, and more than one within it, mean nothing.
            let words = |text: &[u8]| {
                String::from_utf8_lossy(text)
                    .split(' ')
                    .filter(|w| !w.is_empty())
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            if words(&value) == words(parts.headers[name].as_bytes()) {
                return None;
            }
            parts.headers.insert(name, http::HeaderValue::from_bytes(&value).ok()?);
        }
    }
    Some(Request::from_parts(parts, body))
}

/// What is answered to who is not let in.
const REFUSED: [&str; 6] = [
    "InvalidSignatureException",
    "IncompleteSignatureException",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
    "IncompleteSignature",
    "InvalidClientTokenId",
];

/// The parameters of a query or a form.
fn parameters(text: &[u8]) -> BTreeMap<String, String> {
    form_urlencoded::parse(text).into_owned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_change_of_one_byte_of_a_form_is_refused(at in any::<Index>(), to in any::<u8>()) {
        let form = [("Action", "SendMessage"), ("MessageBody", "a+b c"), ("QueueUrl", PATH)];
        let signed = sign(form_request("/", &form), "AKID", SECRET, "us-east-1", TIME);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = guarded().await;
            let missing = "AWS.SimpleQueueService.NonExistentQueue";
            prop_assert_eq!(world.raw(signed.clone()).await.error().0, missing);
            if let Some(tampered) = tamper(signed, 0, &at, to) {
                let code = world.raw(tampered).await.error().0;
                proptest::prop_assert!(REFUSED.contains(&code.as_str()), "{code}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_change_of_one_byte_of_a_query_is_refused_or_means_nothing(
        is_presigned in any::<bool>(), at in any::<Index>(), to in any::<u8>(),
    ) {
        let plain = "Action=SendMessage&MessageBody=a%2Bb%20c";
        let query = if is_presigned { presigned(PATH, plain) } else { plain.to_owned() };
        let mut changed = query.clone().into_bytes();
        let at = at.index(changed.len());
        changed[at] = to;
        let means_the_same = parameters(&changed) == parameters(query.as_bytes());
        let original = get(PATH, &query).unwrap();
        let signed = if is_presigned { original } else { sign(original, "AKID", SECRET, "us-east-1", TIME) };
        let uri = String::from_utf8(changed).ok().and_then(|query| format!("{PATH}?{query}").parse().ok());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = guarded().await;
            let missing = "AWS.SimpleQueueService.NonExistentQueue";
            prop_assert_eq!(world.raw(signed.clone()).await.error().0, missing);
            if let Some(uri) = uri {
                let mut tampered = signed;
                *tampered.uri_mut() = uri;
                let code = world.raw(tampered).await.error().0;
                let refused = REFUSED.contains(&code.as_str());
                proptest::prop_assert!(refused || (means_the_same && code == missing), "{code}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_change_of_one_byte_is_refused(part in 0..12_usize, at in any::<Index>(), to in any::<u8>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = guarded().await;
            let mut request = json_request("SendMessage", &json!({"MessageBody": "hello"}));
            *request.uri_mut() = "/000000000000/q".parse().unwrap();
            let signed = sign(request, "AKID", SECRET, "us-east-1", TIME);
            // As it is, it is let in, and then there is no such queue.
            prop_assert_eq!(world.raw(signed.clone()).await.error().0, "QueueDoesNotExist");
            if let Some(tampered) = tamper(signed, part, &at, to) {
                let answer = world.raw(tampered).await;
                let code = answer.error().0;
                proptest::prop_assert!(REFUSED.contains(&code.as_str()), "{code}: {}", answer.text);
            }
            Ok(())
        })?;
    }
}
