//! Answers as XML: the names that the Query encoding has for what JSON calls otherwise.

use serde_json::{Map, Value};

use crate::error::Failure;
use crate::message::is_allowed;

const NAMESPACE: &str = "http://queue.amazonaws.com/doc/2012-11-05/";
const DECLARATION: &str = "<?xml version=\"1.0\"?>";

/// An action's answer.
///
/// `has_result`: whether the action has anything to say. One that has says so even when it is nothing at all: clients
/// look for it.
pub fn answer(action: &str, has_result: bool, answer: &Value, request_id: &str) -> String {
    let mut out = format!("{DECLARATION}<{action}Response xmlns=\"{NAMESPACE}\">");
    if has_result {
        out.push_str(&format!("<{action}Result>"));
        if let Value::Object(fields) = answer {
            write_fields(&mut out, action, fields);
        }
        out.push_str(&format!("</{action}Result>"));
    }
    out.push_str("<ResponseMetadata>");
    element(&mut out, "RequestId", request_id);
    out.push_str(&format!("</ResponseMetadata></{action}Response>"));
    out
}

/// What is wrong.
pub fn refusal(failure: &Failure, request_id: &str) -> String {
    let mut out = format!("{DECLARATION}<ErrorResponse xmlns=\"{NAMESPACE}\"><Error>");
    element(&mut out, "Type", failure.code.fault());
    element(&mut out, "Code", failure.code.written().query);
    element(&mut out, "Message", failure.query_text());
    out.push_str("<Detail/></Error>");
    element(&mut out, "RequestId", request_id);
    out.push_str("</ErrorResponse>");
    out
}

fn write_fields(out: &mut String, action: &str, fields: &Map<String, Value>) {
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("Attributes", Value::Object(map)) => pairs(out, "Attribute", "Name", map),
            ("Tags", Value::Object(map)) => pairs(out, "Tag", "Key", map),
            ("MessageAttributes", Value::Object(map)) => {
                pairs(out, "MessageAttribute", "Name", map);
            }
            (_, Value::Array(items)) => {
                for item in items {
                    write_value(out, action, &item_name(action, name), item);
                }
            }
            (_, value) => write_value(out, action, name, value),
        }
    }
}

/// What each item of a list is called.
fn item_name(action: &str, list: &str) -> String {
    match list {
        "Messages" => "Message".to_owned(),
        "QueueUrls" | "queueUrls" => "QueueUrl".to_owned(),
        "Failed" => "BatchResultErrorEntry".to_owned(),
        "Successful" | "Results" => format!("{action}ResultEntry"),
        other => other.to_owned(),
    }
}

fn pairs(out: &mut String, name: &str, key: &str, map: &Map<String, Value>) {
    for (of, value) in map {
        out.push_str(&format!("<{name}>"));
        element(out, key, of);
        write_value(out, name, "Value", value);
        out.push_str(&format!("</{name}>"));
    }
}

fn write_value(out: &mut String, action: &str, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(text) => element(out, name, text),
        Value::Object(fields) => {
            out.push_str(&format!("<{name}>"));
            write_fields(out, action, fields);
            out.push_str(&format!("</{name}>"));
        }
        other => element(out, name, &other.to_string()),
    }
}

fn element(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("<{name}>"));
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader of XML would take it for a line's end.
            '\r' => out.push_str("&#xD;"),
            // These are characters of XML, but readers are advised to expect them only so.
            '\u{7f}'..='\u{9f}' => out.push_str(&format!("&#x{:X};", u32::from(c))),
            c if is_allowed(c) => out.push(c),
            // XML has no way to say these; they come only from what a client sent to be told that it is wrong.
            _ => out.push('\u{fffd}'),
        }
    }
    out.push_str(&format!("</{name}>"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_survive() {
        let mut out = String::new();
        element(&mut out, "Body", "a\r\n\t<b> & \"c\" 🎈 \u{1}\u{ffff}\u{7f}\u{85}\u{9f}\u{a0}");
        assert_eq!(
            out,
            "<Body>a&#xD;\n\t&lt;b&gt; &amp; &quot;c&quot; 🎈 \u{fffd}\u{fffd}&#x7F;&#x85;&#x9F;\u{a0}</Body>"
        );
    }

    #[test]
    fn lists_and_maps_have_their_names() {
        let value = json!({
            "Messages": [{"Body": "x", "Attributes": {"SenderId": "1"},
                "MessageAttributes": {"n": {"DataType": "String", "StringValue": "v"}}}],
            "Successful": [{"Id": "a"}], "Failed": [{"Id": "b", "SenderFault": true}],
        });
        let xml = answer("SendMessageBatch", true, &value, "id");
        for part in [
            "<Message><Attribute><Name>SenderId</Name><Value>1</Value></Attribute><Body>x</Body>",
            "<MessageAttribute><Name>n</Name><Value><DataType>String</DataType>\
             <StringValue>v</StringValue></Value></MessageAttribute></Message>",
            "<SendMessageBatchResultEntry><Id>a</Id></SendMessageBatchResultEntry>",
            "<BatchResultErrorEntry><Id>b</Id><SenderFault>true</SenderFault></BatchResultErrorEntry>",
            "<ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></SendMessageBatchResponse>",
        ] {
            assert!(xml.contains(part), "{part} is not in {xml}");
        }
    }
}
