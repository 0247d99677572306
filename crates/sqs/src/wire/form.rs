//! Parameters of the Query encoding, brought into the shape that JSON has.
//!
//! A form is flat: `Attribute.1.Name=DelaySeconds&Attribute.1.Value=5`. The parts of a name become a tree; the tables
//! below say which of them are lists and maps, and what JSON calls them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Code, Failure, Result};
use crate::limits::LIST_ITEMS_MAX;

/// Most parts of a parameter's name: an entry, its number, an attribute, its number, its value, that one's type.
const PARTS_MAX: usize = 6;

/// Lists of texts, and what JSON calls them.
const LISTS: &[(&str, &str)] = &[
    ("AttributeName", "AttributeNames"),
    ("MessageAttributeName", "MessageAttributeNames"),
    ("MessageSystemAttributeName", "MessageSystemAttributeNames"),
    ("TagKey", "TagKeys"),
    ("AWSAccountId", "AWSAccountIds"),
    ("ActionName", "Actions"),
];

/// Maps: what JSON calls them, and what the key of each entry is called here.
const MAPS: &[(&str, &str, &str)] = &[
    ("Attribute", "Attributes", "Name"),
    ("Tag", "Tags", "Key"),
    ("MessageAttribute", "MessageAttributes", "Name"),
    ("MessageSystemAttribute", "MessageSystemAttributes", "Name"),
];

/// Entries of batches.
const ENTRIES: &[&str] = &[
    "SendMessageBatchRequestEntry",
    "DeleteMessageBatchRequestEntry",
    "ChangeMessageVisibilityBatchRequestEntry",
];

#[derive(Debug, Default)]
struct Node<'a> {
    text: Option<&'a str>,
    parts: BTreeMap<&'a str, Node<'a>>,
}

/// The parameters in the shape that JSON has.
pub fn shape(pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<Value> {
    let mut root = Node::default();
    for (name, value) in pairs {
        let mut at = &mut root;
        for (depth, part) in name.split('.').enumerate() {
            if depth >= PARTS_MAX {
                return Err(malformed("a name has too many parts"));
            }
            at = at.parts.entry(part).or_default();
        }
        at.text = Some(value);
    }
    object(&root)
}

fn object(node: &Node<'_>) -> Result<Value> {
    let mut object = Map::new();
    for (name, part) in &node.parts {
        if let Some((_, json)) = LISTS.iter().find(|(list, _)| list == name) {
            let texts = items(part)?.into_iter().map(|item| Value::from(item.text));
            object.insert((*json).to_owned(), texts.collect());
        } else if let Some((_, json, key)) = MAPS.iter().find(|(map, ..)| map == name) {
            object.insert((*json).to_owned(), map(part, key)?);
        } else if ENTRIES.contains(name) {
            let all = items(part)?.into_iter().map(self::object).collect::<Result<_>>()?;
            object.insert("Entries".to_owned(), Value::Array(all));
        } else if let Some(empty) = part.text.and_then(|text| empty(name, text)) {
            object.insert((*name).to_owned(), empty);
        } else if let Some(text) = part.text {
            object.insert((*name).to_owned(), text.into());
        }
    }
    Ok(Value::Object(object))
}

/// A list or a map with nothing in it: boto sends it by the name that JSON has for it, with an empty text.
fn empty(name: &str, text: &str) -> Option<Value> {
    let is_list = name == "Entries" || LISTS.iter().any(|(_, json)| *json == name);
    let is_map = MAPS.iter().any(|(_, json, _)| *json == name);
    match text {
        "" if is_list => Some(Value::Array(Vec::new())),
        "" if is_map => Some(Value::Object(Map::new())),
        _ => None,
    }
}

/// The items of a list, in the order of their numbers; one without a number is a list by itself.
fn items<'n, 'a>(node: &'n Node<'a>) -> Result<Vec<&'n Node<'a>>> {
    if node.text.is_some() || node.parts.keys().any(|name| name.parse::<u32>().is_err()) {
        return Ok(vec![node]);
    }
    if node.parts.len() > LIST_ITEMS_MAX {
        return Err(malformed("a list is too long"));
    }
    let mut numbered: Vec<(u32, &Node<'a>)> =
        node.parts.iter().filter_map(|(name, item)| Some((name.parse().ok()?, item))).collect();
    numbered.sort_by_key(|(number, _)| *number);
    Ok(numbered.into_iter().map(|(_, item)| item).collect())
}

fn map(node: &Node<'_>, key: &str) -> Result<Value> {
    let mut object = Map::new();
    for item in items(node)? {
        let name = item.parts.get(key).and_then(|name| name.text);
        let Some(name) = name else { return Err(malformed("an entry of a map has no name")) };
        let value = match item.parts.get("Value") {
            Some(Node { text: Some(text), .. }) => (*text).into(),
            Some(parts) => self::object(parts)?,
            None => Value::from(""),
        };
        object.insert(name.to_owned(), value);
    }
    Ok(Value::Object(object))
}

fn malformed(what: &str) -> Failure {
    Failure::new(Code::Serialization, format!("The request cannot be read: {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(form: &str) -> Value {
        let pairs: Vec<_> = form_urlencoded::parse(form.as_bytes()).collect();
        shape(&pairs).unwrap()
    }

    #[test]
    fn lists_and_maps_have_the_shape_of_json() {
        let form = "Action=X&QueueName=q&Attribute.1.Name=DelaySeconds&Attribute.1.Value=5&\
                    AttributeName.2=b&AttributeName.10=c&AttributeName.1=a&Tag.1.Key=k&Tag.1.Value=";
        assert_eq!(
            read(form),
            json!({
                "Action": "X", "QueueName": "q", "Attributes": {"DelaySeconds": "5"},
                "AttributeNames": ["a", "b", "c"], "Tags": {"k": ""},
            })
        );
        assert_eq!(read("AttributeName=All"), json!({"AttributeNames": ["All"]}));
        let single = "Attribute.Name=DelaySeconds&Attribute.Value=5";
        assert_eq!(read(single), json!({"Attributes": {"DelaySeconds": "5"}}));
    }

    #[test]
    fn entries_hold_maps_of_their_own() {
        let form = "SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=x&\
                    SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=n&\
                    SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=String&\
                    SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue=v";
        let attributes = json!({"n": {"DataType": "String", "StringValue": "v"}});
        assert_eq!(
            read(form),
            json!({"Entries": [{"Id": "a", "MessageBody": "x", "MessageAttributes": attributes}]})
        );
    }

    #[test]
    fn empty_lists_and_maps_are_told_from_texts() {
        let form = "Entries=&AttributeNames=&Attributes=&MessageBody=";
        let (list, map) = (json!([]), json!({}));
        let empty =
            json!({"Entries": list, "AttributeNames": list, "Attributes": map, "MessageBody": ""});
        assert_eq!(read(form), empty);
    }

    #[test]
    fn a_name_of_many_parts_is_refused() {
        let pairs = vec![(Cow::from("a.b.c.d.e.f.g"), Cow::from("x"))];
        assert_eq!(shape(&pairs).unwrap_err().code, Code::Serialization);
    }
}
